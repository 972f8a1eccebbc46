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
    func theAdapterKitNoticesFaults(_ kind: LoopbackRadio.Faults.Kind) async throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        let isReady = kind == .readyNever
        configuration.faults =
            isReady ? .init(probabilities: [kind: 1]) : .init(seed: 1, script: [.init(kind, at: 150)])
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let kit = AdapterConformance(
            peripheral: radio.makeAdapter(), central: radio.makeAdapter(),
            time: .virtual(time, timeout: .seconds(5)))
        await #expect(throws: ConformanceFailure.self) { try await kit.check(.notificationsArriveInOrder) }
        await #expect(throws: ConformanceFailure.self) { try await kit.check(.writesWithoutResponseArriveInOrder) }
    }

    /// What a link does wrong.
    enum Defect: String, CaseIterable, Sendable {
        case takesEmptyChunks, takesLargeChunks, swapsBytes, callsFromWithin, closesTwice, dropsReady, sendsAfterTheEnd

        var requirement: LinkConformance.Requirement {
            switch self {
            case .takesEmptyChunks: .emptyChunksAreRefused
            case .takesLargeChunks: .largeChunksAreRefused
            case .swapsBytes: .chunksArriveInOrder
            case .callsFromWithin: .eventsComeFromOutside
            case .closesTwice: .closingEndsBothSidesOnce
            case .dropsReady: .aFullQueueSaysFalseThenReady
            case .sendsAfterTheEnd: .nothingIsSentAfterTheEnd
            }
        }
    }

    @Test(arguments: Defect.allCases)
    func theLinkKitNoticesDefects(_ defect: Defect) async throws {
        let time = VirtualTime()
        let rig = ChannelRig(LoopbackRadio(time: time))
        let kit = LinkConformance(time: .virtual(time, timeout: .seconds(5))) {
            let (near, far) = try await rig.makePair()
            return (DefectiveLink(near, defect), DefectiveLink(far, defect))
        }
        await #expect(throws: ConformanceFailure.self) { try await kit.check(defect.requirement) }
        // The same link without the defect passes.
        let sound = LinkConformance(time: .virtual(time, timeout: .seconds(60))) { try await rig.makePair() }
        try await sound.check(defect.requirement)
    }
}

/// A link that hands on everything but for one defect.
private final class DefectiveLink: Link, LinkReceiver {
    private let link: any Link
    private let defect: BrokenKitTests.Defect
    private let receiver = Mutex<(any LinkReceiver)?>(nil)

    init(_ link: any Link, _ defect: BrokenKitTests.Defect) {
        self.link = link
        self.defect = defect
    }

    var peer: PeerIdentity { link.peer }
    var maximumChunkSize: Int { link.maximumChunkSize }

    func activate(_ receiver: any LinkReceiver) {
        self.receiver.withLock { $0 = receiver }
        link.activate(self)
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        if defect == .takesEmptyChunks, chunk.byteCount == 0 { return true }
        if defect == .takesLargeChunks, chunk.byteCount > maximumChunkSize { return true }
        do throws(FerryError) {
            let isTaken = try link.trySend(chunk)
            if defect == .callsFromWithin { receiver.withLock { $0 }?.linkIsReady() }
            return isTaken
        } catch {
            if defect == .sendsAfterTheEnd, error.code != .chunkTooLarge { return true }
            throw error
        }
    }

    func setReceiving(_ isReceiving: Bool) { link.setReceiving(isReceiving) }
    func close() { link.close() }

    func linkIsReady() {
        if defect != .dropsReady { receiver.withLock { $0 }?.linkIsReady() }
    }
    func linkDidReceive(_ chunk: RawSpan) {
        guard let receiver = receiver.withLock({ $0 }) else { return }
        guard defect == .swapsBytes else { return receiver.linkDidReceive(chunk) }
        let swapped = Array(bytes(chunk).reversed())
        receiver.linkDidReceive(swapped.span.bytes)
    }
    func linkDidClose(_ reason: FerryError) {
        let receiver = receiver.withLock { $0 }
        receiver?.linkDidClose(reason)
        if defect == .closesTwice { receiver?.linkDidClose(reason) }
    }
}
