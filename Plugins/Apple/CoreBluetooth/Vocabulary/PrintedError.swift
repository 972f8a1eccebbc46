import CCoreBluetooth
import FerryBluetooth
import Foundation

/// An error that prints as Apple's Foundation prints one; this Foundation's leaves the text out.
final class PrintedError: NSError, @unchecked Sendable {
    static func of(_ error: NSError) -> NSError {
        error is PrintedError ? error : PrintedError(domain: error.domain, code: error.code, userInfo: error.userInfo)
    }

    /// The key of Ferry's reason: not printed, since Apple's errors have none.
    static let reasonKey = "CoreBluetoothReason"

    override var description: String {
        let text = userInfo[NSLocalizedDescriptionKey] as? String ?? localizedFailureReason
        let info = userInfo.filter { $0.key != Self.reasonKey }.map { "\($0.key)=\($0.value)" }.sorted()
        let head = "Error Domain=\(domain) Code=\(code) \"\(text ?? "(null)")\""
        return info.isEmpty ? head : head + " UserInfo={\(info.joined(separator: ", "))}"
    }

    override var debugDescription: String { description }
}

extension CBError.Code {
    /// What Apple's says, as programs' logs show it.
    var text: String {
        switch self {
        case .unknown: "Unknown error."
        case .invalidParameters: "One or more parameters were invalid."
        case .invalidHandle: "The specified handle is invalid."
        case .notConnected: "The specified device is not connected."
        case .outOfSpace: "The device has run out of space to complete the intended operation."
        case .operationCancelled: "The operation was canceled."
        case .connectionTimeout: "The connection has timed out unexpectedly."
        case .peripheralDisconnected: "The specified device has disconnected from us."
        case .uuidNotAllowed: "The specified UUID is not allowed for this operation."
        case .alreadyAdvertising: "Advertising has already started."
        case .connectionFailed: "The connection has failed unexpectedly."
        case .connectionLimitReached: "The system has reached the maximum number of connections."
        case .unknownDevice: "The specified device is unknown."
        case .operationNotSupported: "The operation is not supported."
        case .peerRemovedPairingInformation: "Peer removed pairing information"
        case .encryptionTimedOut: "Failed to encrypt the connection, the connection has timed out unexpectedly."
        case .tooManyLEPairedDevices: "Too many LE devices are paired."
        case .leGattExceededBackgroundNotificationLimit: "The limit of notifications in the background is exceeded."
        case .leGattNearBackgroundNotificationLimit: "The limit of notifications in the background is near."
        @unknown default: "Unknown error."
        }
    }
}

extension CBATTError.Code {
    /// What Apple's says, as programs' logs show it.
    var text: String {
        switch self {
        case .success: "Success."
        case .invalidHandle: "The handle is invalid."
        case .readNotPermitted: "Reading is not permitted."
        case .writeNotPermitted: "Writing is not permitted."
        case .invalidPdu: "The command is invalid."
        case .insufficientAuthentication: "Authentication is insufficient."
        case .requestNotSupported: "The request is not supported."
        case .invalidOffset: "The offset is invalid."
        case .insufficientAuthorization: "Authorization is insufficient."
        case .prepareQueueFull: "The prepare queue is full."
        case .attributeNotFound: "The attribute could not be found."
        case .attributeNotLong: "The attribute is not long."
        case .insufficientEncryptionKeySize: "The encryption key size is insufficient."
        case .invalidAttributeValueLength: "The value's length is invalid."
        case .unlikelyError: "Unlikely error."
        case .insufficientEncryption: "Encryption is insufficient."
        case .unsupportedGroupType: "The group type is unsupported."
        case .insufficientResources: "Resources are insufficient."
        @unknown default: "Unknown ATT error."
        }
    }
}

extension CBError {
    /// Ferry's reason.
    var reason: String { userInfo[PrintedError.reasonKey] as? String ?? localizedDescription }
}
