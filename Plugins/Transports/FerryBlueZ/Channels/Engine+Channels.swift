#if BlueZ
    import Ferry
    import FerryBluetooth
    import Glibc
    import Synchronization

    /// The L2CAP channels of an adapter: offered, being opened and open.
    struct L2CAPChannels {
        struct Listener {
            let socket: L2CAPSocket
            let owner: PeripheralOwner
        }

        struct Opening {
            let socket: L2CAPSocket
            let connection: BlueZConnection
            let psm: PSM
            let waiter: Waiter<BlueZL2CAPChannel>
            var timer: UInt64 = 0
        }

        struct Open {
            let channel: BlueZL2CAPChannel
            /// Which role it belongs to.
            let owner: UInt64
        }

        var listeners: [PSM: Listener] = [:]
        var opening: [ObjectIdentifier: Opening] = [:]
        var open: [ObjectIdentifier: Open] = [:]
    }

    extension BlueZEngine {
        private static let adapter = "org.bluez.Adapter1"
        private static let device = "org.bluez.Device1"

        private func ownAddress() throws(BluetoothError) -> DeviceAddress {
            try requirePower()
            guard let adapterPath, let address = objects[adapterPath, Self.adapter].flatMap({ DeviceAddress($0) })
            else {
                throw BluetoothError(.notPoweredOn, "bluetoothd does not tell the address of adapter \(name).")
            }
            return address
        }

        // MARK: Peripheral

        func publishChannel(encryptionRequired: Bool, _ owner: PeripheralOwner) throws(BluetoothError) -> PSM {
            let socket = try L2CAPSocket(from: try ownAddress(), receiveMTU: configuration.channelMTU)
            if encryptionRequired { try socket.requireEncryption() }
            let psm = PSM(rawValue: try socket.listen())
            channels.listeners[psm] = .init(socket: socket, owner: owner)
            owner.state.withLock { $0.listeners[psm] = socket.descriptor }
            watchListener(psm)
            return psm
        }

        private func watchListener(_ psm: PSM) {
            guard let listener = channels.listeners[psm] else { return }
            thread.watch(listener.socket.descriptor.rawValue, POLLIN) { [weak self] _ in
                self?.assumeIsolated { $0.accept(psm) }
            }
        }

        private func accept(_ psm: PSM) {
            guard let listener = channels.listeners[psm] else { return }
            switch listener.socket.accept() {
            case nil: return
            case .failure:
                // Out of descriptors: those who wait are taken later.
                thread.unwatch(listener.socket.descriptor.rawValue)
                thread.schedule(after: .seconds(1)) { [weak self] in self?.assumeIsolated { $0.watchListener(psm) } }
            case .success(let (socket, address)):
                let path = devicePath(address)
                let central = shared.withLock { $0.peer(path) }
                // The socket has the address; of encryption it tells nothing, unless the PSM asks for it.
                guard
                    let channel = try? adopt(
                        socket, psm, central, address.claimedIdentity, .responder, listener.owner.id)
                else { return }
                listener.owner.events.peripheralDidOpen(channel)
            }
        }

        /// A device's object: one that there is, or one that bluetoothd would make.
        private func devicePath(_ address: DeviceAddress) -> String {
            let adapter = adapterPath ?? "/org/bluez/\(wanted ?? "hci0")"
            let known = objects.paths(below: adapter, with: Self.device).first { path in
                objects[path, Self.device].flatMap { DeviceAddress($0) } == address
            }
            return known ?? "\(adapter)/\(address.objectName)"
        }

        func unpublishChannel(_ psm: PSM, _ owner: PeripheralOwner) {
            guard let listener = channels.listeners[psm], listener.owner === owner else { return }
            stopListening(psm)
        }

        private func stopListening(_ psm: PSM) {
            guard let listener = channels.listeners.removeValue(forKey: psm) else { return }
            thread.unwatch(listener.socket.descriptor.rawValue)
            listener.owner.state.withLock { $0.listeners[psm] = nil }
        }

        // MARK: Central

        func beginOpening(_ psm: PSM, _ connection: BlueZConnection, _ waiter: Waiter<BlueZL2CAPChannel>) {
            do throws(BluetoothError) {
                let own = try ownAddress()
                guard (1...0xFF).contains(psm.rawValue) else {
                    throw BluetoothError(
                        .invalidArgument, "\(psm.rawValue) numbers no LE channel; 0x01 to 0xFF do (0x80 on: dynamic).")
                }
                guard let peer = objects[connection.path, Self.device].flatMap({ DeviceAddress($0) }) else {
                    throw connection.notConnected
                }
                let socket = try L2CAPSocket(from: own, receiveMTU: configuration.channelMTU)
                let isOpen = try socket.connect(to: peer, psm: psm.rawValue)
                let id = ObjectIdentifier(waiter)
                channels.opening[id] = .init(socket: socket, connection: connection, psm: psm, waiter: waiter)
                guard !isOpen else { return finishOpening(id) }
                thread.watch(socket.descriptor.rawValue, POLLOUT) { [weak self] _ in
                    self?.assumeIsolated { $0.finishOpening(id) }
                }
                let timer = thread.schedule(after: configuration.callTimeout) { [weak self] in
                    self?.assumeIsolated { engine in
                        engine.giveUpOpening(
                            id, BluetoothError(.timedOut, "The peripheral did not answer whether it opens the channel.")
                        )
                    }
                }
                channels.opening[id]?.timer = timer
            } catch {
                waiter.resume(.failure(error))
            }
        }

        private func finishOpening(_ id: ObjectIdentifier) {
            guard let opening = endOpening(id) else { return }
            let what = "The peripheral did not open the L2CAP channel 0x\(String(opening.psm.rawValue, radix: 16))"
            do throws(BluetoothError) {
                let outcome = opening.socket.outcome
                if outcome == ECONNREFUSED {
                    // The kernel makes one reason of all results (Core Specification 5.4, Vol 3, Part A, 4.23).
                    throw BluetoothError(
                        .channelRefused,
                        "\(what): it offers no such channel, wants encryption or authorization that it did not get, or has "
                            + "no resources.")
                }
                guard outcome == 0 else { throw L2CAPSocket.error(what, outcome) }
                let channel = try adopt(
                    opening.socket, opening.psm, opening.connection.peripheral, opening.connection.identity,
                    .initiator, opening.connection.role)
                // Without a waiter it must not stay open.
                if !opening.waiter.complete(.success(channel)) { channel.close() }
            } catch {
                opening.waiter.resume(.failure(error))
            }
        }

        private func endOpening(_ id: ObjectIdentifier) -> L2CAPChannels.Opening? {
            guard let opening = channels.opening.removeValue(forKey: id) else { return nil }
            thread.unwatch(opening.socket.descriptor.rawValue)
            thread.cancel(opening.timer)
            return opening
        }

        private func giveUpOpening(_ id: ObjectIdentifier, _ error: BluetoothError) {
            endOpening(id)?.waiter.resume(.failure(error))
        }

        /// The task that waits was cancelled.
        func leaveOpening(_ waiter: Waiter<BlueZL2CAPChannel>) { _ = endOpening(ObjectIdentifier(waiter)) }

        // MARK: Open channels

        private func adopt(
            _ socket: L2CAPSocket, _ psm: PSM, _ peerID: PeerID, _ peer: PeerIdentity, _ role: LinkRole,
            _ owner: UInt64
        ) throws(BluetoothError) -> BlueZL2CAPChannel {
            // The engine lives, and with it the thread, while a channel of it is open.
            let channel = BlueZL2CAPChannel(
                socket.descriptor, psm: psm, peerID: peerID, peer: peer, role: role, sendMTU: try socket.sendMTU(),
                receiveMTU: Int(configuration.channelMTU), canPause: Kernel.returnsCreditsWhenRead, on: thread
            ) { [self] channel in
                assumeIsolated { $0.channels.open[ObjectIdentifier(channel)] = nil }
            }
            channels.open[ObjectIdentifier(channel)] = .init(channel: channel, owner: owner)
            return channel
        }

        /// A role has been closed, or with nil the adapter.
        func endChannels(of owner: UInt64?) {
            for (psm, listener) in channels.listeners where owner == nil || listener.owner.id == owner {
                stopListening(psm)
            }
            for (id, opening) in channels.opening where owner == nil || opening.connection.role == owner {
                giveUpOpening(id, .roleClosed)
            }
            for open in channels.open.values where owner == nil || open.owner == owner { open.channel.abort() }
        }
    }
#endif
