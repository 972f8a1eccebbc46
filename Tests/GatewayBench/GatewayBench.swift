#if NATS && Records
    import Ferry
    import FerryRecords
    import FerrySocket
    import Foundation

    /// What a gateway costs beside libnats alone, and where a record's time goes: `scripts/bench gateway` runs it.
    ///
    ///     GatewayBench nats://127.0.0.1:4222 FOLDER RECORDS ROUNDS SAMPLES
    @main struct GatewayBench {
        static func main() async throws {
            let arguments = CommandLine.arguments
            let numbers = arguments.dropFirst(3).compactMap { Int($0) }
            guard arguments.count == 6, numbers.count == 3, numbers.allSatisfy({ $0 > 0 }) else {
                say("GatewayBench SERVER FOLDER RECORDS ROUNDS SAMPLES")
                exit(64)
            }
            try await Throughput(server: arguments[1], folder: arguments[2], count: numbers[0], rounds: numbers[1])
                .run()
            try await Latency(server: arguments[1], folder: arguments[2], count: numbers[2]).run()
        }

        static func say(_ text: String) { _ = (text + "\n").withCString { write(1, $0, strlen($0)) } }

        static let record = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    }

    /// A gateway's store and those of its peers, which exchange records over Unix sockets.
    struct Pair: Sendable {
        let peers: [RecordStore]
        let store: RecordStore
        private let path: String

        init(_ folder: String, _ name: String, peers count: Int = 1) throws {
            let path = "\(folder)/\(name)"
            self.path = path
            peers = try (0..<count).map { try RecordStore.open("\(path).peer\($0)") }
            var configuration = RecordStore.Configuration()
            // Nothing leaves it while it is measured.
            configuration.inboxCapacity = 1 << 40
            configuration.largestRecord = 1000
            store = try RecordStore.open(path + ".gateway", configuration: configuration)
        }

        /// Exchanges as long as the body takes.
        func exchanging(_ body: () async throws -> Void) async throws {
            let here = try SocketTransport(SocketAddress("unix:\(path).socket"))
            let there = try SocketTransport(SocketAddress("unix:\(path).socket"))
            let listener = try await here.listen()
            defer { listener.close() }
            var links = listener.links.makeAsyncIterator()
            var tasks: [Task<Void, Never>] = []
            for (index, peer) in peers.enumerated() {
                async let connecting = there.connect(timeout: .seconds(30))
                guard let other = await links.next() else { throw Failure(text: "nobody came") }
                let link = try await connecting
                for (store, link, name) in [(peer, link, "gateway"), (store, other, "peer\(index)")] {
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    tasks.append(Task { _ = try? await store.exchange(over: channel, with: name) })
                }
            }
            try await body()
            for task in tasks {
                task.cancel()
                await task.value
            }
        }

        func close() async {
            for store in peers + [store] { await store.close() }
        }
    }

    struct Failure: Error { let text: String }
#else
    /// What a build without the traits says.
    @main enum GatewayBench {
        static func main() { print("Build it with the traits Records and NATS: scripts/bench gateway") }
    }
#endif
