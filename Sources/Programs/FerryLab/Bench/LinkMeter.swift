import Ferry
import Synchronization

/// Observations of one direction of a link: how many chunks are on their way, over time.
final class LinkMeter: Sendable {
    private struct State {
        var depth = 0
        var maximum = 0
        var lastChange = Timestamp.zero
        var depthTime = 0.0
        var isRecording = false
        var steps: [(Timestamp, TransferTimeline.Kind, Int)] = []
    }

    /// Most steps that are recorded for a timeline.
    private static let mostSteps = 20_000

    private let time: any TimeSource
    private let state = Mutex(State())

    init(time: any TimeSource) { self.time = time }

    /// Forgets the past, and counts from now.
    func start(recording: Bool = false) {
        let now = time.now
        state.withLock {
            $0.lastChange = now
            $0.depthTime = 0
            $0.maximum = $0.depth
            $0.isRecording = recording
        }
    }

    func note(_ kind: TransferTimeline.Kind) {
        let now = time.now
        state.withLock { state in
            state.depthTime += Double(state.depth) * Double((now - state.lastChange).wholeNanoseconds)
            state.lastChange = now
            switch kind {
            case .accepted: state.depth += 1
            case .delivered: state.depth -= 1
            case .refused, .ready: break
            }
            state.maximum = max(state.maximum, state.depth)
            if state.isRecording, state.steps.count < Self.mostSteps { state.steps.append((now, kind, state.depth)) }
        }
    }

    /// Mean and greatest depth since `start`.
    func depth(since start: Timestamp) -> BenchResult.QueueDepth {
        let now = time.now
        return state.withLock { state in
            let total = state.depthTime + Double(state.depth) * Double((now - state.lastChange).wholeNanoseconds)
            let duration = Double((now - start).wholeNanoseconds)
            return BenchResult.QueueDepth(mean: duration > 0 ? total / duration : 0, maximum: state.maximum)
        }
    }

    func steps(since start: Timestamp) -> [TransferTimeline.Step] {
        state.withLock { state in
            state.steps.map {
                TransferTimeline.Step(
                    time: Double(($0.0 - start).wholeNanoseconds) / 1e6, kind: $0.1, depth: $0.2)
            }
        }
    }
}

/// Tells a meter of each chunk sent through a tapped link.
final class SendingTap: LinkObserver {
    private let meter: LinkMeter
    init(_ meter: LinkMeter) { self.meter = meter }

    func linkDidSend(_ chunk: RawSpan) { meter.note(.accepted) }
    func linkDidRefuse(_ chunk: RawSpan) { meter.note(.refused) }
    func linkIsReady() { meter.note(.ready) }
}

/// Tells a meter of what arrives through a tapped link.
final class ReceivingTap: LinkObserver {
    private let meter: LinkMeter
    init(_ meter: LinkMeter) { self.meter = meter }

    func linkDidReceive(_ chunk: RawSpan) { meter.note(.delivered) }
}
