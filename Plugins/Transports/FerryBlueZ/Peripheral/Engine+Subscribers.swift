#if BlueZ
    import FerryBluetooth
    import Glibc
    import Synchronization

    // Centrals that subscribe, and their leaving.
    extension BlueZEngine {
        /// bluetoothd asks for the socket that values are to come from.
        func acquireNotify(_ local: LocalCharacteristic, _ call: BusMessage, _ options: ObjectTree.Properties) {
            guard let device = options["device"]?.text, let (own, theirs) = makeSockets() else {
                return bus?.fail(call, ATTError.insufficientResources.bluez) ?? ()
            }
            let mtu = min(max(options["mtu"]?.number ?? 23, 23), 517)
            let central = shared.withLock { $0.central(device) }
            endSubscription(of: local, tells: true)
            let subscription = local.subscription
            let onReady: @Sendable () -> Void = { local.owner.events.peripheralIsReadyToUpdate() }
            let limit = ValuePipe.limit(ofMTU: mtu)
            let pipe =
                subscription == .notify
                ? makePipe(own, limit: limit, device: device, characteristic: nil, onReady: onReady)
                : ValuePipe(own, limit: limit, window: 1) { _ in
                } onBlocked: { _ in
                }
            bus?.reply(to: call, [.descriptor(theirs), .uint16(UInt16(mtu))])
            local.subscriber.withLock {
                $0 = .init(central: central, device: device, pipe: pipe, subscription: subscription)
            }
            watch(pipe, of: local)
            // A client of what needs encryption has encrypted the link, and where it is bonded with that key.
            if local.definition.properties.requiresEncryption(for: subscription),
                objects[device, "org.bluez.Device1"].map(Self.isBonded) == true
            {
                didProve(device)
            }
            reviewAdvertising(of: local.owner)
            local.owner.events.central(central, didSubscribeTo: local.id, as: subscription)
        }

        /// Two ends of a socket whose packets are values: this side's and bluetoothd's.
        private func makeSockets() -> (FileDescriptor, FileDescriptor)? {
            var ends: [Int32] = [-1, -1]
            let type = Int32(SOCK_SEQPACKET.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue)
            guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { return nil }
            // bluetoothd drops what does not fit, so as much as the system grants (socket(7), SO_SNDBUF).
            var size: Int32 = 1 << 20
            setsockopt(ends[1], SOL_SOCKET, SO_SNDBUF, &size, 4)
            return (FileDescriptor(owning: ends[0]), FileDescriptor(owning: ends[1]))
        }

        /// A byte says that an indication was confirmed (BlueZ 5.80), the end that the central does not listen any more.
        private func watch(_ pipe: ValuePipe, of local: LocalCharacteristic) {
            let confirmations = ValueReader(pipe.descriptor) { [weak self] _ in
                self?.assumeIsolated { $0.confirmed(local) }
            }
            thread.watch(confirmations) { [weak self] in
                self?.assumeIsolated { $0.socketDidEnd(pipe, local) }
            }
        }

        func confirmed(_ local: LocalCharacteristic) {
            guard let subscriber = local.subscriber.withLock({ $0 }), subscriber.subscription == .indicate else {
                return
            }
            if subscriber.pipe.confirmed() { local.owner.events.peripheralIsReadyToUpdate() }
        }

        private func socketDidEnd(_ pipe: ValuePipe, _ local: LocalCharacteristic) {
            pipe.end()
            // Whether the central has disconnected as well bluetoothd has heard by now, for the kernel tells that first. It
            // may not have told us yet, so it is asked.
            Task {
                guard let device = local.subscriber.withLock({ $0?.pipe === pipe ? $0?.device : nil }) else { return }
                await self.refresh(device)
                guard local.subscriber.withLock({ $0?.pipe === pipe }) else { return }
                self.endSubscription(of: local, tells: true)
            }.forget()
        }

        /// Forgets a subscription, and tells its end.
        func endSubscription(of local: LocalCharacteristic, tells: Bool) {
            guard let subscriber = local.subscriber.withLock({ $0.take() }) else { return }
            thread.unwatch(subscriber.pipe.descriptor.rawValue)
            let isAwaited = subscriber.pipe.end()
            reviewAdvertising(of: local.owner)
            guard tells else { return }
            local.owner.events.central(subscriber.central, didUnsubscribeFrom: local.id)
            // No central is subscribed, so updates are taken.
            if isAwaited { local.owner.events.peripheralIsReadyToUpdate() }
        }

        func hasSubscriber(_ owner: PeripheralOwner) -> Bool {
            published.contains { local in local.owner === owner && local.subscriber.withLock { $0 != nil } }
        }

        private var published: [LocalCharacteristic] { applications.flatMap { $0.services.flatMap(\.characteristics) } }

        /// A device has disconnected that may have been a central of ours.
        func centralDidDisconnect(_ device: String) {
            let ended = published.filter { $0.subscriber.withLock { $0?.device == device } }
            let reason = leaving.remove(device) == nil ? BluetoothError.endedByPeer : .endedHere
            for owner in shared.withLock({ $0.peripherals.all }) {
                let own = ended.filter { $0.owner === owner }
                guard let central = own.first?.subscriber.withLock({ $0?.central }) else { continue }
                owner.events.central(central, didDisconnect: reason)
                for local in own { endSubscription(of: local, tells: true) }
            }
        }

        /// Ends the connection to a central when its queue has gone out.
        func disconnect(_ central: ConnectedCentral) {
            guard let device = shared.withLock({ $0.path(central) }), !leaving.contains(device) else { return }
            leaving.insert(device)
            let pipes = published.compactMap { local in
                local.subscriber.withLock { $0?.device == device ? $0?.pipe : nil }
            }
            Task {
                await self.drain(pipes)
                await self.disconnect(device)
            }.forget()
        }
    }
#endif
