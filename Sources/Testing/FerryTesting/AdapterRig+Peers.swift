import Ferry
import FerryBluetooth
import Synchronization

// Who is at the other end, and connections of the same peers one after the other.
extension AdapterRig {
    /// Ends the central's connection, and waits until both sides know.
    private func end(_ remote: Remote, _ events: ConnectionWitness) async throws {
        let told = witness.get { $0.disconnections.count }
        remote.connection.disconnect()
        try await wait(for: "the end of the connection on both sides") {
            events.get { !$0.reasons.isEmpty } && witness.get { $0.disconnections.count } > told
        }
    }

    func endedConnectionsAreInert() async throws {
        let (published, old) = try await connect()
        let gone = try await subscribe(old, to: old.free, as: .notify)
        try await end(old, connectionWitness)
        // What the peripheral's side hears of the end may come before the central's radio is free again.
        let second = ConnectionWitness(calls: CallGuard())
        let new = try await connect(to: try await find(), second)
        let before = witness.get { $0.subscribed.count }
        let connection = new.connection
        let id = new.free.id
        try await run("subscribing") { try await connection.setSubscription(.notify, to: id) }
        try await wait(for: "didSubscribe") { witness.get { $0.subscribed.count > before } }
        guard let present = witness.get({ $0.subscribed.last }) else { return }
        try require(present.connection != gone.connection, "a connection has the number of one that has ended")

        // The old central's handle, while a connection of the same central is there.
        if !deviations.contains(.noRecipients) {
            try throwsNotConnected("a value for a connection that has ended") { () throws(BluetoothError) in
                try self.tryUpdate([0x67], of: published.free, for: .one(gone))
            }
            try require(
                try tryUpdate([0x68], of: published.free, for: .some([gone])), "a value for no subscriber was refused")
            try require(
                peripheral.maximumUpdateValueLength(for: gone) == nil && peripheral.identity(of: gone) == nil,
                "a connection that has ended has a length or an identity")
        }
        calls.call {
            peripheral.setReceiving(false, from: gone)
            peripheral.disconnect(gone)
        }
        // The old connection's object, the same.
        try throwsNotConnected("a write on a connection that has ended") { () throws(BluetoothError) in
            try self.tryWrite([0x69], to: old.free, .withoutResponse, old)
        }
        old.connection.setReceiving(false)
        old.connection.disconnect()
        await time.pass(.milliseconds(300))

        try require(second.get { $0.reasons.isEmpty && $0.values.isEmpty }, "an ended connection acted on the next one")
        try require(witness.get { $0.writes.isEmpty }, "a write of an ended connection arrived on the next one")
        let recipients: UpdateRecipients = deviations.contains(.noRecipients) ? .all : .one(present)
        try await wait(for: "space for a value") {
            (try? self.tryUpdate([1], of: published.free, for: recipients)) == true
        }
        try await wait(for: "the next connection's value") { second.get { $0.values == [[1]] } }
        try await wait(for: "space for a write") {
            (try? self.tryWrite([2], to: new.free, .withoutResponse, new)) == true
        }
        try await wait(for: "the next connection's write") { witness.get { $0.writes == [[2]] } }
        try await end(new, second)
    }

    private func throwsNotConnected(_ what: String, _ body: () throws(BluetoothError) -> Bool) throws {
        do throws(BluetoothError) { _ = try body() } catch {
            let codes: [BluetoothError.Code] = [.notConnected, .disconnectedLocally, .disconnectedByPeer]
            return try require(codes.contains(error.code), "\(what) threw \(error)")
        }
        throw ConformanceFailure(name, "\(what) was taken")
    }

    func peersAreIdentified() async throws {
        let (_, first) = try await connect()
        let central = try await subscribe(first, to: first.free, as: .notify)
        guard let discovered = witness.get({ $0.discoveries.first?.identity }) else { return }
        try require(discovered.certainty < .bond, "an advertiser is taken for a bonded peer before it is connected")
        let peripheralIdentity = first.connection.identity
        let centralIdentity = peripheral.identity(of: central)
        try require(
            discovered.name == peripheralIdentity.name || peripheralIdentity.certainty == .bond,
            "the advertiser is \(discovered), connected \(peripheralIdentity)")
        try await end(first, connectionWitness)
        try require(first.connection.identity == peripheralIdentity, "the identity is lost with the connection")
        guard peripheralIdentity.certainty > .connection else { return }

        // Found by identity, and the same again. What needs a scan says nil.
        let named = self.central.retrievePeripheral(peripheralIdentity)
        let peer = if let named { named } else { try await find() }
        let events = ConnectionWitness(calls: CallGuard())
        let second = try await connect(to: peer, events)
        try require(
            peripheralIdentity.recognizes(second.connection.identity),
            "the peripheral was \(peripheralIdentity) and is \(second.connection.identity)")
        let before = witness.get { $0.subscribed.count }
        let connection = second.connection
        let id = second.free.id
        try await run("subscribing") { try await connection.setSubscription(.notify, to: id) }
        try await wait(for: "didSubscribe") { witness.get { $0.subscribed.count > before } }
        if let again = witness.get({ $0.subscribed.last }) {
            try require(again.peer == central.peer, "one central appeared under several names")
            let identity = peripheral.identity(of: again)
            try require(
                identity == centralIdentity, "the central was \(centralIdentity as Any) and is \(identity as Any)")
        }
        try require(
            self.central.retrievePeripheral(PeerIdentity("absent", certainty: .address)) == nil,
            "an identity of another transport was found")
        try await end(second, events)
    }
}
