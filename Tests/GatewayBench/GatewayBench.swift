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

    /// Two stores that exchange records over a Unix socket.
    struct Pair: Sendable {
        let peer: RecordStore
        let store: RecordStore
        private let path: String

        init(_ folder: String, _ name: String) throws {
            path = "\(folder)/\(name)"
            peer = try RecordStore.open(path + ".peer")
            var configuration = RecordStore.Configuration()
            // Nothing leaves it while it is measured.
            configuration.inboxCapacity = 1 << 40
            store = try RecordStore.open(path + ".gateway", configuration: configuration)
        }

        /// Exchanges as long as the body takes.
        func exchanging(_ body: () async throws -> Void) async throws {
            let here = try SocketTransport(SocketAddress("unix:\(path).socket"))
            let there = try SocketTransport(SocketAddress("unix:\(path).socket"))
            let listener = try await here.listen()
            defer { listener.close() }
            async let connecting = there.connect(timeout: .seconds(30))
            var links = listener.links.makeAsyncIterator()
            guard let other = await links.next() else { throw Failure(text: "nobody came") }
            let link = try await connecting
            let ends = [(peer, link, "gateway"), (store, other, "ada")]
            let tasks = try ends.map { store, link, name in
                let channel = try MessageChannel(over: link, codec: BytesCodec())
                return Task { _ = try? await store.exchange(over: channel, with: name) }
            }
            try await body()
            for task in tasks {
                task.cancel()
                await task.value
            }
        }

        func close() async {
            await peer.close()
            await store.close()
        }
    }

    struct Failure: Error { let text: String }
#else
    /// What a build without the traits says.
    @main enum GatewayBench {
        static func main() { print("Build it with the traits Records and NATS: scripts/bench gateway") }
    }
#endif
