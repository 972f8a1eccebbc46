import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

/// A sender without credit asks for it, and a receiver tells of credit when there is news.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedCreditTests {
    private typealias Session = SequencedFraming.Session
    private static let probe: [UInt8] = [SequencedChunk.Control.probe]

    /// A session that has used up its credit for 64 bytes; everything that it sent is acknowledged, and more waits.
    private func stopped(_ change: (inout SequencedFraming.Configuration) -> Void = { _ in }) throws -> Session {
        var session = try Session.met(
            SequencedHello.fromPeer { $0.credit = RoundedSize(roundingDown: 64) }, change)
        try session.enqueue([UInt8](repeating: 1, count: 200), as: MessageID(rawValue: 0), at: .zero)
        let chunks = try session.drain()
        // 12 bytes are the message's own.
        #expect(session.outbox.charged == 64)
        try session.take(Acknowledgement.chunk(UInt8(chunks.count), credit: 0))
        return session
    }

    @Test func creditIsAskedForMoreAndMoreSeldom() throws {
        var session = try stopped { $0.maximumTimeouts = 9 }
        #expect(try session.drain() == [])
        var times: [Int64] = []
        for _ in 0..<9 {
            let now = try #require(try session.wakeNext())
            times.append(now.nanoseconds / 1_000_000)
            #expect(try session.drain(at: now) == [Self.probe])
        }
        // The round trip took no time: 250 ms, doubled up to 10 s.
        #expect(times == [250, 750, 1750, 3750, 7750, 15_750, 25_750, 35_750, 45_750])
        #expect(!session.needsNewLink)
        let error = #expect(throws: FerryError.self) { try session.wakeNext() }
        #expect(error?.code == .timedOut)
        #expect(session.needsNewLink)
    }

    @Test func aPeerThatAnswersMayKeepItsCreditForever() throws {
        var session = try stopped { $0.maximumTimeouts = 2 }
        try session.drain()
        for _ in 0..<20 {
            let now = try #require(try session.wakeNext())
            #expect(try session.drain(at: now) == [Self.probe])
            try session.take(Acknowledgement.chunk(UInt8(session.window.next), credit: 0), at: now)
        }
        #expect(!session.needsNewLink)
    }

    @Test func creditEndsTheAsking() throws {
        var session = try stopped()
        try session.drain()
        for _ in 0..<2 { try session.drain(at: try #require(try session.wakeNext())) }
        let now = Timestamp.zero + .seconds(1)
        let number = UInt8(session.window.next)
        try session.take(Acknowledgement.chunk(number, credit: 1), at: now)
        let more = try session.drain(at: now)
        #expect(more.count == 4)
        try session.take(Acknowledgement.chunk(number + UInt8(more.count), credit: 0), at: now)
        try session.drain(at: now)
        // The asking begins anew, with the first interval.
        #expect(session.deadline == now + .milliseconds(250))
    }

    @Test func newsOfCreditEndTheAskingBeforeAnythingIsSent() throws {
        var session = try stopped()
        try session.drain()
        #expect(session.deadline == .zero + .milliseconds(250))
        try session.take(Acknowledgement.chunk(UInt8(session.window.next), credit: 1))
        #expect(session.deadline == nil)
    }

    /// A cancellation needs no credit; while it is out its own timer runs and no other.
    @Test func whatIsSentWithoutCreditEndsTheAsking() throws {
        var session = try stopped()
        try session.drain()
        let now = Timestamp.zero + .milliseconds(100)
        #expect(session.cancel(MessageID(rawValue: 0), at: now) == true)
        #expect(try session.drain(at: now).count == 1)
        #expect(session.deadline == now + .milliseconds(250))
    }

    @Test func aLostLinkEndsTheAsking() throws {
        var session = try stopped()
        try session.drain()
        for _ in 0..<3 { try session.drain(at: try #require(try session.wakeNext())) }
        session.linkDidClose(at: .zero + .seconds(2))
        #expect(session.deadline == nil)
        let now = Timestamp.zero + .seconds(3)
        session.linkDidOpen(at: now)
        let count = UInt32(session.window.next)
        try session.take(SequencedHello.fromPeer { $0.known = .init(session: 7, receivedCount: count) }, at: now)
        try session.drain(at: now)
        #expect(session.deadline == now + .milliseconds(250))
    }

    /// Whatever the credit and the size of the chunks: the last that can go asks for more, so nobody waits for a timer.
    @Test(arguments: [20, 21, 27, 33, 64, 100]) func theChunkThatUsesUpTheCreditAsksForMore(size: Int) throws {
        for encoded in 16..<64 as Range<UInt8> {
            let credit = RoundedSize(encoded: encoded)
            var session = try Session.met(SequencedHello.fromPeer { $0.credit = credit })
            try session.enqueue([UInt8](repeating: 1, count: 20_000), as: MessageID(rawValue: 0), at: .zero)
            var number: UInt8 = 0
            while true {
                let chunks = try session.drain(atMost: size)
                guard let last = chunks.last else { break }
                if session.outbox.credit == 0 {
                    #expect(last[0] & 0xC2 == 0x82, "credit \(credit.bytes), chunks of \(size): \(last)")
                }
                number = (number + UInt8(chunks.count)) & 127
                let left = UInt64(session.outbox.credit / 64)
                try session.take(Acknowledgement.chunk(number, credit: left))
            }
            #expect(session.outbox.charged == UInt64(min(credit.bytes, 20_000 + 16)))
        }
    }

    @Test func noChunkIsLargerThan32KiB() throws {
        var session = try Session.met(SequencedHello.fromPeer { $0.credit = RoundedSize(roundingDown: 1 << 20) })
        try session.enqueue([UInt8](repeating: 1, count: 100_000), as: MessageID(rawValue: 0), at: .zero)
        #expect(try session.drain(atMost: 1 << 20).map(\.count).prefix(3) == [32_768, 32_768, 32_768])
    }

    @Test func whoHasNothingToSendAsksForNothing() throws {
        var session = try Session.met(SequencedHello.fromPeer { $0.credit = RoundedSize(roundingDown: 8) })
        #expect(try session.drain() == [])
        #expect(session.deadline == nil)
        // 8 bytes are not enough to begin with.
        try session.enqueue([], as: MessageID(rawValue: 0), at: .zero)
        #expect(try session.drain() == [])
        #expect(session.deadline == .zero + .seconds(1))
        #expect(session.cancel(MessageID(rawValue: 0), at: .zero) == true)
        try session.drain(at: try #require(try session.wakeNext()))
    }

    @Test func aProbeIsAnsweredAtOnce() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        try session.take(Self.probe)
        #expect(try session.drain() == [Acknowledgement.chunk(0, credit: 64)])
        #expect(try session.drain() == [])
    }

    @Test func aRefusedProbeIsOfferedAgain() throws {
        var session = try stopped()
        try session.drain()
        let now = try #require(try session.wakeNext())
        #expect(try session.transmit(atMost: 20, at: now) { _ in false } == .refused)
        #expect(try session.drain(at: now) == [Self.probe])
    }

    // MARK: The receiver's side

    /// A session whose reader has `unread` bytes of one message before it. Everything is acknowledged.
    private func receiver(window: Int, unread count: Int) throws -> Session {
        var session = try Session.met { $0.creditWindow = window }
        try session.take(wholeMessage(0, [UInt8](repeating: 3, count: count), asks: true))
        try session.drain()
        return session
    }

    @Test func whatIsReadIsToldOnceItIsAQuarterOfTheWindow() throws {
        // A message costs 16 bytes and its own.
        var session = try receiver(window: 64 << 10, unread: (16 << 10) - 17)
        session.consume((16 << 10) - 17, at: .zero)
        #expect(session.deadline == nil)
        #expect(try session.drain() == [])

        session = try receiver(window: 64 << 10, unread: (16 << 10) - 16)
        session.consume((16 << 10) - 16, at: .zero + .seconds(7))
        #expect(session.deadline == .zero + .seconds(7))
        #expect(try session.drain(at: .zero + .seconds(7)) == [Acknowledgement.chunk(1, credit: 1024)])
        #expect(session.deadline == nil)
    }

    @Test func whatIsNotReadIsNotGranted() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        for number in 0..<10 {
            try session.take(wholeMessage(UInt8(number), [UInt8](repeating: 3, count: 112), asks: true))
            #expect(
                try session.drain() == [Acknowledgement.chunk(UInt8(number + 1), credit: 64 - 2 * UInt64(number + 1))])
        }
        // Eight messages of 128 bytes are a quarter.
        for _ in 0..<7 {
            session.consume(112, at: .zero)
            #expect(try session.drain() == [])
        }
        session.consume(112, at: .zero)
        #expect(try session.drain() == [Acknowledgement.chunk(10, credit: 60)])
    }

    @Test func whatIsNotWholeTakesNoCredit() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        for number in 0..<40 {
            let part = [UInt8](repeating: 3, count: 200)
            try session.take(number == 0 ? messageBegins(0, count: 100_000, part) : messageGoesOn(UInt8(number), part))
            try session.take(Self.probe)
            #expect(try session.drain() == [Acknowledgement.chunk(UInt8(number + 1), credit: 64)])
        }
    }

    @Test func oneReadMayTakeSeveralMessages() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        for number in 0..<4 { try session.take(wholeMessage(UInt8(number), [UInt8](repeating: 3, count: 100))) }
        #expect(session.inbox.deliveredCost == 4 * 116)
        session.consume(300, at: .zero)
        #expect(session.inbox.deliveredCost == 116)
        session.consume(99, at: .zero)
        #expect(session.inbox.deliveredCost == 116)
        session.consume(100, at: .zero)
        #expect(session.inbox.deliveredCost == 0)
        session.consume(100, at: .zero)
        #expect(session.inbox.deliveredCost == 0)
    }

    @Test func anEmptyMessageIsReadAlone() throws {
        var session = try Session.met { $0.creditWindow = 4096 }
        for number in 0..<3 { try session.take(wholeMessage(UInt8(number), [])) }
        session.consume(0, at: .zero)
        #expect(session.inbox.delivered.count == 2)
    }

    // MARK: What the peer may send

    @Test func thePeerMaySendAsMuchAsItHasCreditForAndNotAByteMore() throws {
        for (count, code) in [(1008, nil), (1009, FerryError.Code.malformedStream)] as [(Int, FerryError.Code?)] {
            var session = try Session.met { $0.creditWindow = 1024 }
            #expect(session.refusal(of: wholeMessage(0, [UInt8](repeating: 1, count: count))) == code)
        }
    }

    /// Full chunks take a short way, on which credit counts as well.
    @Test func plainChunksNeedCreditToo() throws {
        var session = try Session.met { $0.creditWindow = 1024 }
        var first = messageBegins(0, count: 5000, [UInt8](repeating: 1, count: 100))
        first[2] |= 1
        try session.take(first)
        var code: FerryError.Code?
        var sequence: UInt8 = 1
        while code == nil, sequence < 60 {
            code = session.refusal(of: [sequence] + [UInt8](repeating: 2, count: first.count - 1))
            sequence += 1
        }
        #expect(code == .malformedStream)
        // 12 and 100 with the first, and as many whole ones as fit 1024.
        #expect(Int(sequence) == 2 + (1024 - 112) / (first.count - 1) + 0)
    }

    @Test func openMessagesAreBoundedInBytesAndNumber() throws {
        var limits = Limits()
        limits.maximumMessageSize = 1024
        var session = try Session.met(limits: limits)
        try session.take(messageBegins(0, slot: 0, count: 1024, [1]))
        try session.take(messageBegins(1, slot: 1, count: 1023, [1]))
        try session.take(messageBegins(2, slot: 2, count: 1, [1]))
        var copy = session
        #expect(copy.refusal(of: messageBegins(3, slot: 3, count: 1, [1])) == .malformedStream)
        // Two messages cannot share a slot, and one that is whole or cancelled leaves room.
        copy = session
        #expect(copy.refusal(of: messageBegins(3, slot: 1, count: 0, [])) == .malformedStream)
        try session.take(cancels(3, slot: 0))
        #expect(session.inbox.openCount == 2)
        #expect(session.inbox.openBytes == 1024)
        guard case .receiveFailed(let error) = session.nextEvent() else {
            Issue.record("nothing was told")
            return
        }
        #expect(error.code == .cancelledByPeer)
        #expect(error.message.contains("after 1 of 1024 bytes"))
        try session.take(messageBegins(4, slot: 0, count: 1024, [1]))
        #expect(session.refusal(of: cancels(5, slot: 9)) == .malformedStream)
    }

    /// What has arrived whole, or was lost with its sender, leaves all of the room to what comes.
    @Test func theRoomOfOpenMessagesComesBack() throws {
        var limits = Limits()
        limits.maximumMessageSize = 1024
        var session = try Session.met(limits: limits)
        for number in 0..<10 {
            try session.take(wholeMessage(UInt8(number), [UInt8](repeating: 1, count: 500)))
            session.consume(500, at: .zero)
        }
        #expect(session.inbox.openBytes == 0)
        for slot in 0..<2 { try session.take(messageBegins(10 + UInt8(slot), slot: UInt8(slot), count: 1024, [1])) }
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(SequencedHello.fromPeer { $0.session = 500 })
        for slot in 0..<2 { try session.take(messageBegins(UInt8(slot), slot: UInt8(slot), count: 1024, [1])) }
        #expect(session.inbox.openBytes == 2048)
        #expect(session.inbox.openCount == 2)
    }

    private func cancels(_ sequence: UInt8, slot: UInt8) -> [UInt8] {
        [0xA8, sequence, 1 << 1, Record.cancel.byte(slot: slot)]
    }

    @Test(arguments: [(1024, nil), (1025, FerryError.Code.messageTooLarge)] as [(Int, FerryError.Code?)])
    func theLargestMessageIsTheLimit(count: Int, code: FerryError.Code?) throws {
        var limits = Limits()
        limits.maximumMessageSize = 1000
        var session = try Session.met(limits: limits)
        // 1000 bytes are stated as 1024.
        #expect(session.refusal(of: messageBegins(0, count: count, [1])) == code)
    }
}
