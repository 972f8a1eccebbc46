import FerryBluetooth
import Foundation
import TestSupport
import Testing

@testable import CoreBluetooth

/// A peripheral manager over an adapter that does what the test says: every order of events, on purpose.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct ScriptedPeripheralTests {
    private static let central = ConnectedCentral(peer: PeerID(rawValue: 55), connection: 1)
    private static let characteristic = AttributeID(rawValue: 101)

    private func side(_ adapter: ScriptedAdapter) async throws -> PeripheralSide {
        let side = PeripheralSide(on: adapter)
        try await side.journal.wait(for: "state poweredOn")
        return side
    }

    private func published(_ adapter: ScriptedAdapter) async throws -> (PeripheralSide, any PeripheralRoleEvents) {
        let side = try await side(adapter)
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok")
        return (side, try some(adapter.peripheral.events.current))
    }

    private func read(_ number: UInt64, _ characteristic: UInt32) -> ReadRequest {
        ReadRequest(
            id: RequestID(rawValue: number), central: Self.central,
            characteristic: AttributeID(rawValue: characteristic), offset: 0)
    }

    private func write(_ number: UInt64, _ characteristics: UInt32...) -> WriteRequest {
        WriteRequest(
            id: RequestID(rawValue: number), central: Self.central,
            parts: characteristics.map {
                .init(characteristic: AttributeID(rawValue: $0), offset: 0, value: [1])
            })
    }

    // MARK: Advertising

    @Test func whatIsStoppedWhileItStartsDoesNotGoOn() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        adapter.peripheral.gate.hold()
        side.manager.startAdvertising(nil)
        try await adapter.journal.wait(for: "start advertising")
        side.manager.stopAdvertising()
        #expect(!side.manager.isAdvertising)
        adapter.peripheral.gate.release()
        try await side.journal.wait(for: "advertising")
        #expect(!adapter.peripheral.isAdvertising.current)
        #expect(!side.manager.isAdvertising)
        #expect(adapter.journal.count("stop advertising") == 2)
    }

    @Test func whatIsStartedAnewGoesOn() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        adapter.peripheral.gate.hold()
        side.manager.startAdvertising(nil)
        try await adapter.journal.wait(for: "start advertising")
        side.manager.stopAdvertising()
        side.manager.startAdvertising(nil)
        adapter.peripheral.gate.release()
        try await side.journal.wait(for: "advertising ok", 2)
        #expect(adapter.peripheral.isAdvertising.current)
        #expect(side.manager.isAdvertising)
        #expect(adapter.journal.count("stop advertising") == 1)
    }

    @Test func advertisingStartsOnceUnlessItFailedOrEnded() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        adapter.peripheral.failure.current = BluetoothError(.advertisingFailed, "no")
        side.manager.startAdvertising(nil)
        try await side.journal.wait(for: "advertising")
        #expect(side.journal.count("advertising ok") == 0)
        #expect(!side.manager.isAdvertising)
        side.manager.startAdvertising(nil)
        try await side.journal.wait(for: "advertising ok")
        #expect(side.manager.isAdvertising)
        side.manager.startAdvertising(nil)
        try await side.journal.wait(for: "advertising CBError alreadyAdvertising")
        #expect(side.manager.isAdvertising)
        let events = try some(adapter.peripheral.events.current)
        events.peripheralDidStopAdvertising(BluetoothError(.advertisingFailed, "gone"))
        try await untilOnQueue { !side.manager.isAdvertising }
        side.manager.startAdvertising(nil)
        try await side.journal.wait(for: "advertising ok", 2)
        #expect(adapter.journal.count("start advertising") == 3)
    }

    private func untilOnQueue(_ condition: @escaping @Sendable () -> Bool) async throws {
        try await until("what the queue does") { condition() }
    }

    // MARK: Services

    /// Requests that come while a service is being published wait for it, in their order; those for nothing are refused.
    @Test func earlyRequestsAreDeliveredOrRefused() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        let events = try some(adapter.peripheral.events.current)
        adapter.peripheral.gate.hold()
        side.manager.add(side.service)
        try await adapter.journal.wait(for: "publish")
        events.peripheralDidReceive(read(1, 101))
        events.peripheralDidReceive(read(2, 999))
        events.peripheralDidReceive(write(3, 101))
        events.peripheralDidReceive(write(4, 999))
        events.peripheralDidReceive(read(5, 101))
        #expect(adapter.journal.count("respond") == 0)
        adapter.peripheral.gate.release()
        try await adapter.journal.wait(for: "respond", 5)
        #expect(adapter.journal.count("respond 2 error 10") == 1)
        #expect(adapter.journal.count("respond 4 error 10") == 1)
        let delivered = side.journal.all.filter { $0.hasPrefix("read") || $0.hasPrefix("write") }
        #expect(delivered == ["read at 0", "write 0+1", "read at 0"])
        // From then on nothing waits.
        events.peripheralDidReceive(read(6, 999))
        #expect(adapter.journal.count("respond 6 error 10") == 1)
        events.peripheralDidReceive(read(7, 101))
        try await adapter.journal.wait(for: "respond 7 []")
    }

    /// Also what is for a service that has long been there, when it comes behind what waits.
    @Test func nothingOvertakesWhatWaits() async throws {
        let adapter = ScriptedAdapter()
        let (side, events) = try await published(adapter)
        adapter.peripheral.gate.hold()
        let other = CBMutableService(type: CBUUID(string: "1234"), primary: true)
        other.characteristics = [
            CBMutableCharacteristic(
                type: CBUUID(string: "1235"), properties: .read, value: nil, permissions: .readable)
        ]
        side.manager.add(other)
        try await adapter.journal.wait(for: "publish", 2)
        events.peripheralDidReceive(read(1, 101))
        events.peripheralDidReceive(read(2, 201))
        events.peripheralDidReceive(read(3, 101))
        try await adapter.journal.wait(for: "respond 1")
        side.checked.queue.sync {}
        #expect(adapter.journal.count("respond") == 1)
        adapter.peripheral.gate.release()
        try await adapter.journal.wait(for: "respond", 3)
        #expect(adapter.journal.all.filter { $0.hasPrefix("respond") } == (1...3).map { "respond \($0) []" })
    }

    @Test func aFailedPublicationRefusesWhatWaitedForIt() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        let events = try some(adapter.peripheral.events.current)
        adapter.peripheral.gate.hold()
        adapter.peripheral.failure.current = BluetoothError(.notSupported, "no")
        side.manager.add(side.service)
        try await adapter.journal.wait(for: "publish")
        events.peripheralDidReceive(read(1, 101))
        adapter.peripheral.gate.release()
        try await adapter.journal.wait(for: "respond 1 error 10")
        try await side.journal.wait(for: "added \(testService)")
        #expect(side.journal.count("added \(testService) ok") == 0)
        // It can be added again.
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok")
    }

    @Test func aWithdrawnServiceKeepsNothing() async throws {
        let adapter = ScriptedAdapter()
        let (side, events) = try await published(adapter)
        events.central(Self.central, didSubscribeTo: Self.characteristic, as: .notify)
        events.central(Self.central, didSubscribeTo: Self.characteristic, as: .notify)
        try await side.journal.wait(for: "subscribed", 2)
        #expect(side.characteristic.subscribedCentrals?.count == 1)
        side.manager.remove(side.service)
        try await adapter.journal.wait(for: "unpublish 100")
        #expect(side.characteristic.subscribedCentrals?.isEmpty == true)
        #expect(
            MisuseLog.count("has not been added") {
                side.manager.updateValue(Data([1]), for: side.characteristic, onSubscribedCentrals: nil)
            } == 1)
        events.peripheralDidReceive(read(1, 101))
        try await adapter.journal.wait(for: "respond 1 error 10")
        // Twice is once.
        side.manager.remove(side.service)
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok", 2)
        #expect(adapter.journal.count("unpublish") == 1)
        #expect(side.characteristic.subscribedCentrals?.isEmpty == true)
        events.peripheralDidReceive(read(2, 201))
        try await adapter.journal.wait(for: "respond 2 []")
    }

    @Test func whatThePowerTookIsGoneAndCanBeAddedAgain() async throws {
        let adapter = ScriptedAdapter()
        let (side, events) = try await published(adapter)
        events.central(Self.central, didSubscribeTo: Self.characteristic, as: .notify)
        side.manager.startAdvertising(nil)
        side.manager.publishL2CAPChannel(withEncryption: false)
        try await side.journal.wait(for: "published 129 ok")
        try await side.journal.wait(for: "subscribed")
        try await side.journal.wait(for: "advertising ok")
        events.peripheralAdapterDidChange(.poweredOff)
        try await side.journal.wait(for: "state poweredOff")
        #expect(!side.manager.isAdvertising)
        #expect(side.characteristic.subscribedCentrals?.isEmpty == true)
        #expect(adapter.journal.count("unpublish 100") == 1)
        #expect(adapter.journal.count("unpublish channel 129") == 1)
        #expect(adapter.journal.count("stop advertising") == 1)
        events.peripheralAdapterDidChange(.poweredOn)
        try await side.journal.wait(for: "state poweredOn", 2)
        side.manager.unpublishL2CAPChannel(129)
        try await side.journal.wait(for: "unpublished 129 CBError invalidParameters")
        side.manager.startAdvertising(nil)
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok", 2)
        try await side.journal.wait(for: "advertising ok", 2)
    }

    @Test func aPublicationThatThePowerOvertookIsWithdrawn() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        let events = try some(adapter.peripheral.events.current)
        adapter.peripheral.gate.hold()
        side.manager.add(side.service)
        try await adapter.journal.wait(for: "publish")
        events.peripheralAdapterDidChange(.poweredOff)
        events.peripheralAdapterDidChange(.poweredOn)
        try await side.journal.wait(for: "state poweredOn", 2)
        adapter.peripheral.gate.release()
        try await side.journal.wait(for: "added")
        #expect(side.journal.count("added \(testService) ok") == 0)
        #expect(adapter.journal.count("unpublish 100") == 1)
    }

    // MARK: Requests and values

    @Test func aRequestIsAnsweredOnce() async throws {
        let adapter = ScriptedAdapter()
        let side = PeripheralSide(on: adapter)
        side.onRead = { request in
            request.value = Data([4, 5])
            side.manager.respond(to: request, withResult: .success)
            #expect(
                MisuseLog.count("answered already") { side.manager.respond(to: request, withResult: .unlikelyError) }
                    == 1)
        }
        side.onWrite = { side.manager.respond(to: $0[0], withResult: .writeNotPermitted) }
        try await side.journal.wait(for: "state poweredOn")
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok")
        let events = try some(adapter.peripheral.events.current)
        events.peripheralDidReceive(read(1, 101))
        events.peripheralDidReceive(write(2, 101, 101))
        // One part is for nothing that is there: all are refused.
        events.peripheralDidReceive(write(3, 101, 999))
        try await adapter.journal.wait(for: "respond", 3)
        #expect(
            adapter.journal.all.filter { $0.hasPrefix("respond") } == [
                "respond 1 [4, 5]", "respond 2 error 3", "respond 3 error 10",
            ])
    }

    @Test func aBlockedDelegatePausesTheCentralAndTakesEverythingInTheEnd() async throws {
        let adapter = ScriptedAdapter()
        let journal = adapter.journal
        let side = PeripheralSide(on: adapter)
        side.onWrite = { _ in journal.add("delivered") }
        try await side.journal.wait(for: "state poweredOn")
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok")
        let events = try some(adapter.peripheral.events.current)
        side.checked.hold()
        let value: [UInt8] = [1]
        func write() { events.central(Self.central, didWrite: value.span.bytes, to: Self.characteristic) }
        for _ in 0..<255 { write() }
        #expect(journal.count("receiving") == 0)
        for _ in 0..<45 { write() }
        #expect(journal.count("receiving false") == 1)
        side.checked.queue.resume()
        try await journal.wait(for: "delivered", 300)
        #expect(journal.count("receiving") == 2)
        // It goes on when 64 are left.
        let lines = journal.all.filter { $0 == "delivered" || $0.hasPrefix("receiving t") }
        #expect(lines.firstIndex(of: "receiving true") == 300 - 64 - 1)
        // And again.
        side.checked.hold()
        for _ in 0..<256 { write() }
        #expect(journal.count("receiving false") == 2)
        side.checked.queue.resume()
        try await journal.wait(for: "receiving true", 2)
    }

    @Test func whatWaitsForTheDelegateIsBounded() async throws {
        let adapter = ScriptedAdapter()
        let journal = adapter.journal
        let side = PeripheralSide(on: adapter)
        side.onWrite = { _ in journal.add("delivered") }
        try await side.journal.wait(for: "state poweredOn")
        side.manager.add(side.service)
        try await side.journal.wait(for: "added \(testService) ok")
        let events = try some(adapter.peripheral.events.current)
        side.checked.hold()
        let value: [UInt8] = [1]
        let dropped = MisuseLog.count("a write was dropped") {
            for _ in 0..<8_200 { events.central(Self.central, didWrite: value.span.bytes, to: Self.characteristic) }
        }
        #expect(dropped == 8)
        side.checked.queue.resume()
        try await journal.wait(for: "delivered", 8_192)
        // The room is free again; a write to nothing takes none of it.
        for _ in 0..<300 {
            events.central(Self.central, didWrite: value.span.bytes, to: AttributeID(rawValue: 999))
        }
        events.central(Self.central, didWrite: value.span.bytes, to: Self.characteristic)
        try await journal.wait(for: "delivered", 8_193)
        #expect(journal.count("receiving false") == 1)
    }

    @Test func channelsAreUnpublishedOnce() async throws {
        let adapter = ScriptedAdapter()
        let side = try await side(adapter)
        for _ in 0..<2 { side.manager.publishL2CAPChannel(withEncryption: false) }
        try await side.journal.wait(for: "published 130 ok")
        adapter.peripheral.failure.current = BluetoothError(.notSupported, "no")
        side.manager.publishL2CAPChannel(withEncryption: false)
        try await side.journal.wait(for: "published 0")
        for _ in 0..<2 { side.manager.unpublishL2CAPChannel(129) }
        side.manager.unpublishL2CAPChannel(0)
        try await side.journal.wait(for: "unpublished", 3)
        #expect(
            side.journal.all.filter { $0.hasPrefix("unpublished") } == [
                "unpublished 129 ok", "unpublished 129 CBError invalidParameters",
                "unpublished 0 CBError invalidParameters",
            ])
        #expect(adapter.journal.count("unpublish channel") == 1)
    }

    @Test func theRoleClosesWithItsManager() async throws {
        let adapter = ScriptedAdapter()
        do {
            let side = try await side(adapter)
            #expect(side.manager.state == .poweredOn)
        }
        try await adapter.journal.wait(for: "close")
    }
}
