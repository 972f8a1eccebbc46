#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    extension HCIEngine {
        func openCentral(_ events: any CentralRoleEvents) -> UInt64 {
            let (id, adapterState) = state.withLock { state in
                let id = state.nextOwner
                state.nextOwner += 1
                state.centrals.append(EngineState.CentralOwner(id: id, events: events))
                return (id, state.adapterState)
            }
            deliver { events.centralAdapterDidChange(adapterState) }
            return id
        }

        /// Tells the owners of scans what was heard. A peer is first reported with its scan response, or when it is heard
        /// again without one, so that the one report of a scan without duplicates has the name.
        func didHear(_ report: BluetoothHost.AdvertisingReport) {
            let found = state.withLock { state -> ([any CentralRoleEvents], Discovery)? in
                // Named first, for a peer that loses its name is no longer remembered either.
                let peripheral = state.peerID(report.address)
                let address = state.host.resolve(report.address)
                var heard = state.heard[address] ?? EngineState.Heard()
                heard.count = min(heard.count + 1, 1 << 20)
                if report.isScanResponse {
                    heard.scanResponse = AdvertisingData(report.data)
                } else {
                    heard.advertisement = AdvertisingData(report.data)
                    heard.isConnectable = report.isConnectable
                }
                state.heard[address] = heard
                guard heard.count > 1 || report.isScanResponse else { return nil }
                let rssi = report.rssi == 127 ? -127 : Int(report.rssi)
                let discovery = Discovery(
                    peripheral: peripheral, identity: state.claimedIdentity(report.address),
                    advertisement: AdvertisementData(heard.data, isConnectable: heard.isConnectable), rssi: rssi)
                var sinks: [any CentralRoleEvents] = []
                for place in state.centrals.indices {
                    guard let scan = state.centrals[place].scan, scan.matches(discovery) else { continue }
                    let isNew = state.centrals[place].reported.insert(address).inserted
                    if isNew || scan.allowsDuplicates { sinks.append(state.centrals[place].events) }
                }
                return (sinks, discovery)
            }
            guard let (sinks, discovery) = found else { return }
            for sink in sinks { sink.centralDidDiscover(discovery) }
        }
    }

    extension ScanRequest {
        fileprivate func matches(_ discovery: Discovery) -> Bool {
            if let rssi, !rssi.contains(discovery.rssi) { return false }
            if let name, discovery.advertisement.localName != name { return false }
            return services.isEmpty || services.contains { discovery.advertisement.services.contains($0) }
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
            try engine.change { [id] state, now throws(BluetoothError) in
                try state.requirePower()
                guard let place = state.centrals.firstIndex(where: { $0.id == id }) else {
                    throw BluetoothError.roleClosed
                }
                state.centrals[place].scan = request
                state.centrals[place].reported = []
                state.host.scan(true, at: now)
            }
        }

        func stopScan() {
            try? engine.change { [id] state, now in
                guard let place = state.centrals.firstIndex(where: { $0.id == id }) else { return }
                state.centrals[place].scan = nil
                if !state.centrals.contains(where: { $0.scan != nil }) { state.host.scan(false, at: now) }
            }
        }

        func connect(
            to peripheral: PeerID, events: any PeripheralConnectionEvents
        ) async throws(BluetoothError) -> any PeripheralConnection {
            let waiter = Waiter<HCIConnection>()
            let (address, existing) = try engine.change { [owner = self.id] state, now throws(BluetoothError) in
                try state.requirePower()
                guard let latest = state.addresses[peripheral] else {
                    throw BluetoothError.unknownPeer(peripheral)
                }
                let address = state.host.resolve(latest)
                if let id = state.host.connection(to: address) { return (address, id as ConnectionID?) }
                state.connecting[address, default: []].append(
                    EngineState.Attempt(waiter: waiter, peripheral: peripheral, owner: owner, events: events))
                _ = state.host.connect(to: address, at: now)
                return (address, nil)
            }
            if let existing { return try join(existing, peripheral, events) }
            let engine = engine
            return try await waiter.wait {
                // The last one to lose interest calls the attempt off.
                try? engine.change { state, now in
                    guard let attempts = state.connecting[address] else { return }
                    let others = attempts.filter { $0.waiter !== waiter }
                    state.connecting[address] = others.isEmpty ? nil : others
                    if others.isEmpty { state.host.cancelConnection(to: address, at: now) }
                }
            }
        }

        /// Shares a connection that others have made.
        private func join(
            _ id: ConnectionID, _ peripheral: PeerID, _ events: any PeripheralConnectionEvents
        ) throws(BluetoothError) -> HCIConnection {
            let connection = HCIConnection(engine, id, peripheral, owner: self.id, events)
            try engine.change { state, _ throws(BluetoothError) in
                guard state.links[id] != nil else {
                    throw BluetoothError(.connectionFailed, "The connection ended as soon as it was made.")
                }
                state.links[id]?.owners.append(connection)
            }
            return connection
        }

        func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
            engine.state.withLock { state in identifiers.filter { state.addresses[$0] != nil } }
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
            let (owner, mine) = engine.state.withLock { state -> (EngineState.CentralOwner?, [HCIConnection]) in
                let place = state.centrals.firstIndex { $0.id == id }
                let owner = place.map { state.centrals.remove(at: $0) }
                return (owner, state.links.values.flatMap(\.owners).filter { $0.owner == id })
            }
            defer { withExtendedLifetime(owner) {} }
            for connection in mine { connection.leave(silently: true) }
            engine.closeIfUnused()
        }
    }
#endif
