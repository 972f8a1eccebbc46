#if BlueZ
    import FerryBluetooth
    import Synchronization

    /// A peer's characteristic on one connection, with the sockets to and from it.
    final class RemoteValue: Sendable {
        enum Outcome {
            case taken, full, missing
            case refused(BluetoothError)
        }

        /// The life of the socket for writes without response.
        private enum Writing {
            case none, acquiring
            case open(ValuePipe)
            case refused(BluetoothError)
            case ended
        }

        private struct State {
            var writing = Writing.none
            var reader: ValueReader?
            var isSubscribed = false
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

        var pipe: ValuePipe? { state.withLock { if case .open(let pipe) = $0.writing { pipe } else { nil } } }

        func trySend(_ value: RawSpan) -> Outcome {
            switch state.withLock({ $0.writing }) {
            case .none, .acquiring, .ended: return .missing
            case .refused(let refusal): return .refused(refusal)
            case .open(let pipe):
                switch pipe.trySend(value) {
                case .taken: return .taken
                case .full: return .full
                case .ended:
                    state.withLock { if case .open(let now) = $0.writing, now === pipe { $0.writing = .none } }
                    return .missing
                }
            }
        }

        /// Whether the caller is the one to acquire the socket for writing.
        func beginAcquiring() -> Bool {
            state.withLock { state in
                guard case .none = state.writing else { return false }
                state.writing = .acquiring
                return true
            }
        }

        func didAcquire(_ result: Result<ValuePipe, BluetoothError>) {
            let isLate = state.withLock { state in
                guard case .acquiring = state.writing else { return true }
                state.writing =
                    switch result {
                    case .success(let pipe): .open(pipe)
                    case .failure(let error): .refused(error)
                    }
                return false
            }
            if isLate, case .success(let pipe) = result { pipe.end() }
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
            let pipe = pipe
            let reader = state.withLock { state in
                state.writing = .ended
                state.isSubscribed = false
                return state.reader
            }
            pipe?.end()
            reader?.end()
        }
    }
#endif
