#if Records
    import Ferry
    import FerryRecords

    /// Takes readings whether the collector is near or not, and is away half of the time.
    struct Thermometer: Sendable {
        let store: RecordStore
        let transport: any Transport
        /// How long it is near, and then away.
        let period: Duration

        /// Each reading is on disk before the next is taken.
        func measure(_ count: Int, every interval: Duration) async throws {
            for number in 0..<count {
                let celsius = Double(180 + number % 60) / 10
                // After weeks alone the outbox is full, and this waits until there is room.
                try await store.append(
                    Array("\(number) \(celsius)".utf8), to: "collector", stream: "temperature",
                    whenFull: .wait(atMost: .seconds(600)))
                if celsius > 23.8 {
                    try await store.append(
                        Array("\(celsius)".utf8), to: "collector", stream: "alarm", priority: .urgent)
                }
                try await Task.sleep(for: interval)
            }
        }

        /// Near for a while, away for a while, until the task is cancelled.
        func visit() async {
            while !Task.isCancelled {
                do {
                    let link = try await transport.connect(timeout: .seconds(10))
                    let leaving = Task {
                        try await Task.sleep(for: period)
                        link.close()
                    }
                    defer { leaving.cancel() }
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    try await store.exchange(over: channel, with: "collector")
                } catch {
                    // The collector left in the middle, or was not there. The pending readings stay in the store.
                }
                print("thermometer: away")
                try? await Task.sleep(for: period)
            }
        }
    }
#endif
