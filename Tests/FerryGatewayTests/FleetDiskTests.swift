#if NATS && Records
    import Ferry
    import FerryBluetooth
    import FerryFleet
    import FerryLoopback
    import FerryNATS
    import Foundation
    import GRDB
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import FerryRecords

    /// What a gateway of a fleet does whose disk is full, and what it asks of a server that may fall silent.
    @Suite(
        .tags(.records, .fleet, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(3)))
    struct FleetDiskTests {
        private func until(_ condition: () async throws -> Bool) async throws {
            while !(try await condition()) { try await Task.sleep(for: .milliseconds(5)) }
        }

        /// Gives the peer records of 1000 bytes to send.
        private func append(_ count: Int, to peer: RecordStore) async throws {
            for _ in 0..<count { try await peer.append([UInt8](repeating: 1, count: 1000), to: "collector") }
        }

        /// A gateway's store, which takes those.
        private func store(_ name: String, _ server: NATSServer) throws -> RecordStore {
            var configuration = RecordStore.Configuration()
            configuration.largestRecord = 1000
            return try RecordStore.open(server.folder.appending(path: name).path(), configuration: configuration)
        }

        /// Exchanges with whichever gateway comes.
        private func serve(_ peer: RecordStore, _ listener: LinkListener) -> Task<Void, any Error> {
            Task {
                for await link in listener.links {
                    let channel = try MessageChannel(over: link, codec: BytesCodec())
                    try? await peer.forgetIdentity(of: "collector")
                    _ = try? await peer.exchange(over: channel, with: "collector")
                }
            }
        }

        /// Lets the file of a store have so many pages more, as a disk that is full, or has room again.
        private func allow(_ pages: Int, _ store: RecordStore) async throws {
            try await store.read { database, _ in
                let present = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
                _ = try Row.fetchOne(database, sql: "PRAGMA max_page_count = \(present + pages)")
            }
        }

        @Test func aGatewayThatCannotPublishLeavesItsPeersToOthersAtHighWater() async throws {
            let server = try NATSServer()
            try await server.start()
            let radio = LoopbackRadio()
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            let adapters = (radio.makeAdapter(), radio.makeAdapter(), radio.makeAdapter())
            let peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            let listener = try await GATTTransport(adapter: adapters.0, configuration: layout).listen()
            let serving = serve(peer, listener)
            func append(_ count: Int) async throws { try await self.append(count, to: peer) }
            // The first has a stream of its own, which takes 30 records.
            let one = try FleetRadioTests.Whole(
                .init(short: "one", server), store("one", server), adapters.1,
                layout
            ) { bounds, configuration in
                bounds.highWaterBytes = 50_000
                bounds.roomInterval = .milliseconds(50)
                configuration.prefix = "short"
                configuration.stream = NATSStream("short", subjects: ["short.>"])
                configuration.stream.maximumBytes = 1 << 24
                configuration.stream.maximumMessages = 30
            }
            try await append(100)
            try await until { one.keeper.status.trouble?.contains("and is to have 50000") == true }
            try await until { one.keeper.ownedPeers.isEmpty }
            // On a machine that stood still it may have lost the peer before, and got it again.
            let begun = one.keeper.status.begun
            let two = try FleetRadioTests.Whole(
                .init(short: "two", server), store("two", server), adapters.2,
                layout)
            try await append(10)
            try await peer.drained("collector", within: .seconds(60))
            try await until { two.keeper.status.begun >= 1 }
            #expect(one.keeper.ownedPeers.isEmpty && one.keeper.status.begun == begun)

            // Somebody takes out of the stream what it has.
            let connection = try await NATSConnection.connect(NATSConfiguration(servers: [server.url]))
            try await until {
                try await connection.publish(NATSMessage("$JS.API.STREAM.PURGE.short", bytes: []))
                return try await one.store.undoneBytes() <= 37_500
            }
            await two.end()
            try await append(10)
            try await peer.drained("collector", within: .seconds(60))
            #expect(one.keeper.status.begun > begun)
            listener.close()
            await one.end()
            serving.cancel()
            _ = await serving.result
            await peer.close()
        }

        @Test func aGatewayWhoseDiskIsFullLeavesItsPeersToOthersAndGoesOnWhenThereIsRoom() async throws {
            let server = try NATSServer()
            try await server.start()
            let radio = LoopbackRadio()
            let layout = try GATTConfiguration(service: BluetoothUUID("FE01"), characteristic: BluetoothUUID("FE02"))
            let adapters = (radio.makeAdapter(), radio.makeAdapter(), radio.makeAdapter())
            let peer = try RecordStore.open(server.folder.appending(path: "peer").path())
            let listener = try await GATTTransport(adapter: adapters.0, configuration: layout).listen()
            let serving = serve(peer, listener)
            func append(_ count: Int) async throws { try await self.append(count, to: peer) }
            func gateway(_ name: String, _ adapter: LoopbackAdapter) throws -> FleetRadioTests.Whole {
                try FleetRadioTests.Whole(.init(short: name, server), store(name, server), adapter, layout)
            }
            let one = try gateway("one", adapters.1)
            try await append(1)
            try await peer.drained("collector", within: .seconds(60))
            try await allow(1, one.store)
            try await append(50)
            try await until { one.keeper.status.trouble?.contains("is full") == true }
            // It lets go by itself, though nobody else is there.
            try await until { one.keeper.ownedPeers.isEmpty }
            let two = try gateway("two", adapters.2)
            try await peer.drained("collector", within: .seconds(60))
            #expect(two.keeper.status.begun >= 1)

            // With room again it has what comes next.
            try await allow(10_000, one.store)
            await two.end()
            try await append(50)
            try await peer.drained("collector", within: .seconds(60))
            #expect(try await one.store.undone() > 0)
            listener.close()
            await one.end()
            serving.cancel()
            _ = await serving.result
            await peer.close()
        }

        @Test func aServerThatFallsSilentIsLeftWhileLeasesLast() throws {
            for seconds in [2, 6, 30, 3600] {
                var configuration = LeaseKeeper.Configuration(servers: ["nats://localhost"], name: "one")
                configuration.policy.timeToLive = .seconds(seconds)
                configuration.policy.serverSkew = .milliseconds(50)
                configuration.policy.stopping = .milliseconds(100)
                configuration.policy.requestTimeout = .milliseconds(100)
                let interval = try LeaseKeeper(configuration).configuration.servers.pingInterval
                // The second ping without an answer ends the connection; half of the time is left to get another one.
                #expect(interval * 2 < configuration.policy.timeToLive / 2 && interval <= .seconds(10))
            }
        }
    }
#endif
