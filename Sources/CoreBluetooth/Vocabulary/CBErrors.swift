public import Foundation

/// The domain of errors of Core Bluetooth's own.
public let CBErrorDomain: String = "CBErrorDomain"
/// The domain of errors that a peer has answered with.
public let CBATTErrorDomain: String = "CBATTErrorDomain"

/// Why an operation of Core Bluetooth's failed.
///
/// Delegates receive this very type: `error as? CBError` and `error as NSError` both work. An `NSError` made by other
/// code cannot be cast to it, because Linux has no error bridging.
public struct CBError: _BridgedStoredNSError, Sendable {
    /// The error as Foundation has it.
    public let _nsError: NSError
    /// Wraps an error of the domain ``CBErrorDomain``.
    public init(_nsError: NSError) { self._nsError = _nsError }
    /// ``CBErrorDomain``.
    public static var _nsErrorDomain: String { CBErrorDomain }
    /// ``CBErrorDomain``.
    public static var errorDomain: String { CBErrorDomain }

    /// The kinds of failure; raw values as in Apple's.
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        /// The error that the code belongs to.
        public typealias _ErrorType = CBError
        /// An unknown error.
        case unknown = 0
        /// The parameters are not valid.
        case invalidParameters = 1
        /// The attribute is not valid (any more).
        case invalidHandle = 2
        /// The peer is not connected.
        case notConnected = 3
        /// There is no space for the operation.
        case outOfSpace = 4
        /// The operation was cancelled.
        case operationCancelled = 5
        /// The connection timed out.
        case connectionTimeout = 6
        /// The peripheral has disconnected.
        case peripheralDisconnected = 7
        /// The UUID is not allowed.
        case uuidNotAllowed = 8
        /// The peripheral manager advertises already.
        case alreadyAdvertising = 9
        /// The connection could not be made.
        case connectionFailed = 10
        /// There are as many connections as there may be.
        case connectionLimitReached = 11
        /// The device is not known.
        case unknownDevice = 12
        /// The operation is not supported.
        case operationNotSupported = 13
        /// The peer has removed its pairing information.
        case peerRemovedPairingInformation = 14
        /// Encrypting the connection took too long.
        case encryptionTimedOut = 15
        /// Too many devices are paired.
        case tooManyLEPairedDevices = 16
        /// The limit of notifications in the background is exceeded; never met on Linux.
        case leGattExceededBackgroundNotificationLimit = 17
        /// The limit of notifications in the background is near; never met on Linux.
        case leGattNearBackgroundNotificationLimit = 18

        /// The former, misspelt name of ``unknownDevice``.
        @available(*, deprecated, renamed: "unknownDevice")
        public static var unkownDevice: Code { .unknownDevice }
    }

    /// ``Code/unknown``.
    public static var unknown: CBError.Code { .unknown }
    /// ``Code/invalidParameters``.
    public static var invalidParameters: CBError.Code { .invalidParameters }
    /// ``Code/invalidHandle``.
    public static var invalidHandle: CBError.Code { .invalidHandle }
    /// ``Code/notConnected``.
    public static var notConnected: CBError.Code { .notConnected }
    /// ``Code/outOfSpace``.
    public static var outOfSpace: CBError.Code { .outOfSpace }
    /// ``Code/operationCancelled``.
    public static var operationCancelled: CBError.Code { .operationCancelled }
    /// ``Code/connectionTimeout``.
    public static var connectionTimeout: CBError.Code { .connectionTimeout }
    /// ``Code/peripheralDisconnected``.
    public static var peripheralDisconnected: CBError.Code { .peripheralDisconnected }
    /// ``Code/uuidNotAllowed``.
    public static var uuidNotAllowed: CBError.Code { .uuidNotAllowed }
    /// ``Code/alreadyAdvertising``.
    public static var alreadyAdvertising: CBError.Code { .alreadyAdvertising }
    /// ``Code/connectionFailed``.
    public static var connectionFailed: CBError.Code { .connectionFailed }
    /// ``Code/connectionLimitReached``.
    public static var connectionLimitReached: CBError.Code { .connectionLimitReached }
    /// ``Code/unknownDevice``.
    public static var unknownDevice: CBError.Code { .unknownDevice }
    /// The former, misspelt name of ``unknownDevice``.
    @available(*, deprecated, renamed: "unknownDevice")
    public static var unkownDevice: CBError.Code { .unknownDevice }
    /// ``Code/operationNotSupported``.
    public static var operationNotSupported: CBError.Code { .operationNotSupported }
    /// ``Code/peerRemovedPairingInformation``.
    public static var peerRemovedPairingInformation: CBError.Code { .peerRemovedPairingInformation }
    /// ``Code/encryptionTimedOut``.
    public static var encryptionTimedOut: CBError.Code { .encryptionTimedOut }
    /// ``Code/tooManyLEPairedDevices``.
    public static var tooManyLEPairedDevices: CBError.Code { .tooManyLEPairedDevices }
    /// ``Code/leGattExceededBackgroundNotificationLimit``.
    public static var leGattExceededBackgroundNotificationLimit: CBError.Code {
        .leGattExceededBackgroundNotificationLimit
    }
    /// ``Code/leGattNearBackgroundNotificationLimit``.
    public static var leGattNearBackgroundNotificationLimit: CBError.Code { .leGattNearBackgroundNotificationLimit }
}

/// What a peer answered a request with, other than success (Core Specification 5.4, Vol 3, Part F, 3.4.1.1).
///
/// A code that has no case here (an application's own, 0x80 to 0x9F, or one common to profiles) is in `errorCode` of
/// the `NSError` form; ``code`` is then ``Code/unlikelyError``, where Apple's has no value to give either.
public struct CBATTError: _BridgedStoredNSError, Sendable {
    /// The error as Foundation has it.
    public let _nsError: NSError
    /// Wraps an error of the domain ``CBATTErrorDomain``.
    public init(_nsError: NSError) { self._nsError = _nsError }
    /// ``CBATTErrorDomain``.
    public static var _nsErrorDomain: String { CBATTErrorDomain }
    /// ``CBATTErrorDomain``.
    public static var errorDomain: String { CBATTErrorDomain }
    /// The kind of failure.
    public var code: Code { Code(rawValue: _nsError.code) ?? .unlikelyError }

    /// The kinds of answer; raw values as in the specification.
    public enum Code: Int, _ErrorCodeProtocol, Sendable {
        /// The error that the code belongs to.
        public typealias _ErrorType = CBATTError
        /// No error.
        case success = 0x00
        /// The attribute does not exist.
        case invalidHandle = 0x01
        /// The attribute cannot be read.
        case readNotPermitted = 0x02
        /// The attribute cannot be written.
        case writeNotPermitted = 0x03
        /// The PDU was malformed.
        case invalidPdu = 0x04
        /// The peer must authenticate first.
        case insufficientAuthentication = 0x05
        /// The server does not support the request.
        case requestNotSupported = 0x06
        /// The offset is past the end of the value.
        case invalidOffset = 0x07
        /// The peer is not allowed to.
        case insufficientAuthorization = 0x08
        /// Too many prepared writes wait.
        case prepareQueueFull = 0x09
        /// There is no such attribute.
        case attributeNotFound = 0x0A
        /// The value cannot be read in parts.
        case attributeNotLong = 0x0B
        /// The encryption key is too short.
        case insufficientEncryptionKeySize = 0x0C
        /// The value has the wrong length.
        case invalidAttributeValueLength = 0x0D
        /// Something unlikely went wrong.
        case unlikelyError = 0x0E
        /// The link must be encrypted first.
        case insufficientEncryption = 0x0F
        /// The group type is not supported.
        case unsupportedGroupType = 0x10
        /// The server has no room.
        case insufficientResources = 0x11
    }

    /// ``Code/success``.
    public static var success: CBATTError.Code { .success }
    /// ``Code/invalidHandle``.
    public static var invalidHandle: CBATTError.Code { .invalidHandle }
    /// ``Code/readNotPermitted``.
    public static var readNotPermitted: CBATTError.Code { .readNotPermitted }
    /// ``Code/writeNotPermitted``.
    public static var writeNotPermitted: CBATTError.Code { .writeNotPermitted }
    /// ``Code/invalidPdu``.
    public static var invalidPdu: CBATTError.Code { .invalidPdu }
    /// ``Code/insufficientAuthentication``.
    public static var insufficientAuthentication: CBATTError.Code { .insufficientAuthentication }
    /// ``Code/requestNotSupported``.
    public static var requestNotSupported: CBATTError.Code { .requestNotSupported }
    /// ``Code/invalidOffset``.
    public static var invalidOffset: CBATTError.Code { .invalidOffset }
    /// ``Code/insufficientAuthorization``.
    public static var insufficientAuthorization: CBATTError.Code { .insufficientAuthorization }
    /// ``Code/prepareQueueFull``.
    public static var prepareQueueFull: CBATTError.Code { .prepareQueueFull }
    /// ``Code/attributeNotFound``.
    public static var attributeNotFound: CBATTError.Code { .attributeNotFound }
    /// ``Code/attributeNotLong``.
    public static var attributeNotLong: CBATTError.Code { .attributeNotLong }
    /// ``Code/insufficientEncryptionKeySize``.
    public static var insufficientEncryptionKeySize: CBATTError.Code { .insufficientEncryptionKeySize }
    /// ``Code/invalidAttributeValueLength``.
    public static var invalidAttributeValueLength: CBATTError.Code { .invalidAttributeValueLength }
    /// ``Code/unlikelyError``.
    public static var unlikelyError: CBATTError.Code { .unlikelyError }
    /// ``Code/insufficientEncryption``.
    public static var insufficientEncryption: CBATTError.Code { .insufficientEncryption }
    /// ``Code/unsupportedGroupType``.
    public static var unsupportedGroupType: CBATTError.Code { .unsupportedGroupType }
    /// ``Code/insufficientResources``.
    public static var insufficientResources: CBATTError.Code { .insufficientResources }
}
