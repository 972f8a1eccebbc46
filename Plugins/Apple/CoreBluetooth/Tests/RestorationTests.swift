@testable import CoreBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// State that outlives a manager, and the process.
@Suite(.tags(.coreBluetooth, .recovery), .serialized, .exclusive, .timeLimit(.minutes(5)))
final class RestorationTests {
    private let folder = FileManager.default.temporaryDirectory.appendingPathComponent("corebluetooth-\(UUID())")

    init() { CBAdapters.restorationDirectory = folder }
    deinit { try? FileManager.default.removeItem(at: folder) }

    @Test func handsAPeripheralManagersStateBack() async throws {
        let pair = try Pair()
        let options = [CBPeripheralManagerOptionRestoreIdentifierKey: "peripheral \(UUID())"]
        do {
            let first = PeripheralSide(on: pair.near, options: options)
            try await first.begin(name: "keeper")
            #expect(first.journal.count("restore") == 0, "there was nothing to restore")
        }
        let second = PeripheralSide(on: pair.near, options: options)
        try await second.journal.wait(for: "advertising ok")
        #expect(
            second.journal.all == [
                "restore [\(testService)] keeper [\(testCharacteristic)]", "state poweredOn", "added \(testService) ok",
                "advertising ok",
            ])
        // It works as before.
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
        try await second.journal.wait(for: "subscribed \(testCharacteristic)")
    }

    @Test func handsACentralManagersStateBack() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let options = [CBCentralManagerOptionRestoreIdentifierKey: "central/\(UUID())"]
        do {
            let first = CentralSide(on: pair.far, options: options)
            _ = try await first.connect()
            first.manager.scanForPeripherals(withServices: [testService])
        }
        let second = CentralSide(on: pair.far, options: options)
        try await second.journal.wait(for: "connected")
        #expect(second.journal.all.prefix(2) == ["restore [\"side connecting\"] [\(testService)]", "state poweredOn"])
        #expect(second.manager.isScanning)
        let peer = try #require(second.restored.withLock { $0.first })
        #expect(peer.state == .connected)
        _ = try await second.discover(peer)
        // What was ended by the program does not come back.
        second.manager.cancelPeripheralConnection(peer)
        second.manager.stopScan()
        try await second.journal.wait(for: "disconnected ok")
        let third = CentralSide(on: pair.far, options: options)
        try await third.journal.wait(for: "state poweredOn")
        #expect(third.journal.all == ["state poweredOn"])
    }

    @Test func ignoresAFileThatCannotBeRead() async throws {
        let pair = try Pair()
        let identifier = "broken \(UUID())"
        let file = RestorationFile(identifier: identifier, role: "central")
        try FileManager.default.createDirectory(
            at: file.url.deletingLastPathComponent(), withIntermediateDirectories: true)
        try Data("not a property list".utf8).write(to: file.url)
        let central = CentralSide(on: pair.far, options: [CBCentralManagerOptionRestoreIdentifierKey: identifier])
        try await central.journal.wait(for: "state poweredOn")
        #expect(central.journal.all == ["state poweredOn"])
        #expect(MisuseLog.count("cannot be restored from") == 1)
    }

    /// A process that ends without a word leaves its state to the next.
    @Test func outlivesTheProcess() async throws {
        let path = folder.path
        await #expect(processExitsWith: .exitCode(7)) { [path = path as String] in
            CBAdapters.restorationDirectory = URL(fileURLWithPath: path)
            let pair = try Pair()
            let peripheral = PeripheralSide(
                on: pair.near, options: [CBPeripheralManagerOptionRestoreIdentifierKey: "across"])
            try await peripheral.begin(name: "before")
            let central = CentralSide(
                on: pair.far, options: [CBCentralManagerOptionRestoreIdentifierKey: "across"])
            _ = try await central.connect()
            exit(7)
        }
        await #expect(processExitsWith: .exitCode(9)) { [path = path as String] in
            CBAdapters.restorationDirectory = URL(fileURLWithPath: path)
            let pair = try Pair()
            let peripheral = PeripheralSide(
                on: pair.near, options: [CBPeripheralManagerOptionRestoreIdentifierKey: "across"])
            try await peripheral.journal.wait(for: "restore [\(testService)] before")
            try await peripheral.journal.wait(for: "advertising ok")
            let central = CentralSide(
                on: pair.far, options: [CBCentralManagerOptionRestoreIdentifierKey: "across"])
            try await central.journal.wait(for: "restore [\"before connecting\"]")
            // The virtual radio of this process is a new one, on which somebody else has that peripheral's address.
            try await central.journal.wait(for: "connected")
            exit(9)
        }
    }
}
