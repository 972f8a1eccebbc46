#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import Foundation
    import GRDB
    import GatewayRig
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import FerryRecords

    /// What a gateway of a fleet does whose disk is full, and what it asks of a server that may fall silent.
    @Suite(
        .tags(.records, .fleet, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(5)))
    struct FleetDiskTests {
        /// Gives the peer records of 1000 bytes to send.
        private func append(_ count: Int, to peer: RecordStore) async throws {
            for _ in 0..<count { try await peer.append([UInt8](repeating: 1, count: 1000), to: "collector") }
        }

        /// Lets the file of a store have so many pages more, as a disk that is full, or has room again.
        private func allow(_ pages: Int, _ store: RecordStore) async throws {
            try await store.read { database, _ in
                let present = try Int.fetchOne(database, sql: "PRAGMA page_count") ?? 0
                _ = try Row.fetchOne(database, sql: "PRAGMA max_page_count = \(present + pages)")
            }
        }

        @Test func aGatewayThatCannotPublishLeavesItsPeersToOthersAtHighWater() async throws {
            let air = try await FleetAir()
            let peer = air.peer
            // The first has a stream of its own, which takes 30 records.
            let one = try air.gateway("one") { bounds, configuration in
                bounds.highWaterBytes = 50_000
                bounds.roomInterval = .milliseconds(50)
                configuration.prefix = "short"
                configuration.stream = NATSStream("short", subjects: ["short.>"])
                configuration.stream.maximumBytes = 1 << 24
                configuration.stream.maximumMessages = 30
            }
            try await append(100, to: peer)
            try await until("high water") { one.keeper.status.trouble?.contains("and is to have 50000") == true }
            try await until("a gateway without peers") { one.keeper.ownedPeers.isEmpty }
            // On a machine that stood still it may have lost the peer before, and got it again.
            let begun = one.keeper.status.begun
            let two = try air.gateway("two")
            try await append(10, to: peer)
            try await peer.drained("collector", within: .unreached)
            try await until("the second gateway's lease") { two.keeper.status.begun >= 1 }
            #expect(one.keeper.ownedPeers.isEmpty && one.keeper.status.begun == begun)

            // Somebody takes out of the stream what it has.
            let connection = try await air.server.connect()
            try await until("low water") {
                try await connection.publish(NATSMessage("$JS.API.STREAM.PURGE.short", bytes: []))
                return try await one.store.undoneBytes() <= 37_500
            }
            await two.end()
            try await append(10, to: peer)
            try await peer.drained("collector", within: .unreached)
            #expect(one.keeper.status.begun > begun)
            await one.end()
            await air.end()
        }

        @Test func aGatewayWhoseDiskIsFullLeavesItsPeersToOthersAndGoesOnWhenThereIsRoom() async throws {
            let air = try await FleetAir()
            let peer = air.peer
            let one = try air.gateway("one")
            try await append(1, to: peer)
            try await peer.drained("collector", within: .unreached)
            try await allow(1, one.store)
            try await append(50, to: peer)
            try await until("a full disk") { one.keeper.status.trouble?.contains("is full") == true }
            // It lets go by itself, though nobody else is there.
            try await until("a gateway without peers") { one.keeper.ownedPeers.isEmpty }
            let two = try air.gateway("two")
            try await peer.drained("collector", within: .unreached)
            #expect(two.keeper.status.begun >= 1)

            // With room again it has what comes next.
            try await allow(10_000, one.store)
            await two.end()
            try await append(50, to: peer)
            try await peer.drained("collector", within: .unreached)
            #expect(try await one.store.undone() > 0)
            await one.end()
            await air.end()
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
