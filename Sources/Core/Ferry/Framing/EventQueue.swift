/// What a session has to tell, oldest first, with at most one pending progress report per message. For this package's
/// framings.
@usableFromInline
package struct EventQueue: Sendable {
    /// What ``next()`` has to tell. Most often nothing or a step of progress, and then it is known without a call, and the
    /// caller's compiler knows what it gets.
    @usableFromInline
    enum Pending: Sendable { case nothing, progress, events, eventsThenProgress }

    @usableFromInline var pending = Pending.nothing
    private var events = Queue<FramingEvent>()
    /// The latest progress of the message being sent, where there is some. It is told after `events`, and before the
    /// message's own end.
    @usableFromInline var progressID = MessageID(rawValue: 0)
    @usableFromInline var progressBytes = 0

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

    @inlinable @inline(__always)
    package mutating func next() -> FramingEvent? {
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
