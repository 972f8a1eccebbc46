#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import Foundation

    /// What one peer with one stream gets through beside ten of them, from their disks into a stream of the server, and out of the
    /// gateway's store alone; in turns, with as many records in all.
    struct Peers {
        let server: String
        let folder: String
        let count: Int
        let rounds: Int

        private struct Rates {
            var whole: [Double] = []
            var stored: [Double] = []
            /// Seconds from opening the store until the stream has answered for a record, to 5 ms.
            var starts: [Double] = []
        }

        func run() async throws {
            var configuration = NATSConfiguration(servers: [server])
            configuration.requestTimeout = .seconds(60)
            let connection = try await NATSConnection.connect(configuration)
            var rates: [Int: Rates] = [1: Rates(), 10: Rates()]
            for round in 0..<rounds {
                for peers in [1, 10] {
                    let name = "peers\(peers)-\(round)"
                    let pair = try Pair(folder, name, peers: peers)
                    let records = Array(repeating: GatewayBench.record, count: count / peers)
                    for peer in pair.peers { try await peer.append(contentsOf: records, to: "gateway", stream: "s") }
                    // The second time the stream is new, and everything is still in the gateway's store.
                    let total = peers * records.count
                    let whole = try await publish({ pair.store }, name + "-whole", total, connection) {
                        try await pair.exchanging($0)
                    }
                    await pair.close()
                    rates[peers]?.whole.append(whole.rate)
                    // The stream is new, and everything is still in the gateway's store, which is opened again.
                    let open = { try RecordStore.open(pair.path, configuration: Pair.configuration) }
                    let stored = try await publish(open, name + "-stored", total, connection) { try await $0() }
                    rates[peers]?.stored.append(stored.rate)
                    rates[peers]?.starts.append(stored.start)
                }
            }
            await connection.close()
            for (what, path) in [("from peers' disks", \Rates.whole), ("out of the gateway's store", \Rates.stored)] {
                let (one, ten) = (rates[1]?[keyPath: path] ?? [], rates[10]?[keyPath: path] ?? [])
                let ratios = zip(one, ten).map { 100 * $0 / $1 }.sorted().map { Int($0.rounded()) }
                GatewayBench.say(
                    "\(what): one peer \(Int(one.sorted()[rounds / 2])), ten peers \(Int(ten.sorted()[rounds / 2])) records/s; "
                        + "one beside ten: \(ratios[rounds / 2]) % (\(ratios[0]) to \(ratios[rounds - 1]))")
            }
            let starts = (rates[1]?.starts ?? []).sorted()
            GatewayBench.say(
                "with \(count) records in its store a gateway publishes after \(Int(1000 * starts[rounds / 2])) ms "
                    + "(\(Int(1000 * starts[0])) to \(Int(1000 * starts[rounds - 1])))")
        }

        /// From the begin of a gateway, with what the peers do meanwhile, until the stream has answered for all. Closes the store.
        private func publish(
            _ open: () throws -> RecordStore, _ stream: String, _ total: Int, _ connection: NATSConnection,
            during work: (() async throws -> Void) async throws -> Void
        ) async throws -> (rate: Double, start: Double) {
            let begin = ContinuousClock.now
            let store = try open()
            let gateway = try Gateway(
                store, Gateway.Configuration(servers: [server], name: "bench", stream: stream, prefix: stream))
            let running = Task { try? await gateway.run() }
            var start = 0.0
            let rate = try await GatewayBench.rate(of: total) {
                try await work {
                    while true {
                        let published = try await gateway.status().published
                        if start == 0, published > 0 { start = begin.duration(to: .now) / .seconds(1) }
                        guard published < total else { return }
                        try await Task.sleep(for: .milliseconds(start == 0 ? 5 : 20))
                    }
                }
            }
            running.cancel()
            _ = await running.value
            await store.close()
            let state = try await connection.state(of: stream)
            guard state.messages == UInt64(total) else {
                throw Failure(text: "stream \(stream) has \(state.messages) messages of \(total)")
            }
            try await connection.removeStream(stream)
            return (rate, start)
        }
    }
#endif
