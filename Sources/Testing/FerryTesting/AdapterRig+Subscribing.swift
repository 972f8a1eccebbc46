import Ferry
import FerryBluetooth
import Synchronization

// Subscriptions and updates.
extension AdapterRig {
    private func recipients(_ central: ConnectedCentral) -> UpdateRecipients {
        deviations.contains(.noRecipients) ? .all : .one(central)
    }

    func subscriptionsAreTold() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        for round in 1...3 {
            _ = try await subscribe(remote, to: remote.free, as: .notify)
            try await wait(for: "didSubscribe") { witness.get { $0.subscribed.count } >= round }
            try await run("unsubscribing") { try await connection.setSubscription(nil, to: remote.free.id) }
            try await wait(for: "didUnsubscribe") { witness.get { $0.unsubscribed } >= round }
            let counts = witness.get { ($0.subscribed.count, $0.unsubscribed) }
            try require(counts == (round, round), "\(counts) subscriptions and ends were told in round \(round)")
        }
        let centrals = Set(witness.get { $0.subscribed })
        let names = deviations.contains(.centralsBySubscription) ? Set(centrals.map(\.peer)).count : centrals.count
        try require(names == 1, "one central appeared under several names")
    }

    func unofferedSubscriptionsAreRefused() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        try await fails("notifications of what indicates", with: .notSupported) {
            try await connection.setSubscription(.notify, to: remote.indicated.id)
        }
        try await fails("a subscription to what offers none", with: .notSupported) {
            try await connection.setSubscription(.notify, to: remote.fixed.id)
        }
        try require(witness.get { $0.subscribed.isEmpty }, "the owner was told of a subscription")
    }

    /// Sends `count` values, waiting for ready after each refusal, and expects all of them. The queue has to be full once.
    private func update(
        _ total: Int, of characteristic: AttributeID, for recipients: UpdateRecipients, size: (Int) -> Int
    ) async throws {
        var values: [[UInt8]] = []
        var refusals = 0
        while mustGoOn(values.count, of: total, refusals) {
            let value = Self.numbered(values.count, size: size(values.count))
            let readies = witness.get { $0.readies }
            if try tryUpdate(value, of: characteristic, for: recipients) {
                values.append(value)
            } else {
                refusals += 1
                try await wait(for: "peripheralIsReadyToUpdate after a refusal") {
                    witness.get { $0.readies } > readies
                }
            }
        }
        try await expectValues(values)
        try require(
            refusals > 0 || deviations.contains(.neverFull), "\(values.count) values at once met no full queue")
    }

    private func expectValues(_ expected: [[UInt8]]) async throws {
        try await wait(for: "\(expected.count) values") {
            connectionWitness.get { $0.values.count } >= expected.count
        }
        let values = connectionWitness.get { $0.values }
        try require(values == expected, "the values did not arrive once, whole and in order")
    }

    /// The longest value that reaches a central whole.
    private func updateLimit(_ remote: Remote, _ central: ConnectedCentral) -> Int {
        let limit = remote.connection.maximumWriteLength(.withoutResponse)
        return deviations.contains(.noRecipients) ? limit : peripheral.maximumUpdateValueLength(for: central) ?? limit
    }

    func earlyValuesArrive() async throws {
        let (published, remote) = try await connect()
        let total = 1100
        let count = Mutex(0)
        let send: @Sendable () -> Void = {
            count.withLock { count in
                while count < total,
                    (try? self.tryUpdate(Self.numbered(count, size: 2), of: published.free, for: .all)) == true
                { count += 1 }
            }
        }
        witness.record.withLock { record in
            record.onSubscribed = send
            record.onReady = send
        }
        _ = try await subscribe(remote, to: remote.free, as: .notify)
        try await expectValues((0..<total).map { Self.numbered($0, size: 2) })
    }

    func notificationsArriveInOrder() async throws {
        let (published, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        await time.pass(.milliseconds(200))
        let limit = updateLimit(remote, central)
        try await update(512, of: published.free, for: recipients(central)) { 1 + $0 % limit }
    }

    func indicationsArriveInOrder() async throws {
        let (published, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.indicated, as: .indicate)
        try await update(20, of: published.indicated, for: recipients(central)) { 1 + $0 % 20 }
    }

    func longUpdatesAreCut() async throws {
        let (published, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        await time.pass(.milliseconds(500))
        let limit = updateLimit(remote, central)
        let long = Self.numbered(1, size: limit + 7)
        try require(try tryUpdate(long, of: published.free, for: recipients(central)), "the only value was refused")
        try await expectValues([Array(long.prefix(limit))])
    }

    func wrongUpdatesThrow() async throws {
        let (published, remote) = try await connect()
        // No central has subscribed: the value is passed over, however often.
        for _ in 0..<100 {
            try require(try tryUpdate([1], of: published.free, for: .all), "a value for no subscriber was refused")
        }
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        try throwsFrom(.notSupported) { () throws(BluetoothError) in
            try self.tryUpdate([1], of: published.fixed, for: .all)
        }
        try throwsFrom(.unknownAttribute) { () throws(BluetoothError) in
            try self.tryUpdate([1], of: AttributeID(rawValue: .max), for: .all)
        }
        if !deviations.contains(.noRecipients) {
            try throwsFrom(.notConnected) { () throws(BluetoothError) in
                try self.tryUpdate([1], of: published.free, for: .one(Self.stranger))
            }
            let some = UpdateRecipients.some([Self.stranger, central, central])
            try require(try tryUpdate([9], of: published.free, for: some), "a value for a few was refused")
            try await expectValues([[9]])
        }
        await time.pass(.milliseconds(200))
        let values = connectionWitness.get { $0.values.filter { $0 != [9] } }
        try require(values.isEmpty, "values came that were sent before the subscription")
    }

    func pausedCentralsStopUpdates() async throws {
        guard deviations.isDisjoint(with: [.cannotPause, .neverFull]) else { return }
        let (published, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        await time.pass(.milliseconds(200))
        remote.connection.setReceiving(false)
        await time.pass(.milliseconds(200))
        var taken = 0
        // From before: where a pause stops the peer's queue late, space may come in the moment after the refusal.
        let readies = witness.get { $0.readies }
        while try tryUpdate(Self.numbered(taken, size: 20), of: published.free, for: recipients(central)) {
            taken += 1
            if taken % 16 == 0 { await time.pass(.milliseconds(1)) }
            try require(taken < 50_000, "50 000 values were taken for a central that has paused")
        }
        try require(
            connectionWitness.get { $0.values.count } <= 1, "values came although the central had paused")
        remote.connection.setReceiving(true)
        try await wait(for: "peripheralIsReadyToUpdate after the pause") { witness.get { $0.readies } > readies }
        try await expectValues((0..<taken).map { Self.numbered($0, size: 20) })
    }
}
