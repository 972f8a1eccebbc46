import Ferry
import FerryTesting
import TestSupport
import Testing

/// Who starts: links tell it, channels pass it on, and the verifier notices a framing that gets it wrong.
@Suite(.tags(.core, .framing)) struct FramingRoleTests {
    @Test func aFramingThatKnowsItsRolePasses() throws {
        try FramingVerifier(GreetedFraming(), boundaries: .carryNoMeaning)
            .verifyExchange([[1, 2, 3], [UInt8](0...130)], chunkSizes: [1, 20])
    }

    @Test(arguments: GreetedFraming.Fault.allCases)
    func theVerifierNoticesAWrongRole(_ fault: GreetedFraming.Fault) {
        let verifier = FramingVerifier(GreetedFraming(fault: fault), boundaries: .carryNoMeaning)
        #expect(throws: (any Error).self) { try verifier.verifyExchange([[1]], chunkSizes: [20]) }
    }

    /// One that needs its role and does not say so would be told a wrong one.
    @Test func theVerifierNoticesARoleThatIsNeededInSecret() {
        let verifier = FramingVerifier(GreetedFraming(needsRole: false), boundaries: .carryNoMeaning)
        #expect(throws: (any Error).self) { try verifier.verifyExchange([[1]], chunkSizes: [20]) }
    }

    @Test func tapsAndChannelsPassTheRoleOn() throws {
        let (near, far) = MemoryLink.makePair(maximumChunkSize: 20)
        #expect(TappedLink(near, observer: Deaf()).role == .initiator)
        #expect(TappedLink(far, observer: Deaf()).role == .responder)
        let client = try MessageChannel(over: near, codec: BytesCodec(), framing: GreetedFraming())
        let server = try MessageChannel(over: far, codec: BytesCodec(), framing: GreetedFraming())
        #expect(client.status.phase == .connecting)
        #expect(near.waitingChunks == 1)
        #expect(far.waitingChunks == 0)
        near.deliver()
        far.deliver()
        #expect(client.status.phase == .open)
        #expect(server.status.phase == .open)
        client.close()
    }

    @Test func aLinkWithoutRoleIsRefusedWhereOneIsNeeded() throws {
        let (near, _) = MemoryLink.makePair(maximumChunkSize: 20)
        let mute = MuteRole(near)
        let error = #expect(throws: FerryError.self) {
            _ = try MessageChannel(over: mute, codec: BytesCodec(), framing: GreetedFraming())
        }
        #expect(error?.code == .invalidConfiguration)
        #expect(error?.message.contains("greeted") == true)
        let (other, _) = MemoryLink.makePair(maximumChunkSize: 20)
        _ = try MessageChannel(over: MuteRole(other), codec: BytesCodec())
    }

    private final class Deaf: LinkObserver {}

    /// A link that cannot tell its role.
    private final class MuteRole: Link {
        let link: MemoryLink
        init(_ link: MemoryLink) { self.link = link }
        var peer: PeerIdentity { link.peer }
        var maximumChunkSize: Int { link.maximumChunkSize }
        func activate(_ receiver: any LinkReceiver) { link.activate(receiver) }
        func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool { try link.trySend(chunk) }
        func setReceiving(_ isReceiving: Bool) { link.setReceiving(isReceiving) }
        func close() { link.close() }
    }
}

/// Length-prefix framing in which the side that connected sends a `?`, the other answers with a `!`, and messages wait for that.
struct GreetedFraming: Framing {
    enum Fault: CaseIterable { case startsAlways, waitsAlways }

    var fault: Fault?
    var needsRole = true
    var name: String { "greeted" }

    func makeSession(limits: Limits) -> Session {
        makeSession(limits: limits, payloads: PayloadFormat(), role: .initiator)
    }

    func makeSession(limits: Limits, payloads: PayloadFormat, role: LinkRole) -> Session {
        let taken: LinkRole =
            switch fault {
            case .startsAlways: .initiator
            case .waitsAlways: .responder
            case nil: role
            }
        return Session(taken, LengthPrefixFraming().makeSession(limits: limits))
    }

    struct Session: FramingSession {
        private enum Phase { case owes(UInt8), awaits(UInt8), open }

        private let role: LinkRole
        private var phase: Phase
        private var base: LengthPrefixFraming.Session
        private var greetedBy: Timestamp?

        init(_ role: LinkRole, _ base: LengthPrefixFraming.Session) {
            self.role = role
            self.base = base
            phase = role == .initiator ? .owes(0x3F) : .awaits(0x3F)
        }

        var isReady: Bool { if case .open = phase { true } else { false } }
        var deadline: Timestamp? { isReady ? base.deadline : greetedBy }

        mutating func linkDidOpen(at now: Timestamp) { greetedBy = now + .seconds(15) }

        mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
            try base.enqueue(payload, as: id, at: now)
        }

        mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { base.cancel(id, at: now) }

        mutating func transmit(
            atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
            _ offer: (RawSpan) throws(FerryError) -> Bool
        ) throws(FerryError) -> Transmission {
            switch phase {
            case .awaits: return .idle
            case .owes(let byte):
                guard try offer([byte].span.bytes) else { return .refused }
                phase = role == .initiator ? .awaits(0x21) : .open
                return .accepted
            case .open: return try base.transmit(atMost: maximumChunkSize(), at: now, offer)
            }
        }

        mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
            if case .open = phase { return try base.receive(chunk, at: now) }
            guard case .awaits(let byte) = phase, chunk.unsafeLoad(as: UInt8.self) == byte else {
                throw FerryError(.malformedStream, "A greeting was met that is not the other side's.")
            }
            phase = role == .initiator ? .open : .owes(0x21)
        }

        mutating func nextEvent() -> FramingEvent? { base.nextEvent() }

        mutating func wake(at now: Timestamp) throws(FerryError) {
            if isReady { return try base.wake(at: now) }
            if let deadline, now >= deadline { throw FerryError(.timedOut, "Nobody has greeted.") }
        }

        mutating func linkDidClose(at now: Timestamp) throws(FerryError) { try base.linkDidClose(at: now) }
    }
}
