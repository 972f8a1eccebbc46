import DequeModule

/// Payloads that wait to be sealed, in order. Taking one back costs no search.
struct WaitingPayloads: Sendable {
    struct Entry: Sendable {
        let id: MessageID
        let payload: [UInt8]
        let options: SendOptions
    }

    private var order: Deque<MessageID> = []
    private var entries: [MessageID: Entry] = [:]

    var isEmpty: Bool { entries.isEmpty }

    func contains(_ id: MessageID) -> Bool { entries[id] != nil }

    mutating func append(_ payload: [UInt8], as id: MessageID, _ options: SendOptions) {
        order.append(id)
        entries[id] = Entry(id: id, payload: payload, options: options)
    }

    mutating func remove(_ id: MessageID) -> Bool {
        guard entries.removeValue(forKey: id) != nil else { return false }
        if order.count > 64, order.count > 2 * entries.count { order.removeAll { entries[$0] == nil } }
        return true
    }

    mutating func popFirst() -> Entry? {
        while let id = order.popFirst() {
            if let entry = entries.removeValue(forKey: id) { return entry }
        }
        return nil
    }
}

/// Sealed messages that are not out yet.
struct SealedUnderWay: Sendable {
    private struct Entry {
        let plain: Int
        let sealed: Int
        var accepted = 0
    }

    private var entries: [MessageID: Entry] = [:]
    /// Sealed bytes that have not been accepted.
    private(set) var remaining = 0

    mutating func begin(_ id: MessageID, plain: Int, sealed: Int) {
        entries[id] = Entry(plain: plain, sealed: sealed)
        remaining += sealed
    }

    /// How many of a message's plain bytes are out, when `accepted` of the sealed ones are; nil for a message of the handshake.
    mutating func progress(_ id: MessageID, _ accepted: Int) -> Int? {
        guard var entry = entries[id] else { return nil }
        remaining -= max(0, accepted - entry.accepted)
        entry.accepted = max(accepted, entry.accepted)
        entries[id] = entry
        return max(0, accepted - (entry.sealed - entry.plain))
    }

    mutating func end(_ id: MessageID) {
        guard let entry = entries.removeValue(forKey: id) else { return }
        remaining -= entry.sealed - entry.accepted
    }
}
