public import Ferry

/// Where a gateway publishes records to: a stream of NATS, a broker of MQTT.
///
/// The contract, which `OutletConformance` of FerryTesting checks:
///
/// - **Acknowledged.** ``OutletAnswer/taken(isDuplicate:)`` means that the server has answered for the message. No other answer says
///   so, and until then the caller keeps the record.
/// - **In order.** A lane is one sender's stream. The caller has one message of a lane on its way at a time, and repeats it until it is
///   taken or refused. The outlet never delivers a message of a lane for the first time after a later message of that lane.
/// - **At least once.** After ``OutletAnswer/unanswered(_:)`` the message may have arrived, and the caller's repetition arrives beside
///   it. Both carry the same ``OutletMessage/key``, by which consumers keep one.
/// - **Bounded.** ``publish(_:)`` answers within the outlet's own timeout, also when the server is silent. Messages that the outlet has no
///   room for are answered with ``OutletAnswer/full(_:)`` at once, and are not queued.
/// - **Reconnects.** After a loss of the connection the outlet connects again by itself until it is closed; meanwhile it answers
///   ``OutletAnswer/gone(_:)`` or ``OutletAnswer/unanswered(_:)``.
public protocol Outlet: Sendable {
    /// Publishes a message, and waits for the server's answer or the outlet's timeout. Calls for different lanes may overlap.
    func publish(_ message: OutletMessage) async -> OutletAnswer

    /// How many connections there have been, the first included. A server that was connected to again may have lost what it had
    /// answered for: servers answer before their disks have synced. Zero for outlets to which this cannot happen, which is the default.
    var connections: UInt64 { get }

    /// Disconnects. Messages on their way and those published from now on are answered with something else than `taken`, unless the
    /// server answered for them before. Closing again does nothing.
    func close() async
}

extension Outlet {
    /// Zero.
    public var connections: UInt64 { 0 }
}

/// A record on its way to an ``Outlet``.
public struct OutletMessage: Sendable, Hashable {
    /// One sender's stream, within which messages are in order.
    public struct Lane: Sendable, Hashable {
        /// The sender's name; any text.
        public let sender: String
        /// The stream's name; any text, also empty.
        public let stream: String

        /// Makes a lane.
        public init(sender: String, stream: String) {
            self.sender = sender
            self.stream = stream
        }
    }

    /// A name and a value beside the bytes, such as the peer's name.
    public struct Field: Sendable, Hashable {
        /// Its name: visible ASCII characters and no colon.
        public let name: String
        /// Its value: visible ASCII characters, at least one.
        public let value: String

        /// Makes a field.
        public init(_ name: String, _ value: String) {
            self.name = name
            self.value = value
        }
    }

    /// The lane.
    public let lane: Lane
    /// The record's name, by which consumers know doubles: visible ASCII characters, at least one, the same for each repetition.
    public let key: String
    /// Fields, at most one of a name.
    public let fields: [Field]
    /// The record.
    public let bytes: [UInt8]

    /// Makes a message.
    public init(_ lane: Lane, key: String, fields: [Field] = [], bytes: [UInt8]) {
        self.lane = lane
        self.key = key
        self.fields = fields
        self.bytes = bytes
    }
}

/// An outlet's answer to a message.
public enum OutletAnswer: Sendable {
    /// The server has answered for the message; `isDuplicate` says that it had it already, where the server can tell.
    case taken(isDuplicate: Bool)
    /// There is no room now. The message was not taken; repeat it later.
    case full(FerryError)
    /// There is no connection. The message was not sent; repeat it later.
    case gone(FerryError)
    /// No answer came in time. The message may have arrived; repeat it later.
    case unanswered(FerryError)
    /// The message can never be taken as things are, such as one that is too large. Messages after it can.
    case refused(FerryError)

    /// Whether the server has answered for the message.
    public var isTaken: Bool {
        if case .taken = self { true } else { false }
    }

    /// Whether the message is to be repeated: it was neither taken nor refused.
    public var isToRepeat: Bool {
        switch self {
        case .full, .gone, .unanswered: true
        case .taken, .refused: false
        }
    }

    /// Why the message was not taken; `nil` for one that was.
    public var error: FerryError? {
        switch self {
        case .taken: nil
        case .full(let error), .gone(let error), .unanswered(let error), .refused(let error): error
        }
    }
}

/// Text as a level of an address, such as a word of a NATS subject or a level of an MQTT topic.
public enum OutletAddress {
    /// Letters, digits, `-` and `_` of ASCII stay; any other byte of UTF-8 becomes `%` and two digits; the empty text is `%`.
    public static func level(_ text: String) -> String {
        guard !text.isEmpty else { return "%" }
        var bytes: [UInt8] = []
        bytes.reserveCapacity(text.utf8.count)
        for byte in text.utf8 {
            switch byte {
            case 0x30...0x39, 0x41...0x5A, 0x61...0x7A, 0x2D, 0x5F: bytes.append(byte)
            default:
                bytes.append(0x25)
                for digit in [byte >> 4, byte & 15] { bytes.append(digit < 10 ? 0x30 + digit : 0x37 + digit) }
            }
        }
        return String(decoding: bytes, as: UTF8.self)
    }
}
