import CoreBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// Each defect that can be switched on is seen, so that surviving it means something.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct QuirkTests {
    private static let other = CBUUID(string: "FE07")

    private static func psm(_ peripheral: PeripheralSide, _ number: Int) async throws -> CBL2CAPPSM {
        peripheral.manager.publishL2CAPChannel(withEncryption: false)
        try await peripheral.journal.wait(for: "published", number)
        let lines = peripheral.journal.all.filter { $0.hasPrefix("published") }
        return try some(CBL2CAPPSM(lines[number - 1].split(separator: " ")[1]))
    }

    private static func reconnect(_ central: CentralSide, _ peer: CBPeripheral) async throws {
        central.manager.cancelPeripheralConnection(peer)
        try await central.journal.wait(for: "disconnected")
        central.manager.connect(peer)
        try await central.journal.wait(for: "connected", 2)
    }

    @Test(arguments: [CBQuirks(), .confusesChannels]) func channelsAreConfused(_ quirks: CBQuirks) async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let psms = [try await Self.psm(peripheral, 1), try await Self.psm(peripheral, 2)]
        let central = CentralSide(on: pair.far, quirks: quirks)
        let (peer, _) = try await central.connect()
        for psm in psms { peer.openL2CAPChannel(psm) }
        try await central.journal.wait(for: "channel ok", 2)
        let seen = central.psms.withLock { $0 }
        #expect(seen == (quirks.isEmpty ? psms : [psms[1], psms[1]]))
    }

    @Test(arguments: [CBQuirks(), .stalePSMs]) func aPSMGoesStale(_ quirks: CBQuirks) async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let psm = try await Self.psm(peripheral, 1)
        let central = CentralSide(on: pair.far, quirks: quirks)
        let (peer, _) = try await central.connect()
        peer.openL2CAPChannel(psm)
        try await central.journal.wait(for: "channel ok")
        try await Self.reconnect(central, peer)
        peer.openL2CAPChannel(psm)
        guard !quirks.isEmpty else { return try await central.journal.wait(for: "channel ok", 2) }
        try await central.journal.wait(for: "channel CBError connectionFailed")
        peer.openL2CAPChannel(try await Self.psm(peripheral, 2))
        try await central.journal.wait(for: "channel ok", 2)
    }

    /// A service that has gone is shown, one that has come is not; then the change is told, and discovery finds it.
    @Test(arguments: [CBQuirks(), .cachedServices]) func servicesComeFromTheCache(_ quirks: CBQuirks) async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far, quirks: quirks)
        let (peer, _) = try await central.connect()
        central.manager.cancelPeripheralConnection(peer)
        try await central.journal.wait(for: "disconnected")
        peripheral.manager.remove(peripheral.service)
        peripheral.manager.add(CBMutableService(type: Self.other, primary: true))
        try await peripheral.journal.wait(for: "added \(Self.other) ok")
        central.manager.connect(peer)
        try await central.journal.wait(for: "connected", 2)
        peer.discoverServices(nil)
        // As the delegate saw them, for the change follows soon.
        guard !quirks.isEmpty else { return try await central.journal.wait(for: "services ok [\(Self.other)]") }
        try await central.journal.wait(for: "services ok [\(testService)]", 2)
        try await central.journal.wait(for: "modified [\(testService)]")
        peer.discoverServices(nil)
        try await central.journal.wait(for: "services ok [\(Self.other)]")
    }

    /// A change that names none leaves none.
    @Test(arguments: [CBQuirks(), .cachedServices]) func anEmptyChangeLeavesNoServices(_ quirks: CBQuirks) async throws
    {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far, quirks: quirks)
        let (peer, _) = try await central.connect()
        peripheral.manager.add(CBMutableService(type: Self.other, primary: true))
        try await central.journal.wait(for: "modified []")
        #expect((peer.services == nil) == !quirks.isEmpty)
    }

    @Test(arguments: [CBQuirks(), .lateATTMTU]) func lengthsGrowLate(_ quirks: CBQuirks) async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(
            on: pair.near, properties: [.writeWithoutResponse, .write, .notify], quirks: quirks)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far, quirks: quirks)
        let (peer, characteristic) = try await central.subscribe()
        try await peripheral.journal.wait(for: "subscribed")
        let subscriber = try some(peripheral.centrals.withLock { $0.first })
        let early = quirks.isEmpty ? 182 : 20
        #expect(peer.maximumWriteValueLength(for: .withoutResponse) == early)
        #expect(subscriber.maximumUpdateValueLength == early)
        #expect(
            peripheral.manager.updateValue(
                Data(count: 30), for: peripheral.characteristic, onSubscribedCentrals: [subscriber]))
        try await central.journal.wait(for: "value \(quirks.isEmpty ? 30 : 20)")
        for _ in 0..<2 {
            peripheral.manager.updateValue(
                Data(count: 5), for: peripheral.characteristic, onSubscribedCentrals: [subscriber])
        }
        peer.writeValue(Data(count: 5), for: characteristic, type: .withResponse)
        for _ in 0..<2 { peer.writeValue(Data(count: 5), for: characteristic, type: .withoutResponse) }
        try await peripheral.journal.wait(for: "write", 3)
        #expect(peer.maximumWriteValueLength(for: .withoutResponse) == 182)
        #expect(subscriber.maximumUpdateValueLength == 182)
    }
}
