public import Ferry

/// A fleet in virtual time: gateways, peers, a bucket and a network, with the very ``LeaseBook``s that run elsewhere.
///
/// Gateways stand on a grid whose edges meet; peers lie anywhere, and are heard by the gateways within ``Setup/reach``: three of
/// them on average. The phases are: one with failures, one in which a part of the gateways is cut off
/// from the bucket too, and one after that. The same seed gives the same figures on every machine.
public struct FleetSimulation: Sendable {
    /// The fleet and the air to simulate.
    public struct Setup: Sendable, Hashable {
        /// How many gateways there are: 1 to 10 000.
        public var gateways = 1000
        /// How many peers: 1 to 1 000 000.
        public var peers = 100_000
        /// How many peers a gateway takes on; nil for twice its share.
        public var capacity: Int?
        /// How far a peer is heard, in spacings of the grid: 0.8 to 3.
        public var reach = 1.0
        /// How often a gateway takes its peers' signals anew.
        public var hearing = Duration.seconds(30)
        /// The length of each of the three phases.
        public var phase = Duration.seconds(3600)
        /// The length of the second phase, where it is another one.
        public var partition: Duration?
        /// The chance of a gateway to fail within an hour.
        public var failuresPerHour = 0.01
        /// How long one that has failed is away.
        public var outage = Duration.seconds(600)
        /// Which part of the gateways is cut off from the bucket in the second phase.
        public var partitioned = 0.1
        /// How often a peer is carried to another place, an hour.
        public var movesPerHour = 0.1
        /// The part of the messages between gateways, and of requests and answers, that is lost.
        public var loss = 0.001
        /// The fleet's times and bounds.
        public var policy = LeasePolicy()
        /// Where the numbers drawn begin.
        public var seed: UInt64 = 1

        /// The values above.
        public init() {}

        /// Checks that the values can be.
        ///
        /// - Throws: ``/Ferry/FerryError`` with code `fleet.policy`, which names the value, and what it can be.
        public func validate() throws(FerryError) {
            func refuse(_ what: String) -> FerryError { FerryError(.fleetPolicy, what) }
            for (name, value, range) in [
                ("gateways", gateways, 1...10_000), ("peers", peers, 1...1_000_000),
                ("capacity", capacity ?? 1, 1...1_000_000),
            ] where !range.contains(value) {
                throw refuse("\(name) is \(value), and can be \(range.lowerBound) to \(range.upperBound).")
            }
            for (name, value, range) in [
                ("reach", reach, 0.8...3), ("failuresPerHour", failuresPerHour, 0...1),
                ("partitioned", partitioned, 0...1), ("movesPerHour", movesPerHour, 0...100), ("loss", loss, 0...0.5),
            ] where !range.contains(value) {
                throw refuse("\(name) is \(value), and can be \(range.lowerBound) to \(range.upperBound).")
            }
            for (name, value) in [
                ("hearing", hearing), ("phase", phase), ("partition", partition ?? phase), ("outage", outage),
            ]
            where value < .seconds(1) || value > .seconds(86_400) {
                throw refuse("\(name) is \(value), and can be a second to a day.")
            }
            guard hearing * 2 < policy.silence else {
                throw refuse(
                    "hearing is \(hearing), and must be less than half of the policy's silence, \(policy.silence).")
            }
            try policy.validate()
        }
    }

    /// The figures of one phase.
    public struct Phase: Sendable, Hashable {
        /// Which one: `start`, `failures`, `partition` or `after`.
        public var name: String
        /// Its length.
        public var seconds: Int
        /// Leases given up for a better gateway.
        public var handOvers = 0
        /// Tenures begun, however the one before ended.
        public var begins = 0
        /// The time that peers had no owner, or an owner that does not hear them, summed over peers, in milliseconds.
        public var orphanedMilliseconds: Int64 = 0
        /// How much of that no gateway could have helped, for all that hear the peer were down or cut off: sampled every ten
        /// seconds.
        public var outOfReachSeconds = 0
        /// The longest that one peer was, as far as it ended in the phase.
        public var longestOrphan: Int64 = 0
        /// Peers without an owner when the phase ends.
        public var orphansAtEnd = 0
        /// Gateways that failed.
        public var failures = 0
        /// Creates and updates: what the bucket replicates, where it does not refuse.
        public var writes = 0
        /// Creates and updates that the bucket refused.
        public var refused = 0
        /// Reads of an entry.
        public var reads = 0
        /// Messages from gateway to gateway.
        public var messages = 0
        /// The most requests and messages of any second.
        public var busiestSecond = 0

        /// Everything that goes to the broker, a second.
        public var perSecond: Double { Double(writes + reads + messages) / Double(max(1, seconds)) }
    }

    /// The figures of a simulation.
    public struct Report: Sendable, Hashable {
        /// By phase.
        public var phases: [Phase]
        /// How often a tenure began while another gateway believed to own the peer: never.
        public var violations: Int
        /// The most peers that one gateway had.
        public var mostOwned: Int
        /// Peers that no gateway hears.
        public var unheard: Int
        /// The steps simulated.
        public var events: Int
    }

    /// The fleet and the air.
    public let setup: Setup

    /// A simulation, ready to run.
    ///
    /// - Throws: ``/Ferry/FerryError`` with code `fleet.policy` for a setup that cannot be.
    public init(_ setup: Setup) throws(FerryError) {
        try setup.validate()
        self.setup = setup
    }

    /// Runs it from the start to the end.
    ///
    /// - Parameter progress: told of each phase when it is over.
    public func run(progress: (Phase) -> Void = { _ in }) throws(FerryError) -> Report {
        var world = try FleetWorld(setup)
        // The start of a fleet, when no peer has an owner, says nothing about the hours.
        let start = max(300, Int(setup.policy.poll.components.seconds) * 6)
        let seconds = Int(setup.phase.components.seconds)
        let partition = setup.partition.map { Int($0.components.seconds) } ?? seconds
        var phases: [Phase] = []
        for (name, length) in [("start", start), ("failures", seconds), ("partition", partition), ("after", seconds)] {
            try world.run(name, seconds: length, hasFailures: name != "start", isPartitioned: name == "partition")
            phases.append(world.phase)
            progress(world.phase)
        }
        return Report(
            phases: phases, violations: world.violations, mostOwned: world.mostOwned, unheard: world.unheard,
            events: world.events)
    }
}
