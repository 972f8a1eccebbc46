package import Ferry

extension FerryError {
    /// An adapter's error in the core's terms. `what` says which step failed.
    package init(_ what: String, _ error: BluetoothError) {
        let code: Code =
            switch error.code {
            case .disconnectedByPeer, .notConnected, .connectionFailed: .disconnected
            case .disconnectedLocally, .roleClosed: .closed
            case .connectionTimeout, .timedOut: .timedOut
            case .cancelled: .cancelled
            case .unknownPeer: .peerNotFound
            case .valueTooLong: .chunkTooLarge
            case .invalidArgument: .invalidConfiguration
            default: .transportUnavailable
            }
        self.init(code, "\(what): \(error.message)", cause: error)
    }
}
