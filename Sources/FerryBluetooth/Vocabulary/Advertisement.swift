/// What a peripheral wants to advertise. As with CoreBluetooth: a local name and service UUIDs.
public struct Advertisement: Sendable, Hashable {
    /// The name people see.
    public var localName: String?
    /// The services that scans can be filtered by.
    public var services: [BluetoothUUID]

    /// Describes an advertisement.
    public init(localName: String? = nil, services: [BluetoothUUID] = []) {
        self.localName = localName
        self.services = services
    }
}

/// What went on the air of an ``Advertisement``, and what did not.
public struct AdvertisingReport: Sendable, Hashable {
    /// What scanners receive.
    public var advertised: AdvertisementData
    /// Services that did not fit; scanners that look for them by name still find the peripheral only where the adapter
    /// has an overflow area, as the loopback radio has.
    public var omittedServices: [BluetoothUUID]
    /// Whether the local name was shortened or left out.
    public var isNameShortened: Bool

    /// Made by adapters.
    public init(
        advertised: AdvertisementData, omittedServices: [BluetoothUUID] = [], isNameShortened: Bool = false
    ) {
        self.advertised = advertised
        self.omittedServices = omittedServices
        self.isNameShortened = isNameShortened
    }
}

/// What a scanner heard.
public struct AdvertisementData: Sendable, Hashable {
    /// The local name, possibly shortened.
    public var localName: String?
    /// Services named in the packet.
    public var services: [BluetoothUUID]
    /// Services in the overflow area.
    public var overflowServices: [BluetoothUUID]
    /// Transmit power in dBm.
    public var txPower: Int?
    /// Whether the peripheral takes connections.
    public var isConnectable: Bool
    /// Data of the manufacturer, company identifier first.
    public var manufacturerData: [UInt8]?
    /// Data of services.
    public var serviceData: [BluetoothUUID: [UInt8]]

    /// Made by adapters.
    public init(
        localName: String? = nil, services: [BluetoothUUID] = [], overflowServices: [BluetoothUUID] = [],
        txPower: Int? = nil, isConnectable: Bool = true, manufacturerData: [UInt8]? = nil,
        serviceData: [BluetoothUUID: [UInt8]] = [:]
    ) {
        self.localName = localName
        self.services = services
        self.overflowServices = overflowServices
        self.txPower = txPower
        self.isConnectable = isConnectable
        self.manufacturerData = manufacturerData
        self.serviceData = serviceData
    }
}
