import Ferry
import Synchronization

/// What is observed of one direction of a link: how many chunks are on their way, over time.
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

    /// Forgets what was, and counts from now.
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

/// A tap around a link: tells one meter of what is sent, another of what arrives.
final class MeteredLink: Link {
    private let link: any Link
    private let outbound: LinkMeter?
    private let inbound: LinkMeter?

    init(_ link: any Link, outbound: LinkMeter? = nil, inbound: LinkMeter? = nil) {
        self.link = link
        self.outbound = outbound
        self.inbound = inbound
    }

    var peer: PeerIdentity { link.peer }
    var maximumChunkSize: Int { link.maximumChunkSize }

    func activate(_ receiver: any LinkReceiver) {
        link.activate(Tap(receiver: receiver, outbound: outbound, inbound: inbound))
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let isAccepted = try link.trySend(chunk)
        outbound?.note(isAccepted ? .accepted : .refused)
        return isAccepted
    }

    func setReceiving(_ isReceiving: Bool) { link.setReceiving(isReceiving) }
    func close() { link.close() }

    private final class Tap: LinkReceiver {
        let receiver: any LinkReceiver
        let outbound: LinkMeter?
        let inbound: LinkMeter?

        init(receiver: any LinkReceiver, outbound: LinkMeter?, inbound: LinkMeter?) {
            self.receiver = receiver
            self.outbound = outbound
            self.inbound = inbound
        }

        func linkIsReady() {
            outbound?.note(.ready)
            receiver.linkIsReady()
        }

        func linkDidReceive(_ chunk: RawSpan) {
            inbound?.note(.delivered)
            receiver.linkDidReceive(chunk)
        }

        func linkDidClose(_ reason: FerryError) { receiver.linkDidClose(reason) }
    }
}
