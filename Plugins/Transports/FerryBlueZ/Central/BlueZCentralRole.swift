#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// Who opened a central role.
    struct CentralOwner {
        let events: any CentralRoleEvents
        var scan: Scan<String>?
    }

    final class BlueZCentralRole: CentralRole {
        private let engine: BlueZEngine
        private let id: UInt64

        init(_ engine: BlueZEngine, _ id: UInt64) {
            self.engine = engine
            self.id = id
        }

        func startScan(_ request: ScanRequest) throws(BluetoothError) {
            let scan = try Scan<String>(request)
            try engine.shared.withLock { (shared) throws(BluetoothError) in
                _ = try shared.centrals.required(id)
                try shared.requirePower()
                shared.centrals[id]?.scan = scan
            }
            engine.perform { $0.scanDidChange(isNew: true) }
        }

        func stopScan() {
            let wasScanning = engine.shared.withLock { $0.centrals[id]?.scan.take() != nil }
            if wasScanning { engine.perform { $0.scanDidChange(isNew: false) } }
        }

        func connect(
            to peripheral: PeerID, events: any PeripheralConnectionEvents
        ) async throws(BluetoothError) -> any PeripheralConnection {
            let waiter = Waiter<BlueZConnection>()
            let path = try engine.shared.withLock { (shared) throws(BluetoothError) in
                _ = try shared.centrals.required(id)
                try shared.requirePower()
                guard let path = shared.peers.key(of: peripheral) else { throw .unknownPeer(peripheral) }
                shared.attempts.add(waiter, of: id, for: path, peripheral, events)
                return path
            }
            let engine = engine
            engine.perform { $0.beginAttempt(path) }
            return try await waiter.wait {
                let isLast = engine.shared.withLock { $0.attempts.remove(waiter, for: path) }
                if isLast { engine.perform { $0.callOff(path) } }
            }
        }

        func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
            engine.shared.withLock { shared in identifiers.filter { shared.peers.key(of: $0) != nil } }
        }

        func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? {
            engine.shared.withLock { shared in shared.path(identity).map { shared.peer($0) } }
        }

        func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
            engine.shared.withLock { shared in
                shared.connections.keys
                    .filter { path in services.contains { shared.offers[path]?.contains($0) ?? false } }
                    .compactMap { shared.peers.name(of: $0) }
            }
        }

        func close() {
            let (owner, over) = engine.shared.withLock { [id] shared in
                (shared.centrals.close(id), shared.attempts.giveUp { $0.role == id })
            }
            guard owner != nil else { return }
            for wait in over.waits { wait.waiter.resume(.failure(.roleClosed)) }
            engine.perform { [id] in $0.centralDidClose(id, over.abandoned) }
        }
    }

    extension BlueZEngine {
        func centralDidClose(_ role: UInt64, _ abandoned: [String]) {
            for path in abandoned { callOff(path) }
            scanDidChange(isNew: false)
            endChannels(of: role)
            for connection in connections where connection.role == role { leave(connection, silently: true) }
            roleDidClose()
        }
    }
#endif
