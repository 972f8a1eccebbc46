#if Records
    import Ferry
    import FerryBluetooth
    import FerryRecords
    import FerrySequenced

    // The program of the tutorial (Sources/Core/Ferry/Ferry.docc/Tutorial.md), which shows it in parts.

    /// The service that both sides know.
    func layout() throws -> GATTConfiguration {
        try GATTConfiguration(
            service: BluetoothUUID("5A9F0001-6C1B-4E5D-9B1E-0A4F6E3C2D10"),
            characteristic: BluetoothUUID("5A9F0002-6C1B-4E5D-9B1E-0A4F6E3C2D10"))
    }

    /// Takes readings onto this side's disk, whether the collector is near or not.
    func measure(into store: RecordStore, every interval: Duration) async throws {
        for number in 1... {
            try await store.append(Array("reading \(number)".utf8), to: "collector", stream: "readings")
            try await Task.sleep(for: interval)
        }
    }

    /// Brings pending readings to the collector, as often as it is near.
    func deliver(from store: RecordStore, over radio: any Transport) async throws {
        while true {
            do throws(FerryError) {
                let link = try await radio.connect(timeout: .seconds(60))
                let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
                try await store.exchange(over: channel, with: "collector")
                print("The collector has gone. Readings stay in the store.")
            } catch { print(error.message) }
            try await Task.sleep(for: .seconds(1))
        }
    }

    /// Takes in the records of each peer, and hands over each of them once.
    func collect(
        into store: RecordStore, over radio: any Transport, take: @escaping @Sendable (String) -> Void
    ) async throws {
        let listener = try await radio.listen()
        listener.onInterruption { print($0?.message ?? "Sensors can come again.") }
        try await withThrowingDiscardingTaskGroup { group in
            group.addTask {
                for try await record in store.inbox {
                    take(String(decoding: record.bytes, as: UTF8.self))
                    try await record.done()
                }
            }
            for await link in listener.links {
                group.addTask {
                    do throws(FerryError) {
                        let channel = try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
                        try await store.exchange(over: channel)
                    } catch { print(error.message) }
                }
            }
        }
    }
#endif

#if Records && BlueZ
    import FerryBlueZ

    @main struct Diary {
        static func main() async throws {
            let adapter = try await BlueZAdapter.open("bluez")
            let radio = GATTTransport(adapter: adapter, configuration: try layout())
            if CommandLine.arguments.contains("collect") {
                try await collect(into: try RecordStore.open("collector.ferry"), over: radio) { print($0) }
            } else {
                let store = try RecordStore.open("sensor.ferry")
                async let measuring: Void = measure(into: store, every: .seconds(1))
                try await deliver(from: store, over: radio)
                try await measuring
            }
        }
    }
#else
    @main struct Diary {
        static func main() { print("The tutorial's program needs two traits: swift run --traits Records,BlueZ Diary") }
    }
#endif
