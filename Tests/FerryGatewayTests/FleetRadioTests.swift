#if NATS && Records
    import Ferry
    import FerryBluetooth
    import FerryFleet
    import FerryGateway
    import FerryLoopback
    import FerryNATS
    import FerryRecords
    import Foundation
    import TestSupport
    import Testing

    /// Gateways of a fleet with all their parts, over the virtual radio.
    @Suite(
        .tags(.records, .fleet, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(3)))
    struct FleetRadioTests {
        private func until(_ condition: () -> Bool) async throws {
            while !condition() { try await Task.sleep(for: .milliseconds(5)) }
        }

        /// A gateway with all its parts, over the virtual radio.
        final class Whole: Sendable {
            let keeper: LeaseKeeper
            let store: RecordStore
            private let hearing: RadioHearing
            private let task: Task<Void, any Error>

            init(
                _ leases: LeaseKeeper.Configuration, _ store: RecordStore, _ adapter: LoopbackAdapter,
                _ layout: GATTConfiguration,
                _ change: (inout PeerRounds.Configuration, inout Gateway.Configuration) -> Void = { _, _ in }
            ) throws {
                let keeper = try LeaseKeeper(leases)
                let transport = GATTTransport(adapter: adapter, configuration: layout)
                var bounds = PeerRounds.Configuration()
                bounds.interval = .milliseconds(50)
                bounds.idle = .milliseconds(200)
                bounds.connectTimeout = .seconds(30)
                bounds.roomInterval = .seconds(2)
                hearing = RadioHearing(adapter, layout.service) { [weak keeper] in keeper?.heard($0, signal: $1) }
                var configuration = Gateway.Configuration(
                    servers: leases.servers.servers, name: leases.name, stream: "records")
                configuration.servers = leases.servers
                configuration.servers.requestTimeout = .seconds(30)
                configuration.stream.maximumBytes = 1 << 24
                configuration.retention = .milliseconds(500)
                configuration.lookInterval = .milliseconds(50)
                change(&bounds, &configuration)
                let rounds = try PeerRounds(store, keeper, configuration: bounds) {
                    (peer, timeout) throws(FerryError) in
                    guard let identity = PeerIdentity(peer) else { throw FerryError(.peerNotFound, peer) }
                    return try await transport.connect(to: identity, timeout: timeout)
                }
                let gateway = try Gateway(store, configuration) { keeper.token(of: $0) }
                (self.keeper, self.store) = (keeper, store)
                task = Task {
                    async let publishing: Void = gateway.run()
                    async let owning: Void = keeper.run(rounds)
                    _ = try await (publishing, owning)
                }
            }

            func end() async {
                task.cancel()
                _ = await task.result
                hearing.close()
                await store.close()
            }
        }

        @Test func anotherGatewayGoesOnWithAPeersRecords() async throws {
            let server = try NATSServer()
            try await server.start()
            let radio = LoopbackRadio()
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            let adapters = (radio.makeAdapter(), radio.makeAdapter(), radio.makeAdapter())
            // The peer answers whoever comes.
            let peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            let listener = try await GATTTransport(adapter: adapters.0, configuration: layout).listen()
            let serving = Task {
                for await link in listener.links {
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    // Whichever gateway it is.
                    try? await peer.forgetIdentity(of: "collector")
                    _ = try? await peer.exchange(over: channel, with: "collector")
                }
            }
            func append(_ numbers: Range<Int>) async throws {
                for number in numbers { try await peer.append(Array("\(number)".utf8), to: "collector") }
            }
            func gateway(_ name: String, _ adapter: LoopbackAdapter) throws -> Whole {
                var configuration = RecordStore.Configuration()
                configuration.largestRecord = 1000
                let path = server.folder.appending(path: name).path()
                let store = try RecordStore.open(path, configuration: configuration)
                return try Whole(.init(short: name, server), store, adapter, layout)
            }
            try await append(0..<50)
            let one = try gateway("one", adapters.1)
            try await until { !one.keeper.ownedPeers.isEmpty }
            let two = try gateway("two", adapters.2)
            try await peer.drained("collector", within: .seconds(60))
            await one.end()
            try await append(50..<100)
            try await peer.drained("collector", within: .seconds(60))
            #expect(two.keeper.status.begun >= 1)

            // What the first has not published yet is in its store, and comes when it is back.
            let again = try gateway("one", adapters.1)
            let connection = try await NATSConnection.connect(NATSConfiguration(servers: [server.url]))
            let consumer = try await NATSConsumer.open(
                "records", subject: "ferry.records.>", name: "table", on: connection)
            var table: [String: Int] = [:], gateways: Set<String> = [], tokens = 0, sequences: [Int: Int] = [:]
            while table.count < 100 {
                for delivery in try await consumer.take(atMost: 100, within: .seconds(1)) {
                    try await consumer.acknowledge(delivery)
                    let message = delivery.message
                    let number = try #require(Int(String(decoding: message.bytes, as: UTF8.self)))
                    table[try #require(message["Nats-Msg-Id"])] = number
                    let sequence: Int? = message["Ferry-Sequence"].flatMap { Int($0) }
                    let place: Int = try #require(sequence)
                    sequences[number] = place
                    gateways.insert(try #require(message["Ferry-Gateway"]))
                    // Not each: a machine that stands for seconds loses leases, and no records.
                    if message["Ferry-Token"] != nil { tokens += 1 }
                }
            }
            // Each once by its name, and in order by its number in the stream, whoever has brought it.
            #expect(Set(table.values) == Set(0..<100) && gateways.contains("two") && tokens > 0)
            let ordered = sequences.sorted { $0.value < $1.value }.map(\.key)
            #expect(ordered == Array(0..<100))
            listener.close()
            await again.end()
            await two.end()
            serving.cancel()
            _ = await serving.result
            await peer.close()
        }
    }
#endif
