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

    /// A role that nobody refers to any more cannot be closed in any other way.
    deinit { close() }

    func startScan(_ request: ScanRequest) throws(BluetoothError) {
        if let window = request.rssi, !window.overlaps(-127...20) {
            throw BluetoothError(
                .invalidArgument,
                "the signal-strength window \(window) holds no value that is ever heard; choose from -127 to 20 dBm")
        }
        try radio.locked { (radio) throws(BluetoothError) in
            let owner = try radio.openCentral(id)
            try radio.nodes[node].requirePower()
            owner.scan = request
            owner.seen = [:]
            if !radio.scanners.contains(id) { radio.scanners.append(id) }
            radio.kickAllAdvertising()
        }
    }

    func stopScan() { radio.locked { $0.stopScan(of: id) } }

    func connect(
        to peripheral: PeerID, events: any PeripheralConnectionEvents
    ) async throws(BluetoothError) -> any PeripheralConnection {
        let radio = radio
        let waiter = Waiter<Int>()
        let (target, request) = try radio.locked { (radio) throws(BluetoothError) in
            try radio.connect(owner: id, node: node, to: peripheral, events) { [radio = self.radio] result in
                guard !waiter.complete(result), case .success(let client) = result else { return }
                radio.locked { $0.abandon(client: client) }
            }
        }
        let client = try await waiter.wait { radio.locked { $0.cancelConnecting(request, to: target) } }
        return LoopbackConnection(radio: radio, id: client, peripheral: peripheral)
    }

    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
        radio.locked { radio in identifiers.filter { radio.nodes[node].peers[$0] != nil } }
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

extension RadioState {
    /// Begins to connect; returns whom to, and a number to give up by.
    mutating func connect(
        owner: Int, node: Int, to peer: PeerID, _ events: any PeripheralConnectionEvents,
        finish: @escaping @Sendable (Result<Int, BluetoothError>) -> Void
    ) throws(BluetoothError) -> (target: Int, request: Int) {
        _ = try openCentral(owner)
        try nodes[node].requirePower()
        guard let target = nodes[node].peers[peer] else {
            throw BluetoothError.unknownPeer(peer)
        }
        let id = nextID()
        startConnecting(
            PendingConnection(id: id, owner: owner, node: node, target: target, events: events, finish: finish))
        return (target, id)
    }

    mutating func cancelConnecting(_ request: Int, to target: Int) {
        nodes[target].awaited.removeAll { $0.id == request }
    }
}
