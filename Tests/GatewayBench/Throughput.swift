#if NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryRecords
    import Foundation
    import TestSupport

    /// Records a second out of a gateway's store into a stream, beside libnats alone with the same messages, in turns. Each has a
    /// process of its own: what one leaves of the memory it took is not the other's.
    struct Throughput {
        let server: String
        let folder: String
        let count: Int
        let rounds: Int
        /// A peer has 256 streams at most.
        private let peers = 4
        private let streams = 250
        /// Of each stream one record is on its way at a time; and as many messages of libnats'.
        private var lanes: Int { peers * streams }
        private var total: Int { max(1, count / lanes) * lanes }

        func run() async throws {
            let pair = try Pair(folder, "throughput", peers: peers)
            let records = Array(repeating: GatewayBench.record, count: total / lanes)
            for peer in pair.peers {
                for stream in 0..<streams {
                    try await peer.append(contentsOf: records, to: "gateway", stream: "s\(stream)")
                }
            }
            try await pair.exchanging {
                for peer in pair.peers { try await peer.drained("gateway", within: .seconds(300)) }
            }
            await pair.close()
            var configuration = NATSConfiguration(servers: [server])
            configuration.requestTimeout = .seconds(60)
            let connection = try await NATSConnection.connect(configuration)
            // The first time tells which messages there are, and is not counted.
            _ = try await gateway(pair.path, "warm", connection)
            let messages = try await read("warm", connection)
            try await connection.removeStream("warm")
            var rates = [[Double]](repeating: [], count: 3 + Observers.all.count)
            for round in 0..<rounds {
                rates[0].append(try await bare(messages, "bare\(round)", connection, naming: false))
                rates[1].append(try await bare(messages, "places\(round)", connection, naming: true))
                rates[2].append(try await gateway(pair.path, "gateway\(round)", connection))
                try await connection.removeStream("gateway\(round)")
                for index in Observers.all.indices {
                    let name = "observed\(round)"
                    rates[3 + index].append(try await gateway(pair.path, name, connection, observer: index))
                    try await connection.removeStream(name)
                }
            }
            let medians = rates.map { $0.sorted()[$0.count / 2] }
            let names = ["libnats alone", "libnats alone, naming places", "gateway"] + Observers.all.map(\.name)
            for (name, rate) in zip(names, medians) { GatewayBench.say("\(name): \(Int(rate)) records/s") }
            // Of each round on its own, for the machine is faster at times.
            func percent(_ index: Int, of other: Int) -> String {
                let ratios = zip(rates[index], rates[other]).map { 100 * $0 / $1 }.sorted().map { Int($0.rounded()) }
                return "\(ratios[ratios.count / 2]) % (\(ratios[0]) to \(ratios[ratios.count - 1]))"
            }
            GatewayBench.say("gateway beside libnats alone: \(percent(2, of: 0))")
            GatewayBench.say("gateway beside libnats alone, naming places as it does: \(percent(2, of: 1))")
            for index in 3..<rates.count { GatewayBench.say("\(names[index]), beside it: \(percent(index, of: 2))") }
            await connection.close()
        }

        private func isComplete(_ stream: String, _ connection: NATSConnection) async throws {
            let state = try await connection.state(of: stream)
            guard state.messages == UInt64(total) else {
                throw Failure(text: "stream \(stream) has \(state.messages) messages of \(total)")
            }
        }

        /// Has a process of its own publish what is in a store, which stays there.
        private func gateway(
            _ store: String, _ name: String, _ connection: NATSConnection, observer: Int? = nil
        ) async throws -> Double {
            try await connection.open(NATSStream(name, subjects: ["\(name).>"]))
            let pipe = Pipe()
            let process = try ChildProcess(
                CommandLine.arguments[0],
                ["publish", server, store, name, "\(total)"] + (observer.map { ["\($0)"] } ?? []), output: .pipe(pipe))
            let printed = String(decoding: pipe.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
            await process.ended()
            guard let rate = Double(printed.trimmingCharacters(in: .whitespacesAndNewlines)) else {
                throw Failure(text: "the gateway's process printed: \(printed)")
            }
            try await isComplete(name, connection)
            return rate
        }

        private func bare(
            _ messages: [NATSMessage], _ name: String, _ connection: NATSConnection, naming: Bool
        ) async throws -> Double {
            try await connection.open(NATSStream(name, subjects: ["\(name).>"]))
            let publisher = try BarePublisher(messages, to: name)
            let rate = try await GatewayBench.rate(of: total) {
                try publisher.publish(to: server, inFlight: Int64(lanes), naming: naming)
            }
            try await isComplete(name, connection)
            try await connection.removeStream(name)
            return rate
        }

        private func read(_ name: String, _ connection: NATSConnection) async throws -> [NATSMessage] {
            let consumer = try await NATSConsumer.open(name, subject: "\(name).>", name: "bench", on: connection)
            var messages: [NATSMessage] = []
            while messages.count < total {
                for delivery in try await consumer.take(atMost: 1000, within: .seconds(30)) {
                    messages.append(delivery.message)
                    try await consumer.acknowledge(delivery)
                }
            }
            return messages
        }
    }
#endif
