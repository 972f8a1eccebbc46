/// The waiters for connections. Several roles, and several tasks of one role, may wait for the same peer: there is one
/// attempt, each waiter gets its own hold on the connection, and the last one to leave cancels the attempt.
public struct ConnectionAttempts<Key: Hashable & Sendable, Connection: Sendable>: Sendable {
    /// One call of ``CentralRole/connect(to:events:)``.
    public struct Wait: Sendable {
        /// The role that was asked.
        public let role: UInt64
        /// The peer's name.
        public let peripheral: PeerID
        /// Who is told what happens on the connection.
        public let events: any PeripheralConnectionEvents
        /// Where the outcome goes.
        public let waiter: Waiter<Connection>
    }

    /// With the number of each call.
    private var waits: [Key: [(number: UInt64, wait: Wait)]] = [:]
    private var lastNumber: UInt64 = 0

    /// No waiters.
    public init() {}

    /// The peers with a waiter.
    public var keys: [Key] { Array(waits.keys) }

    /// Those who wait for a peer, in the order of their calls.
    public subscript(key: Key) -> [Wait] { waits[key]?.map(\.wait) ?? [] }

    /// Whether there is a waiter for a peer.
    public func contains(_ key: Key) -> Bool { waits[key] != nil }

    /// A role waits for a peer from now on.
    public mutating func add(
        _ waiter: Waiter<Connection>, of role: UInt64, for key: Key, _ peripheral: PeerID,
        _ events: any PeripheralConnectionEvents
    ) {
        let wait = Wait(role: role, peripheral: peripheral, events: events, waiter: waiter)
        lastNumber += 1
        waits[key, default: []].append((lastNumber, wait))
    }

    /// Completes and removes all waiters for a peer.
    public mutating func take(_ key: Key) -> [Wait] { waits.removeValue(forKey: key)?.map(\.wait) ?? [] }

    /// One of them has its outcome, or its task was cancelled. Returns whether it was the last: the attempt is called off.
    @discardableResult
    public mutating func remove(_ waiter: Waiter<Connection>, for key: Key) -> Bool {
        guard contains(key) else { return false }
        waits[key]?.removeAll { $0.wait.waiter === waiter }
        if waits[key]?.isEmpty == true { waits[key] = nil }
        return !contains(key)
    }

    /// Gives up for some, such as those of a role that was closed.
    ///
    /// - Returns: those whose waiters are to be resumed with the reason, in the order of their calls, and the peers
    ///   without a waiter left.
    public mutating func giveUp(where isOver: (Wait) -> Bool) -> (waits: [Wait], abandoned: [Key]) {
        let over = waits.flatMap { key, all in all.filter { isOver($0.wait) }.map { (key, $0.number, $0.wait) } }
            .sorted { $0.1 < $1.1 }
        let abandoned = over.compactMap { key, _, wait in remove(wait.waiter, for: key) ? key : nil }
        return (over.map(\.2), abandoned)
    }
}
