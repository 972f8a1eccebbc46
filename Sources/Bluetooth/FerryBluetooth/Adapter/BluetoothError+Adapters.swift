// What adapters say in the same words.
extension BluetoothError {
    /// A role was used after it was closed.
    public static let roleClosed = BluetoothError(
        .roleClosed, "The role has been closed; open a new one on its adapter.")

    /// A connection was used after its end.
    public static let notConnected = BluetoothError(
        .notConnected, "The peripheral is not connected any more; connect to it again.")

    /// A connection that was there for a moment only.
    public static let endedAtOnce = BluetoothError(
        .connectionFailed, "The connection ended as soon as it was made.")

    /// The reason of an end that this side asked for.
    public static let endedHere = BluetoothError(.disconnectedLocally, "This side ended the connection.")

    /// Dynamic PSMs are 0x80 to 0xFF (Core Specification 5.4, Vol 3, Part A, 4.22).
    public static let noPSM = BluetoothError(
        .outOfResources, "All 128 dynamic PSMs of the adapter are in use; withdraw a channel first.")

    /// An adapter that is not powered on.
    ///
    /// - Parameters:
    ///   - adapter: the adapter's name.
    ///   - state: the state that it is in.
    ///   - advice: why, and what to do.
    public static func notPoweredOn(
        _ adapter: String, _ state: AdapterState, _ advice: String = "Wait until it is."
    ) -> BluetoothError {
        BluetoothError(.notPoweredOn, "The adapter \(adapter) is \(state), not powered on. \(advice)")
    }

    /// A name that no peer has, or has any more.
    public static func unknownPeer(_ peer: PeerID) -> BluetoothError {
        BluetoothError(.unknownPeer, "No peripheral \(peer) has been met; scan for it first.")
    }

    /// A central's connection was used after its end.
    public static func notConnected(_ central: ConnectedCentral) -> BluetoothError {
        BluetoothError(.notConnected, "The central \(central) is not connected any more.")
    }

    /// A characteristic that the role has not published, or has withdrawn.
    public static func notPublished(_ characteristic: AttributeID) -> BluetoothError {
        BluetoothError(
            .unknownAttribute,
            "Characteristic \(characteristic.rawValue) is not published by this role; publish its service first.")
    }

    /// An attribute that was not found on a connection, or has been withdrawn by the peer.
    public static func notFound(_ attribute: AttributeID) -> BluetoothError {
        BluetoothError(
            .unknownAttribute,
            "Attribute \(attribute.rawValue) was not found on this connection, or has been withdrawn; discover it first."
        )
    }

    /// A subscription, or an update, that the characteristic does not offer.
    public static func notOffered(_ subscription: Subscription?, by characteristic: AttributeID) -> BluetoothError {
        let what = subscription.map { $0 == .notify ? "does not notify" : "does not indicate" }
        return BluetoothError(
            .notSupported,
            "Characteristic \(characteristic.rawValue) \(what ?? "neither notifies nor indicates").")
    }

    /// Checks a value that is queued to be written.
    ///
    /// - Parameters:
    ///   - count: bytes of the value.
    ///   - type: with or without response.
    ///   - maximum: the most bytes, as ``PeripheralConnection/maximumWriteLength(_:)`` has it.
    ///   - characteristic: whose value it is, for the message.
    ///   - properties: what the characteristic offers.
    /// - Throws: `notSupported` or `valueTooLong`.
    public static func checkWrite(
        _ count: Int, _ type: WriteType, maximum: Int, to characteristic: AttributeID,
        _ properties: CharacteristicProperties
    ) throws(BluetoothError) {
        guard properties.contains(type == .withResponse ? .write : .writeWithoutResponse) else {
            let kind = type == .withResponse ? "with" : "without"
            throw BluetoothError(
                .notSupported, "Characteristic \(characteristic.rawValue) does not take writes \(kind) response.")
        }
        guard count <= maximum else {
            throw BluetoothError(
                .valueTooLong, "A value of \(count) bytes is above the \(maximum) that this connection carries at once."
            )
        }
    }

    /// Checks a value that is written in as many steps as it takes.
    ///
    /// - Throws: `valueTooLong` above 512 bytes (Core Specification 5.4, Vol 3, Part F, 3.2.9).
    public static func checkLength(_ value: [UInt8]) throws(BluetoothError) {
        guard value.count > 512 else { return }
        throw BluetoothError(.valueTooLong, "A value of \(value.count) bytes is above 512, the most ATT carries.")
    }
}
