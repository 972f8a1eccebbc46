/// Which of the two sides of a link this one is. Transports tell it, for framings in which the sides differ.
@frozen public enum LinkRole: Sendable, Hashable, CaseIterable {
    /// This side connected: Bluetooth LE's central, a socket's client, the opener of an L2CAP channel.
    case initiator
    /// This side was connected to: Bluetooth LE's peripheral, a socket's server, the acceptor of an L2CAP channel.
    case responder

    /// The other side's.
    public var other: LinkRole { self == .initiator ? .responder : .initiator }
}
