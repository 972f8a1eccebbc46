import DequeModule

/// What a session has to tell, oldest first, with at most one pending progress report per message.
struct EventQueue: Sendable {
    private var events = Deque<FramingEvent>()
    /// The latest progress of the message being sent. It is told after `events`, and before the message's own end.
    private var latestProgress: (id: MessageID, acceptedBytes: Int)?

    mutating func received(_ message: [UInt8]) {
        events.append(.received(message))
    }

    mutating func progress(_ id: MessageID, acceptedBytes: Int) {
        if let latest = latestProgress, latest.id != id { flushProgress() }
        latestProgress = (id, acceptedBytes)
    }

    mutating func sent(_ id: MessageID) {
        flushProgress()
        events.append(.sent(id))
    }

    /// Whether ``next()`` has an event.
    var isEmpty: Bool { events.isEmpty && latestProgress == nil }

    mutating func next() -> FramingEvent? {
        if let event = events.popFirst() { return event }
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
