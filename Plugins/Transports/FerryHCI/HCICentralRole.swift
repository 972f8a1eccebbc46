#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    extension HCIEngine {
        func openCentral(_ events: any CentralRoleEvents) -> UInt64 {
            let (id, adapterState) = state.withLock { state in
                let id = state.makeOwnerID()
                state.centrals.open(id, EngineState.CentralOwner(events: events))
                return (id, state.adapterState)
            }
            deliver { events.centralAdapterDidChange(adapterState) }
            return id
        }

        /// Passes a report to the owners of scans. A peer is first reported with its scan response, or when it is heard
        /// again without one, so that the one report of a scan without duplicates has the name.
        func didHear(_ report: BluetoothHost.AdvertisingReport) {
            let found = state.withLock { state -> ([any CentralRoleEvents], Discovery)? in
                // Named first, for a peer that loses its name is no longer remembered either.
                let peripheral = state.peerID(report.address)
                let address = state.host.resolve(report.address)
                var heard = state.heard[address] ?? EngineState.Heard()
                heard.count = min(heard.count + 1, 1 << 20)
                if report.isScanResponse {
                    heard.scanResponse = report.data
                } else {
                    heard.advertisement = report.data
                    heard.isConnectable = report.isConnectable
                }
                state.heard[address] = heard
                guard heard.count > 1 || report.isScanResponse else { return nil }
                let rssi = report.rssi == 127 ? nil : Int(report.rssi)
                let discovery = Discovery(
                    peripheral: peripheral, identity: state.claimedIdentity(report.address), advertisement: heard.data,
                    rssi: rssi ?? -127)
                var sinks: [any CentralRoleEvents] = []
                state.centrals.update { owner in
                    let isNews = owner.scan?.report(discovery.advertisement, rssi: rssi, from: address) == true
                    if isNews { sinks.append(owner.events) }
                }
                return (sinks, discovery)
            }
            guard let (sinks, discovery) = found else { return }
            for sink in sinks { sink.centralDidDiscover(discovery) }
        }
    }

    final class HCICentralRole: CentralRole {
        private let engine: HCIEngine
        private let id: UInt64

        init(_ engine: HCIEngine, _ id: UInt64) {
            self.engine = engine
            self.id = id
        }

        func startScan(_ request: ScanRequest) throws(BluetoothError) {
            let scan = try Scan<Address>(request)
            try engine.change { [id] state, now throws(BluetoothError) in
                _ = try state.centrals.required(id)
                try state.requirePower()
                state.centrals[id]?.scan = scan
                state.host.scan(true, at: now)
            }
        }

        func stopScan() {
            try? engine.change { [id] state, now in
                state.centrals[id]?.scan = nil
                if !state.centrals.all.contains(where: { $0.scan != nil }) { state.host.scan(false, at: now) }
            }
        }

        func connect(
            to peripheral: PeerID, events: any PeripheralConnectionEvents
        ) async throws(BluetoothError) -> any PeripheralConnection {
            let waiter = Waiter<HCIConnection>()
            let (address, existing) = try engine.change { [owner = self.id] state, now throws(BluetoothError) in
                _ = try state.centrals.required(owner)
                try state.requirePower()
                guard let known = state.peers.key(of: peripheral) else { throw .unknownPeer(peripheral) }
                let address = state.host.resolve(known)
                if let id = state.host.connection(to: address) { return (address, id as ConnectionID?) }
                state.attempts.add(waiter, of: owner, for: address, peripheral, events)
                _ = state.host.connect(to: address, at: now)
                return (address, nil)
            }
            if let existing { return try join(existing, peripheral, events) }
            let engine = engine
            return try await waiter.wait {
                try? engine.change { state, now in
                    let isLast = state.attempts.remove(waiter, for: address)
                    if isLast { state.host.cancelConnection(to: address, at: now) }
                }
            }
        }

        /// Shares a connection that others have made.
        private func join(
            _ id: ConnectionID, _ peripheral: PeerID, _ events: any PeripheralConnectionEvents
        ) throws(BluetoothError) -> HCIConnection {
            let connection = HCIConnection(engine, id, peripheral, owner: self.id, events)
            try engine.change { state, _ throws(BluetoothError) in
                guard state.links[id] != nil else { throw .endedAtOnce }
                state.links[id]?.owners.append(connection)
            }
            return connection
        }

        func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
            engine.state.withLock { state in identifiers.filter { state.peers.key(of: $0) != nil } }
        }

        func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? {
            engine.state.withLock { state in state.address(identity).map { state.peerID($0) } }
        }

        func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
            engine.state.withLock { state in
                state.links.values.filter { link in
                    link.owners.contains { owner in services.contains { owner.hasFound($0) } }
                }.map(\.peer)
            }
        }

        func close() {
            stopScan()
            // The owner's object is let go outside the lock: its end may call back.
            let closed = try? engine.change { [id] state, now in
                let over = state.attempts.giveUp { $0.role == id }
                for address in over.abandoned { state.host.cancelConnection(to: address, at: now) }
                let mine = state.links.values.flatMap(\.owners).filter { $0.owner == id }
                return (owner: state.centrals.close(id), waits: over.waits, connections: mine)
            }
            defer { withExtendedLifetime(closed) {} }
            for wait in closed?.waits ?? [] { wait.waiter.resume(.failure(.roleClosed)) }
            for connection in closed?.connections ?? [] { connection.leave(silently: true) }
            engine.closeIfUnused()
        }
    }
#endif
