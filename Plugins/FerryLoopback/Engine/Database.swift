import FerryBluetooth

/// An adapter's published services.
struct Database {
    struct Service {
        let id: AttributeID
        let owner: Int
        let definition: ServiceDefinition
        let characteristics: [AttributeID]
    }

    final class Characteristic {
        let id: AttributeID
        let owner: Int
        let service: AttributeID
        let definition: CharacteristicDefinition
        /// In the order of the definition, then those that the adapter adds.
        let descriptors: [AttributeID]

        init(
            id: AttributeID, owner: Int, service: AttributeID, definition: CharacteristicDefinition,
            descriptors: [AttributeID]
        ) {
            self.id = id
            self.owner = owner
            self.service = service
            self.definition = definition
            self.descriptors = descriptors
        }

        var properties: CharacteristicProperties { definition.properties }
    }

    struct Descriptor {
        let id: AttributeID
        let characteristic: AttributeID
        let uuid: BluetoothUUID
        let value: [UInt8]
    }

    private(set) var services: [Service] = []
    private(set) var characteristics: [AttributeID: Characteristic] = [:]
    private(set) var descriptors: [AttributeID: Descriptor] = [:]
    private var lastHandle: UInt32 = 0

    static let clientConfiguration = BluetoothUUID(0x2902 as UInt16)
    static let extendedProperties = BluetoothUUID(0x2900 as UInt16)

    private mutating func nextHandle() -> AttributeID {
        lastHandle += 1
        return AttributeID(rawValue: lastHandle)
    }

    func service(_ id: AttributeID) -> Service? { services.first { $0.id == id } }

    /// Adds a service that ``validate(_:)`` has let pass.
    mutating func add(_ definition: ServiceDefinition, owner: Int) -> PublishedService {
        let id = nextHandle()
        let ids = definition.characteristics.map { characteristic in
            let handle = nextHandle()
            var added = characteristic.descriptors
            if characteristic.properties.offersSubscription {
                added.append(DescriptorDefinition(Self.clientConfiguration, value: [0, 0]))
            }
            if characteristic.properties.contains(.extendedProperties) {
                added.append(DescriptorDefinition(Self.extendedProperties, value: [0, 0]))
            }
            let descriptorIDs = added.map { descriptor in
                let descriptorHandle = nextHandle()
                descriptors[descriptorHandle] = Descriptor(
                    id: descriptorHandle, characteristic: handle, uuid: descriptor.uuid, value: descriptor.value)
                return descriptorHandle
            }
            characteristics[handle] = Characteristic(
                id: handle, owner: owner, service: id, definition: characteristic, descriptors: descriptorIDs)
            return handle
        }
        services.append(Service(id: id, owner: owner, definition: definition, characteristics: ids))
        return PublishedService(id: id, characteristics: ids)
    }

    /// Removes a service and returns its characteristics, or nil when it is not the owner's.
    mutating func remove(_ id: AttributeID, owner: Int) -> [AttributeID]? {
        guard let index = services.firstIndex(where: { $0.id == id && $0.owner == owner }) else { return nil }
        let service = services.remove(at: index)
        for characteristic in service.characteristics {
            for descriptor in characteristics.removeValue(forKey: characteristic)?.descriptors ?? [] {
                descriptors[descriptor] = nil
            }
        }
        return service.characteristics
    }

    /// Forgets everything, but never gives a handle twice.
    mutating func removeAll() {
        services = []
        characteristics = [:]
        descriptors = [:]
    }

    /// Refuses definitions that CoreBluetooth refuses, and values above 512 bytes.
    func validate(_ definition: ServiceDefinition) throws(BluetoothError) {
        func refuse(_ message: String) -> BluetoothError {
            BluetoothError(.invalidArgument, "service \(definition.uuid.uuidString): \(message)")
        }
        for included in definition.includedServices where service(included) == nil {
            throw refuse("the included service \(included.rawValue) is not published; publish it first")
        }
        for characteristic in definition.characteristics {
            let place = "characteristic \(characteristic.uuid.uuidString)"
            let stronger: AttributePermissions = [.authenticationRequired, .secureConnectionsRequired]
            guard characteristic.permissions.isDisjoint(with: stronger) else {
                throw BluetoothError(
                    .notSupported,
                    "\(place) requires an authenticated key, and nobody compares numbers here; require encryption")
            }
            if let value = characteristic.value {
                let writing: AttributePermissions = [.writeable, .writeEncryptionRequired]
                guard characteristic.properties == .read, characteristic.permissions.isDisjoint(with: writing) else {
                    throw refuse(
                        "\(place) has a fixed value, so it must be read-only; give it the property read alone, or "
                            + "the value nil")
                }
                guard value.count <= 512 else {
                    throw refuse("\(place) has a value of \(value.count) bytes; at most 512 are allowed")
                }
            }
            for descriptor in characteristic.descriptors {
                guard descriptor.value.count <= 512 else {
                    throw refuse(
                        "a descriptor of \(place) has \(descriptor.value.count) bytes; at most 512 are allowed")
                }
                guard ![Self.clientConfiguration, Self.extendedProperties].contains(descriptor.uuid) else {
                    throw refuse("\(place) names the descriptor \(descriptor.uuid.uuidString), which the adapter adds")
                }
            }
        }
    }
}

extension CharacteristicProperties {
    /// Those that are sent to peers: the two that CoreBluetooth adds are hints for the publishing side.
    var onAir: Self {
        var seen = intersection(Self(rawValue: 0xFF))
        if contains(.notifyEncryptionRequired) { seen.insert(.notify) }
        if contains(.indicateEncryptionRequired) { seen.insert(.indicate) }
        return seen
    }

    var offersSubscription: Bool {
        !isDisjoint(with: [.notify, .indicate, .notifyEncryptionRequired, .indicateEncryptionRequired])
    }

    func offers(_ subscription: Subscription) -> Bool {
        onAir.contains(subscription == .notify ? .notify : .indicate)
    }

    func requiresEncryption(for subscription: Subscription) -> Bool {
        contains(subscription == .notify ? .notifyEncryptionRequired : .indicateEncryptionRequired)
    }
}
