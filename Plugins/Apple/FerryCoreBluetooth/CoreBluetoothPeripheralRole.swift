#if !os(tvOS) && !os(watchOS)
    import CoreBluetooth
    import Ferry
    import FerryBluetooth

    /// The peripheral role: one `CBPeripheralManager`, on its own queue.
    ///
    /// The framework does not show connections: a central's begins with the first that is heard of it and ends with its last
    /// subscription.
    final class CoreBluetoothPeripheralRole: PeripheralRole, @unchecked Sendable {
        struct Published {
            let service: CBMutableService
            let characteristics: [AttributeID]
        }

        struct Connected {
            let connection: ConnectedCentral
            let central: CBCentral
            var subscriptions: Set<AttributeID> = []
        }

        /// Whether the manager takes values.
        enum Room {
            case free
            /// It has refused one, and a look is due.
            case refused
            /// There is nothing to wait for any more, and the look is still to come.
            case regained

            mutating func regain() { if self == .refused { self = .regained } }
        }

        struct State {
            /// Nil once the role is closed.
            var events: (any PeripheralRoleEvents)?
            var manager: CBPeripheralManager?
            var power = AdapterState.unknown
            var lastID: UInt32 = 0
            var services: [AttributeID: Published] = [:]
            var characteristics: [AttributeID: CBMutableCharacteristic] = [:]
            var ids: [ObjectIdentifier: AttributeID] = [:]
            var centrals: [UUID: Connected] = [:]
            /// Of those without a subscription, the one heard of first goes first.
            var order: [UUID] = []
            var lastConnection: UInt64 = 0
            var requests = HeldRequests<CBATTRequest>()
            var lastRequest: UInt64 = 0
            var isAdvertising = false
            /// Callers that wait for the manager's answer, in the order of the calls.
            var adding: [(service: CBMutableService, waiter: Waiter<Void>)] = []
            var starting: [Waiter<Void>] = []
            var publishing: [Waiter<PSM>] = []
            /// Services of an earlier run of the app.
            var restored: [CBMutableService] = []
            var room = Room.free

            var isClosed: Bool { events == nil }
        }

        let queue = DispatchQueue(label: "FerryCoreBluetooth peripheral")
        let adapter: CoreBluetoothAdapter
        let state: Locked<State>
        let power = PowerWait()
        private let delegate = Locked<PeripheralManagerDelegate?>(nil)

        /// Centrals without a subscription that are remembered, for their requests' sake.
        static let mostUnsubscribed = 64

        init(_ adapter: CoreBluetoothAdapter, _ events: any PeripheralRoleEvents) {
            self.adapter = adapter
            state = Locked(State(events: events))
        }

        func start(_ make: CoreBluetoothAdapter.MakePeripheral, _ options: [String: Any]?) {
            let delegate = PeripheralManagerDelegate(self)
            let manager = make(delegate, queue, options)
            self.delegate { $0 = delegate }
            state { $0.manager = $0.isClosed ? nil : manager }
        }

        deinit { close() }

        func powered() throws(BluetoothError) -> CBPeripheralManager {
            let (manager, isClosed, power) = state { ($0.manager, $0.isClosed, $0.power) }
            guard !isClosed, let manager else { throw .roleClosed }
            guard power == .poweredOn else { throw .notPoweredOn(power) }
            return manager
        }

        // MARK: Services

        func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
            try await power.pass(queue)
            let manager = try powered()
            let made = try CBMutableService(service) { id in state { $0.services[id]?.service } }
            let waiter = Waiter<Void>()
            let published = state { state -> PublishedService in
                func next() -> AttributeID {
                    state.lastID += 1
                    return AttributeID(rawValue: state.lastID)
                }
                let id = next()
                let characteristics = (made.characteristics ?? []).compactMap { $0 as? CBMutableCharacteristic }.map {
                    let id = next()
                    state.characteristics[id] = $0
                    state.ids[ObjectIdentifier($0)] = id
                    return id
                }
                state.services[id] = Published(service: made, characteristics: characteristics)
                state.adding.append((made, waiter))
                return PublishedService(id: id, characteristics: characteristics)
            }
            let box = Unchecked((manager, made))
            queue.async { box.value.0.add(box.value.1) }
            do throws(BluetoothError) { try await waiter.wait() } catch {
                forget(published.id)
                queue.async { box.value.0.remove(box.value.1) }
                throw error
            }
            return published
        }

        private func forget(_ id: AttributeID) {
            state { state in
                guard let published = state.services.removeValue(forKey: id) else { return }
                for id in published.characteristics {
                    if let characteristic = state.characteristics.removeValue(forKey: id) {
                        state.ids[ObjectIdentifier(characteristic)] = nil
                    }
                }
            }
        }

        func unpublish(_ service: AttributeID) {
            let found = state { ($0.services[service]?.service, $0.power == .poweredOn ? $0.manager : nil) }
            guard let made = found.0 else { return }
            forget(service)
            let box = Unchecked((found.1, made))
            queue.async { box.value.0?.remove(box.value.1) }
        }

        // MARK: Advertising

        func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
            guard advertisement == Advertisement(localName: advertisement.localName, services: advertisement.services)
            else {
                throw BluetoothError(
                    .notSupported,
                    "Core Bluetooth advertises a local name and services, connectable, and nothing else; leave out the rest."
                )
            }
            try await power.pass(queue)
            let manager = try powered()
            let report = advertisement.fitted(to: .coreBluetooth)
            let waiter = Waiter<Void>()
            var data: [String: Any] = [CBAdvertisementDataServiceUUIDsKey: advertisement.services.map { CBUUID($0) }]
            data[CBAdvertisementDataLocalNameKey] = advertisement.localName
            let wasAdvertising = state { state in
                state.starting.append(waiter)
                defer { state.isAdvertising = true }
                return state.isAdvertising
            }
            let box = Unchecked((manager, data))
            queue.async {
                if wasAdvertising { box.value.0.stopAdvertising() }
                box.value.0.startAdvertising(box.value.1)
            }
            try await waiter.wait()
            return report
        }

        func stopAdvertising() {
            let manager = state { state -> CBPeripheralManager? in
                defer { state.isAdvertising = false }
                return state.isAdvertising && state.power == .poweredOn ? state.manager : nil
            }
            let box = Unchecked(manager)
            queue.async { box.value?.stopAdvertising() }
        }

        // MARK: Values

        func tryUpdateValue(_ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients)
            throws(BluetoothError) -> Bool
        {
            let manager = try powered()
            guard let object = state({ $0.characteristics[characteristic] }) else {
                throw .notPublished(characteristic)
            }
            guard
                !object.properties.isDisjoint(with: [
                    .notify, .indicate, .notifyEncryptionRequired, .indicateEncryptionRequired,
                ])
            else {
                throw BluetoothError(
                    .notSupported, "The characteristic \(object.uuid.uuidString) neither notifies nor indicates.")
            }
            let named: Set<ConnectedCentral>? =
                switch recipients {
                case .all: nil
                case .one(let central): [central]
                case .some(let centrals): Set(centrals)
                }
            // By name, always: the framework may know subscriptions of connections that have ended here.
            let (isKnown, centrals) = state { state in
                let known = state.centrals.values.filter { named?.contains($0.connection) ?? true }
                return (!known.isEmpty, known.filter { $0.subscriptions.contains(characteristic) }.map(\.central))
            }
            if case .one(let central) = recipients, !isKnown { throw .notConnected(central) }
            if centrals.isEmpty { return true }
            let data = value.data
            let (isTaken, watch) = state { state -> (Bool, Bool) in
                if manager.updateValue(data, for: object, onSubscribedCentrals: centrals) { return (true, false) }
                defer { state.room = .refused }
                return (false, state.room == .free)
            }
            if watch { look() }
            return isTaken
        }

        /// The call that there is room may be lost: the owner tries again after a while without it.
        private func look() {
            queue.run(after: 0.1) { [weak self] in
                guard let self else { return }
                let events = self.state { state -> (any PeripheralRoleEvents)? in
                    guard state.room == .refused, let events = state.events else {
                        state.room = .free
                        return nil
                    }
                    return events
                }
                guard let events else { return }
                events.peripheralIsReadyToUpdate()
                self.look()
            }
        }

        func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? {
            state { $0.connected(central)?.central }?.maximumUpdateValueLength
        }

        func identity(of central: ConnectedCentral) -> PeerIdentity? {
            state { $0.connected(central) }.map { PeerIdentity($0.central.identifier) }
        }

        func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
            let found = state { ($0.requests.answer(request, by: 0), $0.power == .poweredOn ? $0.manager : nil) }
            guard let asked = found.0, let manager = found.1 else { return }
            switch response {
            case .success(let value):
                // The value of a write stays as it is.
                if asked.value == nil { asked.value = Data(value) }
                manager.respond(to: asked, withResult: .success)
            case .failure(let error):
                manager.respond(to: asked, withResult: CBATTError.Code(rawValue: Int(error.rawValue)) ?? .unlikelyError)
            }
        }

        func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {}

        /// The framework cannot end it: from here on this side ignores the central until it subscribes again.
        func disconnect(_ central: ConnectedCentral) {
            queue.run { [self] in end(central, .endedHere) }
        }

        // MARK: Channels

        func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
            try await power.pass(queue)
            let manager = try powered()
            let waiter = Waiter<PSM>()
            state { $0.publishing.append(waiter) }
            let box = Unchecked(manager)
            queue.async { box.value.publishL2CAPChannel(withEncryption: encryptionRequired) }
            return try await waiter.wait()
        }

        func unpublishL2CAPChannel(_ psm: PSM) {
            let manager = state { $0.power == .poweredOn ? $0.manager : nil }
            let box = Unchecked(manager)
            queue.async { box.value?.unpublishL2CAPChannel(psm.rawValue) }
        }

        // MARK: The end

        func close() {
            let (manager, waiting, asked) = state {
                state -> (CBPeripheralManager?, [(BluetoothError) -> Void], [CBATTRequest]) in
                defer {
                    let power = state.power
                    state = State(events: nil)
                    state.power = power
                }
                let asked = state.requests.roleDidClose(0)
                return (state.power == .poweredOn ? state.manager : nil, state.waiting, asked)
            }
            delegate { $0 = nil }
            power.end()
            for fail in waiting { fail(.roleClosed) }
            guard let manager else { return }
            let box = Unchecked((manager, asked))
            queue.async {
                let (manager, asked) = box.value
                // The role's owner no longer answers.
                for request in asked { manager.respond(to: request, withResult: .unlikelyError) }
                manager.stopAdvertising()
                manager.removeAllServices()
                manager.delegate = nil
            }
        }
    }

    extension CoreBluetoothPeripheralRole.State {
        /// A central, as long as its connection is the one that is named.
        func connected(_ central: ConnectedCentral) -> CoreBluetoothPeripheralRole.Connected? {
            centrals[central.peer.identifier].flatMap { $0.connection == central ? $0 : nil }
        }

        /// How to end every wait.
        var waiting: [(BluetoothError) -> Void] {
            adding.map { adding in { adding.waiter.resume(.failure($0)) } }
                + starting.map { waiter in { waiter.resume(.failure($0)) } }
                + publishing.map { waiter in { waiter.resume(.failure($0)) } }
        }
    }

    extension CBMutableService {
        /// A service as the framework takes it.
        convenience init(_ service: ServiceDefinition, included: (AttributeID) -> CBMutableService?)
            throws(BluetoothError)
        {
            self.init(type: CBUUID(service.uuid), primary: service.isPrimary)
            var services: [CBService] = []
            for id in service.includedServices {
                guard let found = included(id) else {
                    throw BluetoothError(
                        .invalidArgument, "The included service \(id.rawValue) is not published here; publish it first."
                    )
                }
                services.append(found)
            }
            if !services.isEmpty { includedServices = services }
            var made: [CBCharacteristic] = []
            for definition in service.characteristics {
                let place = "The characteristic \(definition.uuid.uuidString)"
                if let value = definition.value {
                    guard definition.properties == .read,
                        definition.permissions.isDisjoint(with: [.writeable, .writeEncryptionRequired])
                    else {
                        throw BluetoothError(
                            .invalidArgument,
                            "\(place) has a fixed value and must be read-only: give it the property read alone.")
                    }
                    guard value.count <= 512 else {
                        throw BluetoothError(
                            .invalidArgument, "\(place) has a value of \(value.count) bytes; 512 are the most.")
                    }
                }
                let characteristic = CBMutableCharacteristic(
                    type: CBUUID(definition.uuid),
                    properties: CBCharacteristicProperties(rawValue: UInt(definition.properties.rawValue)).numbered,
                    value: definition.value.map { Data($0) },
                    permissions: CBAttributePermissions(rawValue: .init(definition.permissions.rawValue & 0x0F)))
                var descriptors: [CBMutableDescriptor] = []
                for descriptor in definition.descriptors {
                    switch descriptor.uuid {
                    case BluetoothUUID(0x2901 as UInt16):
                        descriptors.append(
                            CBMutableDescriptor(
                                type: CBUUID(descriptor.uuid), value: String(decoding: descriptor.value, as: UTF8.self))
                        )
                    case BluetoothUUID(0x2904 as UInt16):
                        descriptors.append(
                            CBMutableDescriptor(type: CBUUID(descriptor.uuid), value: Data(descriptor.value)))
                    default:
                        throw BluetoothError(
                            .invalidArgument,
                            "\(place) has the descriptor \(descriptor.uuid); Core Bluetooth publishes 2901 and 2904 only."
                        )
                    }
                }
                if !descriptors.isEmpty { characteristic.descriptors = descriptors }
                made.append(characteristic)
            }
            characteristics = made
        }
    }

    extension CBCharacteristicProperties {
        /// Without those that the framework refuses for local characteristics.
        fileprivate var numbered: Self { subtracting([.broadcast, .extendedProperties]) }
    }
#endif
