@testable import FerrySequenced
import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// What a link that outlives its connections does with each of them.
@Suite(.tags(.sequenced, .recovery)) struct ResumableLinkTests {
    private final class Witness: LinkReceiver {
        let calls = Mutex<[String]>([])
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) { calls.withLock { $0.append("chunk \(chunk.byteCount)") } }
        func linkDidClose(_ reason: FerryError) { calls.withLock { $0.append("close \(reason.code)") } }
        func linkDidSuspend(_ reason: FerryError) { calls.withLock { $0.append("suspend \(reason.code)") } }
        func linkDidResume() { calls.withLock { $0.append("resume") } }
        var all: [String] { calls.withLock { $0 } }
    }

    private final class Events: Sendable {
        let names = Mutex<[String]>([])
        let unused = Mutex<[any Link]>([])
        func note(_ event: ResumableLink.Event) {
            let name =
                switch event {
                case .firstChunk(let chunk): "first \(chunk.count)"
                case .suspended: "suspended"
                case .resumed: "resumed"
                case .ended(let port): port == nil ? "ended" : "ended with one unused"
                }
            names.withLock { $0.append(name) }
            if case .ended(let port?) = event { unused.withLock { $0.append(port.link) } }
        }
        var all: [String] { names.withLock { $0 } }
    }

    private func pair() -> (MemoryLink, MemoryLink) { MemoryLink.makePair(maximumChunkSize: 20) }
    private func isOpen(_ link: MemoryLink) -> Bool {
        do { return try link.trySend([UInt8(1)].span.bytes) } catch { return false }
    }
    private let lost = FerryError(.disconnected, "out of range")

    @Test func suspendsAndResumesInOrder() {
        let (first, second) = (pair(), pair())
        let events = Events()
        let link = ResumableLink(over: first.0) { events.note($0) }
        let witness = Witness()
        link.activate(witness)
        #expect(isOpen(first.1))
        first.1.deliver()
        first.0.disconnect(lost)
        #expect(link.adopt(second.0))
        #expect(isOpen(second.1))
        second.1.deliver()
        link.close()
        link.close()
        #expect(witness.all == ["chunk 1", "suspend disconnected", "resume", "chunk 1", "close closed"])
        #expect(events.all == ["first 1", "suspended", "resumed", "first 1", "ended"])
    }

    /// The peer has noticed before us: its new connection brings the old one to its end.
    @Test func aNewConnectionReplacesALiveOne() {
        let (first, second) = (pair(), pair())
        let link = ResumableLink(over: first.0) { _ in }
        let witness = Witness()
        link.activate(witness)
        #expect(link.adopt(second.0))
        #expect(!isOpen(first.1))
        #expect(isOpen(second.1))
        second.1.deliver()
        #expect(witness.all == ["suspend closed", "resume", "chunk 1"])
    }

    /// Only the newest of several connections is kept, and the others are closed.
    @Test func connectionsThatWaitAreReplaced() {
        let links = (pair(), pair(), pair())
        let events = Events()
        let link = ResumableLink(over: links.0.0) { events.note($0) }
        #expect(link.adopt(links.1.0))
        #expect(link.adopt(links.2.0))
        #expect(!isOpen(links.0.1))
        #expect(!isOpen(links.1.1))
        #expect(isOpen(links.2.1))
        let witness = Witness()
        link.activate(witness)
        links.2.1.deliver()
        #expect(witness.all == ["suspend closed", "resume", "chunk 1"])
    }

    @Test func anEndedLinkTakesNoConnection() {
        let (first, second) = (pair(), pair())
        let link = ResumableLink(over: first.0) { _ in }
        link.close()
        #expect(!link.adopt(second.0))
        #expect(isOpen(second.1))
        let witness = Witness()
        link.activate(witness)
        #expect(witness.all == ["close closed"])
        #expect(throws: FerryError.self) { try link.trySend([UInt8(1)].span.bytes) }
        #expect(!link.replaceConnection())
    }

    /// What waited to take the last connection's place is given back at the end.
    @Test func anUnusedConnectionIsGivenBack() {
        let (first, second) = (pair(), pair())
        let events = Events()
        let link = ResumableLink(over: first.0) { events.note($0) }
        #expect(link.adopt(second.0))
        link.close()
        #expect(events.all == ["ended with one unused"])
        #expect(events.unused.withLock { $0.first } === second.0)
        #expect(isOpen(second.1))
    }

    /// A pause holds for the next connection.
    @Test func aPauseHoldsForTheNextConnection() {
        let (first, second) = (pair(), pair())
        let link = ResumableLink(over: first.0) { _ in }
        link.activate(Witness())
        link.setReceiving(false)
        first.0.disconnect(lost)
        #expect(link.adopt(second.0))
        #expect(!second.0.isReceiving)
        link.setReceiving(true)
        #expect(second.0.isReceiving)
    }

    @Test func whatACallerDidWrongIsThrown() throws {
        let (first, _) = (pair(), 0)
        let link = ResumableLink(over: first.0) { _ in }
        link.activate(Witness())
        let large = #expect(throws: FerryError.self) { try link.trySend(pattern(21).span.bytes) }
        #expect(large?.code == .chunkTooLarge)
        let empty = #expect(throws: FerryError.self) { try link.trySend([UInt8]().span.bytes) }
        #expect(empty?.code == .emptyChunk)
        first.0.disconnect(lost)
        #expect(try link.trySend([UInt8(1)].span.bytes) == false)
        #expect(link.maximumChunkSize == 20)
        #expect(link.peer == first.0.peer)
    }

    /// The end while a connection is missing is told at once.
    @Test func endingWhileSuspendedTellsTheReceiver() {
        let first = pair()
        let events = Events()
        let link = ResumableLink(over: first.0) { events.note($0) }
        let witness = Witness()
        link.activate(witness)
        first.0.disconnect(lost)
        link.end(FerryError(.timedOut, "patience"))
        #expect(witness.all == ["suspend disconnected", "close timedOut"])
        #expect(events.all == ["suspended", "ended"])
    }

    /// A receiver that closes the link when it hears of the loss is told of the end after that, once.
    @Test func closingWhileBeingToldOfTheLoss() {
        final class Closer: LinkReceiver {
            let calls = Mutex<[String]>([])
            let link = Mutex<ResumableLink?>(nil)
            func linkIsReady() {}
            func linkDidReceive(_ chunk: RawSpan) {}
            func linkDidClose(_ reason: FerryError) { calls.withLock { $0.append("close \(reason.code)") } }
            func linkDidSuspend(_ reason: FerryError) {
                link.withLock { $0 }?.close()
                calls.withLock { $0.append("suspended") }
            }
        }
        let first = pair()
        let events = Events()
        let link = ResumableLink(over: first.0) { events.note($0) }
        let closer = Closer()
        closer.link.withLock { $0 = link }
        link.activate(closer)
        first.0.disconnect(lost)
        #expect(closer.calls.withLock { $0 } == ["suspended", "close closed"])
        #expect(events.all == ["ended"])
        closer.link.withLock { $0 = nil }
    }

    /// Until it is known whose they are, chunks are held; more than 64 KiB end the connection rather than being lost.
    @Test func heldChunksAreBounded() {
        let (near, far) = MemoryLink.makePair(maximumChunkSize: 4096, queueDepth: 100)
        let port = LinkPort(near)
        let first = Mutex<[Int?]>([])
        port.peek { chunk in first.withLock { $0.append(chunk?.count) } }
        #expect(isOpen(far))
        far.deliver()
        #expect(!near.isReceiving, "the peer is asked to pause")
        near.setReceiving(true)
        for _ in 0..<16 {
            _ = try? far.trySend(pattern(4096).span.bytes)
            far.deliver()
        }
        #expect(!isOpen(far))
        #expect(first.withLock { $0 } == [1])
        let link = ResumableLink(over: port) { _ in }
        let witness = Witness()
        link.activate(witness)
        #expect(witness.all.count == 17)
        #expect(witness.all.last == "suspend queueFull")
    }
}
