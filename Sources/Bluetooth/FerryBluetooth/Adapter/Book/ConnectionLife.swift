/// The life of one owner's hold on a connection to a peripheral: open, then perhaps ending, then ended for good.
public enum ConnectionLife: Sendable {
    /// It can be used.
    case open(any PeripheralConnectionEvents)
    /// The end has begun, for this reason: nothing more is asked. The owner is told unless it has gone itself.
    case ending(BluetoothError, (any PeripheralConnectionEvents)?)
    /// The owner has been told of the end.
    case ended(BluetoothError)

    /// Receives the events; nil after the last one.
    public var events: (any PeripheralConnectionEvents)? {
        switch self {
        case .open(let events): events
        case .ending(_, let events): events
        case .ended: nil
        }
    }

    /// Why it ends or has ended.
    public var reason: BluetoothError? {
        switch self {
        case .open: nil
        case .ending(let reason, _), .ended(let reason): reason
        }
    }

    /// Whether the owner has been told of the end.
    public var isOver: Bool { if case .ended = self { true } else { false } }

    /// Refuses every call after the end has begun.
    ///
    /// - Throws: the reason of the end.
    public func requireOpen() throws(BluetoothError) { if let reason { throw reason } }

    /// The end begins. Returns whether it had not before.
    ///
    /// - Parameters:
    ///   - reason: why, as the owner is told.
    ///   - isSilent: whether the owner has gone, and is not told; also when the end has begun before.
    @discardableResult
    public mutating func beginEnding(_ reason: BluetoothError, isSilent: Bool = false) -> Bool {
        switch self {
        case .open(let events):
            self = .ending(reason, isSilent ? nil : events)
            return true
        case .ending(let first, _):
            if isSilent { self = .ending(first, nil) }
            return false
        case .ended: return false
        }
    }

    /// It has ended; the reason for which its end has begun goes before any other. Returns who is to be told, and what, once.
    public mutating func end(
        _ reason: BluetoothError
    ) -> (events: any PeripheralConnectionEvents, reason: BluetoothError)? {
        let (events, reason) = (events, self.reason ?? reason)
        self = .ended(reason)
        return events.map { ($0, reason) }
    }
}
