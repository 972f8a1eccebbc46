#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    extension HCIEngine {
        /// Reports an event to the owners that it concerns. On the event loop, without the lock.
        func dispatch(_ event: HostEvent, _ batch: EventBatch) {
            switch event {
            case .stateChanged(let host): stateDidChange(host)
            case .diagnostic(let text): note(text)
            case .advertisingStarted: state.withLock { $0.advertising.didStart() }?.resume(.success(()))
            case .advertisingFailed(let code): advertisingDidFail(code)
            case .scanFailed:
                state.withLock { $0.centrals.update { $0.scan = nil } }
            case .advertisementReceived(let report): didHear(report)
            case .connected(let id, let peer, let isCentral): didConnect(id, peer, isCentral)
            case .connectionFailed(let peer, let code):
                for wait in state.withLock({ $0.attempts.take(peer) }) {
                    wait.waiter.resume(.failure(BluetoothError(.connectionFailed, "Could not connect: \(code).")))
                }
            case .disconnected(let id, let reason): didDisconnect(id, reason)
            case .rssi(let id, let value):
                let error = BluetoothError(.notSupported, "The controller does not know the signal's strength.")
                for waiter in state.withLock({ $0.signalStrengths.removeValue(forKey: id) ?? [] }) {
                    waiter.resume(value.map { .success(Int($0)) } ?? .failure(error))
                }
            case .parametersChanged: break
            case .pairingQuestion(let question, let id, let asked): didAsk(question, id, asked)
            case .secured(let id, _): didSecure(id, .success(()))
            case .pairingFailed(let id, let failure): pairingDidFail(id, failure)
            case .bonded(_, let bond): didBond(bond)
            case .mtuChanged(let id, let mtu):
                for owner in owners(id) { owner.mtuDidChange(mtu) }
            case .valueReceived(let id, let handle, let bytes):
                let owners = owners(id)
                batch.withBytes(bytes) { value in
                    var isTaken = false
                    for owner in owners where owner.didUpdate(handle, value) { isTaken = true }
                    if !isTaken { keepUnclaimed(id, handle, value) }
                }
            case .servicesChanged(let id, let range):
                let services = state.withLock { state -> [AttributeID] in
                    let gone = state.links[id]?.services.filter { $0.value.overlaps(range) }.map(\.key) ?? []
                    return gone.sorted().map { AttributeID(rawValue: UInt32($0)) }
                }
                for owner in owners(id) { owner.didModify(services) }
            case .completed(let operation, _, let result): didComplete(operation, result)
            case .writeCommand(let id, let handle, let bytes):
                let (owner, peer) = state.withLock { ($0.owner(of: handle)?.events, $0.central(id)) }
                guard let owner, let peer else { return }
                batch.withBytes(bytes) {
                    owner.central(peer, didWrite: $0, to: AttributeID(rawValue: UInt32(handle)))
                }
            case .readRequest(let request, let id, let handle, let offset): didAskToRead(request, id, handle, offset)
            case .writeRequest(let request, let id, let parts): didAskToWrite(request, id, parts)
            case .configurationChanged(let id, let handle, let bits): didConfigure(id, handle, bits)
            case .readyToSend(let id):
                let isPeripheral = state.withLock { !($0.links[id]?.subscriptions.isEmpty ?? true) }
                if isPeripheral {
                    for owner in state.withLock({ $0.peripherals.all }) { owner.events.peripheralIsReadyToUpdate() }
                }
                for owner in owners(id) { owner.isReadyToWrite() }
            case .channelOpened(let channel, let id, let psm, let operation):
                channelDidOpen(channel, id, psm, operation)
            case .channelRefused(let operation, _, let result):
                guard case .openChannel(let waiter)? = state.withLock({ $0.operations.removeValue(forKey: operation) })
                else {
                    return
                }
                waiter.resume(
                    .failure(
                        BluetoothError(
                            result == .timedOut ? .timedOut : .channelRefused,
                            "The L2CAP channel was not opened: \(result).")))
            case .channelsReconfigured: break
            case .channelReceived(let channel, let bytes):
                guard let target = state.withLock({ $0.channels[channel] }) else { return }
                batch.withBytes(bytes) { target.didReceive($0) }
            case .channelReady(let channel): state.withLock { $0.channels[channel] }?.isReady()
            case .channelClosed(let channel):
                state.withLock { $0.channels.removeValue(forKey: channel) }?.didClose()
            }
        }

        private func owners(_ id: ConnectionID) -> [HCIConnection] { state.withLock { $0.links[id]?.owners ?? [] } }

        private func stateDidChange(_ host: HostState) {
            if case .failed(let why) = host { note("The adapter is out of use: \(why)") }
            let (adapterState, peripherals, centrals, waiters) = state.withLock { state in
                if case .ready = host { state.wasReady = true }
                var waiters: [Waiter<Void>] = []
                switch host {
                case .ready, .failed: swap(&waiters, &state.startWaiters)
                case .off, .starting: break
                }
                return (state.adapterState, state.peripherals.all, state.centrals.all, waiters)
            }
            for owner in peripherals { owner.events.peripheralAdapterDidChange(adapterState) }
            for owner in centrals { owner.events.centralAdapterDidChange(adapterState) }
            let outcome: Result<Void, BluetoothError> =
                if case .failed(let why) = host { .failure(BluetoothError(.notPoweredOn, why)) } else { .success(()) }
            for waiter in waiters { waiter.resume(outcome) }
        }

        private func advertisingDidFail(_ code: HCIErrorCode) {
            let error = BluetoothError(.advertisingFailed, "The controller refuses to advertise: \(code).")
            switch state.withLock({ $0.advertising.end() }) {
            case .off: break
            case .starting(_, let waiter): waiter.resume(.failure(error))
            case .on(let owner):
                state.withLock { $0.peripherals[owner] }?.events.peripheralDidStopAdvertising(error)
            }
        }

        // MARK: Connections

        private func didConnect(_ id: ConnectionID, _ peer: Address, _ isCentral: Bool) {
            let waits = state.withLock { state in
                state.links[id] = EngineState.LinkState(peer: state.peerID(peer), isCentral: isCentral)
                return state.attempts.take(state.host.resolve(peer))
            }
            // Owned before anybody goes on, so that an end which follows at once is told, with its reason.
            for wait in waits {
                let connection = HCIConnection(self, id, wait.peripheral, owner: wait.role, wait.events)
                state.withLock { $0.links[id]?.owners.append(connection) }
                // The caller was cancelled meanwhile.
                if !wait.waiter.complete(.success(connection)) { connection.leave(silently: true) }
            }
            // No caller asked for it, as after an attempt that the controller goes on with although it has cancelled it.
            if isCentral, waits.isEmpty { try? change { state, now in state.disconnect(id, at: now) } }
        }

        private func didDisconnect(_ id: ConnectionID, _ reason: HCIErrorCode) {
            note("Connection \(id.rawValue) has ended: \(reason).")
            rememberPeers()
            didSecure(id, .failure(BluetoothError(reason)))
            let (link, error, central, waiters, subscribers) = state.withLock { state in
                let central = state.central(id)
                let link = state.links.removeValue(forKey: id)
                let error = BluetoothError(reason, isWanted: link?.isEnding == true)
                // With the link's removal, so that no caller finds it gone without the reason.
                for owner in link?.owners ?? [] { owner.willDisconnect(error) }
                let owners = Set(link?.subscriptions.values.map { $0 } ?? [])
                state.requests.connectionDidEnd(UInt64(id.rawValue))
                return (
                    link, error, central, state.signalStrengths.removeValue(forKey: id) ?? [],
                    state.peripherals.all.filter { owners.contains($0.id) }
                )
            }
            guard let link, let central else { return }
            for waiter in waiters { waiter.resume(.failure(error)) }
            for tell in link.endWaiters { tell(error) }
            for owner in link.owners { owner.didDisconnect(error) }
            for owner in subscribers {
                owner.events.central(central, didDisconnect: error)
                for (handle, id) in link.subscriptions where id == owner.id {
                    owner.events.central(central, didUnsubscribeFrom: AttributeID(rawValue: UInt32(handle)))
                }
            }
            closeOnceAlone()
        }

        private func didComplete(_ id: OperationID, _ result: Result<ClientResult, ClientFailure>) {
            switch state.withLock({ $0.operations.removeValue(forKey: id) }) {
            case .waiter(let waiter): waiter.resume(result.mapError { BluetoothError($0) })
            case .write(let connection, let characteristic):
                connection.didWrite(characteristic, result.map { _ in () }.mapError { BluetoothError($0) })
            case .openChannel, nil: break
            }
        }

        /// A bonded server keeps subscriptions, so that values may come before this side subscribes anew.
        private func keepUnclaimed(_ id: ConnectionID, _ handle: UInt16, _ value: RawSpan) {
            state.withLock { state in
                guard state.links[id]?.isClaimed(handle) == false, state.host.security(of: id)?.isBonded == true else {
                    return
                }
                state.links[id]?.keep(handle, [UInt8](copying: value))
            }
        }

        // MARK: Server

        private func didAskToRead(_ request: ServerRequestID, _ id: ConnectionID, _ handle: UInt16, _ offset: Int) {
            guard let (owner, peer) = claim(request, id, [handle]) else { return }
            owner.peripheralDidReceive(
                ReadRequest(
                    id: RequestID(rawValue: request.rawValue), central: peer,
                    characteristic: AttributeID(rawValue: UInt32(handle)), offset: offset))
        }

        private func didAskToWrite(_ request: ServerRequestID, _ id: ConnectionID, _ parts: [WritePart]) {
            guard let (owner, peer) = claim(request, id, parts.map(\.handle)) else { return }
            owner.peripheralDidReceive(
                WriteRequest(
                    id: RequestID(rawValue: request.rawValue), central: peer,
                    parts: parts.map {
                        WriteRequest.Part(
                            characteristic: AttributeID(rawValue: UInt32($0.handle)), offset: $0.offset, value: $0.value
                        )
                    }))
        }

        /// Finds the one owner of the characteristics that a request is about; none, or several, is an error for the peer.
        private func claim(
            _ request: ServerRequestID, _ id: ConnectionID, _ handles: [UInt16]
        ) -> ((any PeripheralRoleEvents), ConnectedCentral)? {
            let found = state.withLock { state -> ((any PeripheralRoleEvents), ConnectedCentral)? in
                guard let peer = state.central(id), let first = handles.first, let owner = state.owner(of: first),
                    handles.allSatisfy({ state.owner(of: $0)?.id == owner.id })
                else { return nil }
                state.requests.hold(RequestID(rawValue: request.rawValue), for: owner.id, on: peer.connection, request)
                return (owner.events, peer)
            }
            if found == nil {
                try? change { state, now in
                    state.host.respond(to: request, with: .failure(ATTErrorCode(rawValue: 0x0E)), at: now)
                }
            }
            return found
        }

        private func didConfigure(_ id: ConnectionID, _ handle: UInt16, _ bits: UInt16) {
            let found = state.withLock { state -> ((any PeripheralRoleEvents), ConnectedCentral)? in
                guard let owner = state.owner(of: handle), let peer = state.central(id) else { return nil }
                state.links[id]?.subscriptions[handle] = bits == 0 ? nil : owner.id
                return (owner.events, peer)
            }
            rememberSubscriptions()
            guard let (owner, peer) = found else { return }
            let characteristic = AttributeID(rawValue: UInt32(handle))
            if bits == 0 {
                owner.central(peer, didUnsubscribeFrom: characteristic)
            } else {
                owner.central(peer, didSubscribeTo: characteristic, as: bits & 1 != 0 ? .notify : .indicate)
            }
        }

        // MARK: Channels

        private func channelDidOpen(
            _ id: CreditChannelID, _ connection: ConnectionID, _ psm: UInt16, _ operation: OperationID?
        ) {
            let (channel, waiter, owner) = state.withLock {
                state -> (HCIL2CAPChannel?, Waiter<HCIL2CAPChannel>?, (any PeripheralRoleEvents)?) in
                guard let peer = state.links[connection]?.peer else { return (nil, nil, nil) }
                let channel = HCIL2CAPChannel(
                    self, id, on: connection, psm: PSM(rawValue: psm), peerID: peer,
                    identity: state.identity(connection), role: operation == nil ? .responder : .initiator,
                    maximum: state.host.maximumSDU(id) ?? 23)
                state.channels[id] = channel
                var waiter: Waiter<HCIL2CAPChannel>?
                if let operation, case .openChannel(let waiting)? = state.operations.removeValue(forKey: operation) {
                    waiter = waiting
                }
                return (channel, waiter, state.peripherals.all.first { $0.psms.contains(psm) }?.events)
            }
            guard let channel else { return }
            if operation != nil { waiter?.resume(.success(channel)) } else { owner?.peripheralDidOpen(channel) }
        }
    }
#endif
