import DequeModule
import Ferry
import Histogram
import Synchronization

/// Who sent what when, and when it arrived.
final class MessageLog: Sendable {
    /// One central's messages.
    struct Entry: Sendable {
        var underWay = Deque<Timestamp>()
        var sent = 0
        var received = 0
        var lastReceived: Timestamp?
        /// The sender's channel after its last message had been sent whole.
        var statistics: ChannelStatistics?
    }

    private struct State {
        var entries: [Entry]
        /// Why the first sender gave up.
        var failure: (any Error)?
        /// Latencies in microseconds, to three digits.
        var histogram = Histogram<UInt32>(numberOfSignificantValueDigits: .three)
    }

    private let state: Mutex<State>

    init(centrals: Int) { state = Mutex(State(entries: Array(repeating: Entry(), count: centrals))) }

    func willSend(_ index: Int, at now: Timestamp) {
        state.withLock { $0.entries[index].underWay.append(now) }
    }

    func didSend(_ index: Int, _ statistics: ChannelStatistics) {
        state.withLock {
            $0.entries[index].sent += 1
            $0.entries[index].statistics = statistics
        }
    }

    func didFail(_ error: any Error) { state.withLock { $0.failure = $0.failure ?? error } }

    /// Why a sender gave up; what had arrived before counts all the same.
    var failure: (any Error)? { state.withLock { $0.failure } }

    /// Messages of one link arrive in the order of sending.
    func didReceive(_ index: Int, at now: Timestamp) {
        state.withLock { state in
            state.entries[index].received += 1
            state.entries[index].lastReceived = now
            guard let sent = state.entries[index].underWay.popFirst() else { return }
            state.histogram.record(UInt64(max(0, (now - sent).wholeNanoseconds / 1_000)))
        }
    }

    /// Whether a message has been sent and has not arrived.
    func isUnderWay(_ index: Int) -> Bool { state.withLock { !$0.entries[index].underWay.isEmpty } }

    var entries: [Entry] { state.withLock { $0.entries } }

    /// Messages that the slowest central has received.
    var received: Int { state.withLock { $0.entries.map(\.received).min() ?? 0 } }

    var latency: BenchResult.Latency {
        state.withLock { state in
            func value(_ percentile: Double) -> Double {
                Double(state.histogram.valueAtPercentile(percentile)) / 1_000
            }
            let percentiles = [0, 10, 25, 50, 75, 90, 95, 99, 99.5, 99.9, 99.99, 100]
            return BenchResult.Latency(
                median: value(50), p90: value(90), p99: value(99), p999: value(99.9),
                maximum: Double(state.histogram.maxRecorded) / 1_000, curve: percentiles.map { [$0, value($0)] })
        }
    }
}
