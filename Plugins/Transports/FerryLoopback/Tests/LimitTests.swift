import Ferry
import FerryBluetooth
import Synchronization
import TestSupport
import Testing

@testable import FerryLoopback

/// What a channel's receiver does when a chunk comes.
private final class ChunkReceiver: LinkReceiver {
    let journal = Journal()
    struct Action: Sendable { var body: (@Sendable () -> Void)? }
    let onChunk = Mutex(Action())

    func linkIsReady() { journal.add("ready") }
    func linkDidReceive(_ chunk: RawSpan) {
        journal.add("chunk \(chunk.byteCount)")
        onChunk.withLock { $0.body }?()
    }
    func linkDidClose(_ reason: FerryError) { journal.add("closed \(reason.code)") }
}

/// Limits, pauses and ends of the loopback radio, each at its edge.
@Suite(.tags(.adapter)) struct LimitTests {
    /// A channel between the world's adapters, both ends activated.
    private struct Channel {
        let world: World
        /// Kept, for the link ends with it.
        let connection: any PeripheralConnection
        let near: any L2CAPChannel
        let far: any L2CAPChannel
        let sender = ChunkReceiver()
        let receiver = ChunkReceiver()

        init(_ configure: @escaping (inout LoopbackRadio.Configuration) -> Void) async throws {
            let world = try World(configure)
            self.world = world
            _ = try await world.publish()
            let accepted = Mutex<(any L2CAPChannel)?>(nil)
            world.peripheralOwner.actions.withLock {
                $0.onChannel = { channel in accepted.withLock { $0 = channel } }
            }
            let (connection, _) = try await world.connect()
            self.connection = connection
            let peripheral = world.peripheral
            near = try await world.run {
                try await connection.openL2CAPChannel(
                    try await peripheral.publishL2CAPChannel(encryptionRequired: false))
            }
            world.settle()
            far = try #require(accepted.withLock { $0 })
            near.activate(sender)
            far.activate(receiver)
            world.settle()
        }

        func send(_ count: Int) throws -> Bool { try near.trySend([UInt8](repeating: 1, count: count).span.bytes) }
    }

    /// A chunk of 120 bytes with its length is three frames of 50; so long as a credit is left one more is taken.
    @Test func chunksOfSeveralFramesUseUpTheCredits() async throws {
        for (credits, taken) in [(4, 2), (6, 2), (7, 3), (1, 1)] {
            let channel = try await Channel {
                $0.l2capMPS = 50
                $0.l2capCredits = credits
            }
            channel.far.setReceiving(false)
            var sent = 0
            while try channel.send(120), sent < 100 { sent += 1 }
            #expect(sent == taken, "\(credits) credits")
            channel.world.settle()
            #expect(channel.receiver.journal.all == [])
            #expect(channel.sender.journal.all == [])
            channel.far.setReceiving(true)
            channel.world.settle()
            #expect(channel.receiver.journal.all == Array(repeating: "chunk 120", count: taken))
            #expect(channel.sender.journal.all == ["ready"])
            // All credits are back.
            channel.far.setReceiving(false)
            sent = 0
            while try channel.send(120), sent < 100 { sent += 1 }
            #expect(sent == taken, "\(credits) credits, again")
        }
    }

    /// A receiver that pauses when a chunk has come gets no more than there are credits for, that chunk's not among them.
    @Test func creditsStayAwayWhileTheReceiverPauses() async throws {
        let channel = try await Channel { $0.l2capCredits = 3 }
        let far = channel.far
        channel.receiver.onChunk.withLock { $0.body = { far.setReceiving(false) } }
        #expect(try channel.send(10))
        channel.world.settle()
        #expect(channel.receiver.journal.all == ["chunk 10"])
        #expect(try channel.send(11))
        #expect(try channel.send(12))
        #expect(try !channel.send(13), "the first chunk's credit is withheld")
        channel.world.settle()
        #expect(channel.receiver.journal.count("chunk") == 1)
        #expect(channel.sender.journal.count("ready") == 0)
        far.setReceiving(true)
        channel.world.settle()
        #expect(channel.receiver.journal.all == ["chunk 10", "chunk 11"])
        #expect(channel.sender.journal.count("ready") == 1)
        channel.receiver.onChunk.withLock { $0.body = nil }
        far.setReceiving(true)
        channel.world.settle()
        #expect(channel.receiver.journal.all == ["chunk 10", "chunk 11", "chunk 12"])
        // They have come back once, however often it was told to go on.
        for _ in 0..<3 { far.setReceiving(true) }
        far.setReceiving(false)
        var sent = 0
        while try channel.send(1), sent < 100 { sent += 1 }
        #expect(sent == 3)
    }

    @Test func chunksHaveTheirLimits() async throws {
        let channel = try await Channel { $0.l2capMTU = 100 }
        #expect(channel.near.maximumChunkSize == 100)
        #expect(try channel.send(100))
        for (count, code) in [(101, FerryError.Code.chunkTooLarge), (0, .emptyChunk)] {
            let error = #expect(throws: FerryError.self) { try channel.send(count) }
            #expect(error?.code == code)
        }
        channel.near.close()
        #expect(throws: FerryError.self) { try channel.send(1) }
        channel.world.settle()
        // What was sent before it goes first; each side is told once, and of its own end.
        #expect(channel.receiver.journal.all == ["chunk 100", "closed disconnected"])
        #expect(channel.sender.journal.all == ["closed closed"])
        channel.near.close()
        channel.far.close()
        channel.world.settle()
        #expect(channel.receiver.journal.count("closed") == 1)
        #expect(channel.sender.journal.count("closed") == 1)
    }

    @Test func aClosedChannelWaitsForAPausedReceiverNoLongerThanTheSupervisionTimeout() async throws {
        let channel = try await Channel { $0.supervisionTimeout = .seconds(3) }
        channel.far.setReceiving(false)
        #expect(try channel.send(10))
        channel.world.settle()
        channel.near.close()
        channel.world.time.advance(by: .milliseconds(2_999))
        #expect(channel.receiver.journal.all == [])
        channel.world.time.advance(by: .milliseconds(1))
        #expect(channel.receiver.journal.all == ["closed disconnected"])
        #expect(channel.sender.journal.all == ["closed closed"])
    }

    /// One frame in each second: the queue takes four times the supervision timeout.
    @Test func aClosedChannelWaitsForAQueueThatMoves() async throws {
        let channel = try await Channel {
            $0.connectionInterval = .seconds(1)
            $0.packetsPerEvent = 1
            $0.supervisionTimeout = .seconds(2)
        }
        for count in 1...8 { #expect(try channel.send(count)) }
        channel.near.close()
        channel.world.time.advance(by: .seconds(12))
        #expect(channel.receiver.journal.all == (1...8).map { "chunk \($0)" } + ["closed disconnected"])
        #expect(channel.sender.journal.all == ["closed closed"])
    }

    @Test func thereAre128NumbersForChannels() async throws {
        let world = try World()
        let peripheral = world.peripheral
        let numbers = try await world.run {
            var numbers: [UInt16] = []
            for _ in 0..<128 {
                numbers.append(try await peripheral.publishL2CAPChannel(encryptionRequired: false).rawValue)
            }
            return numbers
        }
        #expect(numbers == Array(0x80...0xFF))
        await #expect { try await peripheral.publishL2CAPChannel(encryptionRequired: false) } throws: {
            ($0 as? BluetoothError)?.code == .outOfResources
        }
        peripheral.unpublishL2CAPChannel(PSM(rawValue: 0x90))
        let again = try await world.run { try await peripheral.publishL2CAPChannel(encryptionRequired: false).rawValue }
        #expect(again == 0x90)
        // A role that closes gives all of its own back.
        peripheral.close()
        let next = world.server.openPeripheral(PeripheralOwner())
        let first = try await world.run { try await next.publishL2CAPChannel(encryptionRequired: false).rawValue }
        #expect(first == 0x80)
    }

    // MARK: Connecting

    /// The outcome of a connection that a task asks for, when `end` has come in its way.
    private func pending(
        _ world: World, until end: @escaping @Sendable (Task<BluetoothError.Code?, Never>) -> Void
    ) throws -> BluetoothError.Code? {
        let (central, peer) = (world.central, world.client.identifier(of: world.server))
        return try world.time.run {
            let task = Task { () -> BluetoothError.Code? in
                do throws(BluetoothError) {
                    _ = try await central.connect(to: peer, events: ConnectionOwner())
                    return nil
                } catch { return error.code }
            }
            try await world.time.sleep(for: .seconds(1))
            #expect(world.radio.locked { $0.attempts[0].count } == 1)
            end(task)
            return await task.value
        }
    }

    @Test func aPendingConnectionEndsWithThePowerOrItsOwner() async throws {
        let ends: [@Sendable (World) -> Void] = [
            { $0.client.setState(.poweredOff) }, { $0.central.close() },
        ]
        for (end, code) in zip(ends, [BluetoothError.Code.notPoweredOn, .roleClosed]) {
            // Nobody advertises.
            let world = try World()
            #expect(try pending(world) { _ in end(world) } == code)
            // Nor is it made later.
            world.client.setState(.poweredOn)
            let other = world.client.openCentral(CentralOwner())
            _ = try await world.publish()
            world.time.advance(by: .seconds(5))
            #expect(other.retrieveConnectedPeripherals(offering: [testService]).isEmpty)
        }
    }

    @Test func aCancelledConnectionIsNotMadeLater() async throws {
        let world = try World()
        #expect(try pending(world) { $0.cancel() } == .cancelled)
        _ = try await world.publish()
        world.time.advance(by: .seconds(5))
        #expect(world.central.retrieveConnectedPeripherals(offering: [testService]).isEmpty)
    }

    // MARK: Roles that end

    /// Two roles of one adapter share a central's link: a pause of one that is closed holds the other up no more.
    @Test func aPauseEndsWithItsRole() async throws {
        let world = try World()
        let other = PeripheralOwner()
        let second = world.server.openPeripheral(other)
        _ = try await world.publish()
        let characteristic = try await world.run { try await second.publish(World.definition()) }.characteristics[0]
        let (connection, _) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: characteristic) }
        world.settle()
        let central = try #require(other.centrals.first)
        world.peripheral.setReceiving(false, from: central)
        let value: [UInt8] = [1]
        #expect(try connection.tryWriteValue(value.span.bytes, to: characteristic, type: .withoutResponse))
        world.settle()
        #expect(other.journal.count("written") == 0)
        world.peripheral.close()
        world.settle()
        #expect(other.journal.count("written") == 1)
        #expect(try connection.tryWriteValue(value.span.bytes, to: characteristic, type: .withoutResponse))
        world.settle()
        #expect(other.journal.count("written") == 2)
    }

    @Test func aClosedRoleTakesItsServicesAndNothingElse() async throws {
        let world = try World()
        let second = world.server.openPeripheral(PeripheralOwner())
        let first = try await world.publish().characteristics[0]
        let other = try await world.run { try await second.publish(World.definition()) }.characteristics[0]
        let (connection, owner) = try await world.connect()
        let psm = try await world.run { try await second.publishL2CAPChannel(encryptionRequired: false) }
        second.close()
        world.settle()
        #expect(owner.journal.count("modified") == 1)
        let value: [UInt8] = [1]
        #expect(throws: BluetoothError.self) {
            try connection.tryWriteValue(value.span.bytes, to: other, type: .withoutResponse)
        }
        #expect(try connection.tryWriteValue(value.span.bytes, to: first, type: .withoutResponse))
        await #expect { try await world.run { try await connection.openL2CAPChannel(psm) } } throws: {
            ($0 as? BluetoothError)?.code == .channelRefused
        }
        world.settle()
        #expect(world.peripheralOwner.journal.count("written [1]") == 1)
        #expect(owner.journal.count("disconnected") == 0)
    }

    @Test func anUnpublishedServiceEndsItsSubscriptions() async throws {
        let world = try World { $0.transmitQueueDepth = 4 }
        let service = try await world.publish()
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: service.characteristics[0]) }
        world.peripheral.unpublish(service.id)
        world.settle()
        #expect(owner.journal.count("modified [\(service.id.rawValue)]") == 1)
        let again = try await world.run { try await world.peripheral.publish(World.definition()) }
        #expect(again.characteristics[0] != service.characteristics[0])
        let value: [UInt8] = [1]
        #expect(try world.peripheral.tryUpdateValue(value.span.bytes, of: again.characteristics[0], for: .all))
        world.settle()
        #expect(owner.values.withLock { $0 } == [])
        // It is gone already when the connection ends.
        connection.disconnect()
        world.settle()
        #expect(world.peripheralOwner.journal.count("unsubscribed") == 0)
    }

    // MARK: Queues

    @Test(arguments: [1, 4]) func aQueueHoldsWhatItIsSaidToHold(depth: Int) async throws {
        let world = try World {
            $0.transmitQueueDepth = depth
            $0.connectionInterval = .milliseconds(50)
        }
        let characteristic = try await world.publish().characteristics[0]
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: characteristic) }
        world.peripheralOwner.journal.clear()
        connection.setReceiving(false)
        let value: [UInt8] = [1]
        var counts = [0, 0]
        while try world.peripheral.tryUpdateValue(value.span.bytes, of: characteristic, for: .all), counts[0] < 99 {
            counts[0] += 1
        }
        while try connection.tryWriteValue(value.span.bytes, to: characteristic, type: .withoutResponse), counts[1] < 99
        {
            counts[1] += 1
        }
        #expect(counts == [depth, depth])
        world.time.advance(by: .seconds(1))
        // Nothing crosses to who has paused, and nobody is told that there is room.
        #expect(owner.journal.count("value") == 0)
        #expect(world.peripheralOwner.journal.count("ready") == 0)
        #expect(world.peripheralOwner.journal.count("written") == depth)
        #expect(owner.journal.count("ready") == 1)
        connection.setReceiving(true)
        world.time.advance(by: .seconds(1))
        #expect(owner.journal.count("value") == depth)
        #expect(world.peripheralOwner.journal.count("ready") == 1)
    }
}
