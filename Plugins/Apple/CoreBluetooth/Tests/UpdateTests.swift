import CoreBluetooth
import Ferry
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// `updateValue` and what becomes of the values.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct UpdateTests {
    /// Fills the queue, waits for the ready signal, and has everything arrive once and in order.
    @Test func refusesWhenTheQueueIsFullAndSaysWhenItIsReady() async throws {
        let time = VirtualTime()
        let pair = try Pair(time: time) {
            $0.transmitQueueDepth = 4
            $0.connectionInterval = .milliseconds(5)
        }
        let peripheral = PeripheralSide(on: pair.near)
        let central = CentralSide(on: pair.far)
        try await time.passing {
            try await peripheral.begin()
            _ = try await central.subscribe()
            try await peripheral.journal.wait(for: "subscribed")
        }

        var sent = 0
        var refusals = 0
        while sent < 40 {
            let value = Data([UInt8(sent)])
            if peripheral.manager.updateValue(value, for: peripheral.characteristic, onSubscribedCentrals: nil) {
                sent += 1
                continue
            }
            refusals += 1
            try await time.passing { try await peripheral.journal.wait(for: "ready", refusals) }
        }
        try await time.passing { try await central.journal.wait(for: "value", 40) }
        #expect(central.values.withLock { $0 } == (0..<40).map { Data([UInt8($0)]) })
        #expect(refusals == 9)
        #expect(peripheral.journal.count("ready") == refusals, "one ready signal for each refusal")
    }

    @Test(arguments: [23, 185, 517]) func cutsToWhatTheCentralTakes(attMTU: Int) async throws {
        let pair = try Pair { $0.attMTU = attMTU }
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
        try await peripheral.journal.wait(for: "subscribed")

        let subscriber = try #require(peripheral.centrals.withLock { $0.first })
        let most = min(attMTU - 3, 512)
        #expect(subscriber.maximumUpdateValueLength == most)
        let long = Data((0..<600).map { UInt8(truncatingIfNeeded: $0) })
        #expect(peripheral.manager.updateValue(long, for: peripheral.characteristic, onSubscribedCentrals: nil))
        try await central.journal.wait(for: "value")
        #expect(central.values.withLock { $0 } == [long.prefix(most)])
    }

    /// An indication keeps its central's place until it is confirmed.
    @Test func indicatesOneByOne() async throws {
        let pair = try Pair { $0.supervisionTimeout = .seconds(32) }
        let peripheral = PeripheralSide(on: pair.near, properties: [.indicate])
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
        try await peripheral.journal.wait(for: "subscribed")

        func update(_ byte: UInt8) -> Bool {
            peripheral.manager.updateValue(Data([byte]), for: peripheral.characteristic, onSubscribedCentrals: nil)
        }
        pair.radio.setInRange(false, between: pair.near, and: pair.far)
        #expect(update(1))
        #expect(!update(2), "the first has not been confirmed")
        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        try await peripheral.journal.wait(for: "ready")
        #expect(update(2))
        try await central.journal.wait(for: "value", 2)
        #expect(central.values.withLock { $0 } == [Data([1]), Data([2])])
    }

    /// Recipients that are not subscribed are passed over; with nobody subscribed a value goes nowhere, and that is no
    /// failure.
    @Test func sendsToSubscribersOnly() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let third = pair.radio.makeAdapter()
        let (one, other) = (CentralSide(on: pair.far), CentralSide(on: third))
        #expect(
            peripheral.manager.updateValue(Data([0]), for: peripheral.characteristic, onSubscribedCentrals: nil))
        _ = try await one.subscribe()
        try await peripheral.journal.wait(for: "subscribed", 1)
        _ = try await other.subscribe()
        try await peripheral.journal.wait(for: "subscribed", 2)
        let centrals = peripheral.centrals.withLock { $0 }
        #expect(peripheral.characteristic.subscribedCentrals == centrals)

        func update(_ byte: UInt8, _ centrals: [CBCentral]?) {
            #expect(
                peripheral.manager.updateValue(
                    Data([byte]), for: peripheral.characteristic, onSubscribedCentrals: centrals))
        }
        update(1, [centrals[0]])
        update(2, [centrals[1]])
        update(3, nil)
        update(4, centrals)
        try await one.journal.wait(for: "value", 3)
        try await other.journal.wait(for: "value", 3)
        #expect(one.values.withLock { $0 } == [Data([1]), Data([3]), Data([4])])
        #expect(other.values.withLock { $0 } == [Data([2]), Data([3]), Data([4])])

        // One leaves: its subscription ends, and the values for it are passed over.
        let peer = one.found.withLock { $0.peripheral! }
        one.manager.cancelPeripheralConnection(peer)
        try await peripheral.journal.wait(for: "unsubscribed")
        #expect(peripheral.characteristic.subscribedCentrals == [centrals[1]])
        #expect(centrals[0].maximumUpdateValueLength == 182, "the last one known")
        update(5, [centrals[0]])
        update(6, nil)
        try await other.journal.wait(for: "value", 4)
        #expect(other.values.withLock { $0.last } == Data([6]))
    }

    /// Values that come with the answer to a subscription are delivered after it, none lost.
    @Test func deliversNothingBeforeTheSubscriptionIsReported() async throws {
        let pair = try Pair { $0.transmitQueueDepth = 64 }
        let peripheral = PeripheralSide(on: pair.near)
        peripheral.onSubscribe = { [weak peripheral] _ in
            guard let peripheral else { return }
            for byte in 0..<50 {
                peripheral.manager.updateValue(
                    Data([UInt8(byte)]), for: peripheral.characteristic, onSubscribedCentrals: nil)
            }
        }
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
        try await central.journal.wait(for: "value", 50)
        #expect(central.values.withLock { $0 } == (0..<50).map { Data([UInt8($0)]) })
        let lines = central.journal.all
        #expect(lines.firstIndex { $0.hasPrefix("value") }! > lines.firstIndex { $0.hasPrefix("notifying") }!)
    }

    @Test func endsASubscription() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.subscribe()
        #expect(characteristic.isNotifying)
        peer.setNotifyValue(false, for: characteristic)
        try await central.journal.wait(for: "notifying false ok")
        try await peripheral.journal.wait(for: "unsubscribed")
        #expect(!characteristic.isNotifying)
        #expect(peripheral.characteristic.subscribedCentrals == [])
    }
}
