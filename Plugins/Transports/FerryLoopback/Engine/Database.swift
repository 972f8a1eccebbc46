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

    private mutating func nextHandle() -> AttributeID {
        lastHandle += 1
        return AttributeID(rawValue: lastHandle)
    }

    func service(_ id: AttributeID) -> Service? { services.first { $0.id == id } }

    /// Adds a service that ``check(_:owner:)`` has let pass.
    mutating func add(_ definition: ServiceDefinition, owner: Int) -> PublishedService {
        let id = nextHandle()
        let ids = definition.characteristics.map { characteristic in
            let handle = nextHandle()
            var added = characteristic.descriptors
            if characteristic.properties.offersSubscription {
                added.append(DescriptorDefinition(.clientCharacteristicConfiguration, value: [0, 0]))
            }
            if characteristic.properties.contains(.extendedProperties) {
                added.append(DescriptorDefinition(.characteristicExtendedProperties, value: [0, 0]))
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

    /// Refuses definitions that cannot be published.
    func check(_ definition: ServiceDefinition, owner: Int) throws(BluetoothError) {
        try definition.check { service($0)?.owner == owner }
        let stronger: AttributePermissions = [.authenticationRequired, .secureConnectionsRequired]
        for characteristic in definition.characteristics where !characteristic.permissions.isDisjoint(with: stronger) {
            throw BluetoothError(
                .notSupported,
                "Characteristic \(characteristic.uuid) requires an authenticated key, and no user compares numbers here; "
                    + "require encryption.")
        }
    }
}
