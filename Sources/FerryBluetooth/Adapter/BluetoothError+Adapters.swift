// What adapters of this package say in the same words.
extension BluetoothError {
    package static let roleClosed = BluetoothError(
        .roleClosed, "The role has been closed; open a new one on its adapter.")

    package static let notConnected = BluetoothError(
        .notConnected, "The peripheral is not connected any more; connect to it again.")

    package static let endedHere = BluetoothError(.disconnectedLocally, "This side ended the connection.")

    /// Dynamic PSMs are 0x80 to 0xFF (Core Specification 5.4, Vol 3, Part A, 4.22).
    package static let noPSM = BluetoothError(
        .outOfResources, "All 128 dynamic PSMs of the adapter are in use; withdraw a channel first.")

    package static func unknownPeer(_ peer: PeerID) -> BluetoothError {
        BluetoothError(.unknownPeer, "No peripheral \(peer) has been met; scan for it first.")
    }

    package static func notConnected(_ central: ConnectedCentral) -> BluetoothError {
        BluetoothError(.notConnected, "The central \(central) is not connected any more.")
    }

    package static func notPublished(_ characteristic: AttributeID) -> BluetoothError {
        BluetoothError(
            .unknownAttribute,
            "Characteristic \(characteristic.rawValue) is not published by this role; publish its service first.")
    }
}
