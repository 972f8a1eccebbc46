public import Ferry
import Synchronization

/// Checks a ``/Ferry/Transport`` against its contract. Any test library runs it: a failed check is thrown as a
/// ``ConformanceFailure``, and every wait has a deadline. ``LinkConformance`` checks the links themselves.
///
/// ```swift
/// @Test(arguments: TransportConformance.Requirement.allCases)
/// func keepsTheContract(_ requirement: TransportConformance.Requirement) async throws {
///     try await TransportConformance(time: .system) {
///         .init(listening: server) { makeClient() }
///     }.check(requirement)
/// }
/// ```
public struct TransportConformance: Sendable {
    /// The requirements, each checked by itself.
    public enum Requirement: String, Sendable, CaseIterable {
        // Meeting.
        /// A peer that connects after `listen` has returned gets a link, and so does the listener; both carry chunks.
        case listeningMeansReachable
        /// Several peers at once have a link each: a chunk sent on one arrives at its other end and at no other.
        case eachPeerHasALink
        /// One peer after the other is met by one listener.
        case peersComeAndGo
        /// What a link takes has 1 byte to `maximumChunkSize`: it throws for anything else, and sends none of it.
        case chunksHaveTheirSizes
        /// `connect` throws within its timeout when no peer listens.
        case connectingToNobodyEnds
        /// `connect` throws `cancelled` soon after its task is cancelled.
        case connectingCanBeCancelled

        // Listening.
        /// After `close` the stream of links ends, no peer is let in, and links that were taken stay open.
        case closingStopsListening
        /// The same when the listener's last reference is released.
        case releasingStopsListening
        /// The same when the task that waits for links is cancelled.
        case cancellingStopsListening
        /// A link that was not taken when listening ends is closed, and its peer told.
        case untakenLinksAreClosed
        /// After listening has ended it can begin again.
        case listeningBeginsAnew

        // Ending.
        /// Each side is told when the other closes the link, and that reason stays.
        case endsAreTold
        /// A link whose last reference is released is closed, and the peer told.
        case releasedLinksAreClosed
        /// Nothing that is asked of a link that has ended has an effect on the next one of the same two.
        case endedLinksAreInert

        // Knowing.
        /// A link says who its peer is, the same after the end; a peer that lasts is found by it, again as the same.
        case peersAreKnown
        /// `connect(to:)` never hands over a link to anybody else: it throws for a peer that is not there, and
        /// `peerNotFound` for one that was known for one connection only.
        case nobodyElseIsTaken
    }

    /// What an implementation is known, and documented, not to do.
    public struct Deviations: OptionSet, Sendable {
        /// The bits.
        public let rawValue: Int
        /// Makes a set from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// There is one peer at a time.
        public static let onePeer = Deviations(rawValue: 1)
        /// Links have to be closed; releasing them is not enough.
        public static let releasedLinksStay = Deviations(rawValue: 2)
    }

    /// The two sides of a check.
    public struct Sides: Sendable {
        let listening: any Transport
        let makeConnecting: @Sendable () async throws -> any Transport

        /// - Parameters:
        ///   - listening: what listens.
        ///   - makeConnecting: makes what connects to it, another peer with each call.
        public init(listening: any Transport, makeConnecting: @escaping @Sendable () async throws -> any Transport) {
            self.listening = listening
            self.makeConnecting = makeConnecting
        }
    }

    private let time: ConformanceTime
    private let deviations: Deviations
    private let makeSides: @Sendable () async throws -> Sides

    /// Checks the transports that `makeSides` makes, new ones for each check.
    public init(
        time: ConformanceTime, deviations: Deviations = [], makeSides: @escaping @Sendable () async throws -> Sides
    ) {
        self.time = time
        self.deviations = deviations
        self.makeSides = makeSides
    }

    /// Runs all checks, one after another.
    ///
    /// - Throws: ``ConformanceFailure``, or what making the transports threw.
    public func run() async throws {
        for requirement in Requirement.allCases { try await check(requirement) }
    }

    /// Runs one check.
    ///
    /// - Throws: ``ConformanceFailure``, or what making the transports threw.
    public func check(_ requirement: Requirement) async throws {
        let makeSides = makeSides
        let sides = try await time.run(requirement.rawValue, "the transports", makeSides)
        let rig = TransportRig(sides, time, requirement)
        do {
            try await check(requirement, rig)
        } catch {
            await rig.tearDown()
            throw error
        }
        await rig.tearDown()
    }

    private func check(_ requirement: Requirement, _ rig: TransportRig) async throws {
        switch requirement {
        case .listeningMeansReachable: try await rig.meetsPeers(atOnce: 1)
        case .eachPeerHasALink: if !deviations.contains(.onePeer) { try await rig.meetsPeers(atOnce: 4) }
        case .peersComeAndGo: try await rig.meetsPeersInTurn()
        case .chunksHaveTheirSizes: try await rig.boundsChunks()
        case .connectingToNobodyEnds: try await rig.findsNobody()
        case .connectingCanBeCancelled: try await rig.cancelsConnecting()
        case .closingStopsListening: try await rig.stopsListening(by: .closing)
        case .releasingStopsListening: try await rig.stopsListening(by: .releasing)
        case .cancellingStopsListening: try await rig.stopsListening(by: .cancelling)
        case .untakenLinksAreClosed: try await rig.closesUntaken()
        case .listeningBeginsAnew: try await rig.listensAgain()
        case .endsAreTold: try await rig.tellsEnds()
        case .releasedLinksAreClosed:
            if !deviations.contains(.releasedLinksStay) { try await rig.closesReleased() }
        case .endedLinksAreInert: try await rig.leavesTheNextAlone()
        case .peersAreKnown: try await rig.knowsPeers()
        case .nobodyElseIsTaken: try await rig.takesNobodyElse()
        }
    }
}
