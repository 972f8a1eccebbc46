import Ferry
import FerryBluetooth

/// The peripheral role of a ``LoopbackAdapter``.
final class LoopbackPeripheralRole: PeripheralRole {
    private let radio: LoopbackRadio
    private let node: Int
    private let id: Int
    private let owner: PeripheralOwner

    init(radio: LoopbackRadio, _ owner: PeripheralOwner) {
        self.radio = radio
        self.owner = owner
        node = owner.node
        id = owner.id
    }

    /// Without a reference the role cannot be closed in any other way.
    deinit { close() }

    func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
        try radio.locked { (radio) throws(BluetoothError) in
            _ = try radio.openPeripheral(id)
            let node = radio.nodes[node]
            try node.requirePower()
            try node.database.check(service, owner: id)
            let published = node.database.add(service, owner: id)
            radio.tellCentrals(of: node, ofModified: [])
            return published
        }
    }

    func unpublish(_ service: AttributeID) {
        radio.locked { $0.unpublish(service, owner: id, node: $0.nodes[node]) }
    }

    func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
        let budget: AdvertisingBudget = advertisement.isExtended ? .extended : .coreBluetooth
        let report = advertisement.fitted(to: budget)
        _ = try report.encoded(for: budget)
        let interval = try advertisement.validInterval
        try radio.locked { (radio) throws(BluetoothError) in
            let owner = try radio.openPeripheral(id)
            try radio.nodes[node].requirePower()
            radio.advertise(report.advertised, every: interval?.lowerBound, owner)
        }
        return report
    }

    func stopAdvertising() {
        radio.locked { radio in
            if let owner = radio.peripherals[id] { radio.advertise(nil, owner) }
        }
    }

    func tryUpdateValue(
        _ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients
    ) throws(BluetoothError) -> Bool {
        try value.withUnsafeBytes { (bytes) throws(BluetoothError) in
            try radio.locked { (radio) throws(BluetoothError) in
                try radio.tryUpdate(bytes, of: characteristic, for: recipients, owner)
            }
        }
    }

    func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? {
        radio.read { radio in
            owner.link(to: central, in: radio).map { min(radio.reportedMTU($0) - 3, 512) }
        }
    }

    func identity(of central: ConnectedCentral) -> PeerIdentity? {
        radio.read { radio in
            owner.link(to: central, in: radio).map {
                RadioState.identity(ofNode: $0.central, isProven: radio.isProven($0))
            }
        }
    }

    func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
        radio.locked { $0.respond(id, to: request, with: response) }
    }

    func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {
        radio.locked { radio in
            guard let link = owner.link(to: central, in: radio) else { return }
            if isReceiving { link.pausedOwners.remove(id) } else { link.pausedOwners.insert(id) }
            radio.updateReceiving(link)
        }
    }

    func disconnect(_ central: ConnectedCentral) {
        radio.locked { radio in
            if let link = owner.link(to: central, in: radio) { radio.disconnectCentral(of: link) }
        }
    }

    func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
        try radio.locked { (radio) throws(BluetoothError) in
            _ = try radio.openPeripheral(id)
            let node = radio.nodes[node]
            try node.requirePower()
            return try radio.publishPSM(owner: id, node: node, encryptionRequired: encryptionRequired)
        }
    }

    func unpublishL2CAPChannel(_ psm: PSM) {
        radio.locked { radio in
            guard radio.nodes[node].psms[psm.rawValue]?.owner == id else { return }
            radio.nodes[node].psms[psm.rawValue] = nil
        }
    }

    func close() { radio.locked { $0.closePeripheral(id) } }
}

extension RadioState {
    func openPeripheral(_ id: Int) throws(BluetoothError) -> PeripheralOwner {
        guard let owner = peripherals[id] else { throw BluetoothError.roleClosed }
        return owner
    }

    func openCentral(_ id: Int) throws(BluetoothError) -> CentralOwner {
        guard let owner = centrals[id] else { throw BluetoothError.roleClosed }
        return owner
    }
}
