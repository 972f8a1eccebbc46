#if Records
    import Ferry
    import FerryBluetooth
    import FerryLoopback
    import FerryRecords
    import Foundation

    /// A thermometer and a collector over a virtual radio: swift run --traits Records logger
    @main struct Logger {
        static func main() async throws {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("logger-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let radio = LoopbackRadio()
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            let collector = Collector(
                store: try RecordStore.open(folder.appendingPathComponent("collector").path),
                transport: GATTTransport(adapter: radio.makeAdapter(), configuration: layout))
            let thermometer = Thermometer(
                store: try RecordStore.open(folder.appendingPathComponent("thermometer").path),
                transport: GATTTransport(adapter: radio.makeAdapter(), configuration: layout),
                period: .milliseconds(200))
            let count = 200
            let serving = Task { try await collector.serve() }
            let visiting = Task { await thermometer.visit() }
            async let measured: Void = thermometer.measure(count, every: .milliseconds(10))
            let numbers = try await collector.collect(count)
            try await measured
            visiting.cancel()
            serving.cancel()
            print(
                "\(numbers.count) readings, \(numbers == Array(0..<count) ? "each once and in order" : "NOT as they were taken")"
            )
        }
    }
#else
    @main struct Logger {
        static func main() { print("The example needs the trait Records: swift run --traits Records logger") }
    }
#endif
