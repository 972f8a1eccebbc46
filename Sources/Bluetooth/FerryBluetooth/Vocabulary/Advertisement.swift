/// What a peripheral wants to advertise.
///
/// A local name and services are what every adapter takes, CoreBluetooth's too. Of the rest an adapter throws `notSupported` for
/// what its platform cannot do.
public struct Advertisement: Sendable, Hashable {
    /// The name people see; cut where it does not fit.
    public var localName: String?
    /// The services that scans can be filtered by; some may be left out where they do not fit.
    public var services: [BluetoothUUID]
    /// Data of the manufacturer, company identifier first, low byte first (Core Specification Supplement, Part A, 1.4). All of
    /// it, or an error.
    public var manufacturerData: [UInt8]?
    /// Data of services (Core Specification Supplement, Part A, 1.11). All of it, or an error.
    public var serviceData: [BluetoothUUID: [UInt8]]
    /// Whether centrals may connect. Without that it is a beacon.
    public var isConnectable: Bool
    /// How far apart the packets may be, within 20 ms to 10.24 s; nil for the adapter's choice. Long intervals save a battery
    /// and are found late.
    public var interval: ClosedRange<Duration>?
    /// Whether it may be longer: 245 bytes in one packet of extended advertising, without a scan response. Scanners and
    /// controllers from before Bluetooth 5 have no part in it.
    public var isExtended: Bool

    /// Describes an advertisement.
    public init(
        localName: String? = nil, services: [BluetoothUUID] = [], manufacturerData: [UInt8]? = nil,
        serviceData: [BluetoothUUID: [UInt8]] = [:], isConnectable: Bool = true, interval: ClosedRange<Duration>? = nil,
        isExtended: Bool = false
    ) {
        self.localName = localName
        self.services = services
        self.manufacturerData = manufacturerData
        self.serviceData = serviceData
        self.isConnectable = isConnectable
        self.interval = interval
        self.isExtended = isExtended
    }
}

extension Advertisement {
    /// The interval, for adapters.
    ///
    /// - Throws: `invalidArgument` when it is not within 20 ms to 10.24 s (Core Specification 5.4, Vol 4, Part E, 7.8.5).
    public var validInterval: ClosedRange<Duration>? {
        get throws(BluetoothError) {
            guard let interval else { return nil }
            guard interval.lowerBound >= .milliseconds(20), interval.upperBound <= .milliseconds(10_240) else {
                throw BluetoothError(
                    .invalidArgument,
                    "An advertising interval of \(interval.lowerBound) to \(interval.upperBound) cannot be had; choose one within "
                        + "20 ms to 10.24 s.")
            }
            return interval
        }
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
