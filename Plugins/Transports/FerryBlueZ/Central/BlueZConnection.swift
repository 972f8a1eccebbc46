#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// One owner's hold on a connection to a device. Several may share it; it ends when the last one lets go.
    final class BlueZConnection: PeripheralConnection {
        /// A BlueZ 5.66 peripheral counts the handle too: it drops longer writes without response, and refuses others.
        static let writeLimit = 510

        struct State {
            var life: ConnectionLife
            var isWriting = false
            var mtu = 23
            var paths: [UInt32: String] = [:]
            var values: [UInt32: RemoteValue] = [:]
        }

        let path: String
        let peripheral: PeerID
        /// Whose it is.
        let role: UInt64
        let engine: BlueZEngine
        let state: Mutex<State>
        let requestLock = AsyncLock()
        private let knownIdentity: KnownIdentity

        init(
            _ engine: BlueZEngine, _ path: String, _ peripheral: PeerID, role: UInt64,
            _ events: any PeripheralConnectionEvents
        ) {
            state = Mutex(State(life: .open(events)))
            self.engine = engine
            self.path = path
            self.peripheral = peripheral
            self.role = role
            knownIdentity = KnownIdentity(peripheral, nil)
            _ = identity
        }

        var identity: PeerIdentity {
            // Once this connection has ended, another one of the same device may be there.
            let isOver = state.withLock { $0.life.isOver }
            return knownIdentity.update(isOver ? nil : engine.shared.withLock { $0.identity(ofConnected: path) })
        }

        var attMTU: Int { state.withLock { $0.mtu } }
        /// Why it ends, once that has begun.
        var reason: BluetoothError? { state.withLock { $0.life.reason } }
        var pipes: [ValuePipe] { state.withLock { $0.values.values.compactMap(\.pipe) } }
        /// The objects whose notifications come through a socket.
        var subscribed: [String] { state.withLock { $0.values.values.filter { $0.reader != nil }.map(\.path) } }

        func maximumWriteLength(_ type: WriteType) -> Int {
            min(attMTU - 3, Self.writeLimit)
        }

        // MARK: Queued writes

        func tryWriteValue(
            _ value: RawSpan, to characteristic: AttributeID, type: WriteType
        ) throws(BluetoothError) -> Bool {
            let count = value.byteCount
            let remote = try self.value(characteristic)
            let limit = maximumWriteLength(type)
            try BluetoothError.checkWrite(count, type, maximum: limit, to: characteristic, remote.properties)
            guard type == .withoutResponse else { return try queueRequest(value, remote) }
            guard count > 0 else {
                throw BluetoothError(.invalidArgument, "BlueZ cannot write an empty value without response.")
            }
            switch remote.trySend(value) {
            case .taken: return true
            case .full: return false
            case .refused(let error): throw error
            case .missing:
                engine.perform { $0.acquireWrite(remote, self) }
                return false
            }
        }

        private func queueRequest(_ value: RawSpan, _ remote: RemoteValue) throws(BluetoothError) -> Bool {
            let isFree = state.withLock { state in
                defer { state.isWriting = true }
                return !state.isWriting
            }
            guard isFree else { return false }
            let bytes = value.withUnsafeBytes { Array($0) }
            Task {
                let result: Result<Void, BluetoothError>
                do throws(BluetoothError) {
                    try await self.writeValue(bytes, to: remote.id)
                    result = .success(())
                } catch {
                    result = .failure(error)
                }
                engine.perform { _ in self.didWrite(remote.id, result) }
            }
            return true
        }

        func setReceiving(_ isReceiving: Bool) {}

        func disconnect() { engine.perform { $0.leave(self, silently: false) } }

        // MARK: Attributes

        var notConnected: BluetoothError { reason ?? .notConnected }

        func requireConnection() throws(BluetoothError) {
            try state.withLock { (state) throws(BluetoothError) in try state.life.requireOpen() }
        }

        /// The object of an attribute that was discovered on this connection.
        func object(_ attribute: AttributeID) throws(BluetoothError) -> String {
            try requireConnection()
            guard let path = state.withLock({ $0.paths[attribute.rawValue] }) else { throw .notFound(attribute) }
            return path
        }

        func value(_ characteristic: AttributeID) throws(BluetoothError) -> RemoteValue {
            try requireConnection()
            guard let value = state.withLock({ $0.values[characteristic.rawValue] }) else {
                throw .notFound(characteristic)
            }
            return value
        }

        // MARK: Events, on the bus thread

        private var events: (any PeripheralConnectionEvents)? { state.withLock { $0.life.events } }

        func didUpdate(_ id: AttributeID, _ value: RawSpan) { events?.peripheralDidUpdate(id, value: value) }

        func mtuDidChange(_ mtu: Int) {
            guard (23...517).contains(mtu) else { return }
            let isNew = state.withLock { state in
                defer { state.mtu = mtu }
                return state.mtu != mtu
            }
            if isNew { events?.peripheralDidChangeMTU(mtu) }
        }

        func didLose(_ service: String) {
            guard let id = AttributeID(object: service) else { return }
            let wasKnown = state.withLock { state in
                let known = state.paths.filter { $0.value == service || $0.value.hasPrefix(service + "/") }
                for (id, _) in known {
                    state.paths[id] = nil
                    state.values.removeValue(forKey: id)?.end()
                }
                return !known.isEmpty
            }
            if wasKnown { didModify([id]) }
        }

        func didModify(_ services: [AttributeID]) {
            events?.peripheralDidModifyServices(services)
        }

        func isReadyToWrite() { events?.peripheralIsReadyToWrite() }

        private func didWrite(_ id: AttributeID, _ result: Result<Void, BluetoothError>) {
            let events = state.withLock { state in
                state.isWriting = false
                return state.life.events
            }
            events?.peripheralDidWrite(id, result: result)
            events?.peripheralIsReadyToWrite()
        }

        /// Marks the beginning of the end. False when it has begun before.
        @discardableResult
        func beginEnding(_ reason: BluetoothError, silently: Bool) -> Bool {
            state.withLock { $0.life.beginEnding(reason, isSilent: silently) }
        }

        func didEnd(_ reason: BluetoothError, silently: Bool) {
            beginEnding(reason, silently: silently)
            let values = state.withLock { Array($0.values.values) }
            let readers = values.compactMap(\.reader)
            for value in values { value.end() }
            deliverRest(of: readers[...], then: reason)
        }

        /// Delivers what had come before the end, of which the bus may tell sooner than a socket, and then the end.
        private func deliverRest(of readers: ArraySlice<ValueReader>, then reason: BluetoothError) {
            var readers = readers
            while let reader = readers.first {
                guard reader.read() != .behind else {
                    engine.thread.schedule(after: .zero) { [readers] in self.deliverRest(of: readers, then: reason) }
                    return
                }
                readers.removeFirst()
            }
            if let (events, reason) = state.withLock({ $0.life.end(reason) }) { events.peripheralDidDisconnect(reason) }
        }
    }

    extension AttributeID {
        /// The attribute's handle, which ends the names of its object: `service0010`, `char0011`, `desc0013`.
        init?(object path: String) {
            guard let name = path.split(separator: "/").last, let handle = UInt32(name.suffix(4), radix: 16) else {
                return nil
            }
            self.init(rawValue: handle)
        }
    }
#endif
