import Ferry
import FerryBluetooth
import Synchronization
import TestSupport
import Testing

@testable import FerryLoopback

/// Range, power, pairing, timeouts and owners.
@Suite(.tags(.adapter)) struct LifecycleTests {
    @Test func outOfRangeEndsAfterTheSupervisionTimeout() async throws {
        let world = try World()
        let service = try await world.publish()
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: service.characteristics[0]) }
        world.radio.setInRange(false, between: world.server, and: world.client)
        #expect(
            try world.peripheral.tryUpdateValue(([1] as [UInt8]).span.bytes, of: service.characteristics[0], for: .all))
        world.time.advance(by: .milliseconds(1999))
        #expect(owner.values.withLock { $0.isEmpty })
        world.radio.setInRange(true, between: world.server, and: world.client)
        world.settle()
        #expect(owner.values.withLock { $0 } == [[1]])
        world.radio.setInRange(false, between: world.server, and: world.client)
        world.time.advance(by: .seconds(2))
        #expect(owner.journal.all.last == "disconnected connectionTimeout")
        #expect(world.peripheralOwner.journal.count("disconnected connectionTimeout") == 1)
    }

    @Test func aPendingConnectionWaitsForRange() async throws {
        let world = try World()
        _ = try await world.publish()
        world.radio.setInRange(false, between: world.server, and: world.client)
        let peer = world.client.identifier(of: world.server)
        let central = world.central
        try world.time.run {
            let connected = Mutex<(any PeripheralConnection)?>(nil)
            let task = Task {
                let connection = try await central.connect(to: peer, events: ConnectionOwner())
                connected.withLock { $0 = connection }
            }
            try await world.time.sleep(for: .seconds(3000))
            #expect(connected.withLock { $0 == nil })
            world.radio.setInRange(true, between: world.server, and: world.client)
            try await task.value
            #expect(connected.withLock { $0 != nil })
        }
    }

    @Test func scansHonourTheSignalStrength() async throws {
        let world = try World()
        _ = try await world.publish()
        world.radio.setRSSI(-70, between: world.server, and: world.client)
        try world.central.startScan(ScanRequest(rssi: -32 ... -15))
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.found.withLock { $0.isEmpty })
        world.radio.setRSSI(-20, between: world.server, and: world.client)
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.found.withLock { $0.map(\.rssi) } == [-20])
        try world.central.startScan(ScanRequest(allowsDuplicates: true))
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.found.withLock { $0.count } == 51)
        world.central.stopScan()
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.found.withLock { $0.count } == 51)
    }

    @Test func overflowServicesAreFoundByName() async throws {
        let world = try World()
        let services = (0..<4).map { BluetoothUUID(testService.value &+ UInt128($0)) }
        let peripheral = world.peripheral
        let report = try await world.run {
            try await peripheral.startAdvertising(Advertisement(localName: "server", services: services))
        }
        #expect(report.advertised.services == [services[0]])
        #expect(report.omittedServices == Array(services.dropFirst()))
        try world.central.startScan(ScanRequest(services: [services[3]]))
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.journal.count("discovered") == 1)
    }

    /// A beacon is heard with its data, at its own interval, and not connected to.
    @Test func beaconsAreHeard() async throws {
        let world = try World()
        var advertisement = Advertisement(
            manufacturerData: [0xFF, 0xFF, 7], serviceData: [.battery: [99]], isConnectable: false,
            interval: .milliseconds(500) ... .seconds(1))
        let peripheral = world.peripheral
        _ = try await world.run { [advertisement] in try await peripheral.startAdvertising(advertisement) }
        try world.central.startScan(ScanRequest(allowsDuplicates: true))
        world.time.advance(by: .seconds(10))
        let heard = world.centralOwner.found.withLock { $0 }
        #expect(heard.count == 20)
        let data = try #require(heard.first?.advertisement)
        #expect(data.manufacturerData == [0xFF, 0xFF, 7] && data.serviceData == [.battery: [99]])
        #expect(!data.isConnectable)
        let (central, peer) = (world.central, world.client.identifier(of: world.server))
        try world.time.run {
            let connecting = Task { try await central.connect(to: peer, events: ConnectionOwner()) }
            try await world.time.sleep(for: .seconds(11))
            #expect(world.radio.locked { $0.attempts[0].count } == 1)
            connecting.cancel()
            await #expect(throws: BluetoothError.self) { try await connecting.value }
        }

        advertisement.manufacturerData = [UInt8](repeating: 0, count: 40)
        let tooLong = advertisement
        let error = await #expect(throws: BluetoothError.self) { try await peripheral.startAdvertising(tooLong) }
        #expect(error?.code == .invalidArgument)
        advertisement.isExtended = true
        world.centralOwner.found.withLock { $0 = [] }
        _ = try await world.run { [advertisement] in try await peripheral.startAdvertising(advertisement) }
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.found.withLock { $0.last?.advertisement.manufacturerData?.count } == 40)
    }

    @Test func powerOffEndsEverything() async throws {
        let world = try World()
        let service = try await world.publish()
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: service.characteristics[0]) }
        world.peripheralOwner.journal.clear()
        world.server.setState(.poweredOff)
        world.settle()
        let id = service.characteristics[0].rawValue
        #expect(
            world.peripheralOwner.journal.all == [
                "state poweredOff", "disconnected notPoweredOn", "unsubscribed \(id)",
                "advertising stopped notPoweredOn",
            ])
        #expect(owner.journal.all.last == "disconnected disconnectedByPeer")
        let peripheral = world.peripheral
        #expect(throws: BluetoothError.self) {
            try peripheral.tryUpdateValue(([1] as [UInt8]).span.bytes, of: service.characteristics[0], for: .all)
        }
        await #expect { try await peripheral.publish(World.definition()) } throws: {
            ($0 as? BluetoothError)?.code == .notPoweredOn
        }
        world.server.setState(.poweredOn)
        world.settle()
        #expect(world.peripheralOwner.journal.all.last == "state poweredOn")
        #expect(throws: BluetoothError.self) {
            try peripheral.tryUpdateValue(([1] as [UInt8]).span.bytes, of: service.characteristics[0], for: .all)
        }
        // A central that is off neither scans nor waits.
        world.client.setState(.unauthorized)
        #expect(throws: BluetoothError.self) { try world.central.startScan(ScanRequest()) }
    }

    /// Nobody compares numbers over the virtual radio, so what needs that is not promised.
    @Test(arguments: [AttributePermissions.authenticationRequired, .secureConnectionsRequired])
    func whatNeedsAnAuthenticatedKeyIsNotPublished(permission: AttributePermissions) async throws {
        let world = try World()
        let error = await #expect(throws: BluetoothError.self) {
            try await world.publish(World.definition(permissions: [.readEncryptionRequired, permission]))
        }
        #expect(error?.code == .notSupported)
    }

    @Test func pairingIsAskedForWhenARequestNeedsIt() async throws {
        let world = try World()
        let service = try await world.publish(
            World.definition([.read, .notifyEncryptionRequired], permissions: .readEncryptionRequired, value: nil))
        let peripheral = world.peripheral
        world.peripheralOwner.actions.withLock {
            $0.onRead = { peripheral.respond(to: $0.id, with: .success([7])) }
        }
        let characteristic = service.characteristics[0]
        world.client.setPairing(.refused)
        let (connection, _) = try await world.connect()
        func code(_ body: @escaping @Sendable () async throws -> Void) async -> BluetoothError.Code? {
            do { try await world.run(body) } catch { return (error as? BluetoothError)?.code }
            return nil
        }
        #expect(
            await code { _ = try await connection.readValue(of: characteristic) } == .att(.insufficientAuthentication))
        #expect(
            await code { try await connection.setSubscription(.notify, to: characteristic) }
                == .att(.insufficientAuthentication))
        #expect(!world.radio.isBonded(world.client, world.server))
        world.client.setPairing(.succeeds)
        #expect(try await world.run { try await connection.readValue(of: characteristic) } == [7])
        try await world.run { try await connection.setSubscription(.notify, to: characteristic) }
        #expect(world.radio.isBonded(world.client, world.server))

        // Bonded, but the peer refuses to encrypt a new connection.
        connection.disconnect()
        world.settle()
        world.server.setPairing(.refused)
        let (second, _) = try await world.connect()
        #expect(await code { _ = try await second.readValue(of: characteristic) } == .att(.insufficientEncryption))
    }

    @Test func anUnansweredRequestEndsTheConnection() async throws {
        let world = try World()
        let service = try await world.publish()
        let (connection, owner) = try await world.connect()
        let start = world.time.now
        let last = Mutex<[String?]>([])
        for milliseconds in [29_999, 30_001] {
            world.time.schedule(at: start + .milliseconds(milliseconds)) {
                last.withLock { $0.append(owner.journal.all.last) }
            }
        }
        await #expect {
            try await world.run { try await connection.readValue(of: service.characteristics[0]) }
        } throws: {
            ($0 as? BluetoothError)?.code == .timedOut
        }
        world.time.advance(to: start + .seconds(31))
        let (before, after) = (last.withLock { $0.first }, last.withLock { $0.last })
        #expect(before != "disconnected timedOut" && after == "disconnected timedOut")
    }

    @Test func theLastOwnerOfALinkEndsIt() async throws {
        let world = try World()
        let characteristic = try await world.publish().characteristics[0]
        let (first, firstOwner) = try await world.connect()
        let other = world.client.openCentral(CentralOwner())
        defer { other.close() }
        let (second, secondOwner) = try await world.connect(other)
        try await world.run {
            try await first.setSubscription(.notify, to: characteristic)
            try await second.setSubscription(.notify, to: characteristic)
        }
        #expect(world.peripheralOwner.journal.count("subscribed") == 1)
        #expect(try world.peripheral.tryUpdateValue(([5] as [UInt8]).span.bytes, of: characteristic, for: .all))
        world.settle()
        #expect(firstOwner.values.withLock { $0 } == [[5]] && secondOwner.values.withLock { $0 } == [[5]])
        first.disconnect()
        world.settle()
        #expect(firstOwner.journal.all.last == "disconnected disconnectedLocally")
        #expect(world.peripheralOwner.journal.count("unsubscribed") == 0)
        second.disconnect()
        world.settle()
        #expect(world.peripheralOwner.journal.count("disconnected") == 1)
    }

    @Test func aConnectionEndsWhenNobodyRefersToIt() async throws {
        let world = try World()
        _ = try await world.publish()
        do {
            let (connection, _) = try await world.connect()
            #expect(world.central.retrieveConnectedPeripherals(offering: [testService]) == [connection.peripheral])
        }
        world.settle()
        #expect(world.central.retrieveConnectedPeripherals(offering: [testService]).isEmpty)
    }

    @Test func queuedValuesGoOutBeforeADisconnection() async throws {
        let world = try World()
        let characteristic = try await world.publish().characteristics[0]
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: characteristic) }
        for value in 0..<5 as Range<UInt8> {
            #expect(try world.peripheral.tryUpdateValue([value].span.bytes, of: characteristic, for: .all))
        }
        world.peripheral.disconnect(try #require(world.peripheralOwner.centrals.first))
        world.settle()
        #expect(owner.values.withLock { $0.count } == 5)
        #expect(owner.journal.all.last == "disconnected disconnectedByPeer")
    }

    @Test func configurationsOutsideTheirRangeAreRefused() {
        typealias Configuration = LoopbackRadio.Configuration
        let wrong: [(inout Configuration) -> Void] = [
            { $0.transmitQueueDepth = 0 }, { $0.transmitQueueDepth = 5000 }, { $0.attMTU = 22 }, { $0.attMTU = 518 },
            { $0.connectionInterval = .microseconds(1) }, { $0.packetsPerEvent = 0 }, { $0.rssi = 21 },
            { $0.advertisingInterval = .zero }, { $0.supervisionTimeout = .zero }, { $0.requestTimeout = .zero },
            { $0.l2capMTU = 22 }, { $0.l2capMPS = 22 }, { $0.l2capCredits = 0 },
            {
                $0.l2capMTU = 65_535; $0.l2capCredits = 1024
            },
            { $0.faults = .init(probabilities: [.lose: 1.5]) }, { $0.faults = .init(script: [.init(.lose, at: 0)]) },
            { $0.faults = .init(probabilities: [.lose: 0.6, .double: 0.6]) }, { $0.faults.wrongMTU = 600 },
        ]
        for change in wrong {
            var configuration = Configuration()
            change(&configuration)
            #expect { _ = try LoopbackRadio(configuration: configuration) } throws: {
                ($0 as? FerryError)?.code == .invalidConfiguration
            }
        }
    }
}
