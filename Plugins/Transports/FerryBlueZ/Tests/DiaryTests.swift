#if BlueZ && Records
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryRecords
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import Diary

    /// The tutorial's program over a real bluetoothd, which is killed twice.
    @Suite(
        .tags(.adapter, .records, .recovery),
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"), .serialized,
        .timeLimit(.minutes(5)))
    struct DiaryTests {
        @Test func eachReadingReachesTheCollectorOnceThoughBluetoothdIsKilled() async throws {
            let (serving, asking) = try await Machine.adapters()
            let folder = FileManager.default.temporaryDirectory.appending(path: "diary-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let sensor = try RecordStore.open(folder.appending(path: "sensor").path())
            let collector = try RecordStore.open(folder.appending(path: "collector").path())
            let near = GATTTransport(adapter: asking, configuration: try layout())
            let far = GATTTransport(adapter: serving, configuration: try layout())
            let taken = Mutex<[String]>([])
            let collecting = Task {
                try await collect(into: collector, over: far) { reading in taken.withLock { $0.append(reading) } }
            }
            let delivering = Task { try await deliver(from: sensor, over: near) }
            let measuring = Task { try await measure(into: sensor, every: .milliseconds(50)) }
            for _ in 0..<2 {
                let before = taken.withLock(\.count)
                try await Machine.time.wait("readings", for: "20 readings to arrive") {
                    taken.withLock(\.count) >= before + 20
                }
                try await Machine.shell("kill_bluetoothd")
                try await Machine.wait(for: .resetting, of: serving)
                try await Machine.shell("restart_bluetoothd")
                try await Machine.wait(for: .poweredOn, of: serving)
                try await Machine.wait(for: .poweredOn, of: asking)
            }
            measuring.cancel()
            _ = await measuring.result
            try await sensor.drained("collector", within: .unreached)
            try await until("an empty inbox") { try await collector.undone() == 0 }
            let readings = taken.withLock { $0 }
            #expect(readings.count > 40 && readings == (1...readings.count).map { "reading \($0)" })
            for task in [delivering, collecting] {
                task.cancel()
                _ = await task.result
            }
            await sensor.close()
            await collector.close()
        }
    }
#endif
