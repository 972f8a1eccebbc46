import Ferry
import FerryBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

/// What the radio's GATT server answers by itself, and how it asks its owner for the rest.
@Suite(.tags(.adapter)) struct ServerTests {
    @Test func aLongValueIsReadInPartsOfATTMTU() async throws {
        let world = try World { $0.attMTU = 23 }
        let characteristic = try await world.publish().characteristics[0]
        let peripheral = world.peripheral
        let value = (0..<50).map { UInt8($0) }
        world.peripheralOwner.actions.withLock {
            $0.onRead = { request in
                peripheral.respond(to: request.id, with: .success(Array(value[request.offset...])))
            }
        }
        let (connection, _) = try await world.connect()
        #expect(try await world.run { try await connection.readValue(of: characteristic) } == value)
        let reads = world.peripheralOwner.journal.all.filter { $0.hasPrefix("read") }
        #expect(reads == [0, 22, 44].map { "read \(characteristic.rawValue) at \($0)" })
    }

    /// Core Specification 5.4, Vol 3, Part G, 3.3.3.3.
    @Test func theConfigurationDescriptorSaysWhatIsSubscribedTo() async throws {
        let world = try World()
        let characteristic = try await world.publish(World.definition([.read, .notify, .indicate])).characteristics[0]
        let (connection, _) = try await world.connect()
        let descriptors = try await world.run { try await connection.discoverDescriptors(of: characteristic) }
        let descriptor = try #require(descriptors.first { $0.uuid == .clientCharacteristicConfiguration }).id
        let steps: [(Subscription?, UInt8)] = [(nil, 0), (.notify, 1), (.indicate, 2), (nil, 0)]
        for (subscription, bits) in steps {
            try await world.run { try await connection.setSubscription(subscription, to: characteristic) }
            #expect(try await world.run { try await connection.readValue(of: descriptor) } == [bits, 0])
        }
        let told = world.peripheralOwner.journal.all.filter { $0.contains("subscribed") }
        let number = characteristic.rawValue
        #expect(told == ["subscribed \(number) notify", "subscribed \(number) indicate", "unsubscribed \(number)"])
    }

    @Test func twoOwnersOfALinkAreOneSubscriber() async throws {
        let world = try World()
        let characteristic = try await world.publish().characteristics[0]
        let (first, _) = try await world.connect()
        let owner = CentralOwner()
        let role = world.client.openCentral(owner)
        world.settle()
        let (second, _) = try await world.connect(role)
        let journal = world.peripheralOwner.journal
        for connection in [first, second] {
            try await world.run { try await connection.setSubscription(.notify, to: characteristic) }
        }
        #expect(journal.count("subscribed") == 1)
        try await world.run { try await first.setSubscription(nil, to: characteristic) }
        #expect(journal.count("unsubscribed") == 0)
        try await world.run { try await second.setSubscription(nil, to: characteristic) }
        #expect(journal.count("unsubscribed") == 1)
        role.close()
    }
}
