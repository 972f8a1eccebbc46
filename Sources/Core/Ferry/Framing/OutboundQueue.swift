/// The messages that wait to be sent, oldest first, and how far the first has got. That one is kept apart, so that chunks are cut from
/// its bytes in place. For this package's framings that send one message after the other.
@usableFromInline
package struct OutboundQueue: Sendable {
    package struct Message: Sendable {
        package var id: MessageID
        package var payload: [UInt8]
        /// It was taken back, and its place is passed over.
        var isCancelled = false
    }

    /// The message being sent. Means something only when the queue is not empty.
    package private(set) var first = Message(id: MessageID(rawValue: 0), payload: [])
    @usableFromInline package private(set) var isEmpty = true
    /// How many bytes of ``first``, as its framing counts them, the link has accepted.
    package var acceptedBytes = 0
    /// The messages behind the first, and the places of those that were taken back.
    private(set) var waiting = RingQueue<Message>()
    /// How many of ``waiting`` are to be sent.
    package private(set) var waitingCount = 0

    package init() {}

    package mutating func append(_ payload: [UInt8], as id: MessageID) {
        let message = Message(id: id, payload: payload)
        if isEmpty {
            first = message
            isEmpty = false
        } else {
            waiting.append(message)
            waitingCount += 1
        }
    }

    /// Whether the link has accepted bytes of the first message, which is then not taken back.
    package var hasBegun: Bool { acceptedBytes > 0 }

    /// Tells that the link has accepted the first message up to `end`, and moves up the next when that was all of it: for framings that
    /// count the message's own bytes, and write nothing behind them.
    package mutating func accept(upTo end: Int, telling events: inout FramingEventQueue) {
        acceptedBytes = end
        events.progress(first.id, acceptedBytes: end)
        guard end == first.payload.count else { return }
        events.sent(first.id)
        removeFirst()
    }

    /// Lets go of the first message and moves up the next.
    package mutating func removeFirst() {
        acceptedBytes = 0
        while let next = waiting.popFirst() {
            if next.isCancelled { continue }
            waitingCount -= 1
            first = next
            return
        }
        first.payload = []
        isEmpty = true
    }

    /// Takes a message back that has not begun. Returns false when it has, or is not there.
    package mutating func cancel(_ id: MessageID) -> Bool {
        guard !isEmpty, first.id == id else { return removeWaiting(id) }
        guard !hasBegun else { return false }
        removeFirst()
        return true
    }

    /// The bytes go at once, the place with the others when they are more than half, so that taking back all of many takes no
    /// longer for each.
    private mutating func removeWaiting(_ id: MessageID) -> Bool {
        guard let index = index(of: id) else { return false }
        waiting[index].isCancelled = true
        waiting[index].payload = []
        waitingCount -= 1
        if waiting.count > 2 * waitingCount + 32 { waiting.removeAll { $0.isCancelled } }
        return true
    }

    /// The fate of a message that is not sent any further.
    package func fate(of id: MessageID) -> MessageFate {
        if !isEmpty, first.id == id { return hasBegun ? .takenBack : .nothingSent }
        return index(of: id) == nil ? .mayHaveArrived : .nothingSent
    }

    /// By halving, since messages are numbered in the order of sending; two that were sent at the same time from two threads
    /// may stand the other way round, and then every place is looked at.
    private func index(of id: MessageID) -> Int? {
        var low = 0
        var high = waiting.count
        while low < high {
            let middle = (low + high) / 2
            if waiting[middle].id < id { low = middle + 1 } else { high = middle }
        }
        if low < waiting.count, waiting[low].id == id { return waiting[low].isCancelled ? nil : low }
        return waiting.firstIndex { $0.id == id && !$0.isCancelled }
    }
}
