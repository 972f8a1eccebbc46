import Ferry
import FerryBluetooth

/// The central role of a ``LoopbackAdapter``.
final class LoopbackCentralRole: CentralRole {
    private let radio: LoopbackRadio
    private let node: Int
    private let id: Int

    init(radio: LoopbackRadio, node: Int, id: Int) {
        self.radio = radio
        self.node = node
        self.id = id
    }

    /// Without a reference the role cannot be closed in any other way.
    deinit { close() }

    func startScan(_ request: ScanRequest) throws(BluetoothError) {
        let scan = try Scan<Int>(request)
        try radio.locked { (radio) throws(BluetoothError) in
            let owner = try radio.openCentral(id)
            try radio.nodes[node].requirePower()
            owner.scan = scan
            if !radio.scanners.contains(id) { radio.scanners.append(id) }
            radio.scheduleAllAdvertising()
        }
    }

    func stopScan() { radio.locked { $0.stopScan(of: id) } }

    func connect(
        to peripheral: PeerID, events: any PeripheralConnectionEvents
    ) async throws(BluetoothError) -> any PeripheralConnection {
        let radio = radio
        let waiter = Waiter<Int>()
        let target = try radio.locked { (radio) throws(BluetoothError) in
            try radio.startConnecting(waiter, of: id, to: peripheral, events)
        }
        let client = try await waiter.wait { radio.locked { _ = $0.attempts.remove(waiter, for: target) } }
        return LoopbackConnection(radio: radio, id: client, peripheral: peripheral)
    }

    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
        radio.locked { radio in identifiers.filter { radio.nodes[node].peers.key(of: $0) != nil } }
    }

    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? {
        radio.locked { radio in
            radio.node(identity).flatMap { $0 == node ? nil : radio.peerID(of: $0, seenBy: node) }
        }
    }

    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
        radio.locked { radio in
            radio.links.values.sorted { $0.id < $1.id }
                .filter { link in
                    link.central == node
                        && radio.nodes[link.peripheral].database.services.contains {
                            services.contains($0.definition.uuid)
                        }
                }
                .map(\.peripheralName)
        }
    }

    func close() { radio.locked { $0.closeCentral(id) } }
}
