import DequeModule

/// The names of an adapter's peers: a ``PeerID`` for whatever the adapter knows a peer by, such as an address or an object's
/// path, and the way back.
///
/// Anyone can advertise under a new address as often as they like, so a table that is full forgets the peer that was named
/// first of those that nobody holds. It is met again under another name.
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
