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
            radio.kickAllAdvertising()
        }
    }

    func stopScan() { radio.locked { $0.centrals[id]?.scan = nil } }

    func connect(to peripheral: PeerID) async throws(BluetoothError) -> any PeripheralConnection {
        let radio = radio
        let request = radio.locked { $0.nextID() }
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                let refusal = radio.locked {
                    $0.connect(owner: id, node: node, to: peripheral, request: request) {
                        continuation.resume(returning: $0)
                    }
                }
                if let refusal { continuation.resume(returning: .failure(refusal)) }
                if Task.isCancelled { radio.locked { $0.cancelConnecting(request) } }
            }
        } onCancel: {
            radio.locked { $0.cancelConnecting(request) }
        }
        let client = try result.get()
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
    /// Begins to connect, or says why not.
    mutating func connect(
        owner: Int, node: Int, to peer: PeerID, request: Int,
        finish: @escaping @Sendable (Result<Int, BluetoothError>) -> Void
    ) -> BluetoothError? {
        guard centrals[owner] != nil else { return Self.roleClosed }
        do throws(BluetoothError) { try nodes[node].requirePower() } catch { return error }
        guard let target = nodes[node].peers[peer] else {
            return BluetoothError(
                .unknownPeer, "the adapter \(nodes[node].name) has not met the peripheral \(peer); scan for it first")
        }
        startConnecting(PendingConnection(id: request, owner: owner, node: node, target: target, finish: finish))
        return nil
    }

    mutating func cancelConnecting(_ request: Int) {
        guard let index = pendingConnections.firstIndex(where: { $0.id == request }) else { return }
        let pending = pendingConnections.remove(at: index)
        let error = BluetoothError(.cancelled, "the task that waited for the connection was cancelled")
        events.append(.call { pending.finish(.failure(error)) })
        wake()
    }
}
