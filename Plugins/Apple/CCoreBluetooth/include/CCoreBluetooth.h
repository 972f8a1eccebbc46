// The codes of CoreBluetooth's errors as C enumerations that are open, as those of Apple's header: Swift imports them with every
// number as a value, and asks for `@unknown default` where a switch has all names. No Swift enumeration does that for callers in
// the same package and in Swift 6.2.
//
// In C their names are not those of Apple's header (CBError, CBErrorUnknown), so that a program on Apple's systems may have both
// modules: there this one is FerryVirtualBluetooth's.
#pragma once

#define CB_OPEN __attribute__((enum_extensibility(open)))

typedef enum CB_OPEN CBErrorCode : long {
    /// An unknown error.
    CBErrorCodeUnknown = 0,
    /// The parameters are not valid.
    CBErrorCodeInvalidParameters = 1,
    /// The attribute is not valid (any more).
    CBErrorCodeInvalidHandle = 2,
    /// The peer is not connected.
    CBErrorCodeNotConnected = 3,
    /// There is no space for the operation.
    CBErrorCodeOutOfSpace = 4,
    /// The operation was cancelled.
    CBErrorCodeOperationCancelled = 5,
    /// The connection timed out.
    CBErrorCodeConnectionTimeout = 6,
    /// The peripheral has disconnected.
    CBErrorCodePeripheralDisconnected = 7,
    /// The UUID is not allowed.
    CBErrorCodeUuidNotAllowed = 8,
    /// The peripheral manager advertises already.
    CBErrorCodeAlreadyAdvertising = 9,
    /// The connection could not be made.
    CBErrorCodeConnectionFailed = 10,
    /// There are as many connections as there may be.
    CBErrorCodeConnectionLimitReached = 11,
    /// The device is not known.
    CBErrorCodeUnknownDevice = 12,
    /// The operation is not supported.
    CBErrorCodeOperationNotSupported = 13,
    /// The peer has removed its pairing information.
    CBErrorCodePeerRemovedPairingInformation = 14,
    /// Encrypting the connection took too long.
    CBErrorCodeEncryptionTimedOut = 15,
    /// Too many devices are paired.
    CBErrorCodeTooManyLEPairedDevices = 16,
    /// The limit of notifications in the background is exceeded; never met on Linux.
    CBErrorCodeLeGattExceededBackgroundNotificationLimit = 17,
    /// The limit of notifications in the background is near; never met on Linux.
    CBErrorCodeLeGattNearBackgroundNotificationLimit = 18,
    /// The former, misspelt name of `unknownDevice`.
    CBErrorCodeUnkownDevice __attribute__((deprecated("renamed unknownDevice"))) = 12,
} CBErrorCode;

typedef enum CB_OPEN CBATTErrorCode : long {
    /// No error.
    CBATTErrorCodeSuccess = 0,
    /// The attribute does not exist.
    CBATTErrorCodeInvalidHandle = 1,
    /// The attribute cannot be read.
    CBATTErrorCodeReadNotPermitted = 2,
    /// The attribute cannot be written.
    CBATTErrorCodeWriteNotPermitted = 3,
    /// The PDU was malformed.
    CBATTErrorCodeInvalidPdu = 4,
    /// The peer must authenticate first.
    CBATTErrorCodeInsufficientAuthentication = 5,
    /// The server does not support the request.
    CBATTErrorCodeRequestNotSupported = 6,
    /// The offset is past the end of the value.
    CBATTErrorCodeInvalidOffset = 7,
    /// The peer is not allowed to.
    CBATTErrorCodeInsufficientAuthorization = 8,
    /// Too many prepared writes wait.
    CBATTErrorCodePrepareQueueFull = 9,
    /// There is no such attribute.
    CBATTErrorCodeAttributeNotFound = 10,
    /// The value cannot be read in parts.
    CBATTErrorCodeAttributeNotLong = 11,
    /// The encryption key is too short.
    CBATTErrorCodeInsufficientEncryptionKeySize = 12,
    /// The value has the wrong length.
    CBATTErrorCodeInvalidAttributeValueLength = 13,
    /// Something unlikely went wrong.
    CBATTErrorCodeUnlikelyError = 14,
    /// The link must be encrypted first.
    CBATTErrorCodeInsufficientEncryption = 15,
    /// The group type is not supported.
    CBATTErrorCodeUnsupportedGroupType = 16,
    /// The server has no room.
    CBATTErrorCodeInsufficientResources = 17,
} CBATTErrorCode;
