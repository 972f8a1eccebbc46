// MARK: Advertisement data

/// The local name of a peripheral: a `String`. Advertised and received.
public let CBAdvertisementDataLocalNameKey: String = "kCBAdvDataLocalName"
/// The manufacturer's data: a `Data`, company identifier first, least significant byte first. Received only.
public let CBAdvertisementDataManufacturerDataKey: String = "kCBAdvDataManufacturerData"
/// Data of services: a `[CBUUID: Data]`. Received only.
public let CBAdvertisementDataServiceDataKey: String = "kCBAdvDataServiceData"
/// Services: a `[CBUUID]`. Advertised and received.
public let CBAdvertisementDataServiceUUIDsKey: String = "kCBAdvDataServiceUUIDs"
/// Services in the overflow area: a `[CBUUID]`. Received only, from adapters that have such an area.
public let CBAdvertisementDataOverflowServiceUUIDsKey: String = "kCBAdvDataOverflowServiceUUIDs"
/// Transmit power in dBm: an `NSNumber`. Received only.
public let CBAdvertisementDataTxPowerLevelKey: String = "kCBAdvDataTxPowerLevel"
/// Whether the peripheral takes connections: an `NSNumber`. Received only.
public let CBAdvertisementDataIsConnectable: String = "kCBAdvDataIsConnectable"
/// Services that the peripheral asks for: a `[CBUUID]`. The adapters do not report it.
public let CBAdvertisementDataSolicitedServiceUUIDsKey: String = "kCBAdvDataSolicitedServiceUUIDs"

// MARK: Options of managers

/// Whether to warn people that Bluetooth is off: ignored, there is no screen to show it on.
public let CBCentralManagerOptionShowPowerAlertKey: String = "kCBInitOptionShowPowerAlert"
/// A `String` that names the file in which the central manager's state is kept; see <doc:CoreBluetoothOnLinux>.
public let CBCentralManagerOptionRestoreIdentifierKey: String = "kCBInitOptionRestoreIdentifier"
/// Access for media devices: ignored.
public let CBCentralManagerOptionDeviceAccessForMedia: String = "kCBInitOptionDeviceAccessForMedia"
/// Whether to warn people that Bluetooth is off: ignored, there is no screen to show it on.
public let CBPeripheralManagerOptionShowPowerAlertKey: String = "kCBInitOptionShowPowerAlert"
/// A `String` that names the file in which the peripheral manager's state is kept; see <doc:CoreBluetoothOnLinux>.
public let CBPeripheralManagerOptionRestoreIdentifierKey: String = "kCBInitOptionRestoreIdentifier"

// MARK: Options of scans and connections

/// Whether a peripheral is reported each time it is heard: an `NSNumber`, false by default.
public let CBCentralManagerScanOptionAllowDuplicatesKey: String = "kCBScanOptionAllowDuplicates"
/// Services that peripherals must ask for: ignored, because adapters do not report them.
public let CBCentralManagerScanOptionSolicitedServiceUUIDsKey: String = "kCBScanOptionSolicitedServiceUUIDs"
/// An alert for a connection made in the background: ignored.
public let CBConnectPeripheralOptionNotifyOnConnectionKey: String = "kCBConnectOptionNotifyOnConnection"
/// An alert for a disconnection in the background: ignored.
public let CBConnectPeripheralOptionNotifyOnDisconnectionKey: String = "kCBConnectOptionNotifyOnDisconnection"
/// An alert for a notification in the background: ignored.
public let CBConnectPeripheralOptionNotifyOnNotificationKey: String = "kCBConnectOptionNotifyOnNotification"
/// Seconds to wait before the connection is attempted: an `NSNumber`, 0 to 86 400.
public let CBConnectPeripheralOptionStartDelayKey: String = "kCBConnectOptionStartDelay"
/// Bridging to classic Bluetooth profiles: ignored.
public let CBConnectPeripheralOptionEnableTransportBridgingKey: String = "kCBConnectOptionEnableTransportBridging"
/// Whether the Apple Notification Center Service is needed: ignored.
public let CBConnectPeripheralOptionRequiresANCS: String = "kCBConnectOptionRequiresANCS"
/// Whether to connect again by itself after a disconnection that the program did not ask for: an `NSNumber`.
public let CBConnectPeripheralOptionEnableAutoReconnect: String = "kCBConnectOptionEnableAutoReconnect"

// MARK: Restored state

/// The peripherals that were connected, or waited to be: a `[CBPeripheral]`.
public let CBCentralManagerRestoredStatePeripheralsKey: String = "kCBRestoredPeripherals"
/// The services that were scanned for: a `[CBUUID]`.
public let CBCentralManagerRestoredStateScanServicesKey: String = "kCBRestoredScanServices"
/// The options of the scan: a `[String: Any]`.
public let CBCentralManagerRestoredStateScanOptionsKey: String = "kCBRestoredScanOptions"
/// The services that were published: a `[CBMutableService]`.
public let CBPeripheralManagerRestoredStateServicesKey: String = "kCBRestoredServices"
/// The advertisement: a `[String: Any]`.
public let CBPeripheralManagerRestoredStateAdvertisementDataKey: String = "kCBRestoredAdvertisement"

// MARK: Connection events

/// What connection events are matched by; see ``CBCentralManager/registerForConnectionEvents(options:)``.
public struct CBConnectionEventMatchingOption: RawRepresentable, Hashable, Sendable {
    /// The option's name.
    public var rawValue: String
    /// Makes an option from its name.
    public init(rawValue: String) { self.rawValue = rawValue }

    /// Services that the peripheral must offer: a `[CBUUID]`.
    public static let serviceUUIDs = Self(rawValue: "kCBConnectionEventMatchingOptionServiceUUIDs")
    /// Identifiers of which the peripheral's must be one: a `[UUID]`.
    public static let peripheralUUIDs = Self(rawValue: "kCBConnectionEventMatchingOptionPeripheralUUIDs")
}
