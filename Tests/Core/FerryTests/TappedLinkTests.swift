import Ferry
import Synchronization
import TestSupport
import Testing

@Suite(.tags(.core, .channel)) struct TappedLinkTests {
    @Test func tellsTheObserverAndPassesEverythingOn() throws {
        let inner = CountingLink(capacity: 2)
        let observer = Recorder()
        let receiver = Recorder()
        let link = TappedLink(inner, observer: observer)
        link.activate(receiver)

        #expect(link.maximumChunkSize == 20)
        #expect(try link.trySend(bytes(1, 2).span.bytes))
        #expect(try link.trySend(bytes(3).span.bytes))
        #expect(try !link.trySend(bytes(4, 5).span.bytes))
        inner.drain()
        #expect(try link.trySend(bytes(4, 5).span.bytes))
        inner.deliver([9, 8, 7])
        link.setReceiving(false)
        link.close()

        #expect(inner.calls == ["send 1 2", "send 3", "full", "send 4 5", "receiving false", "close"])
        #expect(
            observer.calls == ["sent 1 2", "sent 3", "refused 4 5", "ready", "sent 4 5", "received 9 8 7", "closed"])
        #expect(receiver.calls == ["ready", "received 9 8 7", "closed"])
    }

    /// A link that reconnects stays one behind a tap.
    @Test func suspensionsAndReplacementsPassThrough() {
        let inner = CountingLink(capacity: 1)
        let receiver = Recorder()
        let link = TappedLink(inner, observer: Recorder())
        link.activate(receiver)
        #expect(link.replaceConnection())
        inner.resume()
        #expect(inner.calls == ["replace"])
        #expect(receiver.calls == ["suspended disconnected", "resumed"])
        #expect(link.peer == inner.peer)
    }

    @Test func anErrorOfTheLinkIsThrownAndNotReportedAsSent() {
        let inner = CountingLink(capacity: 2)
        let observer = Recorder()
        let link = TappedLink(inner, observer: observer)
        let error = #expect(throws: FerryError.self) { try link.trySend([UInt8]().span.bytes) }
        #expect(error?.code == .emptyChunk)
        #expect(observer.calls == [])
    }

    @Test func anObserverNeedsToSayNothing() throws {
        final class Silent: LinkObserver {}
        let inner = CountingLink(capacity: 1)
        let receiver = Recorder()
        let link = TappedLink(inner, observer: Silent())
        link.activate(receiver)
        #expect(try link.trySend(bytes(1).span.bytes))
        #expect(try !link.trySend(bytes(2).span.bytes))
        inner.drain()
        inner.deliver([3])
        link.close()
        #expect(receiver.calls == ["ready", "received 3", "closed"])
    }
}

/// Takes `capacity` chunks, then refuses until it is drained.
private final class CountingLink: Link {
    private struct State {
        var receiver: (any LinkReceiver)?
        var space: Int
        var calls: [String] = []
    }

    private let capacity: Int
    private let state: Mutex<State>

    init(capacity: Int) {
        self.capacity = capacity
        state = Mutex(State(space: capacity))
    }

    var calls: [String] { state.withLock { $0.calls } }
    var peer: PeerIdentity { PeerIdentity("script", certainty: .address) }
    var maximumChunkSize: Int { 20 }

    func activate(_ receiver: any LinkReceiver) { state.withLock { $0.receiver = receiver } }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        guard chunk.byteCount > 0 else { throw FerryError(.emptyChunk, "empty") }
        let text = describe(chunk)
        return state.withLock { state in
            state.calls.append(state.space > 0 ? "send \(text)" : "full")
            guard state.space > 0 else { return false }
            state.space -= 1
            return true
        }
    }

    func setReceiving(_ isReceiving: Bool) { state.withLock { $0.calls.append("receiving \(isReceiving)") } }

    func close() {
        let receiver = state.withLock { state in
            state.calls.append("close")
            return state.receiver
        }
        receiver?.linkDidClose(FerryError(.closed, "closed"))
    }

    func replaceConnection() -> Bool {
        let receiver = state.withLock { state in
            state.calls.append("replace")
            return state.receiver
        }
        receiver?.linkDidSuspend(FerryError(.disconnected, "given up"))
        return true
    }

    func resume() { state.withLock { $0.receiver }?.linkDidResume() }

    func drain() {
        let receiver = state.withLock { state in
            state.space = capacity
            return state.receiver
        }
        receiver?.linkIsReady()
    }

    func deliver(_ chunk: [UInt8]) {
        let receiver = state.withLock { $0.receiver }
        receiver?.linkDidReceive(chunk.span.bytes)
    }
}

private final class Recorder: LinkObserver, LinkReceiver {
    private let state = Mutex<[String]>([])

    var calls: [String] { state.withLock { $0 } }

    private func note(_ call: String) { state.withLock { $0.append(call) } }

    func linkDidSend(_ chunk: RawSpan) { note("sent \(describe(chunk))") }
    func linkDidRefuse(_ chunk: RawSpan) { note("refused \(describe(chunk))") }
    func linkIsReady() { note("ready") }
    func linkDidReceive(_ chunk: RawSpan) { note("received \(describe(chunk))") }
    func linkDidClose(_ reason: FerryError) { note("\(reason.code)") }
    func linkDidSuspend(_ reason: FerryError) { note("suspended \(reason.code)") }
    func linkDidResume() { note("resumed") }
}

private func bytes(_ bytes: UInt8...) -> [UInt8] { bytes }

private func describe(_ chunk: RawSpan) -> String {
    chunk.byteOffsets.map { String(chunk.unsafeLoad(fromByteOffset: $0, as: UInt8.self)) }.joined(separator: " ")
}
