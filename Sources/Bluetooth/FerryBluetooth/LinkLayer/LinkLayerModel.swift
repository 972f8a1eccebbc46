public import Ferry

/// The radio below a virtual adapter: decides when what the hosts have queued goes over the air, and whether.
///
/// A value without I/O, clock or randomness; one models one radio with all of its connections. The owner keeps the
/// bytes in one queue per connection and direction and tells the model only their sizes. After every call with a time
/// it calls ``poll(at:)`` until nil, then sets a timer for ``deadline``. Units of one direction of one connection are
/// accepted and delivered in the order of their queueing, so events need not name them.
public protocol LinkLayerModel: Sendable {
    /// Opens a connection. The first connection event follows within one connection interval.
    mutating func open(_ connection: LinkLayerConnection, at now: Timestamp)

    /// Closes a connection and drops its queue; no event follows. Unknown ones are ignored.
    mutating func close(_ connection: LinkLayerConnection, at now: Timestamp)

    /// Moves the ends of a connection out of one another's range, or back. Out of range nothing arrives.
    mutating func setInRange(_ isInRange: Bool, on connection: LinkLayerConnection, at now: Timestamp)

    /// Queues one unit in the host of `sender`. Ignored when the connection is not open.
    mutating func enqueue(
        _ unit: LinkLayerUnit, from sender: LinkLayerRole, on connection: LinkLayerConnection, at now: Timestamp)

    /// The next thing that happened up to `now`, oldest first.
    mutating func poll(at now: Timestamp) -> LinkLayerEvent?

    /// When to call ``poll(at:)`` next, or nil when nothing will happen before another unit is queued.
    var deadline: Timestamp? { get }
}

/// Names a connection towards a ``LinkLayerModel``; the owner chooses the numbers.
public struct LinkLayerConnection: Sendable, Hashable {
    /// The owner's number.
    public let rawValue: UInt32
    /// Makes a name.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// The two ends of a connection (Core Specification 5.4, Vol 6, Part B, 1.1).
public enum LinkLayerRole: Int, Sendable, Hashable, CaseIterable {
    /// The end that starts each connection event.
    case central = 0
    /// The end that answers.
    case peripheral = 1

    /// The other end.
    public var peer: LinkLayerRole { self == .central ? .peripheral : .central }
}

/// What a host hands to its controller as one: an ATT PDU, an SDU of an L2CAP channel, or plain link-layer payload.
public struct LinkLayerUnit: Sendable, Hashable {
    /// Bytes within L2CAP frames, without their basic headers.
    public let byteCount: Int
    /// The most bytes that one L2CAP frame carries, its 4-byte basic header not counted.
    public let frameSize: Int
    /// Bytes of L2CAP basic header per frame: 4, or 0 for plain link-layer payload.
    public let headerSize: Int

    private init(byteCount: Int, frameSize: Int, headerSize: Int) {
        self.byteCount = max(0, byteCount)
        self.frameSize = max(1, frameSize)
        self.headerSize = headerSize
    }

    /// An ATT PDU of `length` bytes, opcode and handle included, in one basic frame (Core Specification 5.4, Vol 3,
    /// Part A, 3.1). A notification or a write has 3 bytes more than its value.
    public static func attribute(pduLength length: Int) -> LinkLayerUnit {
        LinkLayerUnit(byteCount: length, frameSize: .max, headerSize: 4)
    }

    /// An SDU of a credit-based channel, cut into K-frames of at most `maximumPayloadSize` (MPS) bytes; the first also
    /// carries the 2-byte SDU length (Core Specification 5.4, Vol 3, Part A, 3.4.3).
    public static func sdu(length: Int, maximumPayloadSize: Int) -> LinkLayerUnit {
        LinkLayerUnit(byteCount: length + 2, frameSize: maximumPayloadSize, headerSize: 4)
    }

    /// Plain link-layer payload without L2CAP, for comparison with figures that are given so.
    public static func raw(_ length: Int) -> LinkLayerUnit {
        LinkLayerUnit(byteCount: length, frameSize: .max, headerSize: 0)
    }
}

/// What a ``LinkLayerModel`` has to tell.
public enum LinkLayerEvent: Sendable, Hashable {
    /// The oldest unit in `sender`'s host queue has left it for the controller: there is space for another.
    case accepted(LinkLayerConnection, sender: LinkLayerRole)
    /// The oldest undelivered unit of `sender` has arrived whole at its peer.
    case delivered(LinkLayerConnection, sender: LinkLayerRole)
    /// Nothing was heard for the supervision timeout; the connection is closed.
    case lost(LinkLayerConnection)
}
