#if Records
    import Ferry
    import FerryBluetooth
    import FerryLoopback
    import FerryRecords
    import Foundation
    import TestSupport
    import Testing

    @testable import Diary

    /// The tutorial's program over a virtual radio, as its fourth step shows it.
    @Suite(.tags(.program, .records), .timeLimit(.minutes(5))) struct TutorialTests {
        let folder = NSTemporaryDirectory() + "diary-\(UUID().uuidString)"

        @Test func everyReadingArrivesOnceAndInOrder() async throws {
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)  // not shown
            defer { try? FileManager.default.removeItem(atPath: folder) }  // not shown
            let air = LoopbackRadio()
            let adapter = air.makeAdapter()
            let near = GATTTransport(adapter: adapter, configuration: try layout())
            let far = GATTTransport(adapter: air.makeAdapter(), configuration: try layout())
            let sensor = try RecordStore.open(folder + "/sensor.ferry")
            let collector = try RecordStore.open(folder + "/collector.ferry")
            let (readings, taken) = AsyncStream.makeStream(of: String.self)
            let running = Task {
                try await withThrowingTaskGroup { group in
                    group.addTask { try await collect(into: collector, over: far) { taken.yield($0) } }
                    group.addTask { try await measure(into: sensor, every: .milliseconds(5)) }
                    group.addTask { try await deliver(from: sensor, over: near) }
                    try await group.next()
                }
            }
            defer { running.cancel() }
            var count = 0
            for await reading in readings.prefix(100) {
                count += 1
                #expect(reading == "reading \(count)")
                // The radio goes away in the middle, and comes back.
                if count == 20 { adapter.setState(.poweredOff) }
                if count == 20 { adapter.setState(.poweredOn) }
            }
            #expect(count == 100)
        }
    }
#endif
