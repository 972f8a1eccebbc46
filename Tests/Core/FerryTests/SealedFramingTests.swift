import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// A sealing without any secret, for the framing around it and for the kit: two messages of handshake, then payloads with a number and
/// a checksum. With a defect it breaks one promise.
private struct ToySealing: MessageSealing {
    enum Defect: CaseIterable {
        case none, seals, opensEarly, takesAltered, takesCut, takesDoubled, takesOvertaken, addsMore, provesNobody,
            takesOwn
    }

    var defect = Defect.none
    var isConnecting: Bool

    var name: String { "toy" }
    func makeSeal(for exchange: SealedExchange) -> ToySeal {
        ToySeal(defect: defect, isConnecting: isConnecting, keepsOrder: exchange.keepsOrder)
    }
}

private struct ToySeal: MessageSeal {
    let defect: ToySealing.Defect
    let isConnecting: Bool
    let keepsOrder: Bool
    private var sentHandshake = false
    private var gotHandshake = false
    private var sealed: UInt8 = 0
    private var opened: Set<UInt8> = []

    init(defect: ToySealing.Defect, isConnecting: Bool, keepsOrder: Bool) {
        self.defect = defect
        self.isConnecting = isConnecting
        self.keepsOrder = keepsOrder
    }

    var maximumOverhead: Int { 3 }
    var isEstablished: Bool { sentHandshake && gotHandshake }
    var provenPeer: PeerIdentity? {
        isEstablished && defect != .provesNobody ? PeerIdentity(isConnecting ? "b" : "a", certainty: .key) : nil
    }

    mutating func nextHandshakeMessage() throws(FerryError) -> [UInt8]? {
        guard !sentHandshake, isConnecting || gotHandshake else { return nil }
        sentHandshake = true
        return [UInt8](repeating: isConnecting ? 1 : 2, count: 40)
    }

    mutating func receiveHandshake(_ message: [UInt8]) throws(FerryError) {
        guard message == [UInt8](repeating: isConnecting ? 2 : 1, count: 40) else { throw Self.refusal }
        gotHandshake = true
    }

    mutating func seal(_ payload: [UInt8]) throws(FerryError) -> [UInt8] {
        guard isEstablished || defect == .seals else { throw Self.refusal }
        defer { sealed += 1 }
        let body = [sealed, isConnecting ? 1 : 2] + payload
        return body + [Self.sum(body)] + (defect == .addsMore ? [0, 0] : [])
    }

    mutating func open(_ sealed: [UInt8]) throws(FerryError) -> [UInt8] {
        if defect == .opensEarly, !isEstablished { return [] }
        guard isEstablished else { throw Self.refusal }
        guard sealed.count >= 3 else {
            if defect == .takesCut { return [] }
            throw Self.refusal
        }
        let body = Array(sealed.dropLast(defect == .addsMore ? 3 : 1))
        let isOurs = body[1] == (isConnecting ? 1 : 2)
        guard Self.sum(body) == sealed[body.count] || defect == .takesAltered, !isOurs || defect == .takesOwn else {
            throw Self.refusal
        }
        guard !opened.contains(body[0]) || defect == .takesDoubled else { throw Self.refusal }
        if keepsOrder, defect != .takesOvertaken, defect != .takesDoubled, defect != .takesAltered, defect != .takesOwn
        {
            guard Int(body[0]) == opened.count else { throw Self.refusal }
        }
        opened.insert(body[0])
        return Array(body.dropFirst(2))
    }

    private static func sum(_ bytes: [UInt8]) -> UInt8 {
        var sum: UInt8 = UInt8(truncatingIfNeeded: bytes.count)
        for byte in bytes { sum = (sum << 1 | sum >> 7) &+ byte }
        return sum
    }

    static var refusal: FerryError { FerryError(FerryError.Code("toy.refused"), "The toy refuses a message.") }
}

/// The sealed framing with a sealing that needs no library, and the kit for sealings.
@Suite(.tags(.core, .framing)) struct SealedFramingTests {
    private final class Rig: Sendable {
        let time = VirtualTime()
        let links: (a: MemoryLink, b: MemoryLink)
        let a: ChannelCore
        let b: ChannelCore
        private let outcomes = Mutex<[Result<Void, FerryError>]>([])

        init(queueDepth: Int = 4) {
            links = MemoryLink.makePair(maximumChunkSize: 20, queueDepth: queueDepth)
            a = Self.core(links.a, time, isConnecting: true)
            b = Self.core(links.b, time, isConnecting: false)
            a.open()
            b.open()
        }

        private static func core(_ link: MemoryLink, _ time: VirtualTime, isConnecting: Bool) -> ChannelCore {
            let framing = SealedFraming(LengthPrefixFraming(), by: ToySealing(isConnecting: isConnecting))
            return ChannelCore(
                link: link, session: framing.makeSession(limits: Limits()), chunkSize: .max, limits: Limits(),
                time: time)
        }

        @discardableResult
        func send(_ payload: [UInt8]) -> MessageID {
            let id = a.makeID()
            a.submit(payload, as: id) { [self] result in outcomes.withLock { $0.append(result) } }
            return id
        }

        func read() -> [[UInt8]] {
            exchange(links)
            var messages: [[UInt8]] = []
            while case .message(let payload)? = b.take() { messages.append(payload) }
            return messages
        }

        var fates: [MessageFate?] {
            outcomes.withLock { $0.map { if case .failure(let error) = $0 { error.fate } else { nil } } }
        }
    }

    @Test func messagesWaitForTheHandshake() {
        let rig = Rig()
        rig.send([1])
        rig.send([])
        #expect(rig.a.peer == rig.links.a.peer)
        #expect(rig.a.status.phase == .connecting && rig.b.status.phase == .connecting)
        #expect(rig.read() == [[1], []])
        #expect(rig.a.status.phase == .open && rig.b.status.phase == .open)
        #expect(rig.fates == [nil, nil])
        #expect(rig.a.peer == PeerIdentity("b", certainty: .key) && rig.b.peer == PeerIdentity("a", certainty: .key))
        #expect(rig.a.statistics.messagesSent == 2)
    }

    @Test func waitingMessagesAreTakenBackAndSealedOnesAreNot() {
        let rig = Rig(queueDepth: 1)
        _ = rig.read()
        rig.send(pattern(100))
        let sealed = rig.send(pattern(30))
        let waiting = rig.send([1])
        rig.a.cancel(waiting)
        rig.send([2])
        // The first chunk of the first is in the queue: what is behind it was not sealed.
        rig.a.cancel(sealed)
        #expect(rig.read() == [pattern(100), [2]])
        #expect(rig.fates == [.nothingSent, .nothingSent, nil, nil])
    }

    @Test func messagesThatNeverLeftAreToldSo() {
        let rig = Rig(queueDepth: 1)
        rig.send([1])
        rig.links.a.disconnect()
        #expect(rig.fates == [.nothingSent])
        #expect(rig.a.closeReason?.code == .disconnected)
    }

    @Test func aMessageThatIsRefusedEndsTheChannelWithItsError() {
        let rig = Rig()
        _ = rig.read()
        rig.links.b.disconnect()
        let other = Rig()
        other.send([1])
        // Altered on the way: the last of the chunks is lost, and the next message's bytes take its place.
        exchange(other.links)
        other.send([5, 6, 7])
        while other.links.a.waitingChunks > 1 { other.links.a.deliver() }
        other.links.a.deliver(.isDoubled)
        #expect(other.b.closeReason?.code == FerryError.Code("toy.refused"))
    }

    @Test func smallChunksAreSharedByMessages() {
        let rig = Rig()
        _ = rig.read()
        let before = rig.a.statistics.chunksSent
        rig.send(pattern(60))
        for _ in 0..<12 { rig.send([7]) }
        #expect(rig.read().count == 13)
        // 64 and 12 times 5 bytes: 124 in chunks of 20.
        #expect(rig.a.statistics.chunksSent - before == 7)
    }

    @Test(arguments: [true, false]) func theKitTakesAHonestSealing(_ keepsOrder: Bool) throws {
        try SealConformance(
            connecting: ToySealing(isConnecting: true), accepting: ToySealing(isConnecting: false),
            keepsOrder: keepsOrder
        ).check()
    }

    @Test(arguments: ToySealing.Defect.allCases.filter { $0 != .none }) fileprivate func theKitFindsEachDefect(
        _ defect: ToySealing.Defect
    ) {
        #expect(throws: ConformanceFailure.self) {
            try SealConformance(
                connecting: ToySealing(defect: defect, isConnecting: true),
                accepting: ToySealing(defect: defect, isConnecting: false), keepsOrder: true
            ).check()
        }
    }
}
