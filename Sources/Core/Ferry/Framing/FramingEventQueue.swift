/// What a framing's session has to tell, oldest first, with at most one pending progress report per message.
///
/// ``next()`` is most often asked when there is nothing or a step of progress. It is compiled into the session that asks, and through that
/// into the channel, so that this costs no call.
public struct FramingEventQueue: Sendable {
    /// What ``next()`` has to tell.
    @usableFromInline
    enum Pending: Sendable { case nothing, progress, events, eventsThenProgress }

    @usableFromInline var pending = Pending.nothing
    private var events = RingQueue<FramingEvent>()
    /// The latest progress of the message being sent, where there is some. It is told after `events`, and before the
    /// message's own end.
    @usableFromInline var progressID = MessageID(rawValue: 0)
    @usableFromInline var progressBytes = 0

    /// Has nothing to tell.
    public init() {}

    /// How many events there are besides progress.
    public var count: Int { events.count }

    /// A message has arrived.
    public mutating func received(_ message: [UInt8]) { append(.received(message)) }

    /// A message has arrived that cannot be handed over; those behind it can.
    public mutating func receiveFailed(_ error: FerryError) { append(.receiveFailed(error)) }

    /// The link has accepted this number of a message's bytes. This replaces an earlier report of the same message that ``next()`` has not
    /// returned yet.
    @inlinable @inline(__always)
    public mutating func progress(_ id: MessageID, acceptedBytes: Int) {
        if pending == .nothing {
            pending = .progress
        } else if pending != .progress || progressID != id {
            addProgress(of: id)
        }
        progressID = id
        progressBytes = acceptedBytes
    }

    /// All of a message has been accepted.
    public mutating func sent(_ id: MessageID) {
        flushProgress()
        append(.sent(id))
    }

    /// A message will not be sent.
    public mutating func failed(_ id: MessageID, _ error: FerryError) {
        flushProgress()
        append(.failed(id, error))
    }

    /// Takes the next event out; nil when there is none.
    @inlinable @inline(__always)
    public mutating func next() -> FramingEvent? {
        switch pending {
        case .nothing: return nil
        case .progress:
            pending = .nothing
            return .progress(progressID, acceptedBytes: progressBytes)
        case .events, .eventsThenProgress: return nextEvent()
        }
    }

    @usableFromInline @inline(never)
    mutating func nextEvent() -> FramingEvent? {
        let event = events.popFirst()
        if events.isEmpty { pending = pending == .events ? .nothing : .progress }
        return event
    }

    @usableFromInline @inline(never)
    mutating func addProgress(of id: MessageID) {
        if progressID != id { flushProgress() }
        pending = events.isEmpty ? .progress : .eventsThenProgress
    }

    private mutating func append(_ event: FramingEvent) {
        pending = pending == .nothing || pending == .events ? .events : .eventsThenProgress
        events.append(event)
    }

    /// Moves the pending progress to the end of the events, before the next one.
    private mutating func flushProgress() {
        guard pending == .progress || pending == .eventsThenProgress else { return }
        events.append(.progress(progressID, acceptedBytes: progressBytes))
        pending = .events
    }
}
