/// What a characteristic offers (Core Specification 5.4, Vol 3, Part G, 3.3.1.1, and the two that CoreBluetooth adds);
/// raw values as in `CBCharacteristicProperties`.
public struct CharacteristicProperties: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: UInt16
    /// Makes a set from its bits.
    public init(rawValue: UInt16) { self.rawValue = rawValue }

    /// The value may be broadcast in advertisements.
    public static let broadcast = Self(rawValue: 0x01)
    /// The value can be read.
    public static let read = Self(rawValue: 0x02)
    /// The value can be written without a response.
    public static let writeWithoutResponse = Self(rawValue: 0x04)
    /// The value can be written, with a response.
    public static let write = Self(rawValue: 0x08)
    /// The value is sent to subscribers without confirmation.
    public static let notify = Self(rawValue: 0x10)
    /// The value is sent to subscribers, who confirm it.
    public static let indicate = Self(rawValue: 0x20)
    /// The value can be written with a signature on an unencrypted link.
    public static let authenticatedSignedWrites = Self(rawValue: 0x40)
    /// More properties stand in the Extended Properties descriptor.
    public static let extendedProperties = Self(rawValue: 0x80)
    /// Only trusted peers may subscribe to notifications.
    public static let notifyEncryptionRequired = Self(rawValue: 0x100)
    /// Only trusted peers may subscribe to indications.
    public static let indicateEncryptionRequired = Self(rawValue: 0x200)
}

/// Who may read and write an attribute's value; raw values as in `CBAttributePermissions`, and two that it does not have.
public struct AttributePermissions: OptionSet, Sendable, Hashable {
    /// The bits.
    public let rawValue: UInt8
    /// Makes a set from its bits.
    public init(rawValue: UInt8) { self.rawValue = rawValue }

    /// Everyone may read.
    public static let readable = Self(rawValue: 0x01)
    /// Everyone may write.
    public static let writeable = Self(rawValue: 0x02)
    /// Only an encrypted link may read.
    public static let readEncryptionRequired = Self(rawValue: 0x04)
    /// Only an encrypted link may write.
    public static let writeEncryptionRequired = Self(rawValue: 0x08)
    /// Every access that requires encryption requires a key that a person took part in, by comparing or entering a
    /// number (Core Specification 5.4, Vol 3, Part C, 10.2.1: security mode 1, level 3). Adapters that cannot tell
    /// refuse to publish it.
    public static let authenticationRequired = Self(rawValue: 0x10)
    /// Every access that requires encryption requires such a key of LE Secure Connections (level 4).
    public static let secureConnectionsRequired = Self(rawValue: 0x20)
}

/// Names a service, characteristic or descriptor towards one adapter. Opaque: an ATT handle for one adapter, an object
/// number for another.
public struct AttributeID: Sendable, Hashable {
    /// The adapter's number.
    public let rawValue: UInt32
    /// Made by adapters.
    public init(rawValue: UInt32) { self.rawValue = rawValue }
}

/// A service to be published.
public struct ServiceDefinition: Sendable, Hashable {
    /// The service's type.
    public var uuid: BluetoothUUID
    /// Primary services are found on their own, secondary ones only where they are included.
    public var isPrimary: Bool
    /// Services that this one includes; they are published first.
    public var includedServices: [AttributeID]
    /// The service's characteristics, in the order peers see them.
    public var characteristics: [CharacteristicDefinition]

    /// Describes a service.
    public init(
        _ uuid: BluetoothUUID, isPrimary: Bool = true, includedServices: [AttributeID] = [],
        characteristics: [CharacteristicDefinition]
    ) {
        self.uuid = uuid
        self.isPrimary = isPrimary
        self.includedServices = includedServices
        self.characteristics = characteristics
    }
}

/// A characteristic to be published.
public struct CharacteristicDefinition: Sendable, Hashable {
    /// The characteristic's type.
    public var uuid: BluetoothUUID
    /// What it offers.
    public var properties: CharacteristicProperties
    /// Who may use it.
    public var permissions: AttributePermissions
    /// A fixed value, which the adapter answers reads with (the characteristic is then read-only), or nil: every read
    /// and write comes as a request.
    public var value: [UInt8]?
    /// Descriptors besides the ones that the adapter adds (client configuration, extended properties).
    public var descriptors: [DescriptorDefinition]

    /// Describes a characteristic.
    public init(
        _ uuid: BluetoothUUID, properties: CharacteristicProperties, permissions: AttributePermissions,
        value: [UInt8]? = nil, descriptors: [DescriptorDefinition] = []
    ) {
        self.uuid = uuid
        self.properties = properties
        self.permissions = permissions
        self.value = value
        self.descriptors = descriptors
    }
}

/// A descriptor to be published, with a fixed value.
public struct DescriptorDefinition: Sendable, Hashable {
    /// The descriptor's type.
    public var uuid: BluetoothUUID
    /// Its value, at most 512 bytes.
    public var value: [UInt8]

    /// Describes a descriptor.
    public init(_ uuid: BluetoothUUID, value: [UInt8]) {
        self.uuid = uuid
        self.value = value
    }
}

/// A service that has been published, with the names to use for its parts, in the order of its definition.
public struct PublishedService: Sendable, Hashable {
    /// The service.
    public let id: AttributeID
    /// Its characteristics.
    public let characteristics: [AttributeID]

    /// Made by adapters.
    public init(id: AttributeID, characteristics: [AttributeID]) {
        self.id = id
        self.characteristics = characteristics
    }
}

/// A service found on a peer.
public struct RemoteService: Sendable, Hashable {
    /// The name to use for it on its connection.
    public let id: AttributeID
    /// The service's type.
    public let uuid: BluetoothUUID
    /// Whether it is a primary service.
    public let isPrimary: Bool

    /// Made by adapters.
    public init(id: AttributeID, uuid: BluetoothUUID, isPrimary: Bool) {
        self.id = id
        self.uuid = uuid
        self.isPrimary = isPrimary
    }
}

/// A characteristic found on a peer.
public struct RemoteCharacteristic: Sendable, Hashable {
    /// The name to use for it on its connection.
    public let id: AttributeID
    /// The characteristic's type.
    public let uuid: BluetoothUUID
    /// What it offers.
    public let properties: CharacteristicProperties

    /// Made by adapters.
    public init(id: AttributeID, uuid: BluetoothUUID, properties: CharacteristicProperties) {
        self.id = id
        self.uuid = uuid
        self.properties = properties
    }
}

/// A descriptor found on a peer.
public struct RemoteDescriptor: Sendable, Hashable {
    /// The name to use for it on its connection.
    public let id: AttributeID
    /// The descriptor's type.
    public let uuid: BluetoothUUID

    /// Made by adapters.
    public init(id: AttributeID, uuid: BluetoothUUID) {
        self.id = id
        self.uuid = uuid
    }
}

/// How a central is told of a characteristic's new values.
public enum Subscription: Sendable, Hashable {
    /// Without confirmation.
    case notify
    /// Each value is confirmed before the next.
    case indicate
}

/// Protocol/Service Multiplexer: the number an L2CAP channel is opened by.
public struct PSM: Sendable, Hashable {
    /// The number; 0x0080 to 0x00FF are dynamic (Core Specification 5.4, Vol 3, Part A, 4.22).
    public let rawValue: UInt16
    /// Makes a PSM.
    public init(rawValue: UInt16) { self.rawValue = rawValue }
}
