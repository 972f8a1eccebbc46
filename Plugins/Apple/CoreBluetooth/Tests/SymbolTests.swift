import CoreBluetooth
import Foundation
import TestSupport
import Testing

/// Raw values as in Apple's public headers and documentation: programs store and send them.
@Suite(.tags(.coreBluetooth)) struct SymbolTests {
    @Test func statesAreNumberedAsApples() {
        #expect(
            [CBManagerState.unknown, .resetting, .unsupported, .unauthorized, .poweredOff, .poweredOn].map(\.rawValue)
                == Array(0...5))
        #expect(
            [CBManagerAuthorization.notDetermined, .restricted, .denied, .allowedAlways].map(\.rawValue)
                == Array(0...3))
        #expect(
            [CBPeripheralManagerAuthorizationStatus.notDetermined, .restricted, .denied, .authorized].map(\.rawValue)
                == Array(0...3))
        #expect(
            [CBPeripheralState.disconnected, .connecting, .connected, .disconnecting].map(\.rawValue)
                == Array(0...3))
        #expect([CBCharacteristicWriteType.withResponse, .withoutResponse].map(\.rawValue) == [0, 1])
        #expect([CBConnectionEvent.peerDisconnected, .peerConnected].map(\.rawValue) == [0, 1])
        #expect([CBPeripheralManagerConnectionLatency.low, .medium, .high].map(\.rawValue) == [0, 1, 2])
        #expect(CBCentralManager.Feature.extendedScanAndConnect.rawValue == 1)
        #expect(CBManager.authorization == .allowedAlways)
        #expect(CBCentralManager.authorization == .allowedAlways)
        #expect(!CBCentralManager.supports(.extendedScanAndConnect))
    }

    @Test func propertiesAndPermissionsAreApples() {
        let properties: [CBCharacteristicProperties] = [
            .broadcast, .read, .writeWithoutResponse, .write, .notify, .indicate, .authenticatedSignedWrites,
            .extendedProperties, .notifyEncryptionRequired, .indicateEncryptionRequired,
        ]
        #expect(properties.map(\.rawValue) == (0...9).map { 1 << $0 })
        let permissions: [CBAttributePermissions] = [
            .readable, .writeable, .readEncryptionRequired, .writeEncryptionRequired,
        ]
        #expect(permissions.map(\.rawValue) == [1, 2, 4, 8])
    }

    @Test func errorsAreNumberedAsApples() {
        let errors: [CBError.Code] = [
            .unknown, .invalidParameters, .invalidHandle, .notConnected, .outOfSpace, .operationCancelled,
            .connectionTimeout, .peripheralDisconnected, .uuidNotAllowed, .alreadyAdvertising, .connectionFailed,
            .connectionLimitReached, .unknownDevice, .operationNotSupported, .peerRemovedPairingInformation,
            .encryptionTimedOut, .tooManyLEPairedDevices, .leGattExceededBackgroundNotificationLimit,
            .leGattNearBackgroundNotificationLimit,
        ]
        #expect(errors.map(\.rawValue) == Array(0...18))
        let attErrors: [CBATTError.Code] = [
            .success, .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu, .insufficientAuthentication,
            .requestNotSupported, .invalidOffset, .insufficientAuthorization, .prepareQueueFull, .attributeNotFound,
            .attributeNotLong, .insufficientEncryptionKeySize, .invalidAttributeValueLength, .unlikelyError,
            .insufficientEncryption, .unsupportedGroupType, .insufficientResources,
        ]
        #expect(attErrors.map(\.rawValue) == Array(0...0x11))
        #expect(CBErrorDomain == "CBErrorDomain" && CBError.errorDomain == CBErrorDomain)
        #expect(CBATTErrorDomain == "CBATTErrorDomain" && CBATTError.errorDomain == CBATTErrorDomain)
        #expect(CBError(.uuidNotAllowed).errorCode == 8)
        #expect(CBATTError(.insufficientResources).errorCode == 17)
    }

    /// Written for Apple's: a switch over all names, with the default for numbers that have none. A warning here is an error.
    @Test func codesAreOpenAsApples() {
        func name(_ code: CBATTError.Code) -> String {
            switch code {
            case .success, .invalidHandle, .readNotPermitted, .writeNotPermitted, .invalidPdu,
                .insufficientAuthentication, .requestNotSupported, .invalidOffset, .insufficientAuthorization,
                .prepareQueueFull, .attributeNotFound, .attributeNotLong, .insufficientEncryptionKeySize,
                .invalidAttributeValueLength, .unlikelyError, .insufficientEncryption, .unsupportedGroupType,
                .insufficientResources:
                "named"
            @unknown default: "not named"
            }
        }
        #expect((0...0x11).allSatisfy { CBATTError.Code(rawValue: $0).map(name) == "named" })
        #expect([-1, 0x12, 0x80, 0xFD].allSatisfy { CBATTError.Code(rawValue: $0).map(name) == "not named" })
        #expect(CBATTError(_nsError: NSError(domain: CBATTErrorDomain, code: 0x80)).code.rawValue == 0x80)
    }

    /// What compiles here shall compile there, where option sets cannot be members of sets.
    @Test func optionSetsAreNotHashable() {
        func isHashable(_: some Any) -> Bool { false }
        func isHashable(_: some Hashable) -> Bool { true }
        #expect(!isHashable(CBCharacteristicProperties.read) && !isHashable(CBAttributePermissions.readable))
        #expect(!isHashable(CBCentralManager.Feature.extendedScanAndConnect) && isHashable(CBError.Code.unknown))
        #expect("\(CBError.Code.connectionTimeout)" == "CBErrorCode(rawValue: 6)")
    }

    @Test func countsSecondsAsCoreFoundation() {
        let before = Date.timeIntervalSinceReferenceDate
        let now: CFAbsoluteTime = CFAbsoluteTimeGetCurrent()
        let interval: CFTimeInterval = now - before
        #expect(interval >= 0 && now <= Date.timeIntervalSinceReferenceDate)
    }

    /// Programs read advertisements by these strings too, and log them.
    @Test func keysAreApples() {
        #expect(
            [
                CBAdvertisementDataLocalNameKey, CBAdvertisementDataManufacturerDataKey,
                CBAdvertisementDataServiceDataKey, CBAdvertisementDataServiceUUIDsKey,
                CBAdvertisementDataOverflowServiceUUIDsKey, CBAdvertisementDataTxPowerLevelKey,
                CBAdvertisementDataIsConnectable, CBAdvertisementDataSolicitedServiceUUIDsKey,
            ] == [
                "kCBAdvDataLocalName", "kCBAdvDataManufacturerData", "kCBAdvDataServiceData", "kCBAdvDataServiceUUIDs",
                "kCBAdvDataOverflowServiceUUIDs", "kCBAdvDataTxPowerLevel", "kCBAdvDataIsConnectable",
                "kCBAdvDataSolicitedServiceUUIDs",
            ])
        #expect(
            [
                CBCentralManagerScanOptionAllowDuplicatesKey, CBCentralManagerScanOptionSolicitedServiceUUIDsKey,
                CBConnectPeripheralOptionNotifyOnConnectionKey, CBConnectPeripheralOptionNotifyOnDisconnectionKey,
                CBConnectPeripheralOptionNotifyOnNotificationKey, CBConnectPeripheralOptionStartDelayKey,
                CBConnectPeripheralOptionEnableTransportBridgingKey, CBConnectPeripheralOptionRequiresANCS,
                CBCentralManagerRestoredStatePeripheralsKey, CBCentralManagerRestoredStateScanServicesKey,
                CBCentralManagerRestoredStateScanOptionsKey, CBCentralManagerOptionRestoreIdentifierKey,
            ] == [
                "kCBScanOptionAllowDuplicates", "kCBScanOptionSolicitedServiceUUIDs",
                "kCBConnectOptionNotifyOnConnection", "kCBConnectOptionNotifyOnDisconnection",
                "kCBConnectOptionNotifyOnNotification", "kCBConnectOptionStartDelay",
                "kCBConnectOptionEnableTransportBridging", "kCBConnectOptionRequiresANCS", "kCBRestoredPeripherals",
                "kCBRestoredScanServices", "kCBRestoredScanOptions", "kCBInitOptionRestoreIdentifier",
            ])
        #expect(
            [
                CBUUIDCharacteristicExtendedPropertiesString, CBUUIDCharacteristicUserDescriptionString,
                CBUUIDClientCharacteristicConfigurationString, CBUUIDServerCharacteristicConfigurationString,
                CBUUIDCharacteristicFormatString, CBUUIDCharacteristicAggregateFormatString,
                CBUUIDCharacteristicValidRangeString, CBUUIDL2CAPPSMCharacteristicString,
            ] == ["2900", "2901", "2902", "2903", "2904", "2905", "2906", "ABDD3056-28FA-441D-A470-55A75A52553A"])
    }

    @Test func uuidsReadAndPrintAsApples() throws {
        let short = CBUUID(string: "180d")
        #expect(short.uuidString == "180D")
        #expect(short.description == "Heart Rate")
        #expect(short.data == Data([0x18, 0x0D]))
        #expect(short == CBUUID(string: "0000180D-0000-1000-8000-00805F9B34FB"))
        #expect(short == CBUUID(data: Data([0x18, 0x0D])))
        #expect(short.hash == CBUUID(string: "0000180D").hash)
        #expect(CBUUID(string: "12345678").data == Data([0x12, 0x34, 0x56, 0x78]))
        let text = "08590F7E-DB05-467E-8757-72F6FAEB13D4"
        let long = CBUUID(string: text.lowercased())
        #expect(long.uuidString == text && "\(long)" == text && long.data.count == 16)
        #expect(CBUUID(nsuuid: try #require(UUID(uuidString: text))) == long)
        #expect(CBUUID(string: "CDD1").description == "CDD1")
        #expect((short.copy() as? CBUUID) == short)
        // As keys and in lists.
        #expect([short: 1][CBUUID(string: "180D")] == 1)
        #expect([long, short].contains(CBUUID(data: Data([0x18, 0x0D]))))
        #expect(short != long && !short.isEqual("180D"))
    }
}
