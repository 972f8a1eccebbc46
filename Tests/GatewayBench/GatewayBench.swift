#if NATS && Records
    import Ferry
    import FerryRecords
    import FerrySocket
    import Foundation

    /// What a gateway costs beside libnats alone, and where a record's time goes: `scripts/bench gateway` runs it.
    ///
    ///     GatewayBench gateway nats://127.0.0.1:4222 FOLDER RECORDS ROUNDS SAMPLES
    ///
    /// What a bucket of leases bears, on one server or a cluster: `scripts/bench leases`.
    ///
    ///     GatewayBench leases SECONDS nats://127.0.0.1:4222 ...
    ///
    /// What one peer gets through beside ten: `scripts/bench peers`.
    ///
    ///     GatewayBench peers nats://127.0.0.1:4222 FOLDER RECORDS ROUNDS
    @main struct GatewayBench {
        static func main() async throws {
            let arguments = CommandLine.arguments
            if arguments.count > 3, arguments[1] == "leases", let seconds = Double(arguments[2]), seconds >= 1 {
                return try await Leases(servers: Array(arguments.dropFirst(3)), seconds: seconds).run()
            }
            if [6, 7].contains(arguments.count), arguments[1] == "publish", let count = Int(arguments[5]) {
                let observer = arguments.dropFirst(6).first.flatMap { Int($0) }
                return try await Publishing(
                    server: arguments[2], store: arguments[3], stream: arguments[4], count: count, observer: observer
                ).run()
            }
            let numbers = arguments.dropFirst(4).compactMap { Int($0) }
            switch (arguments.dropFirst().first, arguments.count, numbers.count) {
            case ("gateway", 7, 3) where numbers.allSatisfy { $0 > 0 }:
                let (server, folder) = (arguments[2], arguments[3])
                try await Throughput(server: server, folder: folder, count: numbers[0], rounds: numbers[1]).run()
                try await Latency(server: server, folder: folder, count: numbers[2]).run()
            case ("peers", 6, 2) where numbers[0] >= 10 && numbers[1] > 0:
                try await Peers(server: arguments[2], folder: arguments[3], count: numbers[0], rounds: numbers[1]).run()
            default:
                say("GatewayBench gateway|peers SERVER FOLDER NUMBER..., or GatewayBench leases SECONDS SERVER ...")
                exit(64)
            }
        }

        static func say(_ text: String) { _ = (text + "\n").withCString { write(1, $0, strlen($0)) } }

        static func rate(of count: Int, _ body: () async throws -> Void) async throws -> Double {
            let start = ContinuousClock.now
            try await body()
            return Double(count) / (start.duration(to: .now) / .seconds(1))
        }

        static let record = (0..<100).map { UInt8(truncatingIfNeeded: $0 &* 37) }
    }

    /// A gateway's store and those of its peers, which exchange records over Unix sockets.
    struct Pair: Sendable {
        let peers: [RecordStore]
        let store: RecordStore
        /// The gateway's store.
        let path: String
        private let socket: String

        /// The gateway's: nothing leaves it while it is measured.
        static var configuration: RecordStore.Configuration {
            var configuration = RecordStore.Configuration()
            configuration.inboxCapacity = 1 << 40
            configuration.largestRecord = 1000
            return configuration
        }

        init(_ folder: String, _ name: String, peers count: Int = 1) throws {
            let path = "\(folder)/\(name)"
            (self.path, socket) = (path + ".gateway", "unix:\(path).socket")
            peers = try (0..<count).map { try RecordStore.open("\(path).peer\($0)") }
            store = try RecordStore.open(self.path, configuration: Self.configuration)
        }

        /// Exchanges as long as the body takes.
        func exchanging(_ body: () async throws -> Void) async throws {
            let here = try SocketTransport(SocketAddress(socket))
            let there = try SocketTransport(SocketAddress(socket))
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
