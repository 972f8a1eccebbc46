#if !os(tvOS) && !os(watchOS)
    import CoreBluetooth
    import Ferry
    import FerryBluetooth

    // What the manager tells, on the role's queue.
    extension CoreBluetoothPeripheralRole {
        func didUpdateState(_ manager: CBPeripheralManager) {
            let power = AdapterState(manager.state)
            adapter.note(power)
            let restored = state { state in
                defer { if power == .poweredOn { state.restored = [] } }
                return power == .poweredOn ? state.restored : []
            }
            let (events, waiting, centrals) = state { state in
                state.power = power
                let all = (
                    state.events, state.waiting,
                    state.centrals.values.filter { !$0.subscriptions.isEmpty }.map(\.connection)
                )
                if power != .poweredOn {
                    // The system has dropped everything.
                    state.adding = []
                    state.starting = []
                    state.publishing = []
                    state.requests = HeldRequests()
                    state.services = [:]
                    state.characteristics = [:]
                    state.ids = [:]
                    state.isAdvertising = false
                    state.room.regain()
                }
                return all
            }
            if power != .poweredOn {
                for fail in waiting { fail(.notPoweredOn(power)) }
                for central in centrals { end(central, .notPoweredOn(power)) }
            }
            // Before the owner is told, who publishes anew.
            for service in restored { manager.remove(service) }
            if !restored.isEmpty { manager.stopAdvertising() }
            self.power.end()
            events?.peripheralAdapterDidChange(power)
        }

        /// An earlier run's services: this run publishes its own in their place, once there is power.
        func willRestore(_ services: [CBMutableService], _ wasAdvertising: Bool) {
            state { state in
                state.restored = services
                state.isAdvertising = wasAdvertising
            }
        }

        func didAdd(_ service: CBService, _ error: (any Error)?) {
            let waiter = state { state -> Waiter<Void>? in
                guard let place = state.adding.firstIndex(where: { $0.service === service }) else { return nil }
                return state.adding.remove(at: place).waiter
            }
            waiter?.resume(
                error.map {
                    .failure(BluetoothError($0, doing: "publishing \(service.uuid)", otherwise: .invalidArgument))
                }
                    ?? .success(()))
        }

        func didStartAdvertising(_ error: (any Error)?) {
            let waiter = state { $0.starting.isEmpty ? nil : $0.starting.removeFirst() }
            guard let error else {
                waiter?.resume(.success(()))
                return
            }
            state { $0.isAdvertising = false }
            waiter?.resume(
                .failure(BluetoothError(.advertisingFailed, BluetoothError(error, doing: "advertising").message)))
        }

        func didPublish(_ psm: CBL2CAPPSM, _ error: (any Error)?) {
            let waiter = state { $0.publishing.isEmpty ? nil : $0.publishing.removeFirst() }
            waiter?.resume(
                error.map { .failure(BluetoothError($0, doing: "publishing a channel", otherwise: .outOfResources)) }
                    ?? .success(PSM(rawValue: psm)))
        }

        // MARK: Centrals

        /// The connection of a central that something was heard of.
        private func connection(_ central: CBCentral) -> ConnectedCentral {
            state { state in
                if let known = state.centrals[central.identifier] { return known.connection }
                state.lastConnection += 1
                let connection = ConnectedCentral(peer: PeerID(central.identifier), connection: state.lastConnection)
                state.centrals[central.identifier] = Connected(connection: connection, central: central)
                state.order.append(central.identifier)
                if state.order.count > Self.mostUnsubscribed {
                    let oldest = state.order.removeFirst()
                    if state.centrals[oldest]?.subscriptions.isEmpty == true { state.centrals[oldest] = nil }
                }
                return connection
            }
        }

        private func id(_ characteristic: CBCharacteristic) -> AttributeID? {
            state { $0.ids[ObjectIdentifier(characteristic)] }
        }

        func didSubscribe(_ central: CBCentral, _ characteristic: CBCharacteristic) {
            guard let id = id(characteristic) else { return }
            let connection = connection(central)
            let (isNew, events) = state {
                ($0.centrals[central.identifier]?.subscriptions.insert(id).inserted ?? false, $0.events)
            }
            guard isNew else { return }
            let offered = characteristic.properties
            let subscription: Subscription =
                offered.isDisjoint(with: [.notify, .notifyEncryptionRequired]) ? .indicate : .notify
            events?.central(connection, didSubscribeTo: id, as: subscription)
        }

        func didUnsubscribe(_ central: CBCentral, _ characteristic: CBCharacteristic) {
            guard let id = id(characteristic) else { return }
            let found = state {
                state -> (connection: ConnectedCentral, isLast: Bool, events: (any PeripheralRoleEvents)?)? in
                guard let known = state.centrals[central.identifier], known.subscriptions.contains(id) else {
                    return nil
                }
                guard known.subscriptions.count > 1 else { return (known.connection, true, state.events) }
                state.centrals[central.identifier]?.subscriptions.remove(id)
                return (known.connection, false, state.events)
            }
            guard let found else { return }
            if found.isLast {
                end(
                    found.connection,
                    BluetoothError(.disconnectedByPeer, "The central has ended its last subscription."))
            } else {
                found.events?.central(found.connection, didUnsubscribeFrom: id)
            }
        }

        /// A connection ends: nothing that is asked of it has an effect any more.
        func end(_ central: ConnectedCentral, _ reason: BluetoothError) {
            let found = state { state -> (subscriptions: [AttributeID], events: (any PeripheralRoleEvents)?)? in
                guard let known = state.connected(central) else { return nil }
                state.centrals[central.peer.identifier] = nil
                state.order.removeAll { $0 == central.peer.identifier }
                state.requests.connectionDidEnd(central.connection)
                return (known.subscriptions.sorted { $0.rawValue < $1.rawValue }, state.events)
            }
            guard let found, !found.subscriptions.isEmpty else { return }
            found.events?.central(central, didDisconnect: reason)
            for id in found.subscriptions { found.events?.central(central, didUnsubscribeFrom: id) }
        }

        // MARK: Requests

        private func hold(_ request: CBATTRequest, _ central: ConnectedCentral) -> RequestID {
            state { state in
                state.lastRequest += 1
                let id = RequestID(rawValue: state.lastRequest)
                state.requests.hold(id, for: 0, on: central.connection, request)
                return id
            }
        }

        func didReceiveRead(_ manager: CBPeripheralManager, _ request: CBATTRequest) {
            guard let id = id(request.characteristic) else {
                return manager.respond(to: request, withResult: .attributeNotFound)
            }
            let connection = connection(request.central)
            let events = state { $0.events }
            events?.peripheralDidReceive(
                ReadRequest(
                    id: hold(request, connection), central: connection, characteristic: id, offset: request.offset))
        }

        func didReceiveWrite(_ manager: CBPeripheralManager, _ requests: [CBATTRequest]) {
            guard let first = requests.first else { return }
            let parts = requests.compactMap { request in
                id(request.characteristic).map {
                    WriteRequest.Part(characteristic: $0, offset: request.offset, value: Array(request.value ?? Data()))
                }
            }
            guard parts.count == requests.count else {
                return manager.respond(to: first, withResult: .attributeNotFound)
            }
            let connection = connection(first.central)
            let events = state { $0.events }
            // Nothing tells whether an answer is awaited. A characteristic that takes only one kind of write says it.
            if requests.count == 1, first.offset == 0, !first.characteristic.properties.contains(.write) {
                (first.value ?? Data()).lend { events?.central(connection, didWrite: $0, to: parts[0].characteristic) }
                return
            }
            if requests.count == 1, first.offset == 0, first.characteristic.properties.contains(.writeWithoutResponse) {
                // It is answered, which a write without response passes over, and told as what most senders mean.
                (first.value ?? Data()).lend { events?.central(connection, didWrite: $0, to: parts[0].characteristic) }
                return manager.respond(to: first, withResult: .success)
            }
            events?.peripheralDidReceive(WriteRequest(id: hold(first, connection), central: connection, parts: parts))
        }

        func isReady() {
            let events = state { state in
                state.room.regain()
                return state.events
            }
            events?.peripheralIsReadyToUpdate()
        }

        func didOpen(_ channel: CBL2CAPChannel) {
            let peer = channel.peer.identifier
            state { $0.events }?.peripheralDidOpen(
                CoreBluetoothChannel(
                    channel, psm: PSM(rawValue: channel.psm), PeerIdentity(peer), PeerID(peer), role: .responder))
        }
    }

    /// Passes on the manager's events; a separate class, because the manager's owner must not be kept alive by it.
    final class PeripheralManagerDelegate: NSObject, CBPeripheralManagerDelegate {
        private weak var role: CoreBluetoothPeripheralRole?

        init(_ role: CoreBluetoothPeripheralRole) { self.role = role }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) { role?.didUpdateState(peripheral) }
        func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
            role?.willRestore(
                dict[CBPeripheralManagerRestoredStateServicesKey] as? [CBMutableService] ?? [],
                dict[CBPeripheralManagerRestoredStateAdvertisementDataKey] != nil)
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            role?.didAdd(service, error)
        }
        func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
            role?.didStartAdvertising(error)
        }
        func peripheralManager(
            _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
        ) {
            role?.didSubscribe(central, characteristic)
        }
        func peripheralManager(
            _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
        ) {
            role?.didUnsubscribe(central, characteristic)
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
            role?.didReceiveRead(peripheral, request)
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
            role?.didReceiveWrite(peripheral, requests)
        }
        func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) { role?.isReady() }
        func peripheralManager(
            _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
        ) {
            role?.didPublish(PSM, error)
        }
        func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?)
        {
            if let channel { role?.didOpen(channel) }
        }
    }
#endif
