import Ferry
import FerryTesting
import Synchronization

/// A link that takes what a closure says, and whose end the test brings.
final class ScriptedLink: Link {
    private struct State {
        var receiver: (any LinkReceiver)?
        var sizes: [Int]
        var taken: [[UInt8]] = []
        var isClosed = false
    }

    let peer = PeerIdentity("script", certainty: .address)
    private let state: Mutex<State>
    private let answer: @Sendable (Int, [UInt8]) throws(FerryError) -> Bool

    /// - Parameters:
    ///   - sizes: what `maximumChunkSize` answers, one after the other; the last stays.
    ///   - answer: what becomes of each chunk, with its number.
    init(sizes: [Int], _ answer: @escaping @Sendable (Int, [UInt8]) throws(FerryError) -> Bool) {
        state = Mutex(State(sizes: sizes))
        self.answer = answer
    }

    var taken: [[UInt8]] { state.withLock { $0.taken } }
    var isClosed: Bool { state.withLock { $0.isClosed } }

    var maximumChunkSize: Int {
        state.withLock { $0.sizes.count > 1 ? $0.sizes.removeFirst() : $0.sizes[0] }
    }

    func activate(_ receiver: any LinkReceiver) { state.withLock { $0.receiver = receiver } }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let bytes = chunk.withUnsafeBytes { Array($0) }
        guard try answer(state.withLock { $0.taken.count }, bytes) else { return false }
        state.withLock { $0.taken.append(bytes) }
        return true
    }

    func setReceiving(_ isReceiving: Bool) {}

    func close() {
        let receiver = state.withLock { state in
            state.isClosed = true
            return state.receiver.take()
        }
        receiver?.linkDidClose(FerryError(.closed, "This side closed the link."))
    }

    func receive(_ bytes: [UInt8]) { state.withLock { $0.receiver }?.linkDidReceive(bytes.span.bytes) }
}

/// Time that can jump, as when a machine sleeps: the clock goes on and no timer fires meanwhile.
final class SleepyTime: TimeSource {
    let time = VirtualTime()
    private let slept = Mutex(Duration.zero)

    var now: Timestamp { time.now + slept.withLock { $0 } }

    func sleepMachine(_ duration: Duration) { slept.withLock { $0 += duration } }

    func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        time.schedule(at: deadline + (.zero - slept.withLock { $0 }), action)
    }
}
