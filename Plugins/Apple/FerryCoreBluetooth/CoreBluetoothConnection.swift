import CoreBluetooth
import Ferry
import FerryBluetooth

/// One connection to a peripheral, from the call of `connect` to its end.
final class CoreBluetoothConnection: PeripheralConnection, @unchecked Sendable {
    /// What CoreBluetooth's answer belongs to.
    enum Key: Hashable {
        case services, rssi, channel
        case included(AttributeID), characteristics(AttributeID), descriptors(AttributeID)
        case read(AttributeID), write(AttributeID), subscription(AttributeID)

        var attribute: AttributeID? {
            switch self {
            case .services, .rssi, .channel: nil
            case .included(let id), .characteristics(let id), .descriptors(let id), .read(let id), .write(let id),
                .subscription(let id):
                id
            }
        }
    }

    /// One request; they go one at a time, in the order of the calls, as ATT demands.
    struct Request {
        let key: Key
        let start: (CBPeripheral) -> Void
        let finish: (Result<Void, BluetoothError>) -> Void
    }

    enum Life {
        case connecting(any PeripheralConnectionEvents)
        case connected(any PeripheralConnectionEvents)
        /// The owner has ended it, and the framework has not reported that.
        case closing(any PeripheralConnectionEvents, wasConnected: Bool)
        case ended(BluetoothError)

        var events: (any PeripheralConnectionEvents)? {
            switch self {
            case .connecting(let events), .connected(let events), .closing(let events, _): events
            case .ended: nil
            }
        }

        /// Whether CoreBluetooth's object has the properties of a connection.
        var isConnected: Bool {
            switch self {
            case .connected, .closing(_, wasConnected: true): true
            case .connecting, .closing, .ended: false
            }
        }

        var hasEnded: Bool { if case .ended = self { true } else { false } }

        /// Why nothing more can be asked; nil while it can.
        var reason: BluetoothError? {
            switch self {
            case .connecting, .connected: nil
            case .closing: .endedHere
            case .ended(let reason): reason
            }
        }

        func requireOpen() throws(BluetoothError) { if let reason { throw reason } }

        mutating func didConnect() {
            switch self {
            case .connecting(let events): self = .connected(events)
            case .closing(let events, _): self = .closing(events, wasConnected: true)
            case .connected, .ended: break
            }
        }

        /// The owner ends it. Returns whether that is to be done.
        mutating func close() -> Bool {
            switch self {
            case .connecting(let events): self = .closing(events, wasConnected: false)
            case .connected(let events): self = .closing(events, wasConnected: true)
            case .closing, .ended: return false
            }
            return true
        }

        /// It has ended. Returns the owner to tell, if it has had the connection. The owner's own end goes before other reasons,
        /// except that the adapter is off.
        mutating func end(_ reason: BluetoothError) -> (any PeripheralConnectionEvents)? {
            let told = isConnected ? events : nil
            switch self {
            case .closing where reason.code != .notPoweredOn: self = .ended(.endedHere)
            case .connecting, .connected, .closing: self = .ended(reason)
            case .ended: break
            }
            return told
        }
    }

    struct State {
        var life: Life
        var requests: [Request] = []
        var isRunning = false
        var waitingWrites = 0
        var attributes: [AttributeID: CBAttribute] = [:]
        var ids: [ObjectIdentifier: AttributeID] = [:]
        var lastID: UInt32 = 0
        var attMTU = 23
        var modifications = 0
        var renewing: [Waiter<Void>] = []
        var pace = WritePace()
    }

    let peripheral: PeerID
    let identity: PeerIdentity
    /// CoreBluetooth's object, which is kept for as long as this is.
    let peripheral_: CBPeripheral
    let role: CoreBluetoothCentralRole
    let connected = Waiter<Void>()
    let state: Locked<State>
    private let delegate = Locked<PeripheralDelegate?>(nil)

    init(_ role: CoreBluetoothCentralRole, _ peripheral: CBPeripheral, _ events: any PeripheralConnectionEvents) {
        self.role = role
        peripheral_ = peripheral
        self.peripheral = PeerID(peripheral.identifier)
        identity = PeerIdentity(peripheral.identifier)
        state = Locked(State(life: .connecting(events)))
    }

    // MARK: Beginning and ending, on the queue

    func begin(_ manager: CBCentralManager) {
        let delegate = PeripheralDelegate(self)
        self.delegate { $0 = delegate }
        peripheral_.delegate = delegate
        // One that was restored may be connected already; or stay as connecting for good, unless it is asked again.
        if peripheral_.state == .connected { return didConnect() }
        manager.connect(peripheral_, options: nil)
    }

    func didConnect() {
        state {
            $0.life.didConnect()
            $0.attMTU = attMTUNow
        }
        // A task that was cancelled meanwhile has had the connection called off.
        connected.resume(.success(()))
    }

    func didEnd(_ reason: BluetoothError, isSilent: Bool = false) {
        let (requests, renewing, events) = state {
            state -> ([Request], [Waiter<Void>], (any PeripheralConnectionEvents)?) in
            defer {
                state.requests = []
                state.attributes = [:]
                state.ids = [:]
                state.renewing = []
            }
            let told = state.life.end(reason)
            return (state.requests, state.renewing, isSilent ? nil : told)
        }
        for waiter in renewing { waiter.resume(.success(())) }
        let end = state { $0.life.reason } ?? reason
        let wasWaiting = connected.complete(.failure(end))
        for request in requests { request.finish(.failure(end)) }
        if !wasWaiting { events?.peripheralDidDisconnect(end) }
    }

    func disconnect() {
        guard state({ $0.life.close() }) else { return }
        let requests = state { state -> [Request] in
            defer { state.requests = state.isRunning ? Array(state.requests.prefix(1)) : [] }
            return state.isRunning ? Array(state.requests.dropFirst()) : state.requests
        }
        for request in requests { request.finish(.failure(.endedHere)) }
        leave(after: 0)
    }

    /// Leaves once the writes have gone out, or after a second.
    private func leave(after waited: Double) {
        role.queue.run { [self] in
            guard state({ !$0.life.hasEnded }) else { return }
            if peripheral_.canSendWriteWithoutResponse || waited >= 1 || state({ !$0.pace.hasWritten }) {
                return role.cancel(self)
            }
            role.queue.run(after: 0.02) { self.leave(after: waited + 0.02) }
        }
    }

    // MARK: Requests

    /// Asks, and waits for the answer.
    private func ask<Value: Sendable>(
        _ key: Key, _ start: @escaping (CBPeripheral) -> Void, _ read: @escaping () -> Value
    ) async throws(BluetoothError) -> Value {
        let waiter = Waiter<Value>()
        try enqueue(
            Request(key: key, start: start) { result in waiter.resume(result.map { read() }) })
        return try await waiter.wait()
    }

    func enqueue(_ request: Request) throws(BluetoothError) {
        let isFirst = try state { (state) throws(BluetoothError) in
            try state.life.requireOpen()
            state.requests.append(request)
            defer { state.isRunning = true }
            return !state.isRunning
        }
        if isFirst { run(request) }
    }

    private func run(_ request: Request) { role.queue.run { [peripheral_] in request.start(peripheral_) } }

    /// An answer has come; on the queue. Returns whether it belongs to the running request.
    @discardableResult
    func answer(_ key: Key, _ error: (any Error)?) -> Bool {
        let (request, next) = state { state -> (Request?, Request?) in
            guard state.isRunning, state.requests.first?.key == key else { return (nil, nil) }
            let request = state.requests.removeFirst()
            state.isRunning = !state.requests.isEmpty
            return (request, state.requests.first)
        }
        guard let request else { return false }
        request.finish(
            error.map { .failure(BluetoothError($0, doing: "\(key)", otherwise: .timedOut)) } ?? .success(()))
        if let next { run(next) }
        noteMTU()
        return true
    }

    // MARK: Attributes

    /// The number of an object of CoreBluetooth's; the same for as long as it is valid.
    func id(_ attribute: CBAttribute) -> AttributeID {
        state { state in
            if let known = state.ids[ObjectIdentifier(attribute)] { return known }
            state.lastID += 1
            let id = AttributeID(rawValue: state.lastID)
            state.ids[ObjectIdentifier(attribute)] = id
            state.attributes[id] = attribute
            return id
        }
    }

    private func attribute<Attribute: CBAttribute>(_ id: AttributeID, _ type: Attribute.Type) throws(BluetoothError)
        -> Attribute
    {
        let found = try state { (state) throws(BluetoothError) in
            try state.life.requireOpen()
            return state.attributes[id]
        }
        guard let attribute = found as? Attribute else {
            throw BluetoothError(
                .unknownAttribute, "Attribute \(id.rawValue) was not discovered on this connection; discover it again.")
        }
        return attribute
    }

    /// Services are not valid any more; on the queue. Requests for them end here: an answer would name unknown attributes.
    func forget(_ services: [CBService]) {
        let (ids, ended, next, renewing, events) = state { state in
            var ids: [AttributeID] = []
            let known = state.attributes.keys
            for service in services {
                guard let id = state.ids[ObjectIdentifier(service)] else { continue }
                ids.append(id)
                for characteristic in service.characteristics ?? [] {
                    for descriptor in characteristic.descriptors ?? [] { state.forget(descriptor) }
                    state.forget(characteristic)
                }
                state.forget(service)
            }
            let gone = Set(known).subtracting(state.attributes.keys)
            let running = state.isRunning ? state.requests.first?.key : nil
            let ended = state.requests.filter { $0.key.attribute.map(gone.contains) ?? false }
            state.requests.removeAll { $0.key.attribute.map(gone.contains) ?? false }
            state.isRunning = state.isRunning && !state.requests.isEmpty
            state.modifications += 1
            defer { state.renewing = [] }
            let next = state.requests.first.flatMap { $0.key == running ? nil : $0 }
            return (ids, ended, next, state.renewing, state.life.events)
        }
        for waiter in renewing { waiter.resume(.success(())) }
        for request in ended {
            request.finish(
                .failure(
                    BluetoothError(.unknownAttribute, "The peripheral has withdrawn it. Discover its services again.")))
        }
        events?.peripheralDidModifyServices(ids)
        if let next { run(next) }
    }

    // MARK: Discovery

    func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
        let before = state { $0.modifications }
        let found = try await discoverServicesOnce(uuids)
        guard let uuids, !Set(uuids).isSubset(of: found.map(\.uuid)), try await areRenewed(since: before) else {
            return found
        }
        return try await discoverServicesOnce(uuids)
    }

    /// The system may show the services that it knows from an earlier connection first. Waits for its word that they have
    /// changed, a second at most, unless it has come on this connection.
    private func areRenewed(since before: Int) async throws(BluetoothError) -> Bool {
        let waiter = Waiter<Void>()
        let waits = state { state in
            guard state.modifications == 0, !state.life.hasEnded else { return false }
            state.renewing.append(waiter)
            return true
        }
        if waits {
            role.queue.run(after: 1) { waiter.resume(.success(())) }
            try await waiter.wait()
            state { $0.renewing.removeAll { $0 === waiter } }
        }
        return state { $0.modifications != before }
    }

    private func discoverServicesOnce(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
        try await ask(.services, { $0.discoverServices(uuids?.map { CBUUID($0) }) }) { [self] in
            described(peripheral_.services, uuids)
        }
    }

    func discoverIncludedServices(_ uuids: [BluetoothUUID]?, of service: AttributeID)
        async throws(BluetoothError) -> [RemoteService]
    {
        let object = try attribute(service, CBService.self)
        return try await ask(
            .included(service), { $0.discoverIncludedServices(uuids?.map { CBUUID($0) }, for: object) }
        ) { [self] in described(object.includedServices, uuids) }
    }

    private func described(_ services: [CBService]?, _ uuids: [BluetoothUUID]?) -> [RemoteService] {
        (services ?? []).compactMap { service in
            guard let uuid = service.uuid.bluetooth, uuids?.contains(uuid) ?? true else { return nil }
            return RemoteService(id: id(service), uuid: uuid, isPrimary: service.isPrimary)
        }
    }

    func discoverCharacteristics(_ uuids: [BluetoothUUID]?, of service: AttributeID)
        async throws(BluetoothError) -> [RemoteCharacteristic]
    {
        let object = try attribute(service, CBService.self)
        return try await ask(
            .characteristics(service), { $0.discoverCharacteristics(uuids?.map { CBUUID($0) }, for: object) }
        ) { [self] in
            (object.characteristics ?? []).compactMap { characteristic in
                guard let uuid = characteristic.uuid.bluetooth, uuids?.contains(uuid) ?? true else { return nil }
                return RemoteCharacteristic(id: id(characteristic), uuid: uuid, properties: characteristic.offered)
            }
        }
    }

    func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor] {
        let object = try attribute(characteristic, CBCharacteristic.self)
        return try await ask(.descriptors(characteristic), { $0.discoverDescriptors(for: object) }) { [self] in
            (object.descriptors ?? []).compactMap { descriptor in
                descriptor.uuid.bluetooth.map { RemoteDescriptor(id: id(descriptor), uuid: $0) }
            }
        }
    }

    // MARK: Values

    func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8] {
        let object = try self.attribute(attribute, CBAttribute.self)
        if let descriptor = object as? CBDescriptor {
            return try await ask(.read(attribute), { $0.readValue(for: descriptor) }) { descriptor.bytes }
        }
        guard let characteristic = object as? CBCharacteristic else {
            throw BluetoothError(.unknownAttribute, "Attribute \(attribute.rawValue) is a service, which has no value.")
        }
        return try await ask(.read(attribute), { $0.readValue(for: characteristic) }) {
            characteristic.value.map { Array($0) } ?? []
        }
    }

    func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError) {
        guard value.count <= 512 else {
            throw BluetoothError(.valueTooLong, "A value of \(value.count) bytes is above 512, the most ATT carries.")
        }
        let object = try self.attribute(attribute, CBAttribute.self)
        let data = Data(value)
        try await ask(
            .write(attribute),
            {
                if let descriptor = object as? CBDescriptor {
                    $0.writeValue(data, for: descriptor)
                } else if let characteristic = object as? CBCharacteristic {
                    $0.writeValue(data, for: characteristic, type: .withResponse)
                }
            }
        ) {}
    }

    func setSubscription(_ subscription: Subscription?, to characteristic: AttributeID) async throws(BluetoothError) {
        let object = try attribute(characteristic, CBCharacteristic.self)
        if let subscription {
            // CoreBluetooth takes notifications where both are offered.
            let offered = object.offered
            let taken: Subscription? =
                offered.contains(.notify) ? .notify : offered.contains(.indicate) ? .indicate : nil
            guard taken == subscription else {
                throw BluetoothError(
                    .notSupported,
                    "The characteristic \(object.uuid.uuidString) does not offer \(subscription), or offers both, where "
                        + "CoreBluetooth takes notifications.")
            }
        }
        try await ask(.subscription(characteristic), { $0.setNotifyValue(subscription != nil, for: object) }) {}
    }

    func readRSSI() async throws(BluetoothError) -> Int {
        let rssi = Locked(0)
        try await ask(.rssi, { $0.readRSSI() }) { [self] in
            let read = lastRSSI { $0 }
            rssi { $0 = read }
        }
        return rssi { $0 }
    }
    let lastRSSI = Locked(0)

    func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel {
        // One at a time, as all requests: the answer names no call.
        let opened = Locked<CoreBluetoothChannel?>(nil)
        do throws(BluetoothError) {
            try await ask(.channel, { $0.openL2CAPChannel(psm.rawValue) }) { [self] in
                let channel = lastChannel { channel in
                    defer { channel = nil }
                    return channel
                }
                opened {
                    $0 = channel.map {
                        CoreBluetoothChannel($0, psm: psm, self.identity, self.peripheral, role: .initiator)
                    }
                }
            }
        } catch {
            let codes: [BluetoothError.Code] = [
                .timedOut, .invalidArgument, .notSupported, .outOfResources, .connectionFailed,
            ]
            guard codes.contains(error.code) else { throw error }
            throw BluetoothError(
                .channelRefused,
                "\(error.message) A PSM of an earlier connection may be stale: have the peer publish its channel anew, and take "
                    + "the PSM that it has then.")
        }
        guard let channel = opened({ $0 }) else {
            throw BluetoothError(.channelRefused, "The peer has opened no channel for PSM \(psm.rawValue).")
        }
        return channel
    }
    let lastChannel = Locked<CBL2CAPChannel?>(nil)

    func setReceiving(_ isReceiving: Bool) {}
}

extension CoreBluetoothConnection.State {
    fileprivate mutating func forget(_ attribute: CBAttribute) {
        if let id = ids.removeValue(forKey: ObjectIdentifier(attribute)) { attributes[id] = nil }
    }
}

extension CBCharacteristic {
    var offered: CharacteristicProperties {
        CharacteristicProperties(rawValue: UInt16(truncatingIfNeeded: properties.rawValue))
    }
}

extension CBDescriptor {
    /// The value as it was on the air; CoreBluetooth gives some of them another form.
    var bytes: [UInt8] {
        switch value {
        case let data as Data: Array(data)
        case let text as String: Array(text.utf8)
        case let number as NSNumber:
            [UInt8(truncatingIfNeeded: number.intValue), UInt8(truncatingIfNeeded: number.intValue >> 8)]
        default: []
        }
    }
}
