import Ferry
import FerryBluetooth
import FerryTransports
import Synchronization

/// A service whose values a person or a program gives, and which centrals read, subscribe to and may write.
final class ServedService: PeripheralRoleEvents {
    /// One characteristic.
    struct Value: Sendable, Equatable {
        var uuid: BluetoothUUID
        var bytes: [UInt8]

        /// Reads `CHARACTERISTIC=VALUE`; the value may name its format first, such as `int16:2150`.
        ///
        /// - Throws: `invalidArgument` with the problem.
        init(_ text: String, _ format: ValueFormat) throws(BluetoothError) {
            let parts = text.split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false).map(String.init)
            guard parts.count == 2, !parts[0].isEmpty else {
                throw BluetoothError(
                    .invalidArgument,
                    "\(text.forTerminal.debugDescription) names no value. Write CHARACTERISTIC=VALUE, such as "
                        + "2A19=57 or Temperature=int16:2150.")
            }
            uuid = try Self.characteristic(parts[0])
            let named = parts[1].split(separator: ":", maxSplits: 1, omittingEmptySubsequences: false)
            if named.count == 2, let own = ValueFormat(rawValue: String(named[0])), own != .auto {
                bytes = try own.bytes(String(named[1]))
            } else {
                bytes = try format.bytes(parts[1])
            }
        }

        private static func characteristic(_ text: String) throws(BluetoothError) -> BluetoothUUID {
            for number in 0x2A00...0x2BFF as ClosedRange<UInt16>
            where AttributeName.matches(text, BluetoothUUID(number)) {
                return BluetoothUUID(number)
            }
            return try BluetoothUUID(text)
        }
    }

    /// What centrals do.
    enum Event: Sendable {
        case wrote(BluetoothUUID, [UInt8])
        case subscribed(BluetoothUUID, ConnectedCentral)
        case left(BluetoothUUID, ConnectedCentral)
        /// The adapter cannot go on.
        case lost(FerryError)
    }

    struct Configuration: Sendable {
        var name: String
        var service: BluetoothUUID
        var values: [Value]
        /// Whether centrals may write.
        let isWritable: Bool
        /// Whether only paired centrals may read and write.
        let isEncrypted: Bool
    }

    private struct State {
        var role: (any PeripheralRole)?
        var ids: [BluetoothUUID: AttributeID] = [:]
        var values: [AttributeID: [UInt8]] = [:]
        /// Characteristics whose newest value has not found a place yet.
        var unsent: [AttributeID] = []
        var isReady = false
    }

    /// The events, until ``close()``. Those that come faster than they are taken are left out.
    let events: AsyncStream<Event>
    private let continuation: AsyncStream<Event>.Continuation
    private let configuration: Configuration
    private let power = PowerWait()
    private let state = Mutex(State())

    init(_ configuration: Configuration) {
        self.configuration = configuration
        (events, continuation) = AsyncStream.makeStream(of: Event.self, bufferingPolicy: .bufferingNewest(1024))
    }

    /// Publishes the service and advertises it.
    func start(on adapter: any BluetoothAdapter) async throws {
        let role = adapter.openPeripheral(self)
        state.withLock { $0.role = role }
        try await power.wait(for: adapter.name, SystemTime())
        var properties: CharacteristicProperties = [.read, .notify]
        var permissions: AttributePermissions = configuration.isEncrypted ? [.readEncryptionRequired] : [.readable]
        if configuration.isWritable {
            properties.formUnion([.write, .writeWithoutResponse])
            permissions.insert(configuration.isEncrypted ? .writeEncryptionRequired : .writeable)
        }
        let published = try await role.publish(
            ServiceDefinition(
                configuration.service,
                characteristics: configuration.values.map {
                    CharacteristicDefinition($0.uuid, properties: properties, permissions: permissions)
                }))
        state.withLock { state in
            for (value, id) in zip(configuration.values, published.characteristics) {
                state.ids[value.uuid] = id
                state.values[id] = value.bytes
            }
            state.isReady = true
        }
        _ = try await role.startAdvertising(
            Advertisement(localName: configuration.name, services: [configuration.service]))
    }

    func close() {
        let role = state.withLock { state in
            defer { state = State() }
            return state.role
        }
        role?.close()
        continuation.finish()
    }

    /// Gives a characteristic another value, and tells its subscribers.
    ///
    /// - Throws: `unknownAttribute` with the characteristics that there are.
    func update(_ value: Value) throws(BluetoothError) {
        let isKnown = state.withLock { state in
            guard let id = state.ids[value.uuid] else { return false }
            state.values[id] = value.bytes
            if !state.unsent.contains(id) { state.unsent.append(id) }
            return true
        }
        guard isKnown else {
            let list = configuration.values.map(\.uuid.label).joined(separator: ", ")
            throw BluetoothError(.unknownAttribute, "\(value.uuid.label) is not served. There are: \(list).")
        }
        flush()
    }

    /// Queues the newest values while there is space. A value that was replaced before it found a place is left out.
    private func flush() {
        while let (role, id, value) = state.withLock({ state -> ((any PeripheralRole), AttributeID, [UInt8])? in
            guard let role = state.role, let id = state.unsent.first, let value = state.values[id] else { return nil }
            state.unsent.removeFirst()
            return (role, id, value)
        }) {
            guard (try? role.tryUpdateValue(value.span.bytes, of: id, for: .all)) == false else { continue }
            return state.withLock { if !$0.unsent.contains(id) { $0.unsent.insert(id, at: 0) } }
        }
    }

    // MARK: What centrals do

    func peripheralAdapterDidChange(_ adapterState: AdapterState) {
        power.note(adapterState)
        guard adapterState != .poweredOn, state.withLock({ $0.isReady }) else { return }
        continuation.yield(.lost(FerryError(.transportUnavailable, "The adapter is not powered on any more.")))
    }

    func peripheralDidReceive(_ request: ReadRequest) {
        let (role, value) = state.withLock { ($0.role, $0.values[request.characteristic]) }
        guard let value, request.offset <= value.count else {
            role?.respond(to: request.id, with: .failure(value == nil ? .attributeNotFound : .invalidOffset))
            return
        }
        role?.respond(to: request.id, with: .success(Array(value.dropFirst(request.offset))))
    }

    func peripheralDidReceive(_ request: WriteRequest) {
        let (role, error, written) = state.withLock {
            state -> ((any PeripheralRole)?, ATTError?, [AttributeID: [UInt8]]) in
            var written: [AttributeID: [UInt8]] = [:]
            for part in request.parts {
                // The first part of a value replaces the value.
                var value = part.offset == 0 ? [] : written[part.characteristic] ?? []
                guard part.offset == value.count else { return (state.role, .invalidOffset, [:]) }
                value += part.value
                guard value.count <= 512 else { return (state.role, .invalidAttributeValueLength, [:]) }
                written[part.characteristic] = value
            }
            state.values.merge(written) { $1 }
            return (state.role, nil, written)
        }
        role?.respond(to: request.id, with: error.map { .failure($0) } ?? .success([]))
        for (id, value) in written { tell(id, value) }
    }

    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        let bytes = value.withUnsafeBytes { Array($0) }
        state.withLock { $0.values[characteristic] = bytes }
        tell(characteristic, bytes)
    }

    private func tell(_ id: AttributeID, _ value: [UInt8]) {
        if let uuid = uuid(of: id) { continuation.yield(.wrote(uuid, value)) }
    }

    private func uuid(of id: AttributeID) -> BluetoothUUID? {
        state.withLock { state in state.ids.first { $0.value == id }?.key }
    }

    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        if let uuid = uuid(of: characteristic) { continuation.yield(.subscribed(uuid, central)) }
    }

    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        if let uuid = uuid(of: characteristic) { continuation.yield(.left(uuid, central)) }
    }

    func peripheralIsReadyToUpdate() { flush() }
}
