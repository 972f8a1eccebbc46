public import Ferry
import Synchronization

/// Checks a ``/Ferry/Link`` against its contract. Any test library runs it: a failed check is thrown as a
/// ``ConformanceFailure``, and every wait has a deadline.
///
/// ```swift
/// @Test(arguments: LinkConformance.Requirement.allCases)
/// func keepsTheContract(_ requirement: LinkConformance.Requirement) async throws {
///     try await LinkConformance(time: .system) { try await makeConnectedPair() }.check(requirement)
/// }
/// ```
public struct LinkConformance: Sendable {
    /// The requirements, each checked by itself.
    public enum Requirement: String, Sendable, CaseIterable {
        /// Chunks of every size arrive whole, in order and once.
        case chunksArriveInOrder
        /// `trySend` throws `emptyChunk` for no bytes.
        case emptyChunksAreRefused
        /// `trySend` throws `chunkTooLarge` above `maximumChunkSize`, which is at least 1.
        case largeChunksAreRefused
        /// `trySend` returns false when the queue is full; afterwards `linkIsReady` comes and chunks are taken again.
        case aFullQueueSaysFalseThenReady
        /// A sender that only tries again some time after `linkIsReady` finds space: readiness is a level.
        case readinessIsALevel
        /// No event comes from within a call of the owner's, and none but `linkIsReady` overlaps another.
        case eventsComeFromOutside
        /// Chunks that arrive before `activate` are delivered afterwards.
        case chunksWaitForActivation
        /// While the receiver has paused nothing grows without bound, and when it goes on nothing is lost.
        case aPausedReceiverStopsTheSender
        /// `close` lets queued chunks arrive, ends with `closed` here and another reason there, once each. No chunk comes
        /// after it at either end.
        case closingEndsBothSidesOnce
        /// A side that has closed a link is told `closed`, also where the peer closes it too or is out of reach.
        case theFirstReasonWins
        /// After the end `trySend` throws the reason that `linkDidClose` told, and further calls do nothing.
        case nothingIsSentAfterTheEnd
        /// A link that is closed before it is activated tells its receiver when it is.
        case activationAfterTheEndTellsIt
        /// A call on an ended link has no effect on the next link between the same two peers.
        case endedLinksAreInert
        /// `peer` is one peer for as long as the link lives and after its end, known no less surely than before; and the
        /// same on the next link, unless it is known for one connection only.
        case peersStayWhoTheyAre
        /// `role` is the same for as long as the link lives and after its end; where both ends tell it they are not the same.
        case theTwoEndsHaveTwoRoles
    }

    /// What an implementation is known, and documented, not to do.
    public struct Deviations: OptionSet, Sendable {
        /// The bits.
        public let rawValue: Int
        /// Makes a set from its bits.
        public init(rawValue: Int) { self.rawValue = rawValue }
        /// The link cannot tell its peer to pause and goes on delivering.
        public static let cannotPause = Deviations(rawValue: 1)
        /// The link cannot tell when what it has queued has left, so that closing may lose it.
        public static let closingLosesQueued = Deviations(rawValue: 2)
        /// The queue has no end that the sender would notice within a million bytes.
        public static let neverFull = Deviations(rawValue: 4)
    }

    private let time: ConformanceTime
    private let deviations: Deviations
    private let setInReach: (@Sendable (Bool) -> Void)?
    private let makePair: @Sendable () async throws -> (any Link, any Link)

    /// Checks the links that `makePair` makes: the two ends of one connection between the same two peers, not activated, a
    /// new one each time it is called. Some checks call it again after the first pair has ended.
    ///
    /// - Parameters:
    ///   - time: the time that the checks wait by.
    ///   - deviations: what the links are known not to do.
    ///   - setInReach: takes the two peers out of each other's reach (false) and back; nil where that cannot be done, so that
    ///     what needs it is not checked.
    ///   - makePair: makes the links.
    public init(
        time: ConformanceTime, deviations: Deviations = [], setInReach: (@Sendable (Bool) -> Void)? = nil,
        makePair: @escaping @Sendable () async throws -> (any Link, any Link)
    ) {
        self.time = time
        self.deviations = deviations
        self.setInReach = setInReach
        self.makePair = makePair
    }

    /// Runs all checks, one after another.
    ///
    /// - Throws: ``ConformanceFailure``, or what making the pair threw.
    public func run() async throws {
        for requirement in Requirement.allCases { try await check(requirement) }
    }

    /// Runs one check, in both directions.
    ///
    /// - Throws: ``ConformanceFailure``, or what making the pair threw.
    public func check(_ requirement: Requirement) async throws {
        for swaps in [false, true] {
            let rig = try await makeRig(requirement, swaps)
            try await check(requirement, rig) { try await makeRig(requirement, swaps) }
            rig.near.close()
            rig.far.close()
            await time.pass(.milliseconds(50))
        }
    }

    private func makeRig(_ requirement: Requirement, _ swaps: Bool) async throws -> LinkRig {
        let makePair = makePair
        let (a, b) = try await time.run(requirement.rawValue, "the pair of links", makePair)
        return swaps ? LinkRig(b, a, time, requirement) : LinkRig(a, b, time, requirement)
    }

    private func check(
        _ requirement: Requirement, _ rig: LinkRig, _ makeNext: () async throws -> LinkRig
    ) async throws {
        switch requirement {
        case .chunksArriveInOrder: try await rig.chunksArriveInOrder()
        case .emptyChunksAreRefused: try await rig.refuses({ _ in [0] }, .emptyChunk)
        case .largeChunksAreRefused:
            try await rig.refuses({ [$0 + 1, $0 + 3, 2 * $0, $0 + 65_536] }, .chunkTooLarge)
        case .aFullQueueSaysFalseThenReady:
            if !deviations.contains(.neverFull) { try await rig.fullThenReady(delay: .zero) }
        case .readinessIsALevel:
            if !deviations.contains(.neverFull) { try await rig.fullThenReady(delay: .milliseconds(500)) }
        case .eventsComeFromOutside: try await rig.eventsComeFromOutside()
        case .chunksWaitForActivation: try await rig.chunksWaitForActivation()
        case .aPausedReceiverStopsTheSender:
            if !deviations.contains(.cannotPause) { try await rig.pauses() }
        case .closingEndsBothSidesOnce: try await rig.closes(losesQueued: deviations.contains(.closingLosesQueued))
        case .theFirstReasonWins:
            try await rig.firstReasonWins()
            guard let setInReach else { return }
            for isLateLoss in [false, true] {
                try await makeNext().firstReasonWins(isLateLoss: isLateLoss, setInReach)
            }
        case .nothingIsSentAfterTheEnd: try await rig.sendsNothingAfterTheEnd()
        case .activationAfterTheEndTellsIt: try await rig.activatesAfterTheEnd()
        case .endedLinksAreInert: try await rig.endedLinksAreInert(makeNext)
        case .peersStayWhoTheyAre: try await rig.peersStayWhoTheyAre(makeNext)
        case .theTwoEndsHaveTwoRoles: try await rig.endsHaveTwoRoles()
        }
    }
}

/// A receiver that writes down what it is told.
final class LinkWitness: LinkReceiver {
    struct Record {
        var chunks: [[UInt8]] = []
        var readies = 0
        var reasons: [FerryError] = []
        var afterEnd = 0
        var onReady: (@Sendable () -> Void)?
    }

    let record = Mutex(Record())
    let calls = CallGuard()

    func linkIsReady() {
        let isOutside = calls.event("linkIsReady", mayOverlap: true)
        let action = record.withLock { record in
            record.readies += 1
            return record.onReady
        }
        if isOutside { action?() }
    }

    func linkDidReceive(_ chunk: RawSpan) {
        calls.event("linkDidReceive") {
            let bytes = chunk.withUnsafeBytes { Array($0) }
            record.withLock { record in
                record.chunks.append(bytes)
                if !record.reasons.isEmpty { record.afterEnd += 1 }
            }
        }
    }

    func linkDidClose(_ reason: FerryError) {
        calls.event("linkDidClose") { record.withLock { $0.reasons.append(reason) } }
    }

    var chunks: [[UInt8]] { record.withLock { $0.chunks } }
    var readies: Int { record.withLock { $0.readies } }
    var reasons: [FerryError] { record.withLock { $0.reasons } }
}
