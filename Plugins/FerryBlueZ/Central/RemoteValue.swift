#if BlueZ
    import FerryBluetooth
    import Synchronization

    /// A peer's characteristic on one connection, with the sockets to and from it.
    final class RemoteValue: Sendable {
        enum Outcome {
            case taken, full, missing
            case refused(BluetoothError)
        }

        private struct State {
            var writing: ValuePipe?
            var isAcquiring = false
            var refusal: BluetoothError?
            var reader: ValueReader?
            var isSubscribed = false
            var isEnded = false
        }

        let id: AttributeID
        let uuid: BluetoothUUID
        let path: String
        let properties: CharacteristicProperties
        private let state = Mutex(State())

        init(id: AttributeID, uuid: BluetoothUUID, path: String, properties: CharacteristicProperties) {
            self.id = id
            self.uuid = uuid
            self.path = path
            self.properties = properties
        }

        var pipe: ValuePipe? { state.withLock { $0.writing } }

        func trySend(_ value: RawSpan) -> Outcome {
            let (pipe, refusal) = state.withLock { ($0.writing, $0.refusal) }
            if let refusal { return .refused(refusal) }
            switch pipe?.trySend(value) {
            case .taken: return .taken
            case .full: return .full
            case .ended:
                state.withLock { if $0.writing === pipe { $0.writing = nil } }
                return .missing
            case nil: return .missing
            }
        }

        /// Whether the caller is the one to acquire the socket for writing.
        func beginAcquiring() -> Bool {
            state.withLock { state in
                guard !state.isAcquiring, state.writing == nil, !state.isEnded else { return false }
                state.isAcquiring = true
                return true
            }
        }

        func didAcquire(_ result: Result<ValuePipe, BluetoothError>) {
            state.withLock { state in
                state.isAcquiring = false
                switch result {
                case .success(let pipe): state.writing = pipe
                case .failure(let error): state.refusal = error
                }
            }
        }

        /// Values that bluetoothd tells as changes of a property are this connection's while it is subscribed.
        var isSubscribedByProperty: Bool {
            get { state.withLock { $0.isSubscribed } }
            set { state.withLock { $0.isSubscribed = newValue } }
        }

        /// What reads the socket that notifications come through.
        var reader: ValueReader? {
            get { state.withLock { $0.reader } }
            set { state.withLock { $0.reader = newValue } }
        }

        /// The connection or the characteristic has ended.
        func end() {
            let (pipe, reader) = state.withLock { state in
                state.isEnded = true
                state.isSubscribed = false
                return (state.writing, state.reader)
            }
            pipe?.end()
            reader?.end()
        }
    }

    /// One request at a time, in the order of the calls.
    final class Turn: Sendable {
        private struct State {
            var isTaken = false
            var waiters: [Waiter<Void>] = []
        }

        private let state = Mutex(State())

        func take() async throws(BluetoothError) {
            let waiter = state.withLock { state -> Waiter<Void>? in
                guard state.isTaken else {
                    state.isTaken = true
                    return nil
                }
                let waiter = Waiter<Void>()
                state.waiters.append(waiter)
                return waiter
            }
            guard let waiter else { return }
            do throws(BluetoothError) { try await waiter.wait() } catch {
                // Cancelled while it waited; if the turn has come to it nevertheless, it goes on.
                let isStillWaiting = state.withLock { state in
                    defer { state.waiters.removeAll { $0 === waiter } }
                    return state.waiters.contains { $0 === waiter }
                }
                if !isStillWaiting { pass() }
                throw error
            }
        }

        func pass() {
            let next = state.withLock { state -> Waiter<Void>? in
                guard !state.waiters.isEmpty else {
                    state.isTaken = false
                    return nil
                }
                return state.waiters.removeFirst()
            }
            next?.resume(.success(()))
        }
    }
#endif
