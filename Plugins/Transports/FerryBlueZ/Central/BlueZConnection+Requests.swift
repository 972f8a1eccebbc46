#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    // Requests that wait for the peer.
    extension BlueZConnection {
        fileprivate static let characteristic = "org.bluez.GattCharacteristic1"
        private static let descriptor = "org.bluez.GattDescriptor1"
        private static let service = "org.bluez.GattService1"

        /// Calls a method of an attribute's object, when it is this request's turn. A wait can be cancelled; the request
        /// goes on.
        private func ask(
            _ path: String, _ interface: String, _ member: String, _ arguments: [BusValue]
        ) async throws(BluetoothError) -> Result<[BusValue], BusError> {
            try await requestLock.lock()
            defer { requestLock.unlock() }
            for attempt in 1... {
                try requireConnection()
                let waiter = Waiter<Result<[BusValue], BusError>>()
                engine.perform { engine in
                    guard let bus = engine.bus else { return waiter.resume(.success(.failure(.closed))) }
                    bus.call(
                        BlueZEngine.service, path, interface, member, arguments,
                        timeout: engine.configuration.callTimeout
                    ) { reply in
                        let values = reply.flatMap { message in
                            Result { () throws(BusError) in try message.read() }
                        }
                        waiter.resume(.success(values))
                    }
                }
                let result = try await waiter.wait()
                // A barrier's read, or another process's, is under way: it ends within the transaction's time.
                if case .failure(let error) = result, error.isInProgress, attempt < 600 {
                    await engine.pause(.milliseconds(10))
                    continue
                }
                return result
            }
            throw notConnected
        }

        private func answer(
            _ result: Result<[BusValue], BusError>, _ what: String, isWrite: Bool
        ) throws(BluetoothError) -> [BusValue] {
            switch result {
            case .success(let values): return values
            case .failure(let error):
                if let reason { throw reason }
                throw error.attribute(what, isWrite: isWrite)
            }
        }

        // MARK: Discovery, which bluetoothd has done

        func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
            try requireConnection()
            return await services().filter { service in
                service.isPrimary && (uuids?.contains(service.uuid) ?? true)
            }
        }

        func discoverIncludedServices(
            _ uuids: [BluetoothUUID]?, of service: AttributeID
        ) async throws(BluetoothError) -> [RemoteService] {
            let path = try object(service)
            let included = await engine.texts(path, Self.service, "Includes").compactMap { AttributeID(object: $0) }
            return await services().filter { included.contains($0.id) && (uuids?.contains($0.uuid) ?? true) }
        }

        private func services() async -> [RemoteService] {
            await engine.objects(below: path, with: Self.service).compactMap { path, object in
                guard let id = remember(path), let uuid = object.uuid else { return nil }
                return RemoteService(id: id, uuid: uuid, isPrimary: object["Primary"]?.bool ?? true)
            }
        }

        private func remember(_ path: String) -> AttributeID? {
            guard let id = AttributeID(object: path) else { return nil }
            state.withLock { $0.paths[id.rawValue] = path }
            return id
        }

        func discoverCharacteristics(
            _ uuids: [BluetoothUUID]?, of service: AttributeID
        ) async throws(BluetoothError) -> [RemoteCharacteristic] {
            let path = try object(service)
            let found = await engine.objects(below: path, with: Self.characteristic)
            return found.compactMap { path, object in
                guard let id = remember(path), let uuid = object.uuid else { return nil }
                let properties = CharacteristicProperties(flags: object["Flags"]?.texts ?? [])
                if let mtu = object["MTU"]?.number { engine.perform { _ in self.mtuDidChange(mtu) } }
                state.withLock { state in
                    if let mtu = object["MTU"]?.number, (23...517).contains(mtu) { state.mtu = mtu }
                    if state.values[id.rawValue] == nil {
                        state.values[id.rawValue] = RemoteValue(
                            id: id, uuid: uuid, path: path, properties: properties)
                    }
                }
                guard uuids?.contains(uuid) ?? true else { return nil }
                return RemoteCharacteristic(id: id, uuid: uuid, properties: properties)
            }
        }

        func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor] {
            let path = try value(characteristic).path
            return await engine.objects(below: path, with: Self.descriptor).compactMap { path, object in
                guard let id = remember(path), let uuid = object.uuid else { return nil }
                return RemoteDescriptor(id: id, uuid: uuid)
            }
        }

        // MARK: Reading and writing

        private func interface(of path: String) -> String {
            path.split(separator: "/").last?.hasPrefix("desc") == true ? Self.descriptor : Self.characteristic
        }

        func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8] {
            let path = try object(attribute)
            let result = try await ask(path, interface(of: path), "ReadValue", [.options([:])])
            return try answer(result, "Attribute \(attribute.rawValue) cannot be read", isWrite: false).first?.bytes
                ?? []
        }

        func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError) {
            let path = try object(attribute)
            try BluetoothError.checkLength(value)
            let what = "Attribute \(attribute.rawValue) cannot be written"
            if let remote = try? self.value(attribute), !remote.properties.contains(.write) {
                throw BluetoothError(.att(.writeNotPermitted), "\(what): it does not offer writes with response.")
            }
            let options = BusValue.options(["type": .string("request")])
            let result = try await ask(path, interface(of: path), "WriteValue", [.bytes(value), options])
            _ = try answer(result, what, isWrite: true)
        }

        // MARK: Subscribing

        func setSubscription(
            _ subscription: Subscription?, to characteristic: AttributeID
        ) async throws(BluetoothError) {
            let remote = try value(characteristic)
            let what = "Characteristic \(remote.uuid)"
            guard let subscription else { return try await unsubscribe(remote) }
            guard remote.properties.offers(subscription) else { throw .notOffered(subscription, by: characteristic) }
            guard remote.reader == nil, !remote.isSubscribedByProperty else { return }
            let result = try await ask(remote.path, Self.characteristic, "AcquireNotify", [.options([:])])
            switch result {
            case .success(let values):
                guard let descriptor = values.first?.descriptor else {
                    throw BluetoothError(.connectionFailed, "\(what): AcquireNotify gave no socket.")
                }
                let reader = ValueReader(descriptor) { [weak self] in self?.didUpdate(remote.id, $0) }
                remote.reader = reader
                engine.perform { engine in
                    if let mtu = values.last?.number { self.mtuDidChange(mtu) }
                    engine.read(reader, of: remote)
                }
            case .failure(let error)
            where error.name == "org.bluez.Error.NotSupported" || error.name == "org.bluez.Error.NotPermitted":
                // Indications, or another process has the socket: values come as changes of a property.
                remote.isSubscribedByProperty = true
                let started = try await ask(remote.path, Self.characteristic, "StartNotify", [])
                if case .failure = started { remote.isSubscribedByProperty = false }
                _ = try answer(started, "\(what) cannot be subscribed to", isWrite: true)
            case .failure: _ = try answer(result, "\(what) cannot be subscribed to", isWrite: true)
            }
        }

        private func unsubscribe(_ remote: RemoteValue) async throws(BluetoothError) {
            guard remote.isSubscribedByProperty || remote.reader != nil else { return }
            remote.isSubscribedByProperty = false
            let reader = remote.reader
            remote.reader = nil
            // The socket ends after bluetoothd has heard that it is not wanted, as when the adapter closes: at its end alone it
            // looks only when it has nothing else to do.
            defer { if let reader { engine.perform { $0.stopReading(reader) } } }
            _ = try await ask(remote.path, Self.characteristic, "StopNotify", [])
        }

        // MARK: Others

        func readRSSI() async throws(BluetoothError) -> Int {
            try requireConnection()
            let waiter = Waiter<Int>()
            engine.perform { $0.askForRSSI(self, waiter) }
            return try await waiter.wait()
        }

        func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel {
            try requireConnection()
            let waiter = Waiter<BlueZL2CAPChannel>()
            engine.perform { $0.beginOpening(psm, self, waiter) }
            let engine = engine
            return try await waiter.wait { engine.perform { $0.leaveOpening(waiter) } }
        }
    }

    extension ObjectTree.Properties {
        var uuid: BluetoothUUID? { self["UUID"]?.text.flatMap { try? BluetoothUUID($0) } }
    }

    extension CharacteristicProperties {
        private static let names: [(String, CharacteristicProperties)] = [
            ("broadcast", .broadcast), ("read", .read), ("write-without-response", .writeWithoutResponse),
            ("write", .write), ("notify", .notify), ("indicate", .indicate),
            ("authenticated-signed-writes", .authenticatedSignedWrites), ("extended-properties", .extendedProperties),
        ]

        /// What `org.bluez.GattCharacteristic1` calls flags; the extended ones are left out, as in the declaration.
        init(flags: [String]) {
            self = []
            for (name, property) in Self.names where flags.contains(name) { insert(property) }
        }
    }

    extension BlueZEngine {
        func objects(below path: String, with interface: String) -> [(String, ObjectTree.Properties)] {
            objects.paths(below: path, with: interface).compactMap { path in
                objects[path, interface].map { (path, $0) }
            }
        }

        func texts(_ path: String, _ interface: String, _ property: String) -> [String] {
            objects[path, interface]?[property]?.texts ?? []
        }

        /// Acquires the socket for writes without response.
        func acquireWrite(_ remote: RemoteValue, _ connection: BlueZConnection) {
            guard remote.beginAcquiring() else { return }
            Task {
                do throws(BusError) {
                    let values = try await self.call(
                        remote.path, "org.bluez.GattCharacteristic1", "AcquireWrite", [.options([:])])
                    guard let descriptor = values.first?.descriptor else { throw BusError("No socket", -9) }
                    if let mtu = values.last?.number { connection.mtuDidChange(mtu) }
                    let pipe = self.makePipe(
                        descriptor, limit: connection.maximumWriteLength(.withoutResponse), device: connection.path,
                        characteristic: remote.path
                    ) { [weak connection] in connection?.isReadyToWrite() }
                    remote.didAcquire(.success(pipe))
                } catch {
                    remote.didAcquire(.failure(error.attribute("AcquireWrite is refused", isWrite: true)))
                }
                connection.isReadyToWrite()
            }
        }

        /// Delivers values from a socket of notifications until it ends.
        func read(_ reader: ValueReader, of remote: RemoteValue) {
            thread.watch(reader) { if remote.reader === reader { remote.reader = nil } }
            standIn.execute { [standIn, thread] in standIn.relieve(thread, of: reader) }
        }

        func stopReading(_ reader: ValueReader) {
            thread.unwatch(reader.descriptor.rawValue)
            reader.stop()
            reader.end()
        }

        /// Ends a connection's subscriptions.
        ///
        /// Their sockets' end would tell bluetoothd too, but it looks at that when it has nothing else to do. When it hears
        /// before that this program has left the bus, 5.66 uses what it has freed, and crashes.
        func endSubscriptions(of connection: BlueZConnection) {
            for path in connection.subscribed { tell(path, BlueZConnection.characteristic, "StopNotify") }
        }

        /// Values that come as changes of a property, and ATT_MTU.
        func characteristicDidChange(_ path: String, _ changed: ObjectTree.Properties) {
            for connection in connections where path.hasPrefix(connection.path + "/") {
                if let mtu = changed["MTU"]?.number { connection.mtuDidChange(mtu) }
                guard let bytes = changed["Value"]?.bytes, let id = AttributeID(object: path),
                    let remote = try? connection.value(id), remote.isSubscribedByProperty
                else { continue }
                connection.didUpdate(id, bytes.span.bytes)
            }
        }
    }
#endif
