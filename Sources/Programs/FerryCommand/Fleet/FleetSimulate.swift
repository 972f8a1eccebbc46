import ArgumentParser
import Ferry
import FerryFleet
import FerryLab
import Foundation

extension Fleet {
    /// `ferry fleet simulate`: what a fleet of this size asks of its broker, and how long peers have no gateway.
    struct Simulate: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Simulates a fleet in virtual time: hand-overs, peers without an owner, messages to the broker.",
            discussion: """
                The leases and scores are the values that gateways run; the network and the bucket are a model. Three phases \
                follow a start: one with failures of gateways, one in which a part of the gateways is cut off from the broker \
                too, and one after that. The same seed gives the same figures. Take a release build: 1000 gateways and 100000 \
                peers are hundreds of millions of steps.
                """)

        @Option(help: "How many gateways there are.")
        var gateways = 1000

        @Option(help: "How many peers there are.")
        var peers = 100_000

        @Option(help: "How many peers a gateway takes on; twice its share unless given.")
        var capacity: Int?

        @Option(help: "The length of each phase, in minutes.")
        var minutes = 60

        @Option(help: "The length of the phase with gateways cut off, in minutes; that of the others unless given.")
        var partitionMinutes: Int?

        @Option(help: "How long the bucket keeps a lease, in seconds.")
        var timeToLive = 30

        @Option(
            help:
                "How long a candidate waits before it looks again, in seconds; two thirds of the time to live unless given."
        )
        var poll: Int?

        @Option(help: "Over how long a gateway that has started spreads its first attempts, in seconds.")
        var startup = 20

        @Option(help: "The percentage of the gateways that fails in an hour.")
        var failures = 1.0

        @Option(help: "How long one that has failed is away, in seconds.")
        var outage = 600

        @Option(help: "The percentage of the gateways that is cut off in the second phase.")
        var partitioned = 10.0

        @Option(help: "How often a peer is carried to another place in an hour.")
        var moves = 0.1

        @Option(help: "Where the numbers drawn begin.")
        var seed: UInt64 = 1

        func validate() throws {
            let counts = [
                ("--gateways", gateways, 1...10_000), ("--peers", peers, 1...1_000_000),
                ("--capacity", capacity ?? 1, 1...1_000_000), ("--minutes", minutes, 1...1440),
                ("--partition-minutes", partitionMinutes ?? 1, 1...1440),
                ("--time-to-live", timeToLive, 8...43_200), ("--poll", poll ?? 1, 1...28_800),
                ("--startup", startup, 0...86_400), ("--outage", outage, 1...86_400),
            ]
            for (name, value, range) in counts where !range.contains(value) {
                throw ValidationError("\(name) is \(value); give \(range.lowerBound) to \(range.upperBound).")
            }
            for (name, value) in [("--failures", failures), ("--partitioned", partitioned), ("--moves", moves)]
            where !(0...100).contains(value) {
                throw ValidationError("\(name) is \(value); give 0 to 100.")
            }
            do { try setup().validate() } catch { throw ValidationError(error.message) }
        }

        func run() async throws {
            do throws(FerryError) {
                let simulation = try FleetSimulation(setup())
                Self.show(Self.headings)
                let report = try simulation.run { Self.show(Self.line($0)) }
                Self.show(Self.summary(report))
            } catch { throw CommandFailure(error.message) }
        }

        /// At once, also in a pipe: a person who ends a long simulation keeps the phases that were over.
        private static func show(_ text: String) {
            print(text)
            fflush(nil)
        }

        func setup() -> FleetSimulation.Setup {
            var setup = FleetSimulation.Setup()
            setup.gateways = gateways
            setup.peers = peers
            setup.capacity = capacity
            setup.phase = .seconds(minutes * 60)
            setup.partition = partitionMinutes.map { .seconds($0 * 60) }
            setup.policy.timeToLive = .seconds(timeToLive)
            setup.policy.poll = .seconds(poll ?? timeToLive / 3 * 2)
            setup.policy.startup = .seconds(startup)
            setup.policy.silence = max(setup.policy.silence, setup.policy.poll * 3)
            setup.failuresPerHour = failures / 100
            setup.outage = .seconds(outage)
            setup.partitioned = partitioned / 100
            setup.movesPerHour = moves
            setup.seed = seed
            return setup
        }

        private static let columns = [
            ("phase", 10), ("minutes", 8), ("failed", 7), ("hand-overs/h", 13), ("begins/h", 10),
            ("orphan peer-s", 14), ("out of reach", 13), ("longest s", 10), ("at its end", 11), ("writes/s", 10),
            ("refused/s", 10),
            ("reads/s", 9), ("tells/s", 8), ("busiest s", 10),
        ]

        static var headings: String { aligned(columns.map(\.0)) }

        static func line(_ phase: FleetSimulation.Phase) -> String {
            let seconds = Double(max(1, phase.seconds))
            let anHour = { (count: Int) in number(Double(count) * 3600 / seconds, 0) }
            let aSecond = { (count: Int) in number(Double(count) / seconds, 1) }
            return aligned([
                phase.name, number(seconds / 60, 0), "\(phase.failures)", anHour(phase.handOvers), anHour(phase.begins),
                number(Double(phase.orphanedMilliseconds) / 1000, 0),
                "\(phase.outOfReachSeconds)", number(Double(phase.longestOrphan) / 1000, 1),
                "\(phase.orphansAtEnd)", aSecond(phase.writes), aSecond(phase.refused), aSecond(phase.reads),
                aSecond(phase.messages), "\(phase.busiestSecond)",
            ])
        }

        static func summary(_ report: FleetSimulation.Report) -> String {
            """
            Tenures that began while another gateway believed to own the peer: \(report.violations).
            The most peers that one gateway had: \(report.mostOwned). Peers that no gateway ever heard at first: \
            \(report.unheard). Steps: \(report.events).
            """
        }

        private static func aligned(_ fields: [String]) -> String {
            zip(fields, columns).map { String(repeating: " ", count: max(1, $1.1 - $0.count)) + $0 }.joined()
        }
    }
}
