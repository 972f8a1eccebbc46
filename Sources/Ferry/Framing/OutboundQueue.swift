import DequeModule

/// The messages that wait to be sent, oldest first. The first is kept apart, so that chunks are cut from its bytes in
/// place.
struct OutboundQueue: Sendable {
    struct Message: Sendable {
        var id: MessageID
        var payload: [UInt8]
    }

    /// The message being sent. Means something only when the queue is not empty.
    private(set) var first = Message(id: MessageID(rawValue: 0), payload: [])
    private(set) var isEmpty = true
    /// The messages behind the first.
    private(set) var waiting = Deque<Message>()

    mutating func append(_ payload: [UInt8], as id: MessageID) {
        let message = Message(id: id, payload: payload)
        if isEmpty {
            first = message
            isEmpty = false
        } else {
            waiting.append(message)
        }
    }

    /// Lets go of the first message and moves up the next.
    mutating func removeFirst() {
        if let next = waiting.popFirst() {
            first = next
        } else {
            first.payload = []
            isEmpty = true
        }
    }

    /// Removes a message from behind the first. Returns false when it is not there.
    mutating func removeWaiting(_ id: MessageID) -> Bool {
        guard let index = waiting.firstIndex(where: { $0.id == id }) else { return false }
        waiting.remove(at: index)
        return true
    }
}
