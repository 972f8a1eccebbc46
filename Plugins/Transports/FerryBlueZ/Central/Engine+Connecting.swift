#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// A pending connection to one device, for all its waiters.
    struct Connecting {
        /// Whether bluetoothd has said that the connection is there.
        var isMade = false
        /// Whether the last waiter has left. A later caller waits for another connection, for this one's services may
        /// be older than the call.
        var isCalledOff = false
    }

    extension BlueZEngine {
        private static let device = "org.bluez.Device1"
        private static let gattService = "org.bluez.GattService1"

        // MARK: Making a connection

        func beginAttempt(_ path: String) {
            guard connecting[path] == nil else {
                if connecting[path]?.isMade == false { connecting[path]?.isCalledOff = false }
                return
            }
            connecting[path] = Connecting()
            Task { await self.attempt(path) }
        }

        /// The last waiter for a connection has left.
        func callOff(_ path: String) {
            guard connecting[path] != nil, !isAwaited(path) else { return }
            connecting[path]?.isCalledOff = true
            // Not at once: a peripheral in range is connected by then, and that connection can be ended safely (see
            // `part`). Linux 6.1 loses a connection that is cancelled while it is being made: it sends the cancel
            // command before the create command, and then connects for no owner until the peer gives up.
            thread.schedule(after: Self.patience) { [weak self] in
                self?.assumeIsolated { engine in
                    guard engine.connecting[path]?.isCalledOff == true, !engine.isConnected(path) else { return }
                    engine.tell(path, Self.device, "Disconnect")
                }
            }
        }

        /// How long an attempt continues without a waiter.
        private static let patience = Duration.seconds(5)

        private func attempt(_ path: String) async {
            let outcome: Result<Void, BluetoothError>
            do throws(BluetoothError) {
                try await establish(path)
                outcome = .success(())
            } catch {
                outcome = .failure(error)
            }
            connecting[path] = nil
            for wait in shared.withLock({ $0.attempts.take(path) }) {
                do throws(BluetoothError) {
                    try outcome.get()
                    let connection = try makeConnection(path, wait)
                    // The waiter has left.
                    if !wait.waiter.complete(.success(connection)) { leave(connection, silently: true) }
                } catch {
                    wait.waiter.resume(.failure(error))
                }
            }
            // All who waited may have gone as it was made.
            if case .success = outcome, !isOwned(path) { await disconnect(path) }
        }

        private func isWanted(_ path: String) -> Bool { connecting[path]?.isCalledOff == false }

        private func isAwaited(_ path: String) -> Bool { shared.withLock { $0.attempts.contains(path) } }

        private func isOwned(_ path: String) -> Bool { connections.contains { $0.path == path } }

        private func isConnected(_ path: String) -> Bool { objects[path, Self.device]?["Connected"]?.bool == true }

        /// Connects and waits for the services, for as long as a caller waits.
        private func establish(_ path: String) async throws(BluetoothError) {
            let what = "Cannot connect to \(path.split(separator: "/").last ?? "")"
            var failures = 0
            while true {
                try requirePower()
                guard isWanted(path) else {
                    // A connection that another owner has stays.
                    if !isOwned(path) { await disconnect(path) }
                    guard isAwaited(path) else {
                        throw BluetoothError(.cancelled, "\(what): the last caller stopped waiting.")
                    }
                    connecting[path]?.isCalledOff = false
                    continue
                }
                // A connection that is being ended takes two seconds to go, and is of no use.
                if let deadline = disconnectDeadlines[path], BusThread.now < deadline {
                    await pause(.milliseconds(20))
                    continue
                }
                guard objects.contains(path) else {
                    await lookFor(path)
                    continue
                }
                // See `startListening`: what stops meanwhile seems to go on.
                while discovery.isDirty || discovery.isChanging { await pause(.milliseconds(10)) }
                guard isWanted(path) else { continue }
                connecting[path]?.isMade = false
                let isNew = !isConnected(path)
                let isBonded = objects[path, Self.device].map(Self.isBonded) ?? false
                do throws(BusError) {
                    _ = try await call(path, Self.device, "Connect", timeout: .seconds(120))
                } catch {
                    switch error.name {
                    case "org.bluez.Error.AlreadyConnected": break
                    case "org.bluez.Error.InProgress", "org.bluez.Error.Failed",
                        "org.bluez.Error.ConnectionAttemptFailed":
                        // No peer, or an attempt was cancelled: bluetoothd gives up after some seconds, we do not.
                        await pause(.milliseconds(200))
                        continue
                    case _ where error.isTimeout || error.isUnknownObject:
                        await pause(.milliseconds(200))
                        continue
                    default:
                        if error.name == "org.bluez.Error.NotReady" { try requirePower() }
                        throw error.bluetooth(what)
                    }
                }
                connecting[path]?.isMade = true
                // bluetoothd lets no connection that it makes to a paired device come about unless it is encrypted
                // (`device_connect_le` in src/device.c of BlueZ 5.66).
                if isNew, isBonded { didProve(path) }
                guard try await servicesAreResolved(path, what) else { continue }
                // bluetoothd says so as well when finding them has failed (`gatt_client_ready_cb` in src/device.c of BlueZ
                // 5.66), and does not try again. A peer may also have none but those that bluetoothd keeps to itself.
                let hasServices = !objects.paths(below: path, with: Self.gattService).isEmpty
                guard !hasServices, isNew, failures < Self.failureLimit else { return }
                failures += 1
                await disconnect(path)
            }
        }

        /// How often a peer without services is connected to again, for they may not have been found.
        private static let failureLimit = 2

        /// Ends a connection to a device, when its services have been found: bluetoothd 5.66 crashes now and then when it
        /// is to disconnect in the middle of that.
        func disconnect(_ path: String) async {
            // BlueZ 5.66 sometimes does not signal that a device is connected, so ask as well.
            if objects[path, Self.device]?["Connected"]?.bool == false { await refresh(path) }
            let deadline = BusThread.now + 10_000_000
            while let device = objects[path, Self.device], device["Connected"]?.bool == true,
                device["ServicesResolved"]?.bool == false, BusThread.now < deadline
            {
                await pause(.milliseconds(20))
            }
            if isConnected(path) { disconnectDeadlines[path] = BusThread.now + 5_000_000 }
            tell(path, Self.device, "Disconnect")
        }

        /// bluetoothd forgets what it has not heard for half a minute: has it listen until it hears the device again.
        private func lookFor(_ path: String) async {
            discovery.missing.insert(path)
            scanDidChange(isNew: false)
            while isWanted(path), !objects.contains(path), adapterPath != nil { await pause(.milliseconds(50)) }
            discovery.missing.remove(path)
            scanDidChange(isNew: false)
        }

        /// Waits for bluetoothd to have found the services. False when the connection was lost meanwhile.
        private func servicesAreResolved(_ path: String, _ what: String) async throws(BluetoothError) -> Bool {
            let deadline = BusThread.now + 30_000_000
            // The news that it is connected may come after the answer to the call.
            let patience = BusThread.now + 2_000_000
            var wasConnected = false
            var round = 0
            while isWanted(path), let device = objects[path, Self.device] {
                if device["Connected"]?.bool == true {
                    wasConnected = true
                    if device["ServicesResolved"]?.bool == true {
                        // It may say so before it shows them; an answer comes behind all that it has to say.
                        await refresh(path)
                        if isWanted(path), objects[path, Self.device]?["ServicesResolved"]?.bool == true { return true }
                        continue
                    }
                } else if wasConnected || BusThread.now > patience {
                    break
                }
                guard BusThread.now < deadline else {
                    tell(path, Self.device, "Disconnect")
                    throw BluetoothError(.connectionFailed, "\(what): its services were not found within 30 s.")
                }
                // BlueZ 5.66 sometimes does not signal that a device is connected, so ask as well.
                if !wasConnected, round % 10 == 0 { await refresh(path) }
                round += 1
                await pause(.milliseconds(20))
            }
            // After any error: repeated calls without a pause would only keep bluetoothd busy.
            await pause(.milliseconds(200))
            return false
        }

        /// Asks for a device's properties, as if they had changed.
        func refresh(_ path: String) async {
            try? await call(
                path, "org.freedesktop.DBus.Properties", "GetAll", [.string(Self.device)]
            ) { [self] message throws(BusError) in
                guard let properties = try message.read().first?.properties, objects.contains(path) else { return }
                objects.change(path, Self.device, properties, invalidated: [])
                deviceDidChange(path, heard: [:])
            }
        }

        private func makeConnection(
            _ path: String, _ wait: ConnectionAttempts<String, BlueZConnection>.Wait
        ) throws(BluetoothError) -> BlueZConnection {
            guard isConnected(path) else { throw .endedAtOnce }
            let connection = BlueZConnection(self, path, wait.peripheral, role: wait.role, wait.events)
            connections.append(connection)
            note(path)
            return connection
        }

        // MARK: Ending one

        /// An owner lets go of its connection; the last one ends it.
        func leave(_ connection: BlueZConnection, silently: Bool) {
            guard let place = connections.firstIndex(where: { $0 === connection }) else { return }
            let isLast = connections.filter { $0.path == connection.path }.count == 1
            guard isLast else {
                connections.remove(at: place)
                endSubscriptions(of: connection)
                return connection.didEnd(.endedHere, silently: silently)
            }
            guard connection.beginEnding(.endedHere, silently: silently) else { return }
            Task {
                await self.drain(connection.pipes)
                await self.disconnect(connection.path)
                // bluetoothd takes two seconds; a connection that outlives that by far has lost its daemon.
                await self.pause(.seconds(10))
                self.didEnd(connection, .endedHere)
            }
        }

        private func didEnd(_ connection: BlueZConnection, _ reason: BluetoothError) {
            guard let place = connections.firstIndex(where: { $0 === connection }) else { return }
            connections.remove(at: place)
            connection.didEnd(reason, silently: false)
        }

        /// Waits until queued values have gone out, as far as can be told, for at most two seconds.
        func drain(_ pipes: [ValuePipe]) async {
            for pipe in pipes { pipe.requestLastBarrier() }
            for _ in 0..<100 where pipes.contains(where: { $0.inFlight > 0 }) { await pause(.milliseconds(20)) }
        }

        /// Everything ends: the adapter or the daemon has gone.
        func endEverything(_ reason: BluetoothError) {
            let ended = connections
            connections = []
            for connection in ended { connection.didEnd(reason, silently: false) }
            for wait in shared.withLock({ $0.attempts.giveUp { _ in true } }).waits {
                wait.waiter.resume(.failure(reason))
            }
            discovery.isRunning = false
            discovery.isDirty = false
            disconnectDeadlines = [:]
            shared.withLock { shared in
                shared.connections = [:]
                shared.proven = []
            }
            withdrawEverything(reason)
        }

        // MARK: What bluetoothd tells

        func deviceDidChange(_ path: String, heard: ObjectTree.Properties?) {
            guard let device = objects[path, Self.device], let heard else { return }
            let number = shared.withLock { $0.connections[path] }
            note(path)
            let isConnected = device["Connected"]?.bool == true
            if let number, !isConnected { deviceDidDisconnect(path, number) }
            let signs = ["RSSI", "ManufacturerData", "ServiceData", "AdvertisingFlags", "Name", "UUIDs", "Address"]
            if discovery.isRunning || discovery.isChanging, !isConnected, signs.contains(where: { heard[$0] != nil }) {
                didHear(path, device)
            }
        }

        func deviceDidLeave(_ path: String) {
            let number = shared.withLock { shared in
                shared.offers[path] = nil
                shared.identities[path] = nil
                shared.bonded.remove(path)
                shared.proven.remove(path)
                return shared.connections.removeValue(forKey: path)
            }
            deviceDidDisconnect(path, number)
        }

        static func isBonded(_ device: ObjectTree.Properties) -> Bool {
            device["Bonded"]?.bool ?? device["Paired"]?.bool ?? false  // Bonded is new in BlueZ 5.66
        }

        /// A device has shown on its present connection that it has the key of its bond.
        func didProve(_ path: String) {
            shared.withLock { _ = $0.proven.insert(path) }
            note(path)
        }

        func note(_ path: String) {
            guard let device = objects[path, Self.device] else { return }
            let isBonded = Self.isBonded(device)
            let address = DeviceAddress(device)
            let isConnected = device["Connected"]?.bool == true
            let services = device["UUIDs"]?.texts.compactMap { try? BluetoothUUID($0) } ?? []
            shared.withLock { shared in
                if !isConnected || !isBonded { shared.proven.remove(path) }
                // Paired while it is connected.
                let wasBonded = shared.bonded.contains(path)
                if isBonded { shared.bonded.insert(path) } else { shared.bonded.remove(path) }
                if isBonded, !wasBonded, isConnected, shared.connections[path] != nil { shared.proven.insert(path) }
                if isConnected { _ = shared.connection(path) } else { shared.connections[path] = nil }
                shared.identities[path] = address.map {
                    PeerIdentity(
                        bluetoothAddress: $0.value, isRandom: $0.isRandom, isProven: shared.proven.contains(path))
                }
                shared.offers[path] = isConnected ? services : nil
            }
        }

        /// - Parameter number: the connection's, if it was known.
        private func deviceDidDisconnect(_ path: String, _ number: UInt64?) {
            disconnectDeadlines[path] = nil
            for connection in connections where connection.path == path {
                didEnd(connection, connection.reason ?? .endedByPeer)
            }
            centralDidDisconnect(path)
            guard let number else { return }
            requests.connectionDidEnd(number)
            // It may be heard again now, without being new.
            let isScanning = shared.withLock { $0.centrals.all.contains { $0.scan != nil } }
            if isScanning { scanDidChange(isNew: true) }
        }

        func serviceDidLeave(_ path: String) {
            for connection in connections where path.hasPrefix(connection.path + "/") {
                connection.didLose(path)
            }
        }

        /// A connected peer has a new service, which bluetoothd signals one object at a time: its answer to any call
        /// comes after all of them.
        func serviceDidCome(_ path: String) {
            guard let device = connections.first(where: { path.hasPrefix($0.path + "/") })?.path,
                gaining.insert(device).inserted
            else { return }
            Task {
                await self.refresh(device)
                self.gaining.remove(device)
                for connection in self.connections where connection.path == device { connection.didModify([]) }
            }
        }
    }

    extension BluetoothError {
        /// bluetoothd does not say why a connection has ended.
        static let endedByPeer = BluetoothError(
            .disconnectedByPeer, "The connection was ended by the peer, or the peer is out of range.")
    }
#endif
