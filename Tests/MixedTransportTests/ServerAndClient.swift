#if HCI && BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization
    import TestSupport
    import Testing

    /// What both sides know. A characteristic for each kind of access, because BlueZ takes one kind where several are
    /// offered.
    enum Layout {
        static let service = uuid(0)
        static let value = uuid(1)
        static let commands = uuid(2)
        static let updates = uuid(3)
        static let confirmed = uuid(4)
        /// Needs an encrypted link.
        static let secret = uuid(5)

        static func uuid(_ number: UInt128) -> BluetoothUUID {
            BluetoothUUID(0x5A31_0000_2F6C_4B5D_8D0E_1C64_65A9_7200 as UInt128 + number)
        }

        static func pattern(_ count: Int, _ seed: Int = 0) -> [UInt8] {
            (0..<count).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ seed) }
        }
    }

    /// A peripheral that holds a value, and sends a pattern to whoever subscribes.
    final class Server: PeripheralRoleEvents, Sendable {
        struct Record {
            var value = Layout.pattern(400)
            var commands: [[UInt8]] = []
            var subscribed: [Subscription] = []
            var ends: [BluetoothError] = []
            var states: [AdapterState] = []
            var channels: [any L2CAPChannel] = []
            /// Who subscribes to what, and how many bytes of the pattern have been sent.
            var sent: [AttributeID: (central: ConnectedCentral, bytes: Int)] = [:]
            fileprivate var role: (any PeripheralRole)?
        }

        /// How many bytes each subscription brings.
        let total: Int
        private let record = Mutex(Record())

        init(total: Int = 2000) { self.total = total }

        func get<Value: Sendable>(_ read: (Record) -> Value) -> Value { record.withLock { read($0) } }

        /// Publishes the service, and advertises it.
        func open(_ adapter: any BluetoothAdapter) async throws {
            let role = adapter.openPeripheral(self)
            _ = try await role.publish(
                ServiceDefinition(
                    Layout.service,
                    characteristics: [
                        CharacteristicDefinition(
                            Layout.value, properties: [.read, .write], permissions: [.readable, .writeable]),
                        CharacteristicDefinition(
                            Layout.commands, properties: .writeWithoutResponse, permissions: .writeable),
                        CharacteristicDefinition(Layout.updates, properties: .notify, permissions: .readable),
                        CharacteristicDefinition(Layout.confirmed, properties: .indicate, permissions: .readable),
                        CharacteristicDefinition(
                            Layout.secret, properties: .read, permissions: .readEncryptionRequired),
                    ]))
            record.withLock { $0.role = role }
            _ = try await role.startAdvertising(Advertisement(services: [Layout.service]))
        }

        /// The role, while it is open.
        var role: (any PeripheralRole)? { record.withLock { $0.role } }

        func close() { record.withLock { $0.role.take() }?.close() }

        // MARK: Events

        func peripheralAdapterDidChange(_ state: AdapterState) { record.withLock { $0.states.append(state) } }

        func central(
            _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
        ) {
            record.withLock { record in
                record.subscribed.append(subscription)
                record.sent[characteristic] = (central, 0)
            }
            send()
        }

        func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
            record.withLock { $0.sent[characteristic] = nil }
        }

        func peripheralIsReadyToUpdate() { send() }

        /// As much as is taken, in the largest values that the connection carries.
        private func send() {
            record.withLock { record in
                guard let role = record.role else { return }
                for (id, (central, sent)) in record.sent {
                    var sent = sent
                    while sent < total, let length = role.maximumUpdateValueLength(for: central) {
                        let value = Layout.pattern(min(length, total - sent), sent &* 31)
                        guard (try? role.tryUpdateValue(value.span.bytes, of: id, for: .one(central))) == true else {
                            break
                        }
                        sent += value.count
                    }
                    record.sent[id]?.bytes = sent
                }
            }
        }

        func peripheralDidReceive(_ request: ReadRequest) {
            let (role, value) = record.withLock { ($0.role, $0.value) }
            role?.respond(
                to: request.id,
                with: request.offset <= value.count
                    ? .success(Array(value[request.offset...])) : .failure(.invalidOffset))
        }

        func peripheralDidReceive(_ request: WriteRequest) {
            let role = record.withLock { record in
                for part in request.parts {
                    record.value.removeLast(max(0, record.value.count - part.offset))
                    record.value += part.value
                }
                return record.role
            }
            role?.respond(to: request.id, with: .success([]))
        }

        func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
            let bytes = value.withUnsafeBytes { Array($0) }
            record.withLock { $0.commands.append(bytes) }
        }

        func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
            record.withLock { $0.ends.append(reason) }
        }

        func peripheralDidOpen(_ channel: any L2CAPChannel) { record.withLock { $0.channels.append(channel) } }
    }

    /// A central that looks for the service, and collects what comes.
    final class Client: CentralRoleEvents, PeripheralConnectionEvents, Sendable {
        struct Record {
            var found: PeerID?
            var received: [AttributeID: [UInt8]] = [:]
            var ends: [BluetoothError] = []
            var readies = 0
            fileprivate var role: (any CentralRole)?
        }

        private let record = Mutex(Record())

        func get<Value: Sendable>(_ read: (Record) -> Value) -> Value { record.withLock { read($0) } }

        init(_ adapter: any BluetoothAdapter) {
            let role = adapter.openCentral(self)
            record.withLock { $0.role = role }
        }

        /// Finds the peripheral and connects.
        func connect() async throws -> any PeripheralConnection {
            let role = try #require(record.withLock { $0.role })
            record.withLock { record in
                record.found = nil
                record.received = [:]
            }
            try role.startScan(ScanRequest(services: [Layout.service]))
            defer { role.stopScan() }
            try await until("the peripheral to be found") { get { $0.found != nil } }
            role.stopScan()
            let connection = try await role.connect(to: try #require(get { $0.found }), events: self)
            return connection
        }

        /// The characteristics by what they are for.
        func discover(_ connection: any PeripheralConnection) async throws -> [BluetoothUUID: AttributeID] {
            let service = try #require(try await connection.discoverServices([Layout.service]).first)
            let all = try await connection.discoverCharacteristics(nil, of: service.id)
            return Dictionary(uniqueKeysWithValues: all.map { ($0.uuid, $0.id) })
        }

        /// What a subscription brings until so many bytes have come. It is not ended.
        func collect(
            _ count: Int, _ connection: any PeripheralConnection, _ id: AttributeID, _ kind: Subscription
        ) async throws -> [UInt8] {
            try await connection.setSubscription(kind, to: id)
            try await until("\(count) bytes by \(kind)") { get { $0.received[id]?.count ?? 0 >= count } }
            return get { $0.received[id] ?? [] }
        }

        func close() { record.withLock { $0.role.take() }?.close() }

        // MARK: Events

        func centralDidDiscover(_ discovery: Discovery) { record.withLock { $0.found = discovery.peripheral } }
        func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
            let bytes = value.withUnsafeBytes { Array($0) }
            record.withLock { $0.received[characteristic, default: []] += bytes }
        }
        func peripheralIsReadyToWrite() { record.withLock { $0.readies += 1 } }
        func peripheralDidDisconnect(_ reason: BluetoothError) { record.withLock { $0.ends.append(reason) } }
    }
#endif
