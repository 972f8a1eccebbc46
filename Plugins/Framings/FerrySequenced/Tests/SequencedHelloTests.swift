import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

/// Meeting, meeting again, and meeting somebody else: what each hello does.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedHelloTests {
    private typealias Session = SequencedFraming.Session

    private func hello(_ chunk: [UInt8]?) throws -> SequencedHello? {
        guard let chunk else { return nil }
        return try chunk.withUnsafeBytes { bytes in
            guard case .hello(let hello)? = try SequencedChunk.parse(bytes) else { return nil }
            return hello
        }
    }

    /// The codes of failed messages by their numbers, and everything else that was told, in words.
    private func events(_ session: inout Session) -> [String] { session.eventDescriptions() }

    // MARK: Greeting

    @Test func whoIsGreetedAnswersOnceAndSaysThatItHasMet() throws {
        var session = Session.alone()
        session.linkDidOpen(at: .zero)
        let first = try hello(try session.drain().first)
        #expect(first?.hasMet == false)
        #expect(first?.known == nil)
        try session.take(SequencedHello.fromPeer())
        #expect(session.phase == .met)
        let answers = try session.drain()
        #expect(answers.count == 1)
        let answer = try hello(answers.first)
        #expect(answer?.hasMet == true)
        #expect(answer?.known == .init(session: 99, receivedCount: 0))
        // A hello that has met us is answered too when it is the first; and establishes.
        session = Session.alone()
        session.linkDidOpen(at: .zero)
        try session.drain()
        try session.take(resuming(0, hasMet: true))
        #expect(session.phase == .established)
        #expect(try session.drain().count == 1)
    }

    @Test func aHelloThatWasNotAnsweredIsAnsweredHoweverLate() throws {
        for establishing in [nil, Acknowledgement.chunk(0), resuming(0, hasMet: true)] {
            var session = try Session.met()
            if let establishing { try session.take(establishing) }
            #expect(session.phase == (establishing == nil ? .met : .established))
            #expect(try session.drain() == [])
            for _ in 0..<3 {
                try session.take(SequencedHello.fromPeer())
                let answers = try session.drain()
                #expect(answers.count == 1)
                #expect(try hello(answers.first)?.hasMet == true)
            }
            // One that says that it was answered is not.
            try session.take(resuming(0, hasMet: true))
            #expect(try session.drain() == [])
        }
    }

    @Test func onceEstablishedAForeignHelloIsNobodys() throws {
        var session = try Session.met()
        try session.take(Acknowledgement.chunk(0))
        for id: UInt32 in [98, 100, 5000] {
            try session.take(SequencedHello.fromPeer { $0.session = id })
            #expect(try session.drain() == [])
        }
        #expect(session.id == 7)
        #expect(session.phase == .established)
        #expect(events(&session) == [])
    }

    /// A session's identifier only counts up, so the 255 below are late copies, and all others somebody else.
    @Test func aLateHelloOfAnEarlierIdentifierIsIgnored() throws {
        for (id, isIgnored) in [
            (98, true), (99 &- 255, true), (99 &- 256, false), (100, false), (1 << 30, false),
        ] as [(UInt32, Bool)] {
            var session = try Session.met()
            try session.enqueue([1], as: MessageID(rawValue: 0), at: .zero)
            try session.drain()
            try session.take(SequencedHello.fromPeer { $0.session = id })
            #expect(events(&session) == (isIgnored ? [] : ["failed 0 peerLostState"]), "\(id)")
            #expect(session.id == (isIgnored ? 7 : 8), "\(id)")
        }
    }

    @Test func whatThePeerDoesNotTakeFailsWhenItIsMet() throws {
        var session = Session.alone()
        for (number, count) in [1024, 1025, 0, 5000, 10].enumerated() {
            try session.enqueue(
                [UInt8](repeating: 1, count: count), as: MessageID(rawValue: UInt64(number)),
                options: SendOptions(priority: number == 3 ? .urgent : .normal), at: .zero)
        }
        session.linkDidOpen(at: .zero)
        try session.take(SequencedHello.fromPeer { $0.maximumMessageSize = RoundedSize(roundingDown: 1024) })
        #expect(Set(events(&session)) == ["failed 1 messageTooLarge", "failed 3 messageTooLarge"])
        #expect(session.outbox.readyCount == 3)
        #expect(session.refusalToSend(1025) == .messageTooLarge)
        #expect(session.refusalToSend(1024) == nil)
        // Before the peer is met nothing is known.
        session = Session.alone()
        #expect(session.refusalToSend(1 << 20) == nil)
    }

    @Test func refusedPeersAreToldOnce() throws {
        for change in [{ $0.codec = 9 }, { $0.compression = 9 }] as [(inout SequencedHello) -> Void] {
            // Also when it had been met, as another version of the peer's program may come back.
            for isMet in [false, true] {
                var session = isMet ? try Session.met() : Session.alone()
                if !isMet { session.linkDidOpen(at: .zero) }
                try session.take(SequencedHello.fromPeer(change))
                #expect(session.phase == .refusing)
                var offered: [[UInt8]] = []
                #expect(throws: FerryError.self) {
                    while try session.transmit(
                        atMost: 20, at: .zero,
                        { chunk in
                            offered.append(chunk.withUnsafeBytes { Array($0) })
                            return true
                        }) == .accepted
                    {}
                }
                #expect(offered.map { $0.first } == [SequencedChunk.Control.refusal])
                // Nothing more is taken.
                try session.take(SequencedHello.fromPeer())
                #expect(session.phase == .refusing)
            }
        }
    }

    @Test func nothingIsTakenWithoutALinkOrBeforeAHello() throws {
        var session = Session.alone()
        try session.take(wholeMessage(0, [1]))
        session.linkDidOpen(at: .zero)
        try session.take(wholeMessage(0, [1]))
        try session.take(Acknowledgement.chunk(99))
        #expect(events(&session) == [])
        #expect(session.phase == .greeting)
        #expect(session.statistics == SequencedStatistics())
    }

    // MARK: Going on

    /// A session that has sent the three chunks of one message, of which `count` are acknowledged, and lost its link.
    private func interrupted(acknowledged count: UInt8 = 0) throws -> (Session, sent: [[UInt8]]) {
        var session = try Session.met()
        try session.enqueue(Array(1...40), as: MessageID(rawValue: 0), at: .zero)
        let sent = try session.drain()
        #expect(sent.count == 3)
        if count > 0 { try session.take(Acknowledgement.chunk(count)) }
        _ = events(&session)
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        let greeting = try session.drain()
        #expect(greeting.count == 1)
        #expect(try hello(greeting.first)?.known == .init(session: 99, receivedCount: 0))
        #expect(try hello(greeting.first)?.hasMet == false)
        return (session, sent)
    }

    @Test func theSessionGoesOnFromWhatThePeerHas() throws {
        // It has one chunk more than it has told.
        var (session, _) = try interrupted(acknowledged: 1)
        try session.take(resuming(2))
        #expect(session.statistics.resumptions == 1)
        #expect(session.window.first == 2)
        #expect(session.window.next == 2)
        let chunks = try session.drain().filter { $0[0] < 0xE0 }
        #expect(chunks.count == 1)
        #expect(chunks.first?[1] == 2)
        try session.take(Acknowledgement.chunk(3))
        #expect(events(&session) == ["progress 0 \(Self.payloadBytes(in: 2))", "progress 0 40", "sent 0"])
    }

    /// How much of the forty bytes is in the first `chunks` chunks of twenty.
    private static func payloadBytes(in chunks: Int) -> Int { 15 + 19 * (chunks - 1) }

    @Test(arguments: [(0, nil), (3, nil), (4, FerryError.Code.malformedStream)] as [(UInt32, FerryError.Code?)])
    func aPeerMayHaveAllThatWasSentAndNoMore(count: UInt32, code: FerryError.Code?) throws {
        var (session, _) = try interrupted()
        #expect(session.refusal(of: resuming(count)) == code)
    }

    @Test func aPeerCannotHaveLessThanItSaid() throws {
        var (session, _) = try interrupted(acknowledged: 2)
        #expect(session.refusal(of: resuming(1)) == .malformedStream)
    }

    @Test func aPeerThatNeverMetUsGetsEverythingAgain() throws {
        var (session, sent) = try interrupted()
        try session.take(SequencedHello.fromPeer())
        #expect(session.id == 7)
        #expect(try session.drain().filter { $0[0] < 0xE0 } == sent)
        #expect(events(&session) == [])
    }

    /// It has sent us something, so it cannot have forgotten us without another identifier.
    @Test func aPeerThatWasHeardCannotNeverHaveMetUs() throws {
        var session = try Session.met()
        try session.take(wholeMessage(0, [1]))
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        #expect(session.refusal(of: SequencedHello.fromPeer()) == .malformedStream)
    }

    @Test func whatWasGrantedAndNotHeardIsGrantedAgain() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        try session.take(wholeMessage(0, [1]))
        session.linkDidClose(at: .zero)
        // The acknowledgement that was due belonged to the old link.
        #expect(session.deadline == nil)
        session.linkDidOpen(at: .zero)
        try session.drain()
        try session.take(resuming(0))
        let chunks = try session.drain()
        #expect(chunks.count == 2)
        #expect(try hello(chunks.first)?.known?.receivedCount == 1)
        #expect(chunks.last?.prefix(2) == [SequencedChunk.Control.acknowledgement, 1])
    }

    /// The size of a full chunk is agreed on anew with each link.
    @Test func aPlainChunkNeedsASizeStatedOnThisLink() throws {
        var session = try Session.met()
        var first = messageBegins(0, count: 200, [UInt8](repeating: 1, count: 14))
        first[2] |= 1
        try session.take(first)
        let plain: (UInt8) -> [UInt8] = { [$0] + [UInt8](repeating: 2, count: first.count - 1) }
        try session.take(plain(1))
        #expect(session.arrivals.next == 2)
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(resuming(0))
        try session.take(plain(2))
        #expect(session.arrivals.next == 2)
        #expect(session.statistics.damagedChunks == 1)
    }

    /// So the first full chunk on the new one states its size, though the size is the same.
    @Test func theSizeOfAFullChunkIsStatedOnEachLink() throws {
        var session = try Session.met()
        try session.enqueue([UInt8](repeating: 1, count: 400), as: MessageID(rawValue: 0), at: .zero)
        var sent: [[UInt8]] = []
        for _ in 0..<4 {
            _ = try session.transmit(atMost: 20, at: .zero) { chunk in
                sent.append(chunk.withUnsafeBytes { Array($0) })
                return true
            }
        }
        #expect(sent.map { $0[0] }.dropFirst() == [1, 2, 3])
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(resuming(4))
        let chunks = try session.drain().filter { $0[0] < 0xE0 }
        // Flags: it states its length, and goes on with what was current.
        #expect(chunks.first?.prefix(2) == [0x88, 4])
        #expect((chunks.first?[2] ?? 0) & 1 == 1)
        #expect(chunks.dropFirst().first?.first == 5)
    }

    @Test func whatCameEarlyIsForgottenWithTheLink() throws {
        var session = try Session.met()
        try session.take(wholeMessage(1, [1]))
        #expect(session.arrivals.heldCount == 1)
        session.linkDidClose(at: .zero)
        #expect(session.arrivals.heldCount == 0)
        session.linkDidOpen(at: .zero)
        try session.take(resuming(0))
        try session.drain()
        // Nor is the acknowledgement of it still to come.
        #expect(session.deadline == nil)
        try session.take(wholeMessage(0, [5, 5]))
        #expect(events(&session) == ["received 2"])
    }

    // MARK: Somebody else

    @Test func aPeerThatLostItsStateIsMetAnewUnderANewIdentifier() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        // Two messages have left whole, one in part, one waits; one of the peer's is here in part.
        for (number, count) in [3, 4, 3000, 3000].enumerated() {
            try session.enqueue(
                [UInt8](repeating: 1, count: count), as: MessageID(rawValue: UInt64(number)), at: .zero)
        }
        try session.drain()
        try session.take(messageBegins(0, count: 50, [1, 2]))
        _ = events(&session)
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.drain()
        try session.take(SequencedHello.fromPeer { $0.session = 500 })
        #expect(
            Set(events(&session)) == [
                "failed 0 peerLostState", "failed 1 peerLostState", "receiveFailed truncatedMessage",
            ])
        #expect(session.id == 8)
        #expect(session.phase == .met)
        let chunks = try session.drain()
        let greeting = try hello(chunks.first)
        #expect(greeting?.session == 8)
        #expect(greeting?.known == .init(session: 500, receivedCount: 0))
        // What had not left whole begins again, from number 0.
        #expect(chunks[1][1] == 0)
        #expect(session.window.first == 0)
        #expect(session.outbox.messages.allSatisfy { $0.acknowledged == 0 })
    }

    @Test func whatAnotherSessionTookIsSentAgainFromTheBeginning() throws {
        var session = try Session.met()
        try session.enqueue(Array(1...100), as: MessageID(rawValue: 0), at: .zero)
        for _ in 0..<4 { _ = try session.transmit(atMost: 20, at: .zero) { _ in true } }
        try session.take(Acknowledgement.chunk(3))
        #expect(events(&session) == ["progress 0 53"])
        #expect(session.outbox.granted > 4000)
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(
            SequencedHello.fromPeer {
                $0.session = 500
                $0.credit = RoundedSize(roundingDown: 64)
            })
        // It gives less credit than the one before.
        #expect(session.outbox.granted == 64)
        let first = try session.drain().filter { $0[0] < 0xE0 }
        #expect(session.outbox.charged == 64)
        try session.take(Acknowledgement.chunk(UInt8(first.count), credit: 64))
        #expect(events(&session) == ["progress 0 52"])
        let rest = try session.drain()
        try session.take(Acknowledgement.chunk(UInt8(first.count + rest.count - 1)))
        // Told as sent once all of it is there, and not before.
        #expect(events(&session).last?.hasPrefix("progress") == true)
        try session.take(Acknowledgement.chunk(UInt8(first.count + rest.count)))
        #expect(events(&session) == ["progress 0 100", "sent 0"])
    }

    @Test func aNewSessionBeginsWithNoMoreThanTheCreditWindow() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        for number in 0..<20 {
            try session.take(wholeMessage(UInt8(number), [UInt8](repeating: 7, count: 400)))
            session.consume(400, at: .zero)
            try session.drain()
        }
        #expect(session.inbox.granted > 8000)
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(SequencedHello.fromPeer { $0.session = 500 })
        try session.drain()
        try session.take([SequencedChunk.Control.probe])
        #expect(try session.drain() == [Acknowledgement.chunk(0, credit: 64)])
        #expect(session.refusal(of: wholeMessage(0, [UInt8](repeating: 7, count: 4096 - 15))) == .malformedStream)
    }

    @Test func whatIsUnreadCountsAgainstTheNewSession() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        try session.take(wholeMessage(0, [UInt8](repeating: 7, count: 1008)))
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(SequencedHello.fromPeer { $0.session = 500 })
        #expect(try hello(try session.drain().first)?.credit.bytes == 3072)
    }

    @Test(arguments: [(0, false), (1, true), (64, true), (65, false), (255, false)] as [(UInt8, Bool)])
    func aHelloStatesAWindowThatThereIs(window: UInt8, isLegal: Bool) throws {
        var session = Session.alone()
        session.linkDidOpen(at: .zero)
        let chunk = SequencedHello.fromPeer { $0.window = window }
        #expect(session.refusal(of: chunk) == (isLegal ? nil : .malformedStream))
        // Cut short it is no hello, and nothing else either; longer it is refused.
        session = Session.alone()
        session.linkDidOpen(at: .zero)
        for count in 1..<chunk.count { #expect(session.refusal(of: Array(chunk.prefix(count))) == nil) }
        #expect(session.phase == .greeting)
        #expect(session.statistics.damagedChunks == chunk.count - 1)
        #expect(session.refusal(of: chunk + [0]) == .malformedStream)
    }

    @Test func theHelloStatesWhatTheConfigurationSays() throws {
        var limits = Limits()
        limits.maximumMessageSize = 100_000
        var session = Session.alone(limits: limits) {
            $0.window = 33
            $0.creditWindow = 8192
            $0.codec = 71
            $0.compression = 72
        }
        session.linkDidOpen(at: .zero)
        let stated = try hello(try session.drain().first)
        #expect(stated?.window == 33)
        #expect(stated?.maximumMessageSize == RoundedSize(roundingUp: 100_000))
        #expect(stated?.credit.bytes == 8192)
        #expect(stated?.codec == 71)
        #expect(stated?.compression == 72)
        #expect(stated?.session == 7)
    }
}

extension SequencedFraming.Session {
    fileprivate mutating func refusalToSend(_ count: Int) -> FerryError.Code? {
        do {
            try enqueue([UInt8](repeating: 0, count: count), as: MessageID(rawValue: 1000), at: .zero)
            return nil
        } catch {
            return error.code
        }
    }
}
