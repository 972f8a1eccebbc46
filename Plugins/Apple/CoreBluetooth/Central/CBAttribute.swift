import FerryBluetooth
public import Foundation

/// What services, characteristics and descriptors have in common.
open class CBAttribute: NSObject {
    let type: CBUUID

    init(type: CBUUID) { self.type = type }

    /// The attribute's type.
    open var uuid: CBUUID { type }
    /// As `description`.
    open override var debugDescription: String { description }
}

/// Where a remote attribute was found. After the connection has ended it names nothing any more.
struct RemotePlace: Sendable {
    /// Weak, because the session keeps its attributes.
    let session: WeakReference<PeripheralSession>
    let id: AttributeID

    init(session: PeripheralSession, id: AttributeID) {
        self.session = WeakReference(session)
        self.id = id
    }
}

/// A collection of data and behaviour of a device.
open class CBService: CBAttribute {
    struct Contents {
        var isPrimary: Bool
        var included: [CBService]?
        var characteristics: [CBCharacteristic]?
    }
    let contents: Guarded<Contents>
    let owner: WeakReference<CBPeripheral>
    let place: RemotePlace?

    init(type: CBUUID, isPrimary: Bool, owner: CBPeripheral? = nil, place: RemotePlace? = nil) {
        contents = Guarded(Contents(isPrimary: isPrimary))
        self.owner = WeakReference(owner)
        self.place = place
        super.init(type: type)
    }

    /// The peripheral that the service was found on; nil for local services.
    open var peripheral: CBPeripheral? { owner.object }
    /// Whether it is a primary service.
    open var isPrimary: Bool { contents.current.isPrimary }
    /// The services that it includes, as far as they have been discovered.
    open var includedServices: [CBService]? { contents.current.included }
    /// As Apple's prints.
    open override var description: String { printed("isPrimary = \(isPrimary ? "YES" : "NO"), UUID = \(uuid)") }
    /// Its characteristics, as far as they have been discovered.
    open var characteristics: [CBCharacteristic]? { contents.current.characteristics }
}

/// A value of a service.
open class CBCharacteristic: CBAttribute {
    struct Contents {
        var properties: CBCharacteristicProperties
        var value: Data?
        var descriptors: [CBDescriptor]?
        var isNotifying = false
    }
    let contents: Guarded<Contents>
    let owner: WeakReference<CBService>
    let place: RemotePlace?

    init(
        type: CBUUID, properties: CBCharacteristicProperties, value: Data? = nil, owner: CBService? = nil,
        place: RemotePlace? = nil
    ) {
        contents = Guarded(Contents(properties: properties, value: value))
        self.owner = WeakReference(owner)
        self.place = place
        super.init(type: type)
    }

    /// The service that it belongs to.
    open var service: CBService? { owner.object }
    /// What it offers.
    open var properties: CBCharacteristicProperties { contents.current.properties }
    /// The value that was read or received last. It changes just before the delegate is told.
    open var value: Data? { contents.current.value }
    /// As Apple's prints.
    open override var description: String {
        let bits = String(properties.rawValue, radix: 16, uppercase: true)
        return printed(
            "UUID = \(uuid), properties = 0x\(bits), value = \(printed(value)), "
                + "notifying = \(isNotifying ? "YES" : "NO")")
    }
    /// Its descriptors, as far as they have been discovered.
    open var descriptors: [CBDescriptor]? { contents.current.descriptors }
    /// Whether values are received as they change.
    open var isNotifying: Bool { contents.current.isNotifying }
    /// Whether the value is broadcast; never on Linux.
    @available(*, deprecated)
    open var isBroadcasted: Bool { false }
}

/// More about a characteristic.
open class CBDescriptor: CBAttribute {
    let contents: Guarded<Any?>
    let owner: WeakReference<CBCharacteristic>
    let place: RemotePlace?

    init(type: CBUUID, value: Any? = nil, owner: CBCharacteristic? = nil, place: RemotePlace? = nil) {
        contents = Guarded(value)
        self.owner = WeakReference(owner)
        self.place = place
        super.init(type: type)
    }

    /// The characteristic that it belongs to.
    open var characteristic: CBCharacteristic? { owner.object }

    /// The value that was read last: an `NSNumber` for Extended Properties and the two configurations, a `String` for
    /// the User Description, otherwise a `Data`.
    open var value: Any? { contents.current }

    /// As Apple's prints.
    open override var description: String {
        let value = (value as? Data).map { printed($0) } ?? value.map { "\($0)" } ?? "(null)"
        return printed("UUID = \(uuid), value = \(value)")
    }

    /// A descriptor's bytes as the kind of object that ``value`` states.
    func interpret(_ bytes: [UInt8]) -> Any {
        switch uuid.uuidString {
        case CBUUIDCharacteristicExtendedPropertiesString, CBUUIDClientCharacteristicConfigurationString,
            CBUUIDServerCharacteristicConfigurationString:
            NSNumber(value: bytes.prefix(2).reversed().reduce(0) { $0 << 8 | Int($1) })
        case CBUUIDCharacteristicUserDescriptionString: String(decoding: bytes, as: UTF8.self)
        default: Data(bytes)
        }
    }
}
