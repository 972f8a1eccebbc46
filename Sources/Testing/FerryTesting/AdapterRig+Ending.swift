import Ferry
import FerryBluetooth
import Synchronization

// Ends, refused definitions and L2CAP channels.
extension AdapterRig {
    func disconnects(byCentral: Bool) async throws {
        let (_, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        let connection = remote.connection
        if byCentral {
            connectionCalls.call { connection.disconnect() }
        } else if !deviations.isDisjoint(with: [.noRecipients, .centralsBySubscription]) {
            return
        } else {
            calls.call { peripheral.disconnect(central) }
        }
        try await wait(for: "peripheralDidDisconnect") { connectionWitness.get { !$0.reasons.isEmpty } }
        try await wait(for: "the peripheral to be told of the disconnection") {
            witness.get { !$0.disconnections.isEmpty && $0.unsubscribed > 0 }
        }
        await time.pass(.milliseconds(500))
        let reasons = connectionWitness.get { $0.reasons }
        let told = witness.get { $0.disconnections }
        try require(reasons.count == 1, "the central's side was told \(reasons.count) times")
        try require(told.count == 1, "the peripheral's side was told \(told.count) times")
        let expected: BluetoothError.Code = byCentral ? .disconnectedLocally : .disconnectedByPeer
        let mirrored: BluetoothError.Code = byCentral ? .disconnectedByPeer : .disconnectedLocally
        try require(reasons[0].code == expected, "the central's reason is \(reasons[0])")
        try require(told[0].code == mirrored, "the peripheral's reason is \(told[0])")
        let events = witness.get { $0.peripheralEvents.suffix(2) }
        try require(events == ["disconnected", "unsubscribed"], "the peripheral's last events are \(events)")
        try await fails("a request after the end", with: .notConnected, expected) {
            _ = try await connection.readValue(of: remote.fixed.id)
        }
        try throwsFrom(.notConnected, or: expected) { () throws(BluetoothError) in
            try self.tryWrite([1], to: remote.free, .withoutResponse, remote)
        }
        connection.disconnect()
        connection.setReceiving(false)
        await time.pass(.milliseconds(200))
        try require(connectionWitness.get { $0.afterEnd } == 0, "an event came after peripheralDidDisconnect")
    }

    /// Both sides end a connection at once; and, where the adapters can be taken out of each other's reach, one of them alone does,
    /// of which the other cannot hear.
    func firstReasonsWin() async throws {
        let (_, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        let canEnd = deviations.isDisjoint(with: [.noRecipients, .centralsBySubscription])
        connectionCalls.call { remote.connection.disconnect() }
        if canEnd { calls.call { peripheral.disconnect(central) } }
        try await expectEnd(.disconnectedLocally, number: 1)
        guard let setInReach else { return }
        for (byCentral, isLateLoss) in [(true, false), (true, true), (false, false), (false, true)] {
            guard byCentral || canEnd else { continue }
            let count = connectionWitness.get { $0.reasons.count }
            let told = witness.get { $0.disconnections.count }
            let (connection, central) = try await reconnect(remote)
            defer { setInReach(true) }
            if !isLateLoss { setInReach(false) }
            if byCentral {
                connectionCalls.call { connection.disconnect() }
            } else {
                calls.call { peripheral.disconnect(central) }
            }
            if isLateLoss { setInReach(false) }
            try await expectEnd(byCentral ? .disconnectedLocally : nil, number: count + 1)
            try await wait(for: "the peripheral to be told of the end") {
                witness.get { $0.disconnections.count > told }
            }
            let code = witness.get { $0.disconnections[told].code }
            try require(
                (code == .disconnectedLocally) == !byCentral,
                "the peripheral was told \(code) where the \(byCentral ? "central" : "peripheral") ended the connection"
            )
        }
    }

    /// Connects once more, and subscribes.
    private func reconnect(_ former: Remote) async throws -> (any PeripheralConnection, ConnectedCentral) {
        let before = witness.get { $0.subscribed.count }
        let remote = try await connect(to: former.connection.peripheral, connectionWitness)
        let (connection, id) = (remote.connection, remote.free.id)  // see `subscribe(_:to:as:)`
        try await run("subscribing") { try await connection.setSubscription(.notify, to: id) }
        try await wait(for: "didSubscribe") { witness.get { $0.subscribed.count > before } }
        guard let central = witness.get({ $0.subscribed.last }) else {
            throw ConformanceFailure(name, "no central has subscribed")
        }
        return (connection, central)
    }

    /// Waits for the end of the central's connections so far.
    ///
    /// - Parameter code: what the last is to have ended for; nil for anything but that this side has ended it.
    private func expectEnd(_ code: BluetoothError.Code?, number: Int) async throws {
        try await wait(for: "peripheralDidDisconnect") { connectionWitness.get { $0.reasons.count >= number } }
        await time.pass(.milliseconds(500))
        let reasons = connectionWitness.get { $0.reasons }
        try require(reasons.count == number, "the central's side was told \(reasons.count - number + 1) times")
        let told = reasons[number - 1]
        try require(
            code.map { $0 == told.code } ?? (told.code != .disconnectedLocally), "the central's reason is \(told)")
    }

    private func throwsFrom(
        _ code: BluetoothError.Code, or other: BluetoothError.Code, _ body: () throws(BluetoothError) -> Bool
    ) throws {
        do throws(BluetoothError) {
            _ = try body()
        } catch {
            return try require([code, other].contains(error.code), "\(error) was thrown, not \(code) or \(other)")
        }
        throw ConformanceFailure(name, "\(code) was not thrown")
    }

    func withdrawnServicesAreTold() async throws {
        let (published, remote) = try await connect()
        let connection = remote.connection
        peripheral.unpublish(published.id)
        try await wait(for: "peripheralDidModifyServices") {
            connectionWitness.get { $0.modified.contains(remote.service.id) }
        }
        let services = try await run("discovery") { try await connection.discoverServices([Self.service]) }
        try require(services.isEmpty, "the withdrawn service was found")
        try await fails("reading a withdrawn value", with: .unknownAttribute, .att(.invalidHandle)) {
            _ = try await connection.readValue(of: remote.fixed.id)
        }
        try throwsFrom(.unknownAttribute) { () throws(BluetoothError) in
            try self.tryUpdate([1], of: published.free, for: .all)
        }
        peripheral.unpublish(published.id)
    }

    func addedServicesAreTold() async throws {
        let (published, remote) = try await connect()
        let connection = remote.connection
        let peripheral = peripheral
        let before = connectionWitness.get { $0.modifications }
        let added = try await run("publishing") {
            try await peripheral.publish(
                ServiceDefinition(
                    Self.added,
                    characteristics: [
                        CharacteristicDefinition(
                            Self.fixed, properties: .read, permissions: .readable, value: [1, 2, 3])
                    ]))
        }
        try await wait(for: "peripheralDidModifyServices") { connectionWitness.get { $0.modifications > before } }
        let services = try await run("discovery") { try await connection.discoverServices([Self.added]) }
        guard let service = services.first, services.count == 1 else {
            throw ConformanceFailure(name, "the service that was published last was found \(services.count) times")
        }
        let serviceID = service.id  // see `subscribe(_:to:as:)`
        let found = try await run("discovery") { try await connection.discoverCharacteristics(nil, of: serviceID) }
        guard let id = found.first?.id, found.count == 1 else {
            throw ConformanceFailure(name, "its characteristic was found \(found.count) times")
        }
        let value = try await run("reading") { try await connection.readValue(of: id) }
        try require(value == [1, 2, 3], "its value is \(value)")
        // The older services are as they were.
        try require(connectionWitness.get { $0.modified.isEmpty }, "a service that is as it was was called modified")
        let fixed = remote.fixed.id
        let old = try await run("reading a characteristic of before") { try await connection.readValue(of: fixed) }
        try require(!old.isEmpty, "the value that was there before is empty")
        peripheral.unpublish(added.id)
        peripheral.unpublish(published.id)
    }

    func wrongDefinitionsAreRefused() async throws {
        try await wait(for: "the adapter to be powered on") { peripheralAdapter.state == .poweredOn }
        let peripheral = peripheral
        let tooLong = [UInt8](repeating: 0, count: 513)
        func service(
            _ value: [UInt8]?, _ properties: CharacteristicProperties = .read,
            _ permissions: AttributePermissions = .readable, descriptors: [DescriptorDefinition] = []
        ) -> ServiceDefinition {
            ServiceDefinition(
                Self.service,
                characteristics: [
                    CharacteristicDefinition(
                        Self.free, properties: properties, permissions: permissions, value: value,
                        descriptors: descriptors)
                ])
        }
        let wrong = [
            service([1], [.read, .write]), service([1], .read, [.readable, .writeable]), service(tooLong),
            service(nil, descriptors: [DescriptorDefinition(Self.description, value: tooLong)]),
            service(nil, descriptors: [DescriptorDefinition(.clientCharacteristicConfiguration, value: [0, 0])]),
            ServiceDefinition(
                Self.service, includedServices: [AttributeID(rawValue: .max)], characteristics: []),
        ]
        for definition in wrong {
            try await fails("publishing a wrong definition", with: .invalidArgument) {
                _ = try await peripheral.publish(definition)
            }
        }
    }

    func eventsComeFromOutside() async throws {
        let (published, remote) = try await connect()
        let central = try await subscribe(remote, to: remote.free, as: .notify)
        let recipients: UpdateRecipients = deviations.contains(.noRecipients) ? .all : .one(central)
        // Both sides refill from within their ready handlers, as channels do.
        let left = Mutex((updates: 1000, writes: 1000))
        let update: @Sendable () -> Void = {
            left.withLock { left in
                while left.updates > 0, (try? self.tryUpdate([1, 2], of: published.free, for: recipients)) == true {
                    left.updates -= 1
                }
            }
        }
        let write: @Sendable () -> Void = {
            left.withLock { left in
                while left.writes > 0, (try? self.tryWrite([3, 4], to: remote.free, .withoutResponse, remote)) == true {
                    left.writes -= 1
                }
            }
        }
        witness.record.withLock { $0.onReady = update }
        connectionWitness.record.withLock { $0.onReady = write }
        try await wait(for: "1000 values each way") {
            update()
            write()
            return witness.get { $0.writes.count } >= 1000 && connectionWitness.get { $0.values.count } >= 1000
        }
        if let violation = connectionCalls.violation { throw ConformanceFailure(name, violation) }
    }

    func closedRolesAreSilent() async throws {
        let (published, remote) = try await connect()
        _ = try await subscribe(remote, to: remote.free, as: .notify)
        central.close()
        try await wait(for: "the connection to end") { witness.get { !$0.disconnections.isEmpty } }
        let before = witness.get { $0.centralEvents.count }
        try throwsFrom(.roleClosed) { () throws(BluetoothError) in
            try self.central.startScan(ScanRequest())
            return true
        }
        peripheral.close()
        await time.pass(.milliseconds(100))
        let count = witness.get { $0.peripheralEvents.count }
        let peripheral = peripheral
        try await fails("publishing in a closed role", with: .roleClosed) {
            _ = try await peripheral.publish(ServiceDefinition(Self.service, characteristics: []))
        }
        try await fails("advertising in a closed role", with: .roleClosed) {
            _ = try await peripheral.startAdvertising(Advertisement(services: [Self.service]))
        }
        try throwsFrom(.roleClosed) { () throws(BluetoothError) in
            try self.tryUpdate([1], of: published.free, for: .all)
        }
        await time.pass(.milliseconds(500))
        try require(witness.get { $0.centralEvents.count } == before, "an event came after central.close()")
        try require(witness.get { $0.peripheralEvents.count } == count, "an event came after peripheral.close()")
    }

    func closedRolesLeaveNobodyWaiting() async throws {
        let (_, remote) = try await connect()
        let (central, connection, id) = (central, remote.connection, remote.free.id)
        let reading = Task { _ = try await connection.readValue(of: id) }
        try await wait(for: "the read request") { witness.get { !$0.reads.isEmpty } }
        peripheral.close()
        try await fails(
            "a request to a role that was closed", with: .att(.unlikelyError), .att(.invalidHandle), .unknownAttribute
        ) { try await reading.value }
        connection.disconnect()
        try await wait(for: "the connection to end") { connectionWitness.get { !$0.reasons.isEmpty } }
        // No peripheral advertises any more, so it takes as long as its timeout.
        let events = connectionWitness
        let connecting = Task { _ = try await central.connect(to: connection.peripheral, events: events) }
        await time.pass(.milliseconds(200))
        central.close()
        try await fails("a wait for a connection in a closed role", with: .roleClosed) { try await connecting.value }
        try await fails("connecting in a closed role", with: .roleClosed) {
            _ = try await central.connect(to: connection.peripheral, events: events)
        }
    }

    func channelsOpen() async throws {
        guard !deviations.contains(.noChannels) else { return }
        let peripheral = peripheral
        let (_, remote) = try await connect()
        let connection = remote.connection
        let psm = try await run("publishing a channel") {
            try await peripheral.publishL2CAPChannel(encryptionRequired: false)
        }
        try require((0x80...0xFF).contains(psm.rawValue), "the PSM 0x\(String(psm.rawValue, radix: 16)) is not dynamic")
        let near = try await run("opening a channel") { try await connection.openL2CAPChannel(psm) }
        try await wait(for: "peripheralDidOpen") { witness.get { !$0.channels.isEmpty } }
        guard let far = witness.get({ $0.channels.first }) else { return }
        try require(near.psm == psm && far.psm == psm, "the channel's ends name other PSMs")
        try require(near.peerID == connection.peripheral, "the channel's peer is not the peripheral")
        let witnesses = (LinkWitness(), LinkWitness())
        near.activate(witnesses.0)
        far.activate(witnesses.1)
        try require(try near.trySend(([1, 2] as [UInt8]).span.bytes), "the first chunk was refused")
        try require(try far.trySend(([3] as [UInt8]).span.bytes), "the first chunk back was refused")
        try await wait(for: "a chunk each way") {
            witnesses.0.chunks == [[3]] && witnesses.1.chunks == [[1, 2]]
        }
        near.close()
        try await wait(for: "the channel's end") {
            witnesses.0.reasons.first?.code == .closed && witnesses.1.reasons.first != nil
        }
        peripheral.unpublishL2CAPChannel(psm)
        let time = time
        // Withdrawing is not answered, so one that is opened at the same moment may come before it.
        try await fails("opening a withdrawn channel", with: .channelRefused) {
            for _ in 0..<250 {
                try await connection.openL2CAPChannel(psm).close()
                await time.pass(.milliseconds(20))
            }
        }
        witness.record.withLock { $0.channels = [] }
    }

    func usedUpPSMsAreTold() async throws {
        guard !deviations.contains(.noChannels) else { return }
        try await wait(for: "the adapter to be powered on") { peripheralAdapter.state == .poweredOn }
        let peripheral = peripheral
        var published: [PSM] = []
        do {
            // Others may have some of the 128.
            for _ in 0...128 {
                published.append(
                    try await run("publishing a channel") {
                        try await peripheral.publishL2CAPChannel(encryptionRequired: false)
                    })
            }
            throw ConformanceFailure(name, "129 channels were published, more than there are dynamic PSMs")
        } catch let error as BluetoothError {
            try require(error.code == .outOfResources, "the channel that was too many threw \(error)")
        }
        try require(Set(published.map(\.rawValue)).count == published.count, "two channels have one PSM")
        guard let last = published.last else { throw ConformanceFailure(name, "no channel was published") }
        peripheral.unpublishL2CAPChannel(last)
        await time.pass(.milliseconds(200))
        let again = try await run("publishing in place of a channel that was withdrawn") {
            try await peripheral.publishL2CAPChannel(encryptionRequired: false)
        }
        for psm in published.dropLast() + [again] { peripheral.unpublishL2CAPChannel(psm) }
    }
}
