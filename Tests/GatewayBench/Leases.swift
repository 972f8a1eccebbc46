#if NATS && Records
    import Ferry
    import FerryNATS
    import Foundation
    import Synchronization

    /// What a bucket of leases bears: renewals a second, one after another of each peer, and of many peers at once.
    struct Leases {
        let servers: [String]
        let seconds: Double
        private let peers = 1000
        private let connections = 4
        /// As a lease is written there.
        private let lease = Array("held gateway-1 1234567890123456789 12 -50".utf8)

        func run() async throws {
            for replicas in servers.count > 1 ? [1, servers.count] : [1] {
                let name = "leases\(replicas)"
                var (opened, buckets): ([NATSConnection], [NATSBucket]) = ([], [])
                for _ in 0..<connections {
                    var configuration = NATSConfiguration(servers: servers)
                    configuration.requestTimeout = .seconds(30)
                    let connection = try await NATSConnection.connect(configuration)
                    opened.append(connection)
                    buckets.append(
                        try await NATSBucket.open(name, expiry: .seconds(3600), replicas: replicas, on: connection))
                }
                let (renewed, read) = (Tally(), Tally())
                let end = ContinuousClock.now + .seconds(seconds)
                try await withThrowingTaskGroup(of: Void.self) { group in
                    for peer in 0..<peers {
                        let bucket = buckets[peer % connections]
                        group.addTask {
                            var revision = try await bucket.create("peer-\(peer)", lease)
                            // Three reads beside four renewals, as in a fleet.
                            for turn in 0... {
                                guard ContinuousClock.now < end else { return }
                                revision = try await bucket.update("peer-\(peer)", lease, from: revision)
                                renewed.count.add(1, ordering: .relaxed)
                                guard turn % 4 > 0 else { continue }
                                _ = try await bucket.entry("peer-\(peer)")
                                read.count.add(1, ordering: .relaxed)
                            }
                        }
                    }
                    try await group.waitForAll()
                }
                let rates = [renewed, read].map { Int(Double($0.count.load(ordering: .relaxed)) / seconds) }
                GatewayBench.say(
                    "leases in a bucket with \(replicas) of \(servers.count) servers: \(rates[0]) renewals/s beside \(rates[1]) reads/s"
                )
                for connection in opened { await connection.close() }
            }
        }

        private final class Tally: Sendable { let count = Atomic(0) }
    }
#endif
