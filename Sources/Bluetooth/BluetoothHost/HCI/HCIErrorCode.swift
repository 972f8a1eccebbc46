/// A controller's error or reason code (Core Specification 5.4, Vol 1, Part F).
public struct HCIErrorCode: Sendable, Hashable, CustomStringConvertible {
    /// The code as sent.
    public let rawValue: UInt8
    /// Makes a code.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// No error.
    public static let success = HCIErrorCode(rawValue: 0x00)
    /// The controller does not know the command.
    public static let unknownCommand = HCIErrorCode(rawValue: 0x01)
    /// There is no such connection (any more).
    public static let unknownConnection = HCIErrorCode(rawValue: 0x02)
    /// The peer has not proved who it is.
    public static let authenticationFailure = HCIErrorCode(rawValue: 0x05)
    /// The peer has not the key.
    public static let keyMissing = HCIErrorCode(rawValue: 0x06)
    /// The controller has no memory left.
    public static let memoryCapacityExceeded = HCIErrorCode(rawValue: 0x07)
    /// Nothing was heard of the peer for the supervision timeout.
    public static let connectionTimeout = HCIErrorCode(rawValue: 0x08)
    /// The controller has no room for another connection.
    public static let connectionLimitExceeded = HCIErrorCode(rawValue: 0x09)
    /// The command is not possible in the present state.
    public static let commandDisallowed = HCIErrorCode(rawValue: 0x0C)
    /// The controller does not offer that.
    public static let unsupportedFeature = HCIErrorCode(rawValue: 0x11)
    /// A parameter is outside its legal range.
    public static let invalidParameters = HCIErrorCode(rawValue: 0x12)
    /// The peer's user ended the connection.
    public static let remoteUserTerminated = HCIErrorCode(rawValue: 0x13)
    /// The peer ended the connection for lack of resources.
    public static let remoteLowResources = HCIErrorCode(rawValue: 0x14)
    /// The peer ended the connection because it is being switched off.
    public static let remotePowerOff = HCIErrorCode(rawValue: 0x15)
    /// This side ended the connection.
    public static let terminatedByLocalHost = HCIErrorCode(rawValue: 0x16)
    /// The peer does not offer that.
    public static let unsupportedRemoteFeature = HCIErrorCode(rawValue: 0x1A)
    /// An error without its own code. Used here for a controller that was lost.
    public static let unspecified = HCIErrorCode(rawValue: 0x1F)
    /// The peer did not answer at the link layer.
    public static let linkLayerResponseTimeout = HCIErrorCode(rawValue: 0x22)
    /// The connection was never really there: no packet of the peer arrived after it was made.
    public static let failedToBeEstablished = HCIErrorCode(rawValue: 0x3E)

    /// The code's name in the specification, and its number.
    public var description: String {
        let name = Self.names[rawValue] ?? "reserved error code"
        return "\(name) (0x\(String(rawValue, radix: 16)))"
    }

    private static let names: [UInt8: String] = [
        0x00: "success", 0x01: "unknown HCI command", 0x02: "unknown connection identifier", 0x03: "hardware failure",
        0x05: "authentication failure", 0x06: "PIN or key missing", 0x07: "memory capacity exceeded",
        0x08: "connection timeout", 0x09: "connection limit exceeded", 0x0B: "connection already exists",
        0x0C: "command disallowed", 0x0D: "rejected for limited resources", 0x0E: "rejected for security reasons",
        0x11: "unsupported feature or parameter value", 0x12: "invalid HCI command parameters",
        0x13: "remote user terminated connection", 0x14: "remote device terminated for low resources",
        0x15: "remote device terminated for power off", 0x16: "connection terminated by local host",
        0x17: "repeated attempts", 0x18: "pairing not allowed", 0x1A: "unsupported remote feature",
        0x1E: "invalid LL parameters", 0x1F: "unspecified error", 0x20: "unsupported LL parameter value",
        0x22: "LL response timeout", 0x23: "LL procedure collision", 0x28: "instant passed",
        0x29: "pairing with unit key not supported", 0x2A: "different transaction collision",
        0x2F: "insufficient security", 0x30: "parameter out of mandatory range", 0x3A: "controller busy",
        0x3B: "unacceptable connection parameters", 0x3C: "advertising timeout",
        0x3D: "connection terminated for MIC failure", 0x3E: "connection failed to be established",
        0x42: "unknown advertising identifier", 0x43: "limit reached", 0x44: "operation cancelled by host",
        0x45: "packet too long",
    ]
}
