/// Notices silence in the middle of a message: for framings, which ask for ``deadline`` while a message has arrived in part.
public struct StallDetector: Sendable {
    private let timeout: Int64
    @usableFromInline var lastArrival = Timestamp.zero
    private var isPaused = false

    /// Silence lasts too long after `timeout` (``Limits/inboundStallTimeout``).
    public init(timeout: Duration) { self.timeout = timeout.wholeNanoseconds }

    /// The peer is not silent.
    @inlinable public mutating func chunkArrived(at now: Timestamp) { lastArrival = now }

    /// While this side has paused the peer its silence is not counted (``FramingSession/pauseReceiving(_:at:)``).
    public mutating func pause(_ isPaused: Bool, at now: Timestamp) {
        self.isPaused = isPaused
        lastArrival = now
    }

    /// When the silence has lasted too long, held at ``Timestamp/distantFuture``; nil while it is not counted.
    public var deadline: Timestamp? {
        if isPaused { return nil }
        let (sum, overflow) = lastArrival.nanoseconds.addingReportingOverflow(timeout)
        return overflow ? .distantFuture : Timestamp(nanoseconds: sum)
    }
}
