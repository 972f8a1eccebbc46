#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import Foundation
    import GatewayRig
    import Synchronization
    import TestSupport
    import Testing

    /// Gateways that share peers by leases in a bucket of a real server.
    @Suite(
        .tags(.records, .fleet, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(5)))
    struct FleetGatewayTests {
        /// Who visits nobody, and tells whom it would.
        private final class Visits: PeerVisitor {
            let peers = Mutex<Set<String>>([])
            func begin(_ peer: String) { _ = peers.withLock { $0.insert(peer) } }
            func stop(_ peer: String) async { _ = peers.withLock { $0.remove(peer) } }
        }

        /// A gateway's leases, and a peer that it hears all the time.
        private struct Hearing {
            let keeper: LeaseKeeper
            let visits = Visits()
            let task: Task<Void, any Error>

            init(_ configuration: LeaseKeeper.Configuration, _ peer: String, signal: Int) throws {
                let keeper = try LeaseKeeper(configuration)
                let visits = visits
                self.keeper = keeper
                task = Task {
                    async let ears: Void = repeatedly { keeper.heard(peer, signal: signal) }
                    try await keeper.run(visits)
                    await ears
                }
            }

            func end() async {
                task.cancel()
                _ = await task.result
            }
        }

        @Test func aDeadGatewaysPeerIsTakenOverAndWhatItSaysLaterIsRefused() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await server.connect()
            var owners = NATSStream("owners", subjects: ["ferry.owners.>"])
            owners.maximumBytes = 1 << 24
            try await connection.open(owners)
            // Somebody got the lease, and died.
            let timeToLive = LeaseKeeper.Configuration(short: "one", server).policy.timeToLive
            let bucket = try await NATSBucket.open("leases", expiry: timeToLive, on: connection)
            let dead = Lease(holder: GatewayID("dead", incarnation: 7), score: -30)
            let death = ContinuousClock.now
            let old = FencingToken(
                revision: try await bucket.create("address=3AC0", Array(dead.description.utf8)))
            try await connection.publish(claim("began", old, "dead"))
            try await connection.flush()

            let one = try Hearing(.init(short: "one", server), "address:C0", signal: -50)
            try await until("the end of the lease") { one.keeper.token(of: "address:C0") != nil }
            #expect(ContinuousClock.now - death >= .seconds(2))
            let first = try #require(one.keeper.token(of: "address:C0"))
            #expect(first > old)
            try await until("a visit") { one.visits.peers.withLock { $0 == ["address:C0"] } }

            // A better one does not take what is somebody's.
            let two = try Hearing(.init(short: "two", server), "address:C0", signal: -45)
            try await until("the second gateway") { two.keeper.status.isConnected }
            for _ in 0..<500 {
                let before = one.keeper.token(of: "address:C0")
                let other = two.keeper.token(of: "address:C0")
                // The same tenure before and after means that it was the owner meanwhile.
                if before != nil, before == one.keeper.token(of: "address:C0") { #expect(other == nil) }
                _ = try await bucket.keys()
            }
            let directory = try await FleetDirectory.open("leases", on: connection)
            var reports: [String] = []
            while reports.isEmpty {
                try await one.keeper.report(Array("I am here".utf8))
                reports = try await directory.reports().map(\.gateway)
            }
            #expect(reports == ["one"])
            // On a machine that has stood for seconds it is nobody's for a moment.
            var leases = try await directory.leases()
            while leases.isEmpty { leases = try await directory.leases() }
            #expect(leases.map(\.peer) == ["address:C0"] && leases[0].entry.token >= first)

            // One that ends gives its peers up, and another has them at once.
            await one.end()
            #expect(one.keeper.ownedPeers.isEmpty && one.visits.peers.withLock(\.isEmpty))
            try await until("the second gateway's lease") { two.keeper.token(of: "address:C0") != nil }
            let second = try #require(two.keeper.token(of: "address:C0"))
            #expect(second > first)
            // The dead one wakes up.
            try await connection.publish(claim("ended", old, "dead"))
            try await connection.flush()
            await two.end()

            let consumer = try await NATSConsumer.open(
                "owners", subject: "ferry.owners.>", name: "table", on: connection)
            var fence = Fence(), refused: [String] = [], taken: [String] = []
            while !(taken + refused).contains("dead ended") {
                for delivery in try await consumer.take(atMost: 10, within: .seconds(30)) {
                    try await consumer.acknowledge(delivery)
                    let words = ["Ferry-Gateway", "Ferry-Claim"].map { delivery.message[$0] ?? "" }.joined(
                        separator: " ")
                    let peer = try #require(delivery.message["Ferry-Peer"])
                    let token: UInt64? = delivery.message["Ferry-Token"].flatMap { UInt64($0) }
                    let verdict = try fence.admit(
                        .claim, of: peer, under: FencingToken(revision: try #require(token)))
                    switch verdict {
                    case .refused: refused.append(words)
                    default: taken.append(words)
                    }
                }
            }
            #expect(refused.last == "dead ended")
            #expect(taken.first == "dead began" && taken.contains("one began") && taken.contains("two began"))
        }

        /// Whose visits do not end when they should.
        private final class Hanging: PeerVisitor {
            let begun = Mutex(0)
            let (released, release) = AsyncStream<Void>.makeStream()
            func begin(_ peer: String) { begun.withLock { $0 += 1 } }
            func stop(_ peer: String) async { for await _ in released {} }
        }

        @Test func aVisitThatHangsIsToldOfAndHoldsNobodyUp() async throws {
            let server = try NATSServer()
            try await server.start()
            let keeper = try LeaseKeeper(.init(short: "one", server))
            let visits = Hanging()
            let running = Task { try await keeper.run(visits) }
            try await until("a visit") {
                keeper.heard("address:C0", signal: -50)
                return visits.begun.withLock { $0 > 0 }
            }
            keeper.pause(FerryError(.queueFull, "There is no room."))
            try await until("a late end") { keeper.status.late == 1 }
            #expect(keeper.status.trouble == "The visit to address:C0 did not end when its lease was over.")
            #expect(keeper.token(of: "address:C0") == nil)
            // It ends all the same.
            running.cancel()
            _ = await running.result
            visits.release.finish()
        }

        private func claim(_ what: String, _ token: FencingToken, _ gateway: String) -> NATSMessage {
            NATSMessage(
                "ferry.owners.address=3AC0",
                headers: [
                    NATSMessage.Header("Ferry-Claim", what), NATSMessage.Header("Ferry-Peer", "address%3AC0"),
                    NATSMessage.Header("Ferry-Gateway", gateway), NATSMessage.Header("Ferry-Token", "\(token)"),
                ], bytes: [])
        }
    }
#endif
