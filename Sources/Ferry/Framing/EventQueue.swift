import DequeModule

/// What a session has to tell, oldest first, with at most one pending progress report per message.
@usableFromInline
struct EventQueue: Sendable {
    /// Whether ``next()`` has nothing to tell: most often so, and then known without a call.
    @usableFromInline private(set) var isEmpty = true
    private var events = Deque<FramingEvent>()
    /// The latest progress of the message being sent. It is told after `events`, and before the message's own end.
    private var latestProgress: (id: MessageID, acceptedBytes: Int)?

    mutating func received(_ message: [UInt8]) {
        events.append(.received(message))
        isEmpty = false
    }

    mutating func progress(_ id: MessageID, acceptedBytes: Int) {
        if let latest = latestProgress, latest.id != id { flushProgress() }
        latestProgress = (id, acceptedBytes)
        isEmpty = false
    }

    mutating func sent(_ id: MessageID) {
        flushProgress()
        events.append(.sent(id))
        isEmpty = false
    }

    @usableFromInline
    mutating func next() -> FramingEvent? {
        if let event = events.popFirst() {
            isEmpty = events.isEmpty && latestProgress == nil
            return event
        }
        isEmpty = true
        guard let latest = latestProgress else { return nil }
        latestProgress = nil
        return .progress(latest.id, acceptedBytes: latest.acceptedBytes)
    }

    private mutating func flushProgress() {
        guard let latest = latestProgress else { return }
        latestProgress = nil
        events.append(.progress(latest.id, acceptedBytes: latest.acceptedBytes))
    }
}
