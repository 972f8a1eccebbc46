public import CCoreBluetooth
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
    public init(_nsError: NSError) { self._nsError = PrintedError.of(_nsError) }
    /// ``CBErrorDomain``.
    public static var _nsErrorDomain: String { CBErrorDomain }
    /// ``CBErrorDomain``.
    public static var errorDomain: String { CBErrorDomain }

    /// The kinds of failure; raw values as in Apple's. As with Apple's a number without a name is one of them, so that a switch
    /// over all names needs `@unknown default`.
    public typealias Code = CBErrorCode

    /// The code `unknown`.
    public static var unknown: CBError.Code { .unknown }
    /// The code `invalidParameters`.
    public static var invalidParameters: CBError.Code { .invalidParameters }
    /// The code `invalidHandle`.
    public static var invalidHandle: CBError.Code { .invalidHandle }
    /// The code `notConnected`.
    public static var notConnected: CBError.Code { .notConnected }
    /// The code `outOfSpace`.
    public static var outOfSpace: CBError.Code { .outOfSpace }
    /// The code `operationCancelled`.
    public static var operationCancelled: CBError.Code { .operationCancelled }
    /// The code `connectionTimeout`.
    public static var connectionTimeout: CBError.Code { .connectionTimeout }
    /// The code `peripheralDisconnected`.
    public static var peripheralDisconnected: CBError.Code { .peripheralDisconnected }
    /// The code `uuidNotAllowed`.
    public static var uuidNotAllowed: CBError.Code { .uuidNotAllowed }
    /// The code `alreadyAdvertising`.
    public static var alreadyAdvertising: CBError.Code { .alreadyAdvertising }
    /// The code `connectionFailed`.
    public static var connectionFailed: CBError.Code { .connectionFailed }
    /// The code `connectionLimitReached`.
    public static var connectionLimitReached: CBError.Code { .connectionLimitReached }
    /// The code `unknownDevice`.
    public static var unknownDevice: CBError.Code { .unknownDevice }
    /// The former, misspelt name of ``unknownDevice``.
    @available(*, deprecated, renamed: "unknownDevice")
    public static var unkownDevice: CBError.Code { .unknownDevice }
    /// The code `operationNotSupported`.
    public static var operationNotSupported: CBError.Code { .operationNotSupported }
    /// The code `peerRemovedPairingInformation`.
    public static var peerRemovedPairingInformation: CBError.Code { .peerRemovedPairingInformation }
    /// The code `encryptionTimedOut`.
    public static var encryptionTimedOut: CBError.Code { .encryptionTimedOut }
    /// The code `tooManyLEPairedDevices`.
    public static var tooManyLEPairedDevices: CBError.Code { .tooManyLEPairedDevices }
    /// The code `leGattExceededBackgroundNotificationLimit`.
    public static var leGattExceededBackgroundNotificationLimit: CBError.Code {
        .leGattExceededBackgroundNotificationLimit
    }
    /// The code `leGattNearBackgroundNotificationLimit`.
    public static var leGattNearBackgroundNotificationLimit: CBError.Code { .leGattNearBackgroundNotificationLimit }
}

/// What a peer answered a request with, other than success (Core Specification 5.4, Vol 3, Part F, 3.4.1.1).
///
/// A code that has no name here (an application's own, 0x80 to 0x9F, or one common to profiles) keeps its number:
/// `Code(rawValue:)` is never nil.
public struct CBATTError: _BridgedStoredNSError, Sendable {
    /// The error as Foundation has it.
    public let _nsError: NSError
    /// Wraps an error of the domain ``CBATTErrorDomain``.
    public init(_nsError: NSError) { self._nsError = PrintedError.of(_nsError) }
    /// ``CBATTErrorDomain``.
    public static var _nsErrorDomain: String { CBATTErrorDomain }
    /// ``CBATTErrorDomain``.
    public static var errorDomain: String { CBATTErrorDomain }

    /// The kinds of answer; raw values as in the specification. As with Apple's a number without a name is one of them, so that a switch
    /// over all names needs `@unknown default`.
    public typealias Code = CBATTErrorCode

    /// The code `success`.
    public static var success: CBATTError.Code { .success }
    /// The code `invalidHandle`.
    public static var invalidHandle: CBATTError.Code { .invalidHandle }
    /// The code `readNotPermitted`.
    public static var readNotPermitted: CBATTError.Code { .readNotPermitted }
    /// The code `writeNotPermitted`.
    public static var writeNotPermitted: CBATTError.Code { .writeNotPermitted }
    /// The code `invalidPdu`.
    public static var invalidPdu: CBATTError.Code { .invalidPdu }
    /// The code `insufficientAuthentication`.
    public static var insufficientAuthentication: CBATTError.Code { .insufficientAuthentication }
    /// The code `requestNotSupported`.
    public static var requestNotSupported: CBATTError.Code { .requestNotSupported }
    /// The code `invalidOffset`.
    public static var invalidOffset: CBATTError.Code { .invalidOffset }
    /// The code `insufficientAuthorization`.
    public static var insufficientAuthorization: CBATTError.Code { .insufficientAuthorization }
    /// The code `prepareQueueFull`.
    public static var prepareQueueFull: CBATTError.Code { .prepareQueueFull }
    /// The code `attributeNotFound`.
    public static var attributeNotFound: CBATTError.Code { .attributeNotFound }
    /// The code `attributeNotLong`.
    public static var attributeNotLong: CBATTError.Code { .attributeNotLong }
    /// The code `insufficientEncryptionKeySize`.
    public static var insufficientEncryptionKeySize: CBATTError.Code { .insufficientEncryptionKeySize }
    /// The code `invalidAttributeValueLength`.
    public static var invalidAttributeValueLength: CBATTError.Code { .invalidAttributeValueLength }
    /// The code `unlikelyError`.
    public static var unlikelyError: CBATTError.Code { .unlikelyError }
    /// The code `insufficientEncryption`.
    public static var insufficientEncryption: CBATTError.Code { .insufficientEncryption }
    /// The code `unsupportedGroupType`.
    public static var unsupportedGroupType: CBATTError.Code { .unsupportedGroupType }
    /// The code `insufficientResources`.
    public static var insufficientResources: CBATTError.Code { .insufficientResources }
}

extension CBErrorCode: @retroactive _ErrorCodeProtocol {
    /// The error that the code belongs to.
    public typealias _ErrorType = CBError
}

extension CBATTErrorCode: @retroactive _ErrorCodeProtocol {
    /// The error that the code belongs to.
    public typealias _ErrorType = CBATTError
}
