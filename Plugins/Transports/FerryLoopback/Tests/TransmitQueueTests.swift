import Ferry
import FerryBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

/// The one transmit queue of a peripheral and how its centrals share it.
@Suite(.tags(.adapter)) struct TransmitQueueTests {
    /// A world with several subscribed centrals, in the order of their subscriptions.
    private struct Crowd {
        let world: World
        let characteristic: AttributeID
        var centrals: [ConnectedCentral] = []
        /// A role ends with its last reference.
        var roles: [any CentralRole] = []
        var connections: [(any PeripheralConnection, ConnectionOwner)] = []

        init(
            _ count: Int, properties: CharacteristicProperties = .notify, as kind: Subscription = .notify,
            _ configure: (inout LoopbackRadio.Configuration) -> Void = { _ in }
        ) async throws {
            world = try World(configure)
            let characteristic = try await world.publish(World.definition(properties)).characteristics[0]
            self.characteristic = characteristic
            for _ in 0..<count {
                let adapter = world.radio.makeAdapter()
                let central = adapter.openCentral(CentralOwner())
                let (connection, owner) = try await world.connect(central, on: adapter)
                try await world.run { try await connection.setSubscription(kind, to: characteristic) }
                world.settle()
                centrals.append(try #require(world.peripheralOwner.centrals.last))
                connections.append((connection, owner))
                roles.append(central)
            }
            world.settle()
        }

        func update(_ value: UInt8, for recipients: UpdateRecipients) throws -> Bool {
            try world.peripheral.tryUpdateValue([value].span.bytes, of: characteristic, for: recipients)
        }
        func values(_ index: Int) -> [[UInt8]] { connections[index].1.values.withLock { $0 } }
    }

    @Test func placesAreSharedEqually() async throws {
        let crowd = try await Crowd(4)
        for central in crowd.centrals {
            var taken = 0
            while try crowd.update(1, for: .one(central)) { taken += 1 }
            #expect(taken == 2)
        }
        crowd.world.settle()
        #expect((0..<4).allSatisfy { crowd.values($0).count == 2 })
    }

    @Test func oneStuckCentralOfTenCostsTheOthersLittle() async throws {
        let crowd = try await Crowd(10)
        crowd.connections[0].0.setReceiving(false)
        let next = Mutex([Int](repeating: 0, count: 10))
        let fill: @Sendable () -> Void = {
            next.withLock { next in
                for index in 0..<10 {
                    while next[index] < 200,
                        (try? crowd.update(UInt8(next[index]), for: .one(crowd.centrals[index]))) == true
                    {
                        next[index] += 1
                    }
                }
            }
        }
        crowd.world.peripheralOwner.actions.withLock { $0.onReady = fill }
        fill()
        crowd.world.settle()
        #expect(crowd.values(0).isEmpty)
        for index in 1..<10 { #expect(crowd.values(index) == (0..<200).map { [UInt8($0)] }) }
        crowd.connections[0].0.setReceiving(true)
        crowd.world.settle()
        #expect(crowd.values(0) == (0..<200).map { [UInt8($0)] })
    }

    @Test func aValueForAllTakesAPlaceOfEachOrNone() async throws {
        let crowd = try await Crowd(2)
        crowd.connections[1].0.setReceiving(false)
        var taken = 0
        while try crowd.update(UInt8(taken), for: .all) { taken += 1 }
        #expect(taken == 4)
        crowd.world.settle()
        #expect(crowd.values(0).count == 4)
        #expect(try !crowd.update(4, for: .all))
        #expect(try crowd.update(5, for: .one(crowd.centrals[0])))
        crowd.world.settle()
        #expect(crowd.values(0).last == [5] && crowd.values(1).isEmpty)
        crowd.connections[1].0.disconnect()
        crowd.world.time.advance(by: .seconds(2))
        #expect(try crowd.update(6, for: .all))
    }

    @Test func anUnconfirmedIndicationHoldsOneCentralOnly() async throws {
        let crowd = try await Crowd(2, properties: .indicate, as: .indicate)
        crowd.connections[0].0.setReceiving(false)
        #expect(try crowd.update(1, for: .one(crowd.centrals[0])))
        #expect(try !crowd.update(2, for: .one(crowd.centrals[0])))
        for value in 0..<5 as Range<UInt8> {
            #expect(try crowd.update(value, for: .one(crowd.centrals[1])))
            crowd.world.settle()
        }
        #expect(crowd.values(1).count == 5)
        crowd.connections[0].0.setReceiving(true)
        crowd.world.settle()
        #expect(try crowd.update(2, for: .one(crowd.centrals[0])))
        crowd.world.settle()
        #expect(crowd.values(0) == [[1], [2]])
    }

    @Test func anIndicationThatIsNotConfirmedEndsTheConnection() async throws {
        let crowd = try await Crowd(1, properties: .indicate, as: .indicate)
        crowd.connections[0].0.setReceiving(false)
        #expect(try crowd.update(1, for: .all))
        crowd.world.time.advance(by: .seconds(29))
        #expect(crowd.connections[0].1.journal.count("disconnected") == 0)
        crowd.world.time.advance(by: .seconds(1))
        #expect(crowd.connections[0].1.journal.all.last == "disconnected disconnectedByPeer")
        #expect(crowd.world.peripheralOwner.journal.count("disconnected timedOut") == 1)
    }

    @Test func anEventCarriesAsManyPacketsAsItMay() async throws {
        let crowd = try await Crowd(1) { configuration in
            configuration.connectionInterval = .milliseconds(10)
            configuration.packetsPerEvent = 3
            configuration.transmitQueueDepth = 2
        }
        let fill: @Sendable () -> Void = { while (try? crowd.update(1, for: .all)) == true {} }
        crowd.world.peripheralOwner.actions.withLock { $0.onReady = fill }
        fill()
        #expect(crowd.values(0).isEmpty)
        for event in 1...5 {
            crowd.world.time.advance(by: .milliseconds(10))
            #expect(crowd.values(0).count == 3 * event)
        }
    }

    @Test func anAcknowledgedWriteTakesTwoIntervals() async throws {
        let world = try World { $0.connectionInterval = .milliseconds(10) }
        let characteristic = try await world.publish(World.definition(.write, permissions: .writeable)).characteristics[
            0]
        let (connection, owner) = try await world.connect()
        world.time.advance(by: .seconds(1))
        let peripheral = world.peripheral
        world.peripheralOwner.actions.withLock {
            $0.onWriteRequest = { peripheral.respond(to: $0.id, with: .success([])) }
        }
        let write: @Sendable () -> Void = {
            _ = try? connection.tryWriteValue(([1] as [UInt8]).span.bytes, to: characteristic, type: .withResponse)
        }
        write()
        let start = world.time.now
        for _ in 0..<10 {
            let before = owner.journal.count("write answered")
            while owner.journal.count("write answered") == before { world.time.runNext() }
            write()
        }
        let intervals = (world.time.now - start) / .milliseconds(10)
        #expect((19...21).contains(intervals))
    }
}
