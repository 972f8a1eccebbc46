#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// One owner's hold on a connection. Several may share the link; it ends when the last one lets go.
    final class HCIConnection: PeripheralConnection {
        let peripheral: PeerID
        let owner: UInt64
        private let engine: HCIEngine
        private let id: ConnectionID
        private let knownIdentity: KnownIdentity
        private let state: Mutex<State>

        private struct State {
            var life: ConnectionLife
            var subscriptions: Set<UInt16> = []
            var found: Set<BluetoothUUID> = []
            var isWriting = false
        }

        init(
            _ engine: HCIEngine, _ id: ConnectionID, _ peripheral: PeerID, owner: UInt64,
            _ events: any PeripheralConnectionEvents
        ) {
            state = Mutex(State(life: .open(events)))
            self.engine = engine
            self.id = id
            self.peripheral = peripheral
            self.owner = owner
            knownIdentity = KnownIdentity(peripheral, engine.state.withLock { $0.identity(id) })
        }

        var identity: PeerIdentity { knownIdentity.update(engine.state.withLock { $0.identity(id) }) }

        var attMTU: Int { engine.state.withLock { $0.host.attMTU(of: id) ?? ATT.defaultMTU } }

        // MARK: Requests

        private func ask(_ request: ClientRequest) async throws(BluetoothError) -> ClientResult {
            try requireOwnership()
            let waiter = Waiter<ClientResult>()
            try engine.change { [id] state, now throws(BluetoothError) in
                guard let operation = state.host.request(request, of: id, at: now) else {
                    return try waitForEnd(waiter, &state)
                }
                state.operations[operation] = .waiter(waiter)
            }
            return try await waiter.wait()
        }

        private var notConnected: BluetoothError { state.withLock { $0.life.reason } ?? .notConnected }

        /// The host refuses calls of an ended connection a moment before the owners learn of the end: a caller in that
        /// moment waits and gets the reason with them.
        private func waitForEnd(_ waiter: Waiter<some Sendable>, _ state: inout EngineState) throws(BluetoothError) {
            guard state.links[id] != nil else { throw notConnected }
            state.links[id]?.endWaiters.append { waiter.resume(.failure($0)) }
        }

        /// The link may live on for others when this owner has let go of it.
        private func requireOwnership() throws(BluetoothError) {
            try state.withLock { (state) throws(BluetoothError) in try state.life.requireOpen() }
        }

        private func handle(_ attribute: AttributeID) throws(BluetoothError) -> UInt16 {
            guard let handle = UInt16(exactly: attribute.rawValue), handle > 0 else { throw .notFound(attribute) }
            return handle
        }

        private func range(of service: AttributeID) throws(BluetoothError) -> ClosedRange<UInt16> {
            let handle = try handle(service)
            guard let link = engine.state.withLock({ $0.links[id] }) else { throw notConnected }
            guard let range = link.services[handle] else { throw .notFound(service) }
            return range
        }

        private func characteristic(_ id: AttributeID) throws(BluetoothError) -> DiscoveredCharacteristic {
            let handle = try handle(id)
            // A connection that has just ended has no attributes left, but the error is the end.
            guard let link = engine.state.withLock({ $0.links[self.id] }) else { throw notConnected }
            guard let found = link.characteristics[handle] else { throw .notFound(id) }
            return found
        }

        func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
            guard let uuids else { return remember(try await ask(.services(nil))) }
            var found: [RemoteService] = []
            for uuid in uuids { found += remember(try await ask(.services(BluetoothHost.UUID(uuid)))) }
            return found
        }

        func discoverIncludedServices(
            _ uuids: [BluetoothUUID]?, of service: AttributeID
        ) async throws(BluetoothError) -> [RemoteService] {
            remember(try await ask(.includedServices(in: try range(of: service))))
                .filter { uuids?.contains($0.uuid) ?? true }
        }

        private func remember(_ result: ClientResult) -> [RemoteService] {
            guard case .services(let services) = result else { return [] }
            engine.state.withLock { state in
                for service in services { state.links[id]?.services[service.handles.lowerBound] = service.handles }
            }
            state.withLock { state in for service in services { state.found.insert(BluetoothUUID(service.uuid)) } }
            return services.map {
                RemoteService(
                    id: AttributeID(rawValue: UInt32($0.handles.lowerBound)), uuid: BluetoothUUID($0.uuid),
                    isPrimary: $0.isPrimary)
            }
        }

        func hasFound(_ service: BluetoothUUID) -> Bool { state.withLock { $0.found.contains(service) } }

        func discoverCharacteristics(
            _ uuids: [BluetoothUUID]?, of service: AttributeID
        ) async throws(BluetoothError) -> [RemoteCharacteristic] {
            guard case .characteristics(let all) = try await ask(.characteristics(in: try range(of: service))) else {
                return []
            }
            engine.state.withLock { state in for found in all { state.links[id]?.characteristics[found.value] = found }
            }
            return all.filter { uuids?.contains(BluetoothUUID($0.uuid)) ?? true }.map {
                RemoteCharacteristic(
                    id: AttributeID(rawValue: UInt32($0.value)), uuid: BluetoothUUID($0.uuid),
                    properties: CharacteristicProperties(rawValue: UInt16($0.properties)))
            }
        }

        func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor] {
            let found = try self.characteristic(characteristic)
            guard found.end > found.value else { return [] }
            guard case .descriptors(let descriptors) = try await ask(.descriptors(in: found.value + 1...found.end))
            else {
                return []
            }
            return descriptors.map {
                RemoteDescriptor(id: AttributeID(rawValue: UInt32($0.handle)), uuid: BluetoothUUID($0.uuid))
            }
        }

        func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8] {
            guard case .value(let value) = try await ask(.read(try handle(attribute))) else { return [] }
            return value
        }

        func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError) {
            try BluetoothError.checkLength(value)
            _ = try await ask(.write(try handle(attribute), value))
        }

        func tryWriteValue(
            _ value: RawSpan, to characteristic: AttributeID, type: WriteType
        ) throws(BluetoothError) -> Bool {
            try requireOwnership()
            let handle = try handle(characteristic)
            let id = id
            let count = value.byteCount
            return try engine.change { state, now throws(BluetoothError) in
                guard let mtu = state.host.attMTU(of: id), let link = state.links[id] else { throw notConnected }
                guard let found = link.characteristics[handle] else { throw .notFound(characteristic) }
                try BluetoothError.checkWrite(
                    count, type, maximum: min(mtu - 3, ATT.maximumValueLength), to: characteristic,
                    CharacteristicProperties(rawValue: UInt16(found.properties)))
                switch type {
                case .withoutResponse:
                    guard let isQueued = state.host.writeCommand(value, to: handle, of: id) else { throw notConnected }
                    return isQueued
                case .withResponse:
                    let isFree = self.state.withLock { own in
                        defer { own.isWriting = true }
                        return !own.isWriting
                    }
                    guard isFree else { return false }
                    guard let operation = state.host.request(.write(handle, [UInt8](copying: value)), of: id, at: now)
                    else {
                        throw notConnected
                    }
                    state.operations[operation] = .write(self, characteristic)
                    return true
                }
            }
        }

        func maximumWriteLength(_ type: WriteType) -> Int { min(attMTU - 3, ATT.maximumValueLength) }

        func setSubscription(
            _ subscription: Subscription?, to characteristic: AttributeID
        ) async throws(BluetoothError) {
            try requireOwnership()
            let found = try self.characteristic(characteristic)
            if let subscription, !CharacteristicProperties(rawValue: UInt16(found.properties)).offers(subscription) {
                throw .notOffered(subscription, by: characteristic)
            }
            let bits: UInt16 = subscription.map { $0 == .notify ? 1 : 2 } ?? 0
            // Values may come before the response does.
            if bits != 0 { engine.deliver { [self] in claim(found.value) } }
            let others = engine.state.withLock { $0.links[id]?.owners.filter { $0 !== self } ?? [] }
            if bits == 0, others.contains(where: { $0.isSubscribed(found.value) }) {
                state.withLock { _ = $0.subscriptions.remove(found.value) }
                return
            }
            if bits == 0 { engine.state.withLock { _ = $0.links[id]?.claim(found.value) } }
            do throws(BluetoothError) {
                _ = try await ask(.configure(value: found.value, end: found.end, bits: bits))
            } catch {
                if bits != 0 { state.withLock { _ = $0.subscriptions.remove(found.value) } }
                throw error
            }
            if bits == 0 { state.withLock { _ = $0.subscriptions.remove(found.value) } }
        }

        /// Takes values of a characteristic from now on, those that have waited first. On the event loop, so that none
        /// overtakes them.
        private func claim(_ handle: UInt16) {
            state.withLock { _ = $0.subscriptions.insert(handle) }
            let waiting = engine.state.withLock { $0.links[id]?.claim(handle) ?? [] }
            for value in waiting { didUpdate(handle, value.span.bytes) }
        }

        private func isSubscribed(_ handle: UInt16) -> Bool { state.withLock { $0.subscriptions.contains(handle) } }

        func readRSSI() async throws(BluetoothError) -> Int {
            try requireOwnership()
            let waiter = Waiter<Int>()
            try engine.change { [id] state, now throws(BluetoothError) in
                guard state.host.peer(of: id) != nil else { return try waitForEnd(waiter, &state) }
                guard state.host.readRSSI(id, at: now) else {
                    throw BluetoothError(.notSupported, "The controller cannot tell the signal's strength.")
                }
                state.signalStrengths[id, default: []].append(waiter)
            }
            return try await waiter.wait()
        }

        func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel {
            try requireOwnership()
            let waiter = Waiter<HCIL2CAPChannel>()
            try engine.change { [id] state, now throws(BluetoothError) in
                guard let operation = state.host.openChannel(id, psm: psm.rawValue, at: now) else {
                    return try waitForEnd(waiter, &state)
                }
                state.operations[operation] = .openChannel(waiter)
            }
            return try await waiter.wait()
        }

        func setReceiving(_ isReceiving: Bool) {}

        func disconnect() { leave(silently: false) }

        /// Lets go of the link; the last owner ends it.
        func leave(silently: Bool) {
            guard state.withLock({ $0.life.beginEnding(.endedHere, isSilent: silently) }) else { return }
            let isLinkEnding = try? engine.change { [id] state, now in
                guard let place = state.links[id]?.owners.firstIndex(where: { $0 === self }) else { return false }
                guard state.links[id]?.owners.count == 1, state.links[id]?.isCentral == true else {
                    state.links[id]?.owners.remove(at: place)
                    return false
                }
                state.disconnect(id, at: now)  // this owner learns of it like of any other end
                return true
            }
            guard isLinkEnding != true else { return }
            engine.deliver { self.didDisconnect(.endedHere) }
        }

        // MARK: Events, on the event loop

        private var events: (any PeripheralConnectionEvents)? { state.withLock { $0.life.events } }

        /// A value has come. False when this role has not subscribed.
        @discardableResult
        func didUpdate(_ handle: UInt16, _ value: RawSpan) -> Bool {
            let events = state.withLock { $0.subscriptions.contains(handle) ? $0.life.events : nil }
            events?.peripheralDidUpdate(AttributeID(rawValue: UInt32(handle)), value: value)
            return events != nil
        }

        func mtuDidChange(_ mtu: Int) { events?.peripheralDidChangeMTU(mtu) }

        func didModify(_ services: [AttributeID]) { events?.peripheralDidModifyServices(services) }

        func isReadyToWrite() { events?.peripheralIsReadyToWrite() }

        func didWrite(_ characteristic: AttributeID, _ result: Result<Void, BluetoothError>) {
            let events = state.withLock { state in
                state.isWriting = false
                return state.life.events
            }
            events?.peripheralDidWrite(characteristic, result: result)
            events?.peripheralIsReadyToWrite()
        }

        /// From here on who asks is refused with the reason; ``didDisconnect(_:)`` follows.
        func willDisconnect(_ reason: BluetoothError) { state.withLock { _ = $0.life.beginEnding(reason) } }

        func didDisconnect(_ reason: BluetoothError) {
            if let (events, reason) = state.withLock({ $0.life.end(reason) }) { events.peripheralDidDisconnect(reason) }
        }
    }

    extension Array where Element == UInt8 {
        init(copying span: RawSpan) { self = span.withUnsafeBytes { Array($0) } }
    }
#endif
