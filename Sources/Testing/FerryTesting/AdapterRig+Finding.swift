import Ferry
import FerryBluetooth
import Synchronization

extension AdapterRig {
    func check(_ requirement: AdapterConformance.Requirement) async throws {
        switch requirement {
        case .theStateComesFirst: try await theStateComesFirst()
        case .scansFilterByService: try await scansFilterByService()
        case .scansFilterByNameAndRSSI: try await scansFilterByNameAndRSSI()
        case .unknownPeersAreRefused: try await unknownPeersAreRefused()
        case .waitsForConnectionsCanBeCancelled: try await waitsForConnectionsCanBeCancelled()
        case .discoveryFindsWhatWasPublished: try await discoveryFindsWhatWasPublished()
        case .limitsFollowFromATTMTU: try await limitsFollowFromATTMTU()
        case .longFixedValuesAreReadWhole: try await longFixedValuesAreReadWhole()
        case .readsComeAsRequestsWithOffsets: try await readsComeAsRequestsWithOffsets()
        case .answeredErrorsArrive: try await answeredErrorsArrive()
        case .permissionsAreEnforced: try await permissionsAreEnforced()
        case .writesWithResponseAreAnswered: try await writesWithResponseAreAnswered()
        case .longWritesComeAsOneRequest: try await longWritesComeAsOneRequest()
        case .writesWithoutResponseArriveInOrder: try await writesWithoutResponseArriveInOrder()
        case .oneQueuedWriteWithResponseWaits: try await oneQueuedWriteWithResponseWaits()
        case .wrongWritesThrow: try await wrongWritesThrow()
        case .subscriptionsAreTold: try await subscriptionsAreTold()
        case .unofferedSubscriptionsAreRefused: try await unofferedSubscriptionsAreRefused()
        case .earlyValuesArrive: try await earlyValuesArrive()
        case .notificationsArriveInOrder: try await notificationsArriveInOrder()
        case .indicationsArriveInOrder: try await indicationsArriveInOrder()
        case .longUpdatesAreCut: try await longUpdatesAreCut()
        case .wrongUpdatesThrow: try await wrongUpdatesThrow()
        case .pausedCentralsStopUpdates: try await pausedCentralsStopUpdates()
        case .centralsDisconnect: try await disconnects(byCentral: true)
        case .peripheralsDisconnect: try await disconnects(byCentral: false)
        case .theFirstReasonWins: try await firstReasonsWin()
        case .withdrawnServicesAreTold: try await withdrawnServicesAreTold()
        case .addedServicesAreTold: try await addedServicesAreTold()
        case .wrongDefinitionsAreRefused: try await wrongDefinitionsAreRefused()
        case .eventsComeFromOutside: try await eventsComeFromOutside()
        case .endedConnectionsAreInert: try await endedConnectionsAreInert()
        case .peersAreIdentified: try await peersAreIdentified()
        case .closedRolesAreSilent: try await closedRolesAreSilent()
        case .closedRolesLeaveNobodyWaiting: try await closedRolesLeaveNobodyWaiting()
        case .channelsOpen: try await channelsOpen()
        case .usedUpPSMsAreTold: try await usedUpPSMsAreTold()
        }
    }

    private func theStateComesFirst() async throws {
        try await wait(for: "the first events") {
            witness.get { !$0.peripheralEvents.isEmpty && !$0.centralEvents.isEmpty }
        }
        let (first, second) = witness.get { ($0.peripheralEvents.first, $0.centralEvents.first) }
        try require(first == "state", "the peripheral role's first event was \(first ?? "none")")
        try require(second == "state", "the central role's first event was \(second ?? "none")")
    }

    private func scansFilterByService() async throws {
        _ = try await publish()
        try central.startScan(ScanRequest(services: [Self.secondary]))
        await time.pass(.milliseconds(500))
        try require(witness.get { $0.discoveries.isEmpty }, "a scan for another service reported the peripheral")
        _ = try await find()
        // What the scan reports at once counts too.
        central.stopScan()
        witness.record.withLock { $0.discoveries = [] }
        try central.startScan(ScanRequest(services: [Self.secondary, Self.service]))
        try await wait(for: "a discovery") { witness.get { !$0.discoveries.isEmpty } }
        await time.pass(.milliseconds(500))
        let discoveries = witness.get { $0.discoveries }
        let services = discoveries[0].advertisement.services + discoveries[0].advertisement.overflowServices
        try require(services.contains(Self.service), "the advertisement names \(services.map(\.uuidString))")
        try require(discoveries[0].advertisement.isConnectable, "the peripheral was reported as not connectable")
        try require(
            Set(discoveries.map(\.peripheral)).count == 1, "one peripheral was reported under several names")
    }

    private func scansFilterByNameAndRSSI() async throws {
        _ = try await publish()
        let misses: [ScanRequest] =
            [ScanRequest(services: [Self.service], name: Self.localName + "!")]
            + (deviations.contains(.noRSSIFilter) ? [] : [ScanRequest(services: [Self.service], rssi: 19...20)])
        for request in misses {
            try central.startScan(request)
            await time.pass(.milliseconds(500))
            try require(witness.get { $0.discoveries.isEmpty }, "a scan reported what does not match \(request)")
        }
        try await fails("a scan for signals that are never heard", with: .invalidArgument) {
            try self.central.startScan(ScanRequest(rssi: 30...40))
        }
        try central.startScan(ScanRequest(services: [Self.service], rssi: -127...20, name: Self.localName))
        try await wait(for: "a discovery by name") { witness.get { !$0.discoveries.isEmpty } }
        guard let found = witness.get({ $0.discoveries.first }) else { return }
        try require((-127...20).contains(found.rssi), "the signal strength is \(found.rssi) dBm")
    }

    private func unknownPeersAreRefused() async throws {
        let central = central
        let stranger = PeerID(rawValue: 0xDEAD_BEEF)
        try require(central.retrievePeripherals([stranger]).isEmpty, "a stranger can be retrieved")
        try await fails("connecting to a stranger", with: .unknownPeer) {
            _ = try await central.connect(to: stranger, events: self.connectionWitness)
        }
    }

    private func waitsForConnectionsCanBeCancelled() async throws {
        _ = try await publish()
        let peer = try await find()
        peripheral.stopAdvertising()
        await time.pass(.milliseconds(200))
        let central = central
        let task = Task {
            let connection = try await central.connect(to: peer, events: self.connectionWitness)
            connection.disconnect()
        }
        await time.pass(.milliseconds(200))
        task.cancel()
        try await fails("a cancelled wait", with: .cancelled) { try await task.value }
    }

    private func discoveryFindsWhatWasPublished() async throws {
        let (_, remote) = try await connect()
        let connection = remote.connection
        let secondaries = try await run("discovery of a secondary service") {
            try await connection.discoverServices([Self.secondary])
        }
        try require(secondaries.isEmpty, "a secondary service was found as a primary one")
        let included = try await run("discovery of included services") {
            try await connection.discoverIncludedServices(nil, of: remote.service.id)
        }
        try require(included.map(\.uuid) == [Self.secondary], "included services: \(included)")
        let all = try await run("discovery of characteristics") {
            try await connection.discoverCharacteristics(nil, of: remote.service.id)
        }
        try require(
            all.map(\.uuid) == [Self.fixed, Self.free, Self.indicated, Self.closed, Self.answered],
            "characteristics are not in the order of their definition")
        try require(
            remote.free.properties == [.read, .write, .writeWithoutResponse, .notify],
            "the properties are \(remote.free.properties)")
        let descriptors = try await run("discovery of descriptors") {
            try await connection.discoverDescriptors(of: remote.fixed.id)
        }
        guard let description = descriptors.first(where: { $0.uuid == Self.description }) else {
            throw ConformanceFailure(name, "the descriptor was not found among \(descriptors)")
        }
        let text = try await run("reading a descriptor") { try await connection.readValue(of: description.id) }
        try require(text == [0x68, 0x69], "the descriptor's value is \(text)")
        let unknown = AttributeID(rawValue: .max)
        try await fails("discovery in an unknown service", with: .unknownAttribute) {
            _ = try await connection.discoverCharacteristics(nil, of: unknown)
        }
    }

    private func limitsFollowFromATTMTU() async throws {
        let (_, remote) = try await connect()
        let peer = try await subscribe(remote, to: remote.free, as: .notify)
        let connection = remote.connection
        await time.pass(.milliseconds(500))
        try require((23...517).contains(connection.attMTU), "ATT_MTU is \(connection.attMTU)")
        let limit = min(connection.attMTU - 3, 512)
        let lengths = deviations.contains(.shorterValues) ? 1...limit : limit...limit
        for type in [WriteType.withoutResponse, .withResponse] {
            let length = connection.maximumWriteLength(type)
            try require(
                lengths.contains(length), "maximumWriteLength(\(type)) is \(length) with ATT_MTU \(connection.attMTU)")
        }
        guard !deviations.contains(.noRecipients) else { return }
        let update = peripheral.maximumUpdateValueLength(for: peer)
        try require(
            update.map(lengths.contains) == true,
            "maximumUpdateValueLength is \(update ?? -1), the central's limit \(limit)")
        let stranger = peripheral.maximumUpdateValueLength(for: Self.stranger)
        try require(stranger == nil, "maximumUpdateValueLength of a stranger is not nil")
    }
}
