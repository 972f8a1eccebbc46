/// The version of SMP in a header: it decides how errors are written.
public enum SMPVersion: UInt8, Sendable, Hashable, CaseIterable {
    /// Errors are `{"rc": code}`.
    case one = 0
    /// Errors of a group are `{"err": {"group": group, "rc": code}}`, those of SMP itself are as in version 1.
    case two = 1
}

/// What a message is.
public enum SMPOperation: UInt8, Sendable, Hashable, CaseIterable {
    /// Asks for something.
    case read = 0
    /// Answers ``read``.
    case readResponse = 1
    /// Asks for a change.
    case write = 2
    /// Answers ``write``.
    case writeResponse = 3

    /// The answer to a request; nil for an answer.
    public var response: SMPOperation? {
        switch self {
        case .read: .readResponse
        case .write: .writeResponse
        case .readResponse, .writeResponse: nil
        }
    }
}

/// The 8 bytes that begin every message of the Simple Management Protocol, which name the command and the length of its body.
///
/// Source: Zephyr, `doc/services/device_mgmt/smp_protocol.rst`.
public struct SMPHeader: Sendable, Hashable {
    /// Its size in bytes.
    public static let byteCount = 8
    /// The most bytes that can follow it.
    public static let maximumPayload = Int(UInt16.max)

    /// The version the sender speaks.
    public var version: SMPVersion
    /// What the message is.
    public var operation: SMPOperation
    /// How many bytes follow the header.
    public var payloadCount: UInt16
    /// The group of commands.
    public var group: SMPGroup
    /// Matches an answer with its request.
    public var sequence: UInt8
    /// The command in its group.
    public var command: UInt8

    /// Makes a header.
    public init(
        version: SMPVersion = .two, operation: SMPOperation, payloadCount: UInt16 = 0, group: SMPGroup,
        sequence: UInt8, command: UInt8
    ) {
        self.version = version
        self.operation = operation
        self.payloadCount = payloadCount
        self.group = group
        self.sequence = sequence
        self.command = command
    }

    /// Reads the header of a message; nil when there are fewer than 8 bytes, or when they are none of a header: an operation
    /// above 3, a version above 1, or a reserved bit. The flags, which no version has given a meaning, are passed over.
    public init?(_ message: [UInt8]) {
        guard message.count >= Self.byteCount else { return nil }
        self.init(bits: message.prefix(Self.byteCount).reduce(0) { $0 << 8 | UInt64($1) })
    }

    /// Reads the header from its 8 bytes as one big-endian number.
    init?(bits: UInt64) {
        let first = UInt8(truncatingIfNeeded: bits >> 56)
        guard first >> 5 == 0, let version = SMPVersion(rawValue: first >> 3),
            let operation = SMPOperation(rawValue: first & 7)
        else { return nil }
        self.init(
            version: version, operation: operation, payloadCount: UInt16(truncatingIfNeeded: bits >> 32),
            group: SMPGroup(rawValue: UInt16(truncatingIfNeeded: bits >> 16)),
            sequence: UInt8(truncatingIfNeeded: bits >> 8), command: UInt8(truncatingIfNeeded: bits))
    }

    /// The 8 bytes.
    public var bytes: [UInt8] {
        [
            version.rawValue << 3 | operation.rawValue, 0, UInt8(payloadCount >> 8), UInt8(payloadCount & 0xFF),
            UInt8(group.rawValue >> 8), UInt8(group.rawValue & 0xFF), sequence, command,
        ]
    }

    /// A whole message: this header, with the payload's length, and the payload. Longer payloads than
    /// ``maximumPayload`` are cut: check before.
    public func message(_ payload: [UInt8]) -> [UInt8] {
        var header = self
        header.payloadCount = UInt16(clamping: payload.count)
        return header.bytes + payload.prefix(Self.maximumPayload)
    }
}

/// A group of commands.
public struct SMPGroup: RawRepresentable, Sendable, Hashable {
    /// The group's number.
    public let rawValue: UInt16
    /// Makes a group; 64 and more are the device's own.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// Echo, parameters, information, reset.
    public static let system = SMPGroup(rawValue: 0)
    /// Firmware images.
    public static let image = SMPGroup(rawValue: 1)
    /// Settings by name.
    public static let settings = SMPGroup(rawValue: 3)
    /// Files.
    public static let files = SMPGroup(rawValue: 8)
    /// A line for the device's shell.
    public static let shell = SMPGroup(rawValue: 9)
}

/// The commands that Ferry's client and server know, by their group.
enum SMPCommand {
    static let echo: UInt8 = 0
    static let reset: UInt8 = 5
    static let parameters: UInt8 = 6
    static let information: UInt8 = 7

    static let imageState: UInt8 = 0
    static let imageUpload: UInt8 = 1
    static let imageErase: UInt8 = 5

    static let setting: UInt8 = 0
    static let settingDelete: UInt8 = 1
    static let settingCommit: UInt8 = 2
    static let settingStore: UInt8 = 3

    static let file: UInt8 = 0
    static let fileStatus: UInt8 = 1
    static let fileClose: UInt8 = 4

    static let shell: UInt8 = 0
}
