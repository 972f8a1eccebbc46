#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Synchronization

    extension HCIEngine {
        func openPeripheral(_ events: any PeripheralRoleEvents) -> UInt64 {
            let (id, adapterState) = state.withLock { state in
                let id = state.nextOwner
                state.nextOwner += 1
                state.peripherals.append(EngineState.PeripheralOwner(id: id, events: events))
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
                try state.requirePower()
                guard let place = state.peripherals.firstIndex(where: { $0.id == id }) else {
                    throw BluetoothError.roleClosed
                }
                guard let handles = state.host.addService(try Self.specification(service), at: now) else {
                    throw BluetoothError(
                        .invalidArgument,
                        "Service \(service.uuid) cannot be published: a fixed value is above 512 bytes, an included service is "
                            + "not published here, or handles are used up."
                    )
                }
                state.peripherals[place].services.append(handles)
                return PublishedService(
                    id: AttributeID(rawValue: UInt32(handles.service)),
                    characteristics: handles.characteristics.map { AttributeID(rawValue: UInt32($0)) })
            }
        }

        private static func specification(_ service: ServiceDefinition) throws(BluetoothError) -> ServiceSpecification {
            var characteristics: [CharacteristicSpecification] = []
            for definition in service.characteristics {
                if definition.value != nil, definition.properties != .read {
                    throw BluetoothError(
                        .invalidArgument, "Characteristic \(definition.uuid) has a fixed value, so it can only be read."
                    )
                }
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
                var properties = UInt8(truncatingIfNeeded: definition.properties.rawValue)
                if definition.properties.contains(.notifyEncryptionRequired) { properties |= 0x10 }
                if definition.properties.contains(.indicateEncryptionRequired) { properties |= 0x20 }
                characteristics.append(
                    CharacteristicSpecification(
                        BluetoothHost.UUID(definition.uuid), properties: properties, access: access,
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
                guard let place = state.peripherals.firstIndex(where: { $0.id == id }) else { return }
                let handle = UInt16(truncatingIfNeeded: service.rawValue)
                guard let index = state.peripherals[place].services.firstIndex(where: { $0.service == handle }) else {
                    return
                }
                state.peripherals[place].services.remove(at: index)
                state.host.removeService(handle, at: now)
            }
        }

        func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError)
            -> FerryBluetooth.AdvertisingReport
        {
            let waiter = Waiter<Void>()
            let services = advertisement.services.map { BluetoothHost.UUID($0) }
            let (payload, omitted, isShortened) = AdvertisingPayload.fitting(
                localName: advertisement.localName, services: services)
            try engine.change { [id] state, now throws(BluetoothError) in
                try state.requirePower()
                guard state.advertisingOwner ?? id == id else {
                    throw BluetoothError(.advertisingFailed, "Another role of this adapter is advertising.")
                }
                state.advertisingWaiter?.resume(
                    .failure(BluetoothError(.advertisingFailed, "Another advertisement took this one's place.")))
                state.advertisingOwner = id
                state.advertisingWaiter = waiter
                guard state.host.advertise(payload, at: now) else {
                    throw BluetoothError(.advertisingFailed, "The advertisement does not fit two times 31 bytes.")
                }
            }
            try await waiter.wait()
            var advertised = AdvertisingData(payload.data)
            advertised.merge(AdvertisingData(payload.scanResponse))
            return FerryBluetooth.AdvertisingReport(
                advertised: AdvertisementData(advertised, isConnectable: true),
                omittedServices: omitted.map { BluetoothUUID($0) }, isNameShortened: isShortened)
        }

        func stopAdvertising() {
            try? engine.change { [id] state, now in
                guard state.advertisingOwner == id else { return }
                state.advertisingOwner = nil
                state.advertisingWaiter.take()?.resume(
                    .failure(BluetoothError(.advertisingFailed, "Advertising was stopped before it had begun.")))
                _ = state.host.advertise(nil, at: now)
            }
        }

        func tryUpdateValue(
            _ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients
        ) throws(BluetoothError) -> Bool {
            let handle = UInt16(truncatingIfNeeded: characteristic.rawValue)
            return try engine.change { [id] state, now throws(BluetoothError) in
                try state.requirePower()
                guard state.isOwner(id, of: handle) else {
                    throw BluetoothError.notPublished(characteristic)
                }
                guard state.host.hasConfiguration(handle) else {
                    throw BluetoothError(.notSupported, "Characteristic \(handle) neither notifies nor indicates.")
                }
                let connections: [ConnectionID]?
                switch recipients {
                case .all: connections = nil
                case .one(let central):
                    guard let connection = state.connection(central) else {
                        throw BluetoothError.notConnected(central)
                    }
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
                let request = ServerRequestID(rawValue: request.rawValue)
                guard state.requests[request] == id else { return }
                state.requests[request] = nil
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
                try state.requirePower()
                guard !encryptionRequired || state.host.pairs else {
                    throw BluetoothError(
                        .notSupported,
                        "This adapter does not pair, or its controller cannot encrypt, so no channel can be encrypted.")
                }
                guard let place = state.peripherals.firstIndex(where: { $0.id == id }) else {
                    throw BluetoothError.roleClosed
                }
                for psm in UInt16(0x80)...0xFF where state.host.listen(psm: psm, encryptionRequired: encryptionRequired)
                {
                    state.peripherals[place].psms.insert(psm)
                    return PSM(rawValue: psm)
                }
                throw BluetoothError.noPSM
            }
        }

        func unpublishL2CAPChannel(_ psm: PSM) {
            try? engine.change { [id] state, _ in
                guard let place = state.peripherals.firstIndex(where: { $0.id == id }),
                    state.peripherals[place].psms.remove(psm.rawValue) != nil
                else { return }
                state.host.stopListening(psm: psm.rawValue)
            }
        }

        func close() {
            stopAdvertising()
            // The owner's object is let go outside the lock: its end may call back.
            let owner = try? engine.change { [id] state, now -> EngineState.PeripheralOwner? in
                guard let place = state.peripherals.firstIndex(where: { $0.id == id }) else { return nil }
                let owner = state.peripherals.remove(at: place)
                for service in owner.services { state.host.removeService(service.service, at: now) }
                for psm in owner.psms { state.host.stopListening(psm: psm) }
                for (request, claimant) in state.requests where claimant == id {
                    state.requests[request] = nil
                    state.host.respond(to: request, with: .failure(ATTErrorCode(rawValue: 0x0E)), at: now)
                }
                for connection in state.links.keys {
                    let mine = state.links[connection]?.subscriptions.filter { $0.value == id } ?? [:]
                    for handle in mine.keys { state.links[connection]?.subscriptions[handle] = nil }
                }
                return owner
            }
            withExtendedLifetime(owner) {}
            engine.closeIfUnused()
        }
    }

    extension AdvertisementData {
        init(_ data: AdvertisingData, isConnectable: Bool) {
            var serviceData: [BluetoothUUID: [UInt8]] = [:]
            for (uuid, bytes) in data.serviceData { serviceData[BluetoothUUID(uuid)] = bytes }
            self.init(
                localName: data.localName, services: data.services.map { BluetoothUUID($0) },
                txPower: data.txPower.map { Int($0) }, isConnectable: isConnectable,
                manufacturerData: data.manufacturerData, serviceData: serviceData)
        }
    }
#endif
