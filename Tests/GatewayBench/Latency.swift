#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import Foundation
    import Histogram
    import Synchronization

    /// Where the time of a record goes from a peer's `append` to a consumer, one record at a time.
    struct Latency {
        let server: String
        let folder: String
        let count: Int

        private static let stages = [
            "append returns: it is on the peer's disk", "it is on the gateway's disk, and read for publishing",
            "the server hands it to who listens to the subject", "the stream's consumer has it",
            "from append to the consumer",
        ]

        func run() async throws {
            let pair = try Pair(folder, "latency")
            var servers = NATSConfiguration(servers: [server])
            servers.requestTimeout = .seconds(60)
            let connection = try await NATSConnection.connect(servers)
            let configuration = Gateway.Configuration(servers: [server], name: "bench", stream: "late", prefix: "late")
            try await connection.open(configuration.stream)
            // Asked for each record that was read from the inbox.
            let read = Mutex(ContinuousClock.now)
            let gateway = try Gateway(pair.store, configuration) { _ in
                read.withLock { $0 = .now }
                return nil
            }
            let (instants, tell) = AsyncStream.makeStream(of: ContinuousClock.Instant.self)
            let messages = try await connection.messages(to: "late.>")
            let listening = Task { for await _ in messages { tell.yield(.now) } }
            let consumer = try await NATSConsumer.open(
                "late", subject: "late.>", name: "bench", on: try await NATSConnection.connect(servers))
            let running = Task { try await gateway.run() }
            let times = try await measure(pair, consumer, instants) { read.withLock { $0 } }
            for (name, histogram) in zip(Self.stages, times) {
                let values = [50.0, 99].map { String(format: "%.2f", Double(histogram.valueAtPercentile($0)) / 1000) }
                GatewayBench.say("\(name): p50 \(values[0]) ms, p99 \(values[1]) ms")
            }
            running.cancel()
            listening.cancel()
            _ = await (running.result, listening.result)
            try await connection.removeStream("late")
            await connection.close()
            await pair.close()
        }

        private func measure(
            _ pair: Pair, _ consumer: NATSConsumer, _ instants: AsyncStream<ContinuousClock.Instant>,
            _ read: () -> ContinuousClock.Instant
        ) async throws -> [Histogram<UInt64>] {
            var times = Self.stages.map { _ in Histogram<UInt64>(numberOfSignificantValueDigits: .three) }
            var heard = instants.makeAsyncIterator()
            // The first ones open files and connections.
            let unmeasured = 20
            try await pair.exchanging {
                for number in 0..<count + unmeasured {
                    let start = ContinuousClock.now
                    try await pair.peers[0].append(GatewayBench.record, to: "gateway")
                    let appended = ContinuousClock.now
                    guard let delivery = try await consumer.take(atMost: 1, within: .seconds(60)).first else {
                        throw Failure(text: "record \(number) has not come within 60 s")
                    }
                    let end = ContinuousClock.now
                    try await consumer.acknowledge(delivery)
                    guard let published = await heard.next(isolation: nil), number >= unmeasured else { continue }
                    let instants = [start, appended, read(), published, end]
                    for (index, (first, last)) in zip(instants, instants.dropFirst()).enumerated() {
                        times[index].record(microseconds(first, last))
                    }
                    times[4].record(microseconds(start, end))
                }
            }
            return times
        }

        /// The two ends are seen by different threads, so that the second may be seen first.
        private func microseconds(_ start: ContinuousClock.Instant, _ end: ContinuousClock.Instant) -> UInt64 {
            UInt64(max(0, start.duration(to: end) / .microseconds(1)))
        }
    }
#endif
