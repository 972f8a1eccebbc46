public import FerryBluetooth

extension GATTConfiguration {
    /// How Improv lies over GATT: commands are written with response, results notify, and notes tell the state, the last error and what the
    /// device can do.
    ///
    /// - Parameters:
    ///   - state: what a device says at first.
    ///   - capabilities: what a device can do.
    ///
    /// Source: improv-wifi.com/ble; PyPI py-improv-ble-client 2.0.1 (`protocol.py`).
    public static func improv(
        state: ImprovState = .authorizationRequired, capabilities: ImprovCapabilities = []
    ) -> GATTConfiguration {
        GATTConfiguration(
            service: .improv(0x00), characteristic: .improv(0x04), writeCharacteristic: .improv(0x03),
            writeType: .withResponse,
            sides: SideCharacteristics(notes: [
                .init(.improv(0x01), bytes: [state.rawValue]), .init(.improv(0x02), bytes: [0]),
                .init(.improv(0x05), bytes: [capabilities.rawValue], isNotified: false),
            ]))
    }
}

/// Where a device is on its way into the network.
public struct ImprovState: RawRepresentable, Sendable, Hashable {
    /// The number.
    public var rawValue: UInt8
    /// A state by its number.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// It takes no settings before a person has proved to be near, such as by its button.
    public static let authorizationRequired = ImprovState(rawValue: 1)
    /// It takes settings.
    public static let authorized = ImprovState(rawValue: 2)
    /// It connects to the network.
    public static let provisioning = ImprovState(rawValue: 3)
    /// It is in the network.
    public static let provisioned = ImprovState(rawValue: 4)
}

/// What a device can do besides taking settings.
public struct ImprovCapabilities: OptionSet, Sendable, Hashable {
    /// The bits.
    public var rawValue: UInt8
    /// Capabilities by their bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// ``ImprovClient/identify()``.
    public static let identify = ImprovCapabilities(rawValue: 1)
    /// ``ImprovClient/deviceInfo()``.
    public static let deviceInfo = ImprovCapabilities(rawValue: 2)
    /// ``ImprovClient/scan()``.
    public static let scan = ImprovCapabilities(rawValue: 4)
    /// ``ImprovClient/hostname(_:)``.
    public static let hostname = ImprovCapabilities(rawValue: 8)
}

extension BluetoothUUID {
    fileprivate static func improv(_ number: UInt8) -> BluetoothUUID {
        BluetoothUUID(0x0046_7768_6228_2272_4663_2774_7826_8000 as UInt128 | UInt128(number))
    }
}
