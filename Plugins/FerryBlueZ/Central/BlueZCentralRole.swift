#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// Who opened a central role.
    final class CentralOwner: Sendable {
        struct State {
            var scan: ScanRequest?
            var reported: Set<String> = []
            var isClosed = false
        }

        let id: UInt64
        let events: any CentralRoleEvents
        let state = Mutex(State())

        init(id: UInt64, _ events: any CentralRoleEvents) {
            self.id = id
            self.events = events
        }
    }

    final class BlueZCentralRole: CentralRole {
        private let engine: BlueZEngine
        private let owner: CentralOwner

        init(_ engine: BlueZEngine, _ owner: CentralOwner) {
            self.engine = engine
            self.owner = owner
        }

        private func requireOpen() throws(BluetoothError) {
            guard !owner.state.withLock({ $0.isClosed }) else {
                throw BluetoothError.roleClosed
            }
        }

        func startScan(_ request: ScanRequest) throws(BluetoothError) {
            try requireOpen()
            try engine.requirePower()
            owner.state.withLock { state in
                state.scan = request
                state.reported = []
            }
            engine.perform { $0.scanDidChange(isNew: true) }
        }

        func stopScan() {
            let wasScanning = owner.state.withLock { $0.scan.take() != nil }
            if wasScanning { engine.perform { $0.scanDidChange(isNew: false) } }
        }

        func connect(
            to peripheral: PeerID, events: any PeripheralConnectionEvents
        ) async throws(BluetoothError) -> any PeripheralConnection {
            try requireOpen()
            try engine.requirePower()
            guard let path = engine.shared.withLock({ $0.paths[peripheral] }) else {
                throw BluetoothError.unknownPeer(peripheral)
            }
            let waiter = Waiter<Void>()
            await engine.beginAttempt(path, waiter)
            let engine = engine
            try await waiter.wait { engine.perform { $0.leaveAttempt(path, waiter) } }
            return try await engine.makeConnection(path, peripheral, owner, events)
        }

        func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
            engine.shared.withLock { shared in identifiers.filter { shared.paths[$0] != nil } }
        }

        func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? {
            engine.shared.withLock { shared in shared.path(identity).map { shared.peer($0) } }
        }

        func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
            engine.shared.withLock { shared in
                shared.connections.keys
                    .filter { path in services.contains { shared.offers[path]?.contains($0) ?? false } }
                    .compactMap { shared.peers[$0] }
            }
        }

        func close() {
            let wasOpen = owner.state.withLock { state in
                defer {
                    state.isClosed = true
                    state.scan = nil
                }
                return !state.isClosed
            }
            guard wasOpen else { return }
            let owner = owner
            engine.perform { $0.close(owner) }
        }
    }

    extension BlueZEngine {
        func close(_ owner: CentralOwner) {
            centrals.removeAll { $0 === owner }
            scanDidChange(isNew: false)
            endChannels(of: owner.id)
            for connection in connections where connection.owner === owner { leave(connection, silently: true) }
            ownerDidLeave()
        }
    }
#endif
