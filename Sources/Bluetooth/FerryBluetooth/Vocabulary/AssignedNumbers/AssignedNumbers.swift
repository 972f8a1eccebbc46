/// Names from the Bluetooth SIG's Assigned Numbers, section 3 (16-bit UUIDs), for GATT services, declarations,
/// descriptors and characteristics. Members' and standards bodies' numbers (0xFC00 to 0xFFFF) are not listed.
enum AssignedNumbers {
    /// The name of a 16-bit UUID, or nil. Each kind of attribute has its own block of numbers.
    static func name(of short: UInt16) -> String? {
        switch short >> 8 {
        case 0x18: services[short]
        case 0x28: declarations[short]
        case 0x29: descriptors[short]
        case 0x2A: characteristics2A[short]
        case 0x2B: characteristics2B[short]
        case 0x2C: characteristics2C[short]
        default: nil
        }
    }
}

extension BluetoothUUID {
    /// The name that the Bluetooth SIG has given to this service, declaration, descriptor or characteristic, such as
    /// `Battery Level`; nil for UUIDs of an app's own and for numbers not in the table.
    ///
    /// Services go without the word Service. Source: Assigned Numbers, sections 3.4 to 3.8; numbers are never
    /// reassigned, so a number without a name is newer than the table.
    public var name: String? {
        guard bitWidth == 16 else { return nil }
        return AssignedNumbers.name(of: UInt16(truncatingIfNeeded: value >> 96))
    }
}

extension BluetoothUUID {
    // MARK: Services

    /// Generic Access (0x1800): device name, appearance, preferred connection parameters.
    public static let genericAccess = BluetoothUUID(0x1800 as UInt16)
    /// Generic Attribute (0x1801): Service Changed and database hash.
    public static let genericAttribute = BluetoothUUID(0x1801 as UInt16)
    /// Current Time (0x1805).
    public static let currentTime = BluetoothUUID(0x1805 as UInt16)
    /// Health Thermometer (0x1809).
    public static let healthThermometer = BluetoothUUID(0x1809 as UInt16)
    /// Device Information (0x180A).
    public static let deviceInformation = BluetoothUUID(0x180A as UInt16)
    /// Heart Rate (0x180D).
    public static let heartRate = BluetoothUUID(0x180D as UInt16)
    /// Battery (0x180F).
    public static let battery = BluetoothUUID(0x180F as UInt16)
    /// Human Interface Device (0x1812).
    public static let humanInterfaceDevice = BluetoothUUID(0x1812 as UInt16)
    /// Environmental Sensing (0x181A).
    public static let environmentalSensing = BluetoothUUID(0x181A as UInt16)

    // MARK: Declarations (Core Specification 5.4, Vol 3, Part G, 3.4)

    /// Declares a primary service (0x2800).
    public static let primaryService = BluetoothUUID(0x2800 as UInt16)
    /// Declares a secondary service (0x2801).
    public static let secondaryService = BluetoothUUID(0x2801 as UInt16)
    /// Declares an included service (0x2802).
    public static let include = BluetoothUUID(0x2802 as UInt16)
    /// Declares a characteristic (0x2803).
    public static let characteristic = BluetoothUUID(0x2803 as UInt16)

    // MARK: Descriptors (Core Specification 5.4, Vol 3, Part G, 3.3.3)

    /// Characteristic Extended Properties (0x2900).
    public static let characteristicExtendedProperties = BluetoothUUID(0x2900 as UInt16)
    /// Characteristic User Description (0x2901).
    public static let characteristicUserDescription = BluetoothUUID(0x2901 as UInt16)
    /// Client Characteristic Configuration (0x2902): the descriptor a client subscribes by.
    public static let clientCharacteristicConfiguration = BluetoothUUID(0x2902 as UInt16)
    /// Server Characteristic Configuration (0x2903).
    public static let serverCharacteristicConfiguration = BluetoothUUID(0x2903 as UInt16)
    /// Characteristic Presentation Format (0x2904).
    public static let characteristicPresentationFormat = BluetoothUUID(0x2904 as UInt16)
    /// Characteristic Aggregate Format (0x2905).
    public static let characteristicAggregateFormat = BluetoothUUID(0x2905 as UInt16)

    // MARK: Characteristics

    /// Device Name (0x2A00).
    public static let deviceName = BluetoothUUID(0x2A00 as UInt16)
    /// Appearance (0x2A01).
    public static let appearance = BluetoothUUID(0x2A01 as UInt16)
    /// Peripheral Preferred Connection Parameters (0x2A04).
    public static let peripheralPreferredConnectionParameters = BluetoothUUID(0x2A04 as UInt16)
    /// Service Changed (0x2A05).
    public static let serviceChanged = BluetoothUUID(0x2A05 as UInt16)
    /// Battery Level (0x2A19), in per cent.
    public static let batteryLevel = BluetoothUUID(0x2A19 as UInt16)
    /// Model Number String (0x2A24).
    public static let modelNumberString = BluetoothUUID(0x2A24 as UInt16)
    /// Serial Number String (0x2A25).
    public static let serialNumberString = BluetoothUUID(0x2A25 as UInt16)
    /// Firmware Revision String (0x2A26).
    public static let firmwareRevisionString = BluetoothUUID(0x2A26 as UInt16)
    /// Hardware Revision String (0x2A27).
    public static let hardwareRevisionString = BluetoothUUID(0x2A27 as UInt16)
    /// Software Revision String (0x2A28).
    public static let softwareRevisionString = BluetoothUUID(0x2A28 as UInt16)
    /// Manufacturer Name String (0x2A29).
    public static let manufacturerNameString = BluetoothUUID(0x2A29 as UInt16)
    /// Heart Rate Measurement (0x2A37).
    public static let heartRateMeasurement = BluetoothUUID(0x2A37 as UInt16)
    /// Client Supported Features (0x2B29).
    public static let clientSupportedFeatures = BluetoothUUID(0x2B29 as UInt16)
    /// Database Hash (0x2B2A).
    public static let databaseHash = BluetoothUUID(0x2B2A as UInt16)
}
