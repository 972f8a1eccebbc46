import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// The kits notice what is broken: a check that cannot fail would be worth nothing.
@Suite(.tags(.adapter)) struct BrokenKitTests {
    @Test(arguments: [LoopbackRadio.Faults.Kind.lose, .double, .reorder, .truncate, .readyNever])
    func theAdapterKitNoticesFaults(_ kind: LoopbackRadio.Faults.Kind) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        let isReady = kind == .readyNever
        configuration.faults =
            isReady ? .init(probabilities: [kind: 1]) : .init(seed: 1, script: [.init(kind, at: 150)])
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let kit = AdapterConformance(
            peripheral: radio.makeAdapter(), central: radio.makeAdapter(),
            time: .stepped(time, timeout: .seconds(5)))
        for requirement in [
            AdapterConformance.Requirement.notificationsArriveInOrder, .writesWithoutResponseArriveInOrder,
        ] {
            #expect(throws: ConformanceFailure.self) {
                try time.run(within: .seconds(100_000)) { try await kit.check(requirement) }
            }
        }
    }

    /// What a link does wrong.
    enum Defect: String, CaseIterable, Sendable {
        case takesEmptyChunks, takesLargeChunks, swapsBytes, doublesSevens, callsFromWithin, closesTwice, dropsReady,
            sendsAfterTheEnd
        /// What an ended link is asked goes to the next one of its side.
        case sendsOnTheNext, pausesTheNext, closesTheNext
        case forgetsItsPeer, isSomebodyElseEachTime
        /// Of what came before it was activated only the beginning is kept.
        case dropsEarlyChunks
        /// The last reason for its end is told, be it this side that has closed it.
        case tellsTheLastReason
        /// Every fourth chunk comes after the next.
        case swapsChunks
        /// A chunk comes after the end: at the side that is told, or at the one that closed.
        case deliversAfterTheEnd, deliversAfterClose
        case takesVeryLargeChunks
        /// What `close` says takes the place of why the link had ended.
        case overwritesItsReason
        /// Each end says that it has connected, or stops saying so.
        case isInitiatorAtBothEnds, forgetsItsRole

        var requirement: LinkConformance.Requirement {
            switch self {
            case .takesEmptyChunks: .emptyChunksAreRefused
            case .takesLargeChunks, .takesVeryLargeChunks: .largeChunksAreRefused
            case .swapsBytes, .doublesSevens, .swapsChunks: .chunksArriveInOrder
            case .callsFromWithin: .eventsComeFromOutside
            case .closesTwice, .deliversAfterTheEnd, .deliversAfterClose: .closingEndsBothSidesOnce
            case .dropsReady: .aFullQueueSaysFalseThenReady
            case .sendsAfterTheEnd, .overwritesItsReason: .nothingIsSentAfterTheEnd
            case .sendsOnTheNext, .pausesTheNext, .closesTheNext: .endedLinksAreInert
            case .forgetsItsPeer, .isSomebodyElseEachTime: .peersStayWhoTheyAre
            case .dropsEarlyChunks: .chunksWaitForActivation
            case .tellsTheLastReason: .theFirstReasonWins
            case .isInitiatorAtBothEnds, .forgetsItsRole: .theTwoEndsHaveTwoRoles
            }
        }
    }

    @Test(arguments: Defect.allCases)
    func theLinkKitNoticesDefects(_ defect: Defect) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let rig = ChannelRig(radio)
        let sides = [Side(), Side()]
        let setInReach = { @Sendable (isInReach: Bool) in
            radio.setInRange(isInReach, between: rig.server, and: rig.client)
            for side in sides { side.isInReach.store(isInReach, ordering: .relaxed) }
        }
        let kit = LinkConformance(time: .stepped(time, timeout: .seconds(10)), setInReach: setInReach) {
            let (near, far) = try await rig.makePair()
            return (DefectiveLink(near, sides[0], defect), DefectiveLink(far, sides[1], defect))
        }
        #expect(throws: ConformanceFailure.self) {
            try time.run(within: .seconds(100_000)) { try await kit.check(defect.requirement) }
        }
        // The same link without the defect passes.
        let sound = LinkConformance(time: .stepped(time), setInReach: setInReach) { try await rig.makePair() }
        try time.run(within: .seconds(100_000)) { try await sound.check(defect.requirement) }
    }
}

/// The links of one side, one after the other.
private final class Side: Sendable {
    private let links = Mutex<[any Link]>([])
    let isInReach = Atomic(true)

    var latest: (any Link)? { links.withLock { $0.last } }
    /// Returns how many there were before.
    func add(_ link: any Link) -> Int {
        links.withLock { links in
            links.append(link)
            return links.count - 1
        }
    }
}

/// A link that hands on everything but for one defect.
private final class DefectiveLink: Link, LinkReceiver {
    private let link: any Link
    private let side: Side
    private let number: Int
    private let defect: BrokenKitTests.Defect
    private let receiver = Mutex<(any LinkReceiver)?>(nil)
    private let hasEnded = Atomic(false)
    private let isClosedAgain = Atomic(false)
    private let received = Mutex<(count: Int, held: [UInt8]?)>((0, nil))
    /// What came before it was activated, of the link that keeps too little of that.
    private let early = Mutex<[[UInt8]]>([])

    init(_ link: any Link, _ side: Side, _ defect: BrokenKitTests.Defect) {
        self.link = link
        self.side = side
        self.defect = defect
        number = side.add(link)
        if defect == .dropsEarlyChunks { link.activate(self) }
    }

    /// The side's next link, for one that has ended and has such a defect.
    private func next(_ planted: BrokenKitTests.Defect) -> (any Link)? {
        defect == planted && hasEnded.load(ordering: .acquiring) ? side.latest : nil
    }

    var peer: PeerIdentity {
        if defect == .forgetsItsPeer, hasEnded.load(ordering: .acquiring) {
            return PeerIdentity("unknown", certainty: .connection)
        }
        guard defect == .isSomebodyElseEachTime else { return link.peer }
        return PeerIdentity("\(link.peer.name)#\(number)", certainty: .address)
    }
    var role: LinkRole? {
        if defect == .isInitiatorAtBothEnds { return .initiator }
        return defect == .forgetsItsRole && hasEnded.load(ordering: .acquiring) ? nil : link.role
    }
    var maximumChunkSize: Int { link.maximumChunkSize }

    func activate(_ receiver: any LinkReceiver) {
        self.receiver.withLock { $0 = receiver }
        guard defect == .dropsEarlyChunks else { return link.activate(self) }
        for chunk in early.withLock({ $0 }) { receiver.linkDidReceive(chunk.span.bytes) }
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        if defect == .takesEmptyChunks, chunk.byteCount == 0 { return true }
        if defect == .takesLargeChunks, chunk.byteCount > maximumChunkSize { return true }
        if defect == .takesVeryLargeChunks, chunk.byteCount > maximumChunkSize + 1000 { return true }
        _ = try next(.sendsOnTheNext)?.trySend(chunk)
        do throws(FerryError) {
            let isTaken = try link.trySend(chunk)
            if defect == .callsFromWithin { receiver.withLock { $0 }?.linkIsReady() }
            return isTaken
        } catch {
            if defect == .sendsAfterTheEnd, error.code != .chunkTooLarge { return true }
            if isClosedAgain.load(ordering: .acquiring) { throw FerryError(.closed, "This side closed the link.") }
            throw error
        }
    }

    func setReceiving(_ isReceiving: Bool) {
        link.setReceiving(isReceiving)
        next(.pausesTheNext)?.setReceiving(isReceiving)
    }
    func close() {
        let isAgain = defect == .overwritesItsReason && hasEnded.load(ordering: .acquiring)
        if isAgain { isClosedAgain.store(true, ordering: .releasing) }
        link.close()
        next(.closesTheNext)?.close()
    }

    func linkIsReady() {
        if defect != .dropsReady { receiver.withLock { $0 }?.linkIsReady() }
    }
    func linkDidReceive(_ chunk: RawSpan) {
        guard let receiver = receiver.withLock({ $0 }) else {
            return early.withLock { early in if early.count < 4 { early.append(bytes(chunk)) } }
        }
        if defect == .doublesSevens, chunk.byteCount == 7 { receiver.linkDidReceive(chunk) }
        if defect == .swapsChunks { return swap(bytes(chunk), receiver) }
        guard defect == .swapsBytes else { return receiver.linkDidReceive(chunk) }
        let swapped = Array(bytes(chunk).reversed())
        receiver.linkDidReceive(swapped.span.bytes)
    }
    private func swap(_ chunk: [UInt8], _ receiver: any LinkReceiver) {
        let chunks = received.withLock { received -> [[UInt8]] in
            received.count += 1
            if received.count % 4 == 0 {
                received.held = chunk
                return []
            }
            defer { received.held = nil }
            return [chunk] + (received.held.map { [$0] } ?? [])
        }
        for chunk in chunks { receiver.linkDidReceive(chunk.span.bytes) }
    }

    func linkDidClose(_ reason: FerryError) {
        hasEnded.store(true, ordering: .releasing)
        let receiver = receiver.withLock { $0 }
        let isLost = defect == .tellsTheLastReason && !side.isInReach.load(ordering: .relaxed)
        receiver?.linkDidClose(isLost ? FerryError(.timedOut, "Nothing was heard of the peer.") : reason)
        if defect == (reason.code == .closed ? .deliversAfterClose : .deliversAfterTheEnd) {
            receiver?.linkDidReceive(([9] as [UInt8]).span.bytes)
        }
        if defect == .closesTwice { receiver?.linkDidClose(reason) }
    }
}
