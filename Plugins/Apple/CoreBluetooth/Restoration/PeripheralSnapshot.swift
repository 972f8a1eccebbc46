import FerryBluetooth
import Foundation

/// What a peripheral manager was doing.
struct PeripheralSnapshot: Codable, Sendable {
    struct Descriptor: Codable, Sendable {
        var uuid: String
        var text: String?
        var data: Data?
    }
    struct Characteristic: Codable, Sendable {
        var uuid: String
        var properties: UInt
        var permissions: UInt
        var value: Data?
        var descriptors: [Descriptor]
    }
    struct Service: Codable, Sendable {
        var uuid: String
        var isPrimary: Bool
        /// Places of the included services in the list.
        var included: [Int]
        var characteristics: [Characteristic]
    }
    var services: [Service] = []
    var isAdvertising = false
    var localName: String?
    var advertisedServices: [String] = []

    var isEmpty: Bool { services.isEmpty && !isAdvertising }
}

extension CBPeripheralManager {
    /// Takes up what an earlier run has left, and keeps what this one does.
    func restore(_ identifier: String?) {
        guard let identifier else { return }
        let file = RestorationFile(identifier: identifier, role: "peripheral")
        let snapshot = file.read(PeripheralSnapshot.self)
        progress {
            $0.restoration = file
            if let snapshot, !snapshot.isEmpty { $0.restoring = .found(snapshot) }
        }
    }

    func saveState() {
        // Restored state stays in the file until it is resumed.
        let file = progress { $0.restoring.isUnderWay ? nil : $0.restoration }
        file?.write { snapshot }
    }

    private var snapshot: PeripheralSnapshot {
        let (services, advertisement) = progress { ($0.services, $0.advertisement) }
        var snapshot = PeripheralSnapshot()
        snapshot.isAdvertising = advertisement != nil
        snapshot.localName = advertisement?.localName
        snapshot.advertisedServices = advertisement?.services.map(\.description) ?? []
        snapshot.services = services.map { $0.snapshot(among: services) }
        return snapshot
    }

    /// Tells the delegate about the published services and the advertisement; both resume by themselves at power on.
    func handBack(_ snapshot: PeripheralSnapshot) {
        var services: [CBMutableService] = []
        for saved in snapshot.services {
            let service = CBMutableService(saved)
            service.includedServices = saved.included.filter { services.indices.contains($0) }.map { services[$0] }
            services.append(service)
        }
        var dictionary: [String: Any] = [:]
        if !services.isEmpty { dictionary[CBPeripheralManagerRestoredStateServicesKey] = services }
        if snapshot.isAdvertising {
            dictionary[CBPeripheralManagerRestoredStateAdvertisementDataKey] = snapshot.advertisementData
        }
        progress { $0.restoring = .handed(snapshot, services) }
        delegate?.peripheralManager(self, willRestoreState: dictionary)
    }

    /// Resumes the restored operations. Services that the program has added itself meanwhile stay as they are.
    func resume() {
        let restoring = progress { progress in
            let restoring = progress.restoring
            if case .handed = restoring { progress.restoring = .nothing }
            return restoring
        }
        guard case .handed(let snapshot, let services) = restoring else { return }
        let added = progress { $0.services.map(\.uuid) }
        for service in services where !added.contains(service.uuid) { add(service) }
        if snapshot.isAdvertising, progress({ $0.advertisement == nil }) {
            startAdvertising(snapshot.advertisementData)
        }
    }
}

extension PeripheralSnapshot {
    fileprivate var advertisementData: [String: Any] {
        var data: [String: Any] = [:]
        data[CBAdvertisementDataLocalNameKey] = localName
        data[CBAdvertisementDataServiceUUIDsKey] = advertisedServices.map { CBUUID(string: $0) }
        return data
    }
}

extension CBMutableService {
    fileprivate convenience init(_ saved: PeripheralSnapshot.Service) {
        self.init(type: CBUUID(string: saved.uuid), primary: saved.isPrimary)
        characteristics = saved.characteristics.map { saved in
            let characteristic = CBMutableCharacteristic(
                type: CBUUID(string: saved.uuid),
                properties: CBCharacteristicProperties(rawValue: saved.properties), value: saved.value,
                permissions: CBAttributePermissions(rawValue: saved.permissions))
            characteristic.descriptors = saved.descriptors.map {
                CBMutableDescriptor(type: CBUUID(string: $0.uuid), value: $0.text ?? $0.data)
            }
            return characteristic
        }
    }

    fileprivate func snapshot(among services: [CBMutableService]) -> PeripheralSnapshot.Service {
        PeripheralSnapshot.Service(
            uuid: uuid.uuidString, isPrimary: isPrimary,
            included: (includedServices ?? []).compactMap { included in services.firstIndex { $0 === included } },
            characteristics: (characteristics ?? []).compactMap { ($0 as? CBMutableCharacteristic)?.snapshot })
    }
}

extension CBMutableCharacteristic {
    fileprivate var snapshot: PeripheralSnapshot.Characteristic {
        PeripheralSnapshot.Characteristic(
            uuid: uuid.uuidString, properties: properties.rawValue, permissions: permissions.rawValue, value: value,
            descriptors: (descriptors ?? []).map {
                PeripheralSnapshot.Descriptor(
                    uuid: $0.uuid.uuidString, text: $0.value as? String, data: $0.value as? Data)
            })
    }
}
