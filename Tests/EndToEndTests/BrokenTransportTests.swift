import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// The kit for transports notices what is broken: a check that cannot fail would be worth nothing.
@Suite(.tags(.channel), .timeLimit(.minutes(5))) struct BrokenTransportTests {
    /// What a transport does wrong.
    enum Defect: String, CaseIterable, Sendable {
        case listensNowhere, handsOutTheSameLink, servesOnePeer, ignoresTheTimeout, ignoresCancellation
        case saysTimedOutWhenCancelled, goesOnListening, goesOnWhenReleased, goesOnWhenCancelled, endsTakenLinks
        case keepsUntakenLinks, listensOnce, keepsEndsToItself, saysClosedToBoth, keepsReleasedLinks
        case endsTheNextLink, sendsAfterTheEnd, forgetsThePeer, takesAnybody, seeksTheUnknowable
        case takesLongValues, dropsEmptyValues, overwritesTheReason

        var requirement: TransportConformance.Requirement {
            switch self {
            case .listensNowhere: .listeningMeansReachable
            case .handsOutTheSameLink: .eachPeerHasALink
            case .servesOnePeer: .peersComeAndGo
            case .ignoresTheTimeout: .connectingToNobodyEnds
            case .ignoresCancellation, .saysTimedOutWhenCancelled: .connectingCanBeCancelled
            case .goesOnListening, .endsTakenLinks: .closingStopsListening
            case .goesOnWhenReleased: .releasingStopsListening
            case .goesOnWhenCancelled: .cancellingStopsListening
            case .keepsUntakenLinks: .untakenLinksAreClosed
            case .listensOnce: .listeningBeginsAnew
            case .keepsEndsToItself, .saysClosedToBoth, .overwritesTheReason: .endsAreTold
            case .takesLongValues, .dropsEmptyValues: .chunksHaveTheirSizes
            case .keepsReleasedLinks: .releasedLinksAreClosed
            case .endsTheNextLink, .sendsAfterTheEnd: .endedLinksAreInert
            case .forgetsThePeer: .peersAreKnown
            case .takesAnybody, .seeksTheUnknowable: .nobodyElseIsTaken
            }
        }
    }

    @Test(arguments: Defect.allCases) func areNoticed(_ defect: Defect) {
        #expect(throws: ConformanceFailure.self) { try check(defect.requirement, defect) }
    }

    /// Without a defect everything passes, so that it is the defects that are noticed.
    @Test(arguments: TransportConformance.Requirement.allCases)
    func theSoundOnePasses(_ requirement: TransportConformance.Requirement) throws {
        try check(requirement, nil)
    }

    private func check(_ requirement: TransportConformance.Requirement, _ defect: Defect?) throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(1)
        let time = VirtualTime()
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))
        let shared = Shared()
        @Sendable func transport() -> DefectiveTransport {
            DefectiveTransport(
                base: GATTTransport(adapter: radio.makeAdapter(), configuration: layout, time: time), defect: defect,
                shared: shared)
        }
        let kit = TransportConformance(time: .stepped(time, timeout: .seconds(10))) {
            .init(listening: transport()) { transport() }
        }
        try time.run { try await kit.check(requirement) }
        shared.state.withLock { $0 = Shared.State() }
    }
}

/// What defects need to know of other links.
private final class Shared: Sendable {
    struct State {
        var listened = 0
        var links: [DefectiveLink] = []
        var kept: [any Sendable] = []
    }

    let state = Mutex(State())
}

/// A transport that hands on everything but for one defect.
private struct DefectiveTransport: Transport {
    let base: GATTTransport
    let defect: BrokenTransportTests.Defect?
    let shared: Shared

    func listen() async throws(FerryError) -> LinkListener {
        let listened = shared.state.withLock { state in
            state.listened += 1
            return state.listened
        }
        if defect == .listensNowhere { return LinkListener {} }
        if defect == .listensOnce, listened > 1 { throw FerryError(.transportUnavailable, "It is in use.") }
        let inner = try await base.listen()
        let goesOn: [BrokenTransportTests.Defect] = [.goesOnListening, .goesOnWhenReleased, .goesOnWhenCancelled]
        let outer = LinkListener { [defect, shared] in
            if defect == .endsTakenLinks { for link in shared.state.withLock({ $0.links }) { link.close() } }
            if let defect, goesOn.contains(defect) { return shared.state.withLock { $0.kept.append(inner) } }
            inner.close()
        }
        let links = inner.links
        Task { [weak outer, defect, shared] in
            var count = 0
            for await base in links {
                count += 1
                let link = DefectiveLink(base, defect, shared, isFar: true)
                let isKept = defect == .servesOnePeer && count > 1
                if !isKept, outer?.offer(link) == true { continue }
                if isKept || goesOn.contains(where: { $0 == defect }) {
                    shared.state.withLock { $0.kept.append(link) }
                } else {
                    link.close()
                }
            }
        }
        return outer
    }

    func connect(timeout: Duration) async throws(FerryError) -> any Link {
        let timeout = defect == .ignoresTheTimeout ? .seconds(1000) : timeout
        guard defect == .ignoresCancellation else {
            do throws(FerryError) { return wrap(try await base.connect(timeout: timeout)) } catch {
                guard defect == .saysTimedOutWhenCancelled, error.code == .cancelled else { throw error }
                throw FerryError(.timedOut, "Nobody came.")
            }
        }
        let result = await Task { () -> Result<any Link, FerryError> in
            do throws(FerryError) { return .success(try await base.connect(timeout: timeout)) } catch {
                return .failure(error)
            }
        }.value
        return wrap(try result.get())
    }

    func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        if defect == .takesAnybody { return try await connect(timeout: timeout) }
        let isUnknowable = defect == .seeksTheUnknowable && peer.certainty == .connection
        let peer = isUnknowable ? PeerIdentity(peer.name, certainty: .address) : peer
        let timeout = isUnknowable ? .milliseconds(50) : timeout
        return wrap(try await base.connect(to: peer, timeout: timeout))
    }

    private func wrap(_ link: any Link) -> any Link { DefectiveLink(link, defect, shared, isFar: false) }
}

/// A link that hands on everything but for one defect.
private final class DefectiveLink: Link {
    private struct State {
        var receiver: (any LinkReceiver)?
        var hasEnded = false
        var isClosedAgain = false
    }

    private let base: any Link
    private let defect: BrokenTransportTests.Defect?
    private let shared: Shared
    private let isFar: Bool
    private let state = Mutex(State())

    init(_ base: any Link, _ defect: BrokenTransportTests.Defect?, _ shared: Shared, isFar: Bool) {
        self.base = base
        self.defect = defect
        self.shared = shared
        self.isFar = isFar
        let needsLinks: [BrokenTransportTests.Defect?] = [.endsTakenLinks, .endsTheNextLink, .handsOutTheSameLink]
        if needsLinks.contains(defect) { shared.state.withLock { $0.links.append(self) } }
        if defect == .keepsReleasedLinks { shared.state.withLock { $0.kept.append(base) } }
    }

    var peer: PeerIdentity {
        defect == .forgetsThePeer && state.withLock { $0.hasEnded }
            ? PeerIdentity("?", certainty: .connection) : base.peer
    }

    var maximumChunkSize: Int { base.maximumChunkSize }

    func activate(_ receiver: any LinkReceiver) {
        state.withLock { $0.receiver = receiver }
        base.activate(Events(self))
    }

    /// What the base keeps: not the link itself, which is to be released by its owner.
    private final class Events: LinkReceiver {
        private let defect: BrokenTransportTests.Defect?
        private let receiver: (any LinkReceiver)?
        private let onEnd: @Sendable () -> Void

        init(_ link: DefectiveLink) {
            defect = link.defect
            receiver = link.state.withLock { $0.receiver }
            onEnd = { [weak link] in link?.state.withLock { $0.hasEnded = true } }
        }

        func linkIsReady() { receiver?.linkIsReady() }
        func linkDidReceive(_ chunk: RawSpan) { receiver?.linkDidReceive(chunk) }
        func linkDidClose(_ reason: FerryError) {
            onEnd()
            if defect == .keepsEndsToItself, reason.code != .closed { return }
            receiver?.linkDidClose(defect == .saysClosedToBoth ? FerryError(.closed, "It is over.") : reason)
        }
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let first = shared.state.withLock { state in state.links.first { $0.isFar == isFar } }
        if defect == .handsOutTheSameLink, let first, first !== self { return try first.trySend(chunk) }
        if defect == .takesLongValues, chunk.byteCount > maximumChunkSize + 1 { return true }
        if defect == .dropsEmptyValues, chunk.byteCount == 0 { return true }
        do throws(FerryError) { return try base.trySend(chunk) } catch {
            if defect == .sendsAfterTheEnd { return true }
            if state.withLock({ $0.isClosedAgain }) { throw FerryError(.closed, "This side closed the link.") }
            throw error
        }
    }

    func setReceiving(_ isReceiving: Bool) { base.setReceiving(isReceiving) }

    func close() {
        let (isUntaken, hasEnded) = state.withLock { ($0.receiver == nil, $0.hasEnded) }
        if defect == .overwritesTheReason, hasEnded { state.withLock { $0.isClosedAgain = true } }
        if defect == .keepsUntakenLinks, isFar, isUntaken { return shared.state.withLock { $0.kept.append(self) } }
        if defect == .endsTheNextLink, hasEnded { shared.state.withLock { $0.links.last }?.base.close() }
        base.close()
    }
}
