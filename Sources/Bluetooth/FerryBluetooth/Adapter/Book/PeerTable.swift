import DequeModule

/// The names of an adapter's peers: a ``PeerID`` for the adapter's own key of a peer, such as an address or an object's
/// path, and the way back.
///
/// Any device can advertise under a new address at any rate, so a full table forgets, of the peers without a holder,
/// the one named first. It gets another name when it is met again.
public struct PeerTable<Key: Hashable & Sendable>: Sendable {
    /// The most keys that are kept, beside those that are held.
    public let limit: Int
    private var names: [Key: PeerID] = [:]
    private var keys: [PeerID: Key] = [:]
    private var order: Deque<Key> = []

    /// Makes an empty table.
    public init(limit: Int = 1024) { self.limit = limit }

    /// How many keys have a name.
    public var count: Int { names.count }

    /// What the peer with this name is known by; nil once it is forgotten.
    public func key(of name: PeerID) -> Key? { keys[name] }

    /// The name of a peer; nil if it has none.
    public func name(of key: Key) -> PeerID? { names[key] }

    /// The name of a peer, who is given one if it has none.
    ///
    /// - Parameters:
    ///   - key: what the peer is known by.
    ///   - proposal: the name to give.
    ///   - held: the peers that are in use, and keep their names: connected, being connected to, or bonded.
    /// - Returns: the name, and the keys that were forgotten to make room.
    public mutating func name(
        _ key: Key, _ proposal: @autoclosure () -> PeerID = .random(), held: Set<Key> = []
    ) -> (name: PeerID, forgotten: [Key]) {
        if let known = names[key] { return (known, []) }
        let made = proposal()
        enter(key, made)
        var forgotten: [Key] = []
        for _ in 0..<order.count where order.count > limit {
            let oldest = order.removeFirst()
            guard oldest != key, !held.contains(oldest) else {
                order.append(oldest)
                continue
            }
            if let name = names.removeValue(forKey: oldest), keys[name] == oldest { keys[name] = nil }
            forgotten.append(oldest)
        }
        return (made, forgotten)
    }

    /// A peer is found to be known by another key as well, by which it is reached from now on: a bond has told the address
    /// that it keeps. Nothing happens when the one has no name, or the other has one.
    public mutating func add(_ key: Key, for known: Key) {
        if let name = names[known], names[key] == nil { enter(key, name) }
    }

    private mutating func enter(_ key: Key, _ name: PeerID) {
        names[key] = name
        keys[name] = key
        order.append(key)
    }
}
