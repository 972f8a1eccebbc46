import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

private let ms: Int64 = 1_000_000

/// How long a sender waits for an acknowledgement: RFC 6298, sections 2 and 5, by hand.
@Suite(.tags(.core, .framing, .sequenced)) struct RoundTripEstimatorTests {
    private func timeout(after samples: [Int64]) -> Int64 {
        var estimator = RoundTripEstimator()
        for sample in samples { estimator.measured(sample * ms) }
        return estimator.timeout / ms
    }

    @Test func theTimeoutFollowsTheRFC() {
        // Nothing measured: 1 s (2.1). The first sample R: R + 4 * R/2 (2.2).
        #expect(timeout(after: []) == 1000)
        #expect(timeout(after: [400]) == 1200)
        // The next: variation 3/4 * 200 + 1/4 * 400, round trip 7/8 * 400 + 1/8 * 800 (2.3).
        #expect(timeout(after: [400, 800]) == 450 + 4 * 250)
        #expect(timeout(after: [400, 80]) == 360 + 4 * 230)
        #expect(timeout(after: [400, 400]) == 400 + 4 * 150)
    }

    @Test func theTimeoutIsNeitherTooShortNorTooLong() {
        #expect(timeout(after: [0]) == 250)
        #expect(timeout(after: [83]) == 250)
        #expect(timeout(after: [84]) == 252)
        #expect(timeout(after: [3333]) == 9999)
        #expect(timeout(after: [3334]) == 10_000)
        #expect(timeout(after: [1 << 40]) == 10_000)
        #expect(timeout(after: [-5]) == 250)
    }

    @Test func eachTimeoutDoublesTheNextUntilTheCeilingAndProgressEndsThat() {
        var estimator = RoundTripEstimator()
        estimator.measured(100 * ms)
        var timeouts: [Int64] = []
        for _ in 0..<8 {
            timeouts.append(estimator.timeout / ms)
            estimator.expired()
        }
        #expect(timeouts == [300, 600, 1200, 2400, 4800, 9600, 10_000, 10_000])
        estimator.progressed()
        #expect(estimator.timeout == 300 * ms)
        for _ in 0..<1000 { estimator.expired() }
        #expect(estimator.timeout == 10_000 * ms)
    }

    @Test func theShortestRoundTripIsKept() {
        var estimator = RoundTripEstimator()
        #expect(estimator.shortest == nil)
        for sample: Int64 in [70, 30, 50] { estimator.measured(sample) }
        #expect(estimator.shortest == 30)
        estimator.measured(-1)
        #expect(estimator.shortest == 0)
    }
}

/// What a session does when nothing comes back, with every time written out.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedTimeoutTests {
    private typealias Session = SequencedFraming.Session

    /// One chunk is out since time 0.
    private func waiting(_ change: (inout SequencedFraming.Configuration) -> Void = { _ in }) throws -> Session {
        var session = try Session.met(SequencedHello.fromPeer(), change)
        try session.enqueue([1, 2, 3], as: MessageID(rawValue: 0), at: .zero)
        #expect(try session.drain().count == 1)
        return session
    }

    @Test func eachUnansweredChunkIsRepeatedLaterThanTheOneBefore() throws {
        var session = try waiting { $0.maximumTimeouts = 7 }
        var times: [Int64] = []
        var chunks: [[UInt8]] = []
        while times.count < 7 {
            let deadline = try #require(session.deadline)
            // Not a moment sooner.
            try session.wake(at: Timestamp(nanoseconds: deadline.nanoseconds - 1))
            #expect(try session.drain(at: Timestamp(nanoseconds: deadline.nanoseconds - 1)) == [])
            try session.wake(at: deadline)
            times.append(deadline.nanoseconds / ms)
            chunks += try session.drain(at: deadline)
        }
        #expect(times == [1000, 3000, 7000, 15_000, 25_000, 35_000, 45_000])
        #expect(chunks.count == 7)
        #expect(Set(chunks).count == 1)
        #expect(session.statistics.timeouts == 7)
        #expect(session.statistics.repeatedChunks == 7)
        #expect(!session.needsNewLink)
        // One silence more than maximumTimeouts.
        let error = #expect(throws: FerryError.self) { try session.wakeNext() }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("not answered 7 times") == true)
        #expect(session.needsNewLink)
    }

    @Test func anAcknowledgementEndsTheBackingOff() throws {
        var session = try waiting()
        #expect(try session.wakeNext() == .zero + .seconds(1))
        try session.drain(at: .zero + .seconds(1))
        #expect(try session.wakeNext() == .zero + .seconds(3))
        try session.drain(at: .zero + .seconds(3))
        let now = Timestamp.zero + .seconds(4)
        try session.take(Acknowledgement.chunk(1), at: now)
        #expect(session.deadline == nil)
        try session.enqueue([4], as: MessageID(rawValue: 1), at: now)
        try session.drain(at: now)
        // Karn: the repeated chunk has measured nothing.
        #expect(session.deadline == now + .seconds(1))
    }

    @Test func aNewLinkEndsTheBackingOff() throws {
        var session = try waiting()
        for _ in 0..<3 { try session.drain(at: try #require(try session.wakeNext())) }
        let now = Timestamp.zero + .seconds(20)
        session.linkDidClose(at: now)
        session.linkDidOpen(at: now)
        try session.take(SequencedHello.fromPeer { $0.known = .init(session: 7, receivedCount: 0) }, at: now)
        #expect(try session.drain(at: now).count == 2)
        #expect(session.deadline == now + .seconds(1))
    }

    @Test func whatArrivedOnceIsMeasured() throws {
        var session = try waiting()
        let now = Timestamp.zero + .milliseconds(200)
        try session.take(Acknowledgement.chunk(1), at: now)
        try session.enqueue([4], as: MessageID(rawValue: 1), at: now)
        try session.drain(at: now)
        #expect(session.deadline == now + .milliseconds(600))
    }

    @Test func theTimerStartsAnewWithEachAdvanceAndWithNothingElse() throws {
        var session = try Session.met()
        try session.enqueue([UInt8](repeating: 1, count: 100), as: MessageID(rawValue: 0), at: .zero)
        #expect(try session.drain().count > 4)
        #expect(session.deadline == .zero + .seconds(1))
        // A chunk in the middle has arrived, and was repeated never: it measures, and the timer goes on from where it was.
        try session.take(Acknowledgement.chunk(0, bitmap: 1), at: .zero + .milliseconds(100))
        #expect(session.deadline == .zero + .milliseconds(300))
        try session.take(Acknowledgement.chunk(1), at: .zero + .milliseconds(100))
        #expect(session.deadline == .zero + .milliseconds(350))
        // The same once more says nothing new.
        try session.take(Acknowledgement.chunk(1), at: .zero + .milliseconds(200))
        #expect(session.deadline == .zero + .milliseconds(350))
    }

    @Test func aPeerThatTakesAllButOneChunkIsGivenUpOnThatChunk() throws {
        var session = try Session.met { $0.maximumTimeouts = 2 }
        try session.enqueue([UInt8](repeating: 1, count: 25), as: MessageID(rawValue: 0), at: .zero)
        #expect(try session.drain().count == 2)
        var steps = 0
        var error: FerryError?
        while error == nil, steps < 50 {
            let now = try #require(session.deadline)
            // It lives, and says so.
            try session.take(Acknowledgement.chunk(0, bitmap: 1), at: now)
            do { try session.wake(at: now) } catch let failure { error = failure }
            steps += 1
            if error == nil { try session.drain(at: now) }
        }
        #expect(error?.code == .timedOut)
        #expect(error?.message.contains("sent 7 times and never arrived whole") == true)
        #expect(session.statistics.timeouts == 7)
    }

    @Test func theHelloRepeatsUntilItIsAnswered() throws {
        var session = Session.alone { $0.maximumTimeouts = 6 }
        session.linkDidOpen(at: .zero)
        var times: [Int64] = []
        #expect(try session.drain().count == 1)
        for _ in 0..<6 {
            let now = try #require(try session.wakeNext())
            times.append(now.nanoseconds / ms)
            #expect(try session.drain(at: now).count == 1)
        }
        #expect(times == [500, 1500, 3500, 7500, 15_500, 23_500])
        let error = #expect(throws: FerryError.self) { try session.wakeNext() }
        #expect(error?.code == .timedOut)
        #expect(session.needsNewLink)
        // Another link begins with all patience.
        session.linkDidClose(at: .zero)
        #expect(session.deadline == nil)
        let now = Timestamp.zero + .seconds(100)
        session.linkDidOpen(at: now)
        #expect(!session.needsNewLink)
        #expect(try session.drain(at: now).count == 1)
        #expect(session.deadline == now + .milliseconds(500))
        for _ in 0..<6 { try session.drain(at: try #require(try session.wakeNext())) }
        #expect(throws: FerryError.self) { try session.wakeNext() }
    }

    @Test func aMetPeerIsNotGreetedByTheClock() throws {
        let session = try Session.met()
        #expect(session.deadline == nil)
    }

    @Test func anySignOfThePeerEndsItsSilence() throws {
        let signs: [[UInt8]] = [
            Acknowledgement.chunk(0), wholeMessage(0, [1]), [SequencedChunk.Control.probe],
            messageBegins(0, count: 40, [1, 2, 3]),
        ]
        for sign in signs {
            var session = try waiting { $0.maximumTimeouts = 2 }
            for _ in 0..<2 { try session.drain(at: try #require(try session.wakeNext())) }
            let now = try #require(session.deadline)
            try session.take(sign, at: now)
            try session.wake(at: now)
            #expect(!session.needsNewLink, "\(sign)")
        }
    }

    @Test func refusingEndsByTheClockIfTheLinkTakesNothing() throws {
        var session = Session.alone { $0.codec = 5 }
        session.linkDidOpen(at: .zero)
        try session.take(SequencedHello.fromPeer())
        #expect(session.deadline == .zero + .seconds(1))
        #expect(try session.transmit(atMost: 20, at: .zero) { _ in false } == .refused)
        try session.wake(at: .zero + .milliseconds(999))
        let error = #expect(throws: FerryError.self) { try session.wakeNext() }
        #expect(error?.code == .incompatiblePeer)
    }

    // MARK: Silence in the middle of a message

    private func stalling(_ timeout: Duration = .seconds(5)) throws -> Session {
        var limits = Limits()
        limits.inboundStallTimeout = timeout
        return try Session.met(limits: limits)
    }

    @Test func aMessageThatStopsInTheMiddleIsGivenUp() throws {
        var session = try stalling()
        #expect(session.deadline == nil)
        try session.take(messageBegins(0, count: 40, [1, 2, 3]), at: .zero)
        try session.drain(at: try #require(try session.wakeNext()))
        #expect(session.deadline == .zero + .seconds(5))
        let later = Timestamp.zero + .seconds(3)
        try session.take(messageGoesOn(1, [4, 5]), at: later)
        try session.drain(at: try #require(try session.wakeNext()))
        #expect(session.deadline == later + .seconds(5))
        try session.wake(at: later + .milliseconds(4999))
        let error = #expect(throws: FerryError.self) { try session.wakeNext() }
        #expect(error?.code == .truncatedMessage)
        #expect(session.needsNewLink)
    }

    /// A full chunk that goes on with one message takes a short way, and counts as much.
    @Test func plainChunksAreHeardToo() throws {
        var session = try stalling()
        var first = messageBegins(0, count: 60, [UInt8](repeating: 1, count: 20))
        // It states its size as the full one.
        first[2] |= 1
        try session.take(first)
        let later = Timestamp.zero + .seconds(3)
        try session.take([1] + [UInt8](repeating: 2, count: first.count - 1), at: later)
        try session.drain(at: try #require(try session.wakeNext()))
        #expect(session.deadline == later + .seconds(5))
        #expect(session.statistics.damagedChunks == 0)
    }

    @Test func aSlowReaderIsNoSilentPeer() throws {
        var limits = Limits()
        limits.inboundStallTimeout = .seconds(5)
        var session = try Session.met(limits: limits) { $0.creditWindow = 1024 }
        // 1016 of 1024 bytes of credit are delivered and unread, the rest is part of a message: the peer has to wait.
        try session.take(wholeMessage(0, [UInt8](repeating: 0, count: 980)))
        try session.take(messageBegins(1, count: 40, [UInt8](repeating: 7, count: 16)))
        try session.drain(at: try #require(try session.wakeNext()))
        #expect(session.deadline == nil)
        // What is read gives credit, and from then on the peer is expected to go on.
        let later = Timestamp.zero + .seconds(100)
        session.consume(980, at: later)
        #expect(try session.drain(at: later).count == 1)
        #expect(session.deadline == later + .seconds(5))
    }
}
