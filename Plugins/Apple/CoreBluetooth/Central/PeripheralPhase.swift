import FerryBluetooth

/// The life of one connection of a peripheral. A transition returns what the session does next, without its lock.
enum PeripheralPhase {
    /// `connect` has not been called.
    case idle
    /// `connect` runs. `end`: the adapter reported the end before `connect` returned.
    case connecting(Task<Void, Never>, end: BluetoothError?)
    /// The program cancelled while `connect` runs. A connection that is still made is disconnected at once.
    case cancelling(end: BluetoothError?)
    case connected(any PeripheralConnection)
    /// The program cancelled, and the adapter has not reported the end. Nothing more is sent.
    case disconnecting(any PeripheralConnection)
    case ended

    enum Action {
        case none
        case reportConnected
        /// Reports the connection, then its end.
        case reportConnectedAndEnded(BluetoothError)
        case reportFailed(BluetoothError)
        /// `nil`: the program asked for the end.
        case reportEnded(BluetoothError?)
        case cancel(Task<Void, Never>)
        case disconnect(any PeripheralConnection)
        case disconnectAndReportEnded(any PeripheralConnection)
    }

    /// The connection, from `connect`'s return to the end.
    var connection: (any PeripheralConnection)? {
        switch self {
        case .connected(let connection), .disconnecting(let connection): connection
        case .idle, .connecting, .cancelling, .ended: nil
        }
    }

    /// The connection that takes requests and writes.
    var usable: (any PeripheralConnection)? { if case .connected(let connection) = self { connection } else { nil } }

    /// `connect` has made the connection.
    mutating func didConnect(_ connection: any PeripheralConnection) -> Action {
        switch self {
        case .connecting(_, nil):
            self = .connected(connection)
            return .reportConnected
        case .connecting(_, let end?):
            self = .ended
            return .reportConnectedAndEnded(end)
        case .cancelling(nil):
            self = .disconnecting(connection)
            return .disconnect(connection)
        case .cancelling(.some):
            self = .ended
            return .disconnectAndReportEnded(connection)
        case .idle, .connected, .disconnecting, .ended: return .disconnect(connection)
        }
    }

    /// `connect` has thrown.
    mutating func didFail(_ error: BluetoothError) -> Action {
        switch self {
        case .connecting:
            self = .ended
            return .reportFailed(error)
        case .cancelling:
            self = .ended
            return .reportEnded(nil)
        case .idle, .connected, .disconnecting, .ended: return .none
        }
    }

    /// The program ends the connection, or the wait for it.
    mutating func cancel() -> Action {
        switch self {
        case .idle:
            self = .ended
            return .reportEnded(nil)
        case .connecting(let task, let end):
            self = .cancelling(end: end)
            return .cancel(task)
        case .connected(let connection):
            self = .disconnecting(connection)
            return .disconnect(connection)
        case .cancelling, .disconnecting, .ended: return .none
        }
    }

    /// The adapter reports the end.
    mutating func didDisconnect(_ reason: BluetoothError) -> Action {
        switch self {
        case .connecting(let task, nil): self = .connecting(task, end: reason)
        case .cancelling(nil): self = .cancelling(end: reason)
        case .connected:
            self = .ended
            return .reportEnded(reason)
        case .disconnecting:
            self = .ended
            return .reportEnded(nil)
        case .idle, .connecting, .cancelling, .ended: break
        }
        return .none
    }
}
