#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    extension HCIEngine {
        func openPeripheral(_ events: any PeripheralRoleEvents) -> UInt64 {
            let (id, adapterState) = state.withLock { state in
                let id = state.makeOwnerID()
                state.peripherals.open(id, EngineState.PeripheralOwner(id: id, events: events))
                return (id, state.adapterState)
            }
            deliver { events.peripheralAdapterDidChange(adapterState) }
            return id
        }
    }

    final class HCIPeripheralRole: PeripheralRole {
        private let engine: HCIEngine
        private let id: UInt64

        init(_ engine: HCIEngine, _ id: UInt64) {
            self.engine = engine
            self.id = id
        }

        func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
            try engine.change { [id] state, now throws(BluetoothError) in
                let own = try state.peripherals.required(id)
                try state.requirePower()
                try service.check { included in own.services.contains { UInt32($0.service) == included.rawValue } }
                guard let handles = state.host.addService(try Self.specification(service), at: now) else {
                    throw BluetoothError(
                        .outOfResources,
                        "Service \(service.uuid) cannot be published: the attribute handles of the adapter are used up."
                    )
                }
                state.peripherals[id]?.services.append(handles)
                return PublishedService(
                    id: AttributeID(rawValue: UInt32(handles.service)),
                    characteristics: handles.characteristics.map { AttributeID(rawValue: UInt32($0)) })
            }
        }

        private static func specification(_ service: ServiceDefinition) throws(BluetoothError) -> ServiceSpecification {
            var characteristics: [CharacteristicSpecification] = []
            for definition in service.characteristics {
                guard !definition.properties.contains(.authenticatedSignedWrites) else {
                    throw BluetoothError(
                        .notSupported,
                        "Characteristic \(definition.uuid) promises signed writes, which this adapter does not take; let it be "
                            + "written with encryption instead.")
                }
                var access: AttributeAccess = []
                let permissions = definition.permissions
                let canRead = permissions.contains(.readable) || permissions.contains(.readEncryptionRequired)
                let canWrite = permissions.contains(.writeable) || permissions.contains(.writeEncryptionRequired)
                if canRead, definition.properties.contains(.read) { access.insert(.read) }
                if canWrite, definition.properties.contains(.write) { access.insert(.write) }
                if canWrite, definition.properties.contains(.writeWithoutResponse) { access.insert(.writeCommand) }
                if permissions.contains(.readEncryptionRequired) { access.insert(.readEncrypted) }
                if permissions.contains(.writeEncryptionRequired) { access.insert(.writeEncrypted) }
                if permissions.contains(.authenticationRequired) { access.insert(.authenticated) }
                if permissions.contains(.secureConnectionsRequired) { access.insert(.secureConnections) }
                let needsEncryption: CharacteristicProperties = [
                    .notifyEncryptionRequired, .indicateEncryptionRequired,
                ]
                characteristics.append(
                    CharacteristicSpecification(
                        BluetoothHost.UUID(definition.uuid),
                        properties: UInt8(truncatingIfNeeded: definition.properties.onAir.rawValue), access: access,
                        value: definition.value,
                        subscriptionNeedsEncryption: !definition.properties.isDisjoint(with: needsEncryption),
                        descriptors: definition.descriptors.map { (BluetoothHost.UUID($0.uuid), $0.value) }))
            }
            return ServiceSpecification(
                BluetoothHost.UUID(service.uuid), isPrimary: service.isPrimary,
                includes: service.includedServices.map { UInt16(truncatingIfNeeded: $0.rawValue) },
                characteristics: characteristics)
        }

        func unpublish(_ service: AttributeID) {
            try? engine.change { [id] state, now in
                let handle = UInt16(truncatingIfNeeded: service.rawValue)
                guard let index = state.peripherals[id]?.services.firstIndex(where: { $0.service == handle }) else {
                    return
                }
                state.peripherals[id]?.services.remove(at: index)
                state.host.removeService(handle, at: now)
            }
        }

        func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError)
            -> FerryBluetooth.AdvertisingReport
        {
            let waiter = Waiter<Void>()
            let budget: AdvertisingBudget = advertisement.isExtended ? .extended : .legacy
            let report = advertisement.fitted(to: budget)
            let payload = try Self.payload(advertisement, try report.encoded(for: budget))
            let (former, isTaken) = try engine.change {
                [id] state, now throws(BluetoothError) -> (Waiter<Void>?, Bool) in
                _ = try state.peripherals.required(id)
                try state.requirePower()
                guard state.advertising.owner ?? id == id else {
                    throw BluetoothError(.advertisingFailed, "Another role of this adapter is advertising.")
                }
                guard state.host.advertise(payload, at: now) else { return (nil, false) }
                return (state.advertising.start(id, waiter), true)
            }
            former?.resume(
                .failure(BluetoothError(.advertisingFailed, "Another advertisement took this one's place.")))
            guard isTaken else {
                throw BluetoothError(.advertisingFailed, "The advertisement is longer than a packet.")
            }
            try await waiter.wait()
            return report
        }

        private static func payload(
            _ advertisement: Advertisement, _ packets: AdvertisingPackets
        ) throws(BluetoothError) -> AdvertisingPayload {
            var payload = AdvertisingPayload(data: packets.advertising, scanResponse: packets.scanResponse)
            payload.isConnectable = advertisement.isConnectable
            payload.isExtended = advertisement.isExtended
            if let interval = try advertisement.validInterval {
                // In units of 0.625 ms.
                func units(_ duration: Duration) -> UInt16 { UInt16(clamping: Int64(duration / .microseconds(625))) }
                payload.interval = units(interval.lowerBound)...units(interval.upperBound)
            }
            return payload
        }

        func stopAdvertising() {
            let waiter = try? engine.change { [id] state, now -> Waiter<Void>? in
                guard state.advertising.owner == id else { return nil }
                _ = state.host.advertise(nil, at: now)
                guard case .starting(_, let waiter) = state.advertising.end() else { return nil }
                return waiter
            }
            waiter?.resume(
                .failure(BluetoothError(.advertisingFailed, "Advertising was stopped before it had begun.")))
        }

        func tryUpdateValue(
            _ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients
        ) throws(BluetoothError) -> Bool {
            let handle = UInt16(truncatingIfNeeded: characteristic.rawValue)
            return try engine.change { [id] state, now throws(BluetoothError) in
                try state.requirePower()
                guard state.peripherals.contains(id, where: { $0.published(handle) }) else {
                    _ = try state.peripherals.required(id)
                    throw .notPublished(characteristic)
                }
                guard state.host.hasConfiguration(handle) else { throw .notOffered(nil, by: characteristic) }
                let connections: [ConnectionID]?
                switch recipients {
                case .all: connections = nil
                case .one(let central):
                    guard let connection = state.connection(central) else { throw .notConnected(central) }
                    connections = [connection]
                case .some(let centrals): connections = centrals.compactMap { state.connection($0) }
                }
                return state.host.updateValue(value, of: handle, for: connections, at: now)
            }
        }

        func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? {
            engine.state.withLock { state in
                state.connection(central).flatMap { state.host.attMTU(of: $0) }.map {
                    min($0 - 3, ATT.maximumValueLength)
                }
            }
        }

        func identity(of central: ConnectedCentral) -> PeerIdentity? {
            engine.state.withLock { state in state.connection(central).flatMap { state.identity($0) } }
        }

        func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
            try? engine.change { [id] state, now in
                guard let request = state.requests.answer(request, by: id) else { return }
                state.host.respond(
                    to: request, with: response.mapError { ATTErrorCode(rawValue: $0.rawValue) }, at: now)
            }
        }

        func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {}

        func disconnect(_ central: ConnectedCentral) {
            try? engine.change { state, now in
                if let connection = state.connection(central) { state.disconnect(connection, at: now) }
            }
        }

        func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
            try engine.change { [id] state, _ throws(BluetoothError) in
                _ = try state.peripherals.required(id)
                try state.requirePower()
                guard !encryptionRequired || state.host.pairs else {
                    throw BluetoothError(
                        .notSupported,
                        "This adapter does not pair, or its controller cannot encrypt, so no channel can be encrypted.")
                }
                for psm in UInt16(0x80)...0xFF where state.host.listen(psm: psm, encryptionRequired: encryptionRequired)
                {
                    state.peripherals[id]?.psms.insert(psm)
                    return PSM(rawValue: psm)
                }
                throw BluetoothError.noPSM
            }
        }

        func unpublishL2CAPChannel(_ psm: PSM) {
            try? engine.change { [id] state, _ in
                guard state.peripherals[id]?.psms.remove(psm.rawValue) != nil else { return }
                state.host.stopListening(psm: psm.rawValue)
            }
        }

        func close() {
            stopAdvertising()
            // The owner's object is let go outside the lock: its end may call back.
            let owner = try? engine.change { [id] state, now -> EngineState.PeripheralOwner? in
                guard let owner = state.peripherals.close(id) else { return nil }
                for service in owner.services { state.host.removeService(service.service, at: now) }
                for psm in owner.psms { state.host.stopListening(psm: psm) }
                for request in state.requests.roleDidClose(id) {
                    state.host.respond(to: request, with: .failure(ATTErrorCode(rawValue: 0x0E)), at: now)
                }
                for (connection, link) in state.links {
                    state.links[connection]?.subscriptions = link.subscriptions.filter { $0.value != id }
                }
                return owner
            }
            withExtendedLifetime(owner) {}
            engine.closeIfUnused()
        }
    }
#endif
