import Ferry
import FerryBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

@Suite(.tags(.adapter)) struct ConnectionTests {
    @Test func aScanFindsAndConnects() async throws {
        let world = try World()
        _ = try await world.publish()
        try world.central.startScan(ScanRequest(services: [testService]))
        #expect(world.centralOwner.journal.all == ["state poweredOn"])
        world.time.advance(by: .milliseconds(20))
        #expect(world.centralOwner.journal.all == ["state poweredOn", "discovered server -40"])
        world.time.advance(by: .seconds(1))
        #expect(world.centralOwner.journal.count("discovered") == 1)
        let peer = try #require(world.centralOwner.found.withLock { $0.first }).peripheral
        let central = world.central
        let owner = ConnectionOwner()
        let connection = try await world.run { try await central.connect(to: peer, events: owner) }
        #expect(connection.attMTU == 23 || connection.attMTU == 185)
        world.settle()
        #expect(owner.journal.all == ["mtu 185"])
        #expect(connection.attMTU == 185)
    }

    @Test func notificationsArriveInOrderUnderBackpressure() async throws {
        let world = try World()
        let service = try await world.publish()
        let characteristic = service.characteristics[0]
        let (connection, owner) = try await world.connect()
        try await world.run {
            let services = try await connection.discoverServices([testService])
            let found = try await connection.discoverCharacteristics(nil, of: services[0].id)
            try await connection.setSubscription(.notify, to: found[0].id)
        }
        let central = try #require(world.peripheralOwner.centrals.first)
        #expect(world.peripheral.maximumUpdateValueLength(for: central) == 182)
        var accepted = 0
        while try world.peripheral.tryUpdateValue(
            [UInt8(accepted), 1].span.bytes, of: characteristic, for: .one(central))
        {
            accepted += 1
        }
        #expect(accepted == 8)
        #expect(owner.values.withLock { $0.isEmpty })
        world.settle()
        #expect(owner.values.withLock { $0 } == (0..<8).map { [UInt8($0), 1] })
        #expect(world.peripheralOwner.journal.count("ready") == 1)

        // The ready handler queues more from within the callback, and the pump goes on in the same run.
        let next = Mutex(0)
        let peripheral = world.peripheral
        let fill: @Sendable () -> Void = {
            next.withLock { next in
                while next < 1000,
                    (try? peripheral.tryUpdateValue([UInt8(next & 255)].span.bytes, of: characteristic, for: .all))
                        == true
                { next += 1 }
            }
        }
        world.peripheralOwner.actions.withLock { $0.onReady = fill }
        owner.values.withLock { $0 = [] }
        fill()
        world.settle()
        #expect(owner.values.withLock { $0 } == (0..<1000).map { [UInt8($0 & 255)] })
    }

    @Test func writesOfBothTypesArriveInOrder() async throws {
        let world = try World()
        let service = try await world.publish()
        let characteristic = service.characteristics[0]
        let (connection, owner) = try await world.connect()
        let peripheral = world.peripheral
        world.peripheralOwner.actions.withLock {
            $0.onWriteRequest = { peripheral.respond(to: $0.id, with: .success([])) }
        }
        for value in 0..<8 as Range<UInt8> {
            #expect(try connection.tryWriteValue([value].span.bytes, to: characteristic, type: .withoutResponse))
        }
        #expect(try !connection.tryWriteValue(([9] as [UInt8]).span.bytes, to: characteristic, type: .withoutResponse))
        #expect(try connection.tryWriteValue(([9, 9] as [UInt8]).span.bytes, to: characteristic, type: .withResponse))
        #expect(try !connection.tryWriteValue(([9] as [UInt8]).span.bytes, to: characteristic, type: .withResponse))
        world.settle()
        let written = (0..<8).map { "written [\($0)]" }
        #expect(world.peripheralOwner.journal.all.filter { $0.hasPrefix("writ") } == written + ["write request 0+2"])
        #expect(owner.journal.all.filter { $0 != "mtu 185" } == ["ready", "write answered"])
    }

    @Test func eitherSideDisconnects() async throws {
        let world = try World()
        let service = try await world.publish()
        for byCentral in [true, false] {
            world.peripheralOwner.journal.clear()
            let (connection, owner) = try await world.connect()
            try await world.run { try await connection.setSubscription(.notify, to: service.characteristics[0]) }
            let central = try #require(world.peripheralOwner.centrals.last)
            if byCentral { connection.disconnect() } else { world.peripheral.disconnect(central) }
            world.settle()
            let id = service.characteristics[0].rawValue
            let seen = byCentral ? "disconnectedByPeer" : "disconnectedLocally"
            #expect(
                world.peripheralOwner.journal.all
                    == ["subscribed \(id) notify", "disconnected \(seen)", "unsubscribed \(id)"])
            #expect(
                owner.journal.all.last == "disconnected \(byCentral ? "disconnectedLocally" : "disconnectedByPeer")")
            await #expect(throws: BluetoothError.self) { try await connection.readRSSI() }
        }
    }
}
