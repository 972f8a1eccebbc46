/// What went over the air in one direction of a connection.
public struct DirectionStatistics: Sendable, Hashable {
    /// Units that arrived whole.
    public var units = 0
    /// Link-layer payload bytes that arrived, L2CAP headers included.
    public var payloadBytes = 0
    /// Packets sent with payload, retransmissions included.
    public var dataPackets = 0
    /// Packets sent again because no acknowledgement had come.
    public var retransmissions = 0
    /// Packets sent without payload.
    public var emptyPackets = 0
    /// Packets that arrived damaged.
    public var damagedPackets = 0

    /// Nothing yet.
    public init() {}
}

/// What happened on a connection so far.
public struct ConnectionStatistics: Sendable, Hashable {
    /// Connection events that took place.
    public var events = 0
    /// Connection events that gave way to another connection of the same radio.
    public var missedEvents = 0
    /// Most exchanges in one connection event.
    public var mostExchangesPerEvent = 0
    /// What the central sent.
    public var fromCentral = DirectionStatistics()
    /// What the peripheral sent.
    public var fromPeripheral = DirectionStatistics()

    /// Nothing yet.
    public init() {}
}
