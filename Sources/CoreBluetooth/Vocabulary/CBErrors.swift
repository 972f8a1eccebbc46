public import Foundation

/// The domain of errors of Core Bluetooth's own.
public let CBErrorDomain: String = "CBErrorDomain"
/// The domain of errors that a peer has answered with.
public let CBATTErrorDomain: String = "CBATTErrorDomain"

/// Why an operation of Core Bluetooth's failed.
///
/// Delegates receive this very type: `error as? CBError` and `error as NSError` both work. An `NSError` made by other
/// code cannot be cast to it, because Linux has no error bridging.
public struct CBError: _BridgedStoredNSError, CustomStringConvertible, Sendable {
    /// The error as Foundation has it.
    public let _nsError: NSError
    /// Wraps an error of the domain ``CBErrorDomain``.
    public init(_nsError: NSError) { self._nsError = PrintedError.of(_nsError) }
    /// As Apple's prints.
    public var description: String { _nsError.description }
    /// ``CBErrorDomain``.
    public static var _nsErrorDomain: String { CBErrorDomain }
    /// ``CBErrorDomain``.
    public static var errorDomain: String { CBErrorDomain }

    /// The kinds of failure; raw values as in Apple's.
    public enum Code: RawRepresentable, _ErrorCodeProtocol, Hashable, Sendable {
        /// The error that the code belongs to.
        public typealias _ErrorType = CBError
        /// An unknown error.
        case unknown
        /// The parameters are not valid.
        case invalidParameters
        /// The attribute is not valid (any more).
        case invalidHandle
        /// The peer is not connected.
        case notConnected
        /// There is no space for the operation.
        case outOfSpace
        /// The operation was cancelled.
        case operationCancelled
        /// The connection timed out.
        case connectionTimeout
        /// The peripheral has disconnected.
        case peripheralDisconnected
        /// The UUID is not allowed.
        case uuidNotAllowed
        /// The peripheral manager advertises already.
        case alreadyAdvertising
        /// The connection could not be made.
        case connectionFailed
        /// There are as many connections as there may be.
        case connectionLimitReached
        /// The device is not known.
        case unknownDevice
        /// The operation is not supported.
        case operationNotSupported
        /// The peer has removed its pairing information.
        case peerRemovedPairingInformation
        /// Encrypting the connection took too long.
        case encryptionTimedOut
        /// Too many devices are paired.
        case tooManyLEPairedDevices
        /// The limit of notifications in the background is exceeded; never met on Linux.
        case leGattExceededBackgroundNotificationLimit
        /// The limit of notifications in the background is near; never met on Linux.
        case leGattNearBackgroundNotificationLimit
        /// A number that has no name here. Apple's has no case for it either: write `default`.
        case other(Int)

        /// The code of a number; never nil.
        public init?(rawValue: Int) {
            self = Self.named.indices.contains(rawValue) ? Self.named[rawValue] : .other(rawValue)
        }

        private static let named: [Self] = [
            .unknown, .invalidParameters, .invalidHandle, .notConnected, .outOfSpace, .operationCancelled,
            .connectionTimeout, .peripheralDisconnected, .uuidNotAllowed, .alreadyAdvertising, .connectionFailed,
            .connectionLimitReached, .unknownDevice, .operationNotSupported, .peerRemovedPairingInformation,
            .encryptionTimedOut, .tooManyLEPairedDevices, .leGattExceededBackgroundNotificationLimit,
            .leGattNearBackgroundNotificationLimit,
        ]

        /// The number.
        public var rawValue: Int {
            switch self {
            case .unknown: 0
            case .invalidParameters: 1
            case .invalidHandle: 2
            case .notConnected: 3
            case .outOfSpace: 4
            case .operationCancelled: 5
            case .connectionTimeout: 6
            case .peripheralDisconnected: 7
            case .uuidNotAllowed: 8
            case .alreadyAdvertising: 9
            case .connectionFailed: 10
            case .connectionLimitReached: 11
            case .unknownDevice: 12
            case .operationNotSupported: 13
            case .peerRemovedPairingInformation: 14
            case .encryptionTimedOut: 15
            case .tooManyLEPairedDevices: 16
            case .leGattExceededBackgroundNotificationLimit: 17
            case .leGattNearBackgroundNotificationLimit: 18
            case .other(let number): number
            }
        }

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
/// A code that has no name here (an application's own, 0x80 to 0x9F, or one common to profiles) keeps its number:
/// ``Code/init(rawValue:)`` is never nil.
public struct CBATTError: _BridgedStoredNSError, CustomStringConvertible, Sendable {
    /// The error as Foundation has it.
    public let _nsError: NSError
    /// Wraps an error of the domain ``CBATTErrorDomain``.
    public init(_nsError: NSError) { self._nsError = PrintedError.of(_nsError) }
    /// As Apple's prints.
    public var description: String { _nsError.description }
    /// ``CBATTErrorDomain``.
    public static var _nsErrorDomain: String { CBATTErrorDomain }
    /// ``CBATTErrorDomain``.
    public static var errorDomain: String { CBATTErrorDomain }

    /// The kinds of answer; raw values as in the specification.
    public enum Code: RawRepresentable, _ErrorCodeProtocol, Hashable, Sendable {
        /// The error that the code belongs to.
        public typealias _ErrorType = CBATTError
        /// No error.
        case success
        /// The attribute does not exist.
        case invalidHandle
        /// The attribute cannot be read.
        case readNotPermitted
        /// The attribute cannot be written.
        case writeNotPermitted
        /// The PDU was malformed.
        case invalidPdu
        /// The peer must authenticate first.
        case insufficientAuthentication
        /// The server does not support the request.
        case requestNotSupported
        /// The offset is past the end of the value.
        case invalidOffset
        /// The peer is not allowed to.
        case insufficientAuthorization
        /// Too many prepared writes wait.
        case prepareQueueFull
        /// There is no such attribute.
        case attributeNotFound
        /// The value cannot be read in parts.
        case attributeNotLong
        /// The encryption key is too short.
        case insufficientEncryptionKeySize
        /// The value has the wrong length.
        case invalidAttributeValueLength
        /// Something unlikely went wrong.
        case unlikelyError
        /// The link must be encrypted first.
        case insufficientEncryption
        /// The group type is not supported.
        case unsupportedGroupType
        /// The server has no room.
        case insufficientResources
        /// A number that has no name here. Apple's has no case for it either: write `default`.
        case other(Int)

        /// The code of a number; never nil.
        public init?(rawValue: Int) {
            self = Self.named.indices.contains(rawValue) ? Self.named[rawValue] : .other(rawValue)
        }

        private static let named: [Self] = [
            .success, .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu,
            .insufficientAuthentication, .requestNotSupported, .invalidOffset, .insufficientAuthorization,
            .prepareQueueFull, .attributeNotFound, .attributeNotLong, .insufficientEncryptionKeySize,
            .invalidAttributeValueLength, .unlikelyError, .insufficientEncryption, .unsupportedGroupType,
            .insufficientResources,
        ]

        /// The number.
        public var rawValue: Int {
            switch self {
            case .success: 0
            case .invalidHandle: 1
            case .readNotPermitted: 2
            case .writeNotPermitted: 3
            case .invalidPdu: 4
            case .insufficientAuthentication: 5
            case .requestNotSupported: 6
            case .invalidOffset: 7
            case .insufficientAuthorization: 8
            case .prepareQueueFull: 9
            case .attributeNotFound: 10
            case .attributeNotLong: 11
            case .insufficientEncryptionKeySize: 12
            case .invalidAttributeValueLength: 13
            case .unlikelyError: 14
            case .insufficientEncryption: 15
            case .unsupportedGroupType: 16
            case .insufficientResources: 17
            case .other(let number): number
            }
        }
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
