/// What a session has to tell, oldest first, with at most one pending progress report per message. For this package's
/// framings.
@usableFromInline
package struct EventQueue: Sendable {
    /// What ``next()`` has to tell: most often nothing or a step of progress.
    private enum Pending: Sendable { case nothing, progress, events, eventsThenProgress }

    private var pending = Pending.nothing
    private var events = RingQueue<FramingEvent>()
    /// The latest progress of the message being sent, where there is some. It is told after `events`, and before the
    /// message's own end.
    private var progressID = MessageID(rawValue: 0)
    private var progressBytes = 0

    package init() {}

    /// How many events there are besides progress.
    package var count: Int { events.count }

    package mutating func received(_ message: [UInt8]) { append(.received(message)) }

    package mutating func receiveFailed(_ error: FerryError) { append(.receiveFailed(error)) }

    @inline(__always)
    package mutating func progress(_ id: MessageID, acceptedBytes: Int) {
        if pending == .nothing {
            pending = .progress
        } else if pending != .progress || progressID != id {
            addProgress(of: id)
        }
        progressID = id
        progressBytes = acceptedBytes
    }

    package mutating func sent(_ id: MessageID) {
        flushProgress()
        append(.sent(id))
    }

    package mutating func failed(_ id: MessageID, _ error: FerryError) {
        flushProgress()
        append(.failed(id, error))
    }

    @usableFromInline @inline(__always)
    package mutating func next() -> FramingEvent? {
        switch pending {
        case .nothing: return nil
        case .progress:
            pending = .nothing
            return .progress(progressID, acceptedBytes: progressBytes)
        case .events, .eventsThenProgress: return nextEvent()
        }
    }

    @inline(never)
    private mutating func nextEvent() -> FramingEvent? {
        let event = events.popFirst()
        if events.isEmpty { pending = pending == .events ? .nothing : .progress }
        return event
    }

    @inline(never)
    private mutating func addProgress(of id: MessageID) {
        if progressID != id { flushProgress() }
        pending = events.isEmpty ? .progress : .eventsThenProgress
    }

    private mutating func append(_ event: FramingEvent) {
        pending = pending == .nothing || pending == .events ? .events : .eventsThenProgress
        events.append(event)
    }

    private mutating func flushProgress() {
        guard pending == .progress || pending == .eventsThenProgress else { return }
        events.append(.progress(progressID, acceptedBytes: progressBytes))
        pending = .events
    }
}
