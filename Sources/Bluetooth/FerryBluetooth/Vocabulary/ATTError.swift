/// Why an attribute request was refused (Core Specification 5.4, Vol 3, Part F, 3.4.1.1, table 3.4).
public struct ATTError: Error, Sendable, Hashable {
    /// The code as sent in the Error Response.
    public let rawValue: UInt8
    /// Makes an error from its code; 0x80 to 0x9F belong to the application.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// The attribute does not exist.
    public static let invalidHandle = ATTError(rawValue: 0x01)
    /// The attribute cannot be read.
    public static let readNotPermitted = ATTError(rawValue: 0x02)
    /// The attribute cannot be written.
    public static let writeNotPermitted = ATTError(rawValue: 0x03)
    /// The PDU was malformed.
    public static let invalidPDU = ATTError(rawValue: 0x04)
    /// The peer must authenticate first.
    public static let insufficientAuthentication = ATTError(rawValue: 0x05)
    /// The server does not support the request.
    public static let requestNotSupported = ATTError(rawValue: 0x06)
    /// The offset is past the end of the value.
    public static let invalidOffset = ATTError(rawValue: 0x07)
    /// The peer is not allowed to.
    public static let insufficientAuthorization = ATTError(rawValue: 0x08)
    /// Too many prepared writes wait.
    public static let prepareQueueFull = ATTError(rawValue: 0x09)
    /// No attribute of that type in the range.
    public static let attributeNotFound = ATTError(rawValue: 0x0A)
    /// The value cannot be read in parts.
    public static let attributeNotLong = ATTError(rawValue: 0x0B)
    /// The encryption key is too short.
    public static let insufficientEncryptionKeySize = ATTError(rawValue: 0x0C)
    /// The value has the wrong length.
    public static let invalidAttributeValueLength = ATTError(rawValue: 0x0D)
    /// Something unlikely went wrong.
    public static let unlikelyError = ATTError(rawValue: 0x0E)
    /// The link must be encrypted first.
    public static let insufficientEncryption = ATTError(rawValue: 0x0F)
    /// The group type is not supported.
    public static let unsupportedGroupType = ATTError(rawValue: 0x10)
    /// The server has no room.
    public static let insufficientResources = ATTError(rawValue: 0x11)
    /// The server's database has changed; discover again.
    public static let databaseOutOfSync = ATTError(rawValue: 0x12)
    /// The value is not allowed.
    public static let valueNotAllowed = ATTError(rawValue: 0x13)
    /// The client's configuration descriptor does not allow the operation (Core Specification Supplement, Part B).
    public static let clientConfigurationImproperlyConfigured = ATTError(rawValue: 0xFD)
    /// A procedure is already in progress (Core Specification Supplement, Part B).
    public static let procedureAlreadyInProgress = ATTError(rawValue: 0xFE)
    /// The value is out of range (Core Specification Supplement, Part B).
    public static let outOfRange = ATTError(rawValue: 0xFF)
}
