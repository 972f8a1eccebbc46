import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

/// Which chunks count as lost, and which have arrived.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedWindowTests {
    private typealias Session = SequencedFraming.Session

    /// A session with ten chunks out, each at its own time: chunk n at n ms.
    private func tenOut() throws -> (Session, chunks: [[UInt8]]) {
        var session = try Session.met()
        try session.enqueue([UInt8](repeating: 1, count: 2000), as: MessageID(rawValue: 0), at: .zero)
        var chunks: [[UInt8]] = []
        for number in 0..<10 {
            let outcome = try session.transmit(atMost: 20, at: .zero + .milliseconds(number)) { chunk in
                chunks.append(chunk.withUnsafeBytes { Array($0) })
                return true
            }
            #expect(outcome == .accepted)
        }
        return (session, chunks)
    }

    /// What goes out next if it is a repetition.
    private func repetition(_ session: inout Session, at now: Timestamp) throws -> [UInt8]? {
        let before = session.statistics.repeatedChunks
        var sent: [UInt8]?
        guard session.window.lostCount > 0 else { return nil }
        _ = try session.transmit(atMost: 20, at: now) { chunk in
            sent = chunk.withUnsafeBytes { Array($0) }
            return true
        }
        return session.statistics.repeatedChunks == before + 1 ? sent : nil
    }

    @Test func aChunkIsLostOnceThreeSentLaterHaveArrived() throws {
        var (session, chunks) = try tenOut()
        let now = Timestamp.zero + .milliseconds(50)
        // Of chunk 0 the second and third later ones, then the first three.
        try session.take(Acknowledgement.chunk(0, bitmap: 0b11), at: now)
        #expect(session.window.lostCount == 0)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b111), at: now)
        #expect(session.window.lostCount == 1)
        #expect(try repetition(&session, at: now) == chunks[0])
        #expect(try repetition(&session, at: now) == nil)
        #expect(session.statistics.timeouts == 0)
        // Chunk 0 has come, 4 is missing; 5 and 6 arrive, and then 7.
        try session.take(Acknowledgement.chunk(4, bitmap: 0b011), at: now)
        #expect(session.window.lostCount == 0)
        try session.take(Acknowledgement.chunk(4, bitmap: 0b111), at: now)
        #expect(try repetition(&session, at: now) == chunks[4])
        #expect(try repetition(&session, at: now) == nil)
    }

    /// Only the order counts, not how many: one that was sent three later is enough.
    @Test func theThirdLaterChunkAloneTells() throws {
        var (session, chunks) = try tenOut()
        try session.take(Acknowledgement.chunk(0, bitmap: 0b100), at: .zero + .milliseconds(50))
        #expect(try repetition(&session, at: .zero + .milliseconds(50)) == chunks[0])
        #expect(try repetition(&session, at: .zero + .milliseconds(50)) == nil)
    }

    /// A repetition is lost by the same rule: three sent after it have arrived.
    @Test func aRepetitionIsNotRepeatedForWhatWasSentBeforeIt() throws {
        var (session, chunks) = try tenOut()
        var now = Timestamp.zero + .milliseconds(50)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b111), at: now)
        #expect(try repetition(&session, at: now) == chunks[0])
        now = now + .milliseconds(50)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b1_1111_1111), at: now)
        #expect(session.window.lostCount == 0)
        // Three new ones go after it, and arrive.
        for _ in 0..<3 {
            #expect(try session.transmit(atMost: 20, at: now) { _ in true } == .accepted)
        }
        now = now + .milliseconds(60)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b111_1111_1111), at: now)
        #expect(session.window.lostCount == 0)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b1111_1111_1111), at: now)
        #expect(try repetition(&session, at: now) == chunks[0])
    }

    /// While the oldest is on its way again, others are lost by the same rule, and do not wait until it has arrived.
    @Test func othersAreLostWhileTheOldestIsOutAgain() throws {
        var (session, chunks) = try tenOut()
        var now = Timestamp.zero + .milliseconds(50)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b111), at: now)
        #expect(try repetition(&session, at: now) == chunks[0])
        // Chunk 5 is missing too; 6 and 7 arrive, and then 8.
        now = now + .milliseconds(1)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b110_1111), at: now)
        #expect(session.window.lostCount == 0)
        try session.take(Acknowledgement.chunk(0, bitmap: 0b1110_1111), at: now)
        #expect(try repetition(&session, at: now) == chunks[5])
        #expect(try repetition(&session, at: now) == nil)
    }

    /// An answer that comes sooner than any round trip is to the original, and says nothing of what came after it.
    @Test func anAnswerThatComesTooSoonIsToTheOriginal() throws {
        for (trip, isLost) in [(9, false), (10, true)] {
            var (session, _) = try tenOut()
            // Chunks 1, 2 and 3 took 10 ms at least.
            try session.take(Acknowledgement.chunk(0, bitmap: 0b1), at: .zero + .milliseconds(11))
            let timer = try #require(try session.wakeNext())
            #expect(try repetition(&session, at: timer)?.isEmpty == false)
            // The timer's repetition has serial 10; chunk 7 (serial 7) is three before it.
            let now = timer + .milliseconds(trip)
            try session.take(Acknowledgement.chunk(1, bitmap: 0), at: now)
            #expect((session.window.lostCount > 0) == isLost, "after \(trip) ms")
        }
    }

    @Test func theTimerRepeatsTheOldestAndNothingElse() throws {
        var (session, chunks) = try tenOut()
        let now = try #require(try session.wakeNext())
        #expect(session.window.lostCount == 1)
        #expect(session.deadline == nil)
        #expect(try repetition(&session, at: now) == chunks[0])
        #expect(session.window.lostCount == 0)
        // Also when the peer once said that it had it.
        try session.take(Acknowledgement.chunk(0, bitmap: 0b11), at: now)
        try session.take(Acknowledgement.chunk(1), at: now)
        let second = try #require(try session.wakeNext())
        #expect(try repetition(&session, at: second) == chunks[1])
    }

    @Test func whatArrivesAfterAllIsNotRepeated() throws {
        var (session, _) = try tenOut()
        try session.take(Acknowledgement.chunk(0, bitmap: 0b111), at: .zero + .milliseconds(50))
        #expect(session.window.lostCount == 1)
        try session.take(Acknowledgement.chunk(4), at: .zero + .milliseconds(51))
        #expect(session.window.lostCount == 0)
        #expect(session.window.firstLost() == nil)
        #expect(session.window.first == 4)
    }

    @Test func anAcknowledgementMayBeOldAndNeverAhead() throws {
        var (session, _) = try tenOut()
        var copy = session
        #expect(copy.refusal(of: Acknowledgement.chunk(10)) == nil)
        #expect(copy.window.count == 0)
        copy = session
        #expect(copy.refusal(of: Acknowledgement.chunk(11)) == .malformedStream)
        copy = session
        #expect(copy.refusal(of: Acknowledgement.chunk(0, bitmap: 1 << 8)) == nil)
        copy = session
        #expect(copy.refusal(of: Acknowledgement.chunk(0, bitmap: 1 << 9)) == .malformedStream)
        // Numbers that lie back are old: they change nothing, be their credit as it may.
        try session.take(Acknowledgement.chunk(5, credit: 64))
        let granted = session.outbox.granted
        for number in [4, 0, 127] as [UInt8] {
            #expect(session.refusal(of: Acknowledgement.chunk(number, credit: 5000)) == nil, "\(number)")
        }
        #expect(session.outbox.granted == granted)
        #expect(session.window.first == 5)
        // 64 and more ahead is behind; 63 ahead is not.
        copy = session
        #expect(copy.refusal(of: Acknowledgement.chunk(5 + 63)) == .malformedStream)
        #expect(session.refusal(of: Acknowledgement.chunk(5 + 64)) == nil)
    }

    @Test func creditOnlyGrows() throws {
        var (session, _) = try tenOut()
        let granted = session.outbox.granted
        try session.take(Acknowledgement.chunk(1, credit: 0))
        #expect(session.outbox.granted == granted)
        // It counts from the first chunk that is missing.
        let base = session.window[1].chargedBefore
        try session.take(Acknowledgement.chunk(1, credit: 1000))
        #expect(session.outbox.granted == base + 64_000)
        #expect(session.refusal(of: Acknowledgement.chunk(1, credit: 1 << 34)) == nil)
        #expect(session.refusal(of: Acknowledgement.chunk(1, credit: 1 << 34 + 1)) == .malformedStream)
    }

    @Test func theSmallerWindowHolds() throws {
        for (own, peers, expected) in [(10, 5, 5), (5, 10, 5), (64, 64, 64)] {
            var session = try Session.met(
                SequencedHello.fromPeer {
                    $0.window = UInt8(peers)
                    $0.credit = RoundedSize(roundingDown: 1 << 20)
                }
            ) { $0.window = own }
            try session.enqueue([UInt8](repeating: 1, count: 4000), as: MessageID(rawValue: 0), at: .zero)
            #expect(try session.drain().count == expected)
        }
    }

    // MARK: Asking

    /// Which of the chunks that fill a window of 64 ask for an acknowledgement, after answers that came `lag` chunks later.
    private func askingPlaces(afterLag lag: Int, answers: Int = 40) throws -> [Int] {
        var session = try Session.met(
            SequencedHello.fromPeer {
                $0.window = 64
                $0.credit = RoundedSize(roundingDown: 1 << 24)
            }
        ) { $0.window = 64 }
        try session.enqueue([UInt8](repeating: 1, count: 60_000), as: MessageID(rawValue: 0), at: .zero)
        func sendOne() throws -> Bool? {
            var asks = false
            let outcome = try session.transmit(atMost: 20, at: .zero) { chunk in
                asks = chunk.withUnsafeBytes { $0[0] >= 0x80 && $0[0] < 0xC0 && $0[0] & 0x02 != 0 }
                return true
            }
            return outcome == .accepted ? asks : nil
        }
        for _ in 0..<answers {
            while try sendOne() == false {}
            let asked = session.window.next
            for _ in 0..<lag { _ = try sendOne() }
            try session.take(Acknowledgement.chunk(UInt8(asked & 127), credit: 1 << 18))
        }
        try session.take(Acknowledgement.chunk(UInt8(session.window.next & 127), credit: 1 << 18))
        var places: [Int] = []
        for place in 0..<100 {
            guard let asks = try sendOne() else { break }
            if asks { places.append(place) }
        }
        return places
    }

    @Test func howOftenAnAcknowledgementIsAskedForFollowsFromHowLongItTakes() throws {
        // A few quick answers are not yet believed.
        let learning = try [1, 3, 6].map { try askingPlaces(afterLag: 0, answers: $0) }
        #expect(learning == [[7, 15, 23, 31, 39, 47, 55, 63], [10, 21, 32, 43, 54, 63], [29, 59, 63]])
        let places = try [0, 16, 30].map { try askingPlaces(afterLag: $0) }
        // After 7/8 of the window at the latest; otherwise what leaves meanwhile, and a quarter as much again, still fits.
        // And the one that fills the window asks again.
        #expect(places == [[55, 63], [42, 63], [25, 51, 63]])
    }

    /// A sender that knows nothing yet asks for one in eight, or one in a quarter of a small window.
    @Test(arguments: [(64, 8), (32, 8), (16, 4), (8, 2), (4, 1), (1, 1)])
    func aNewSenderAsksOften(window: Int, interval: Int) throws {
        var session = try Session.met(
            SequencedHello.fromPeer {
                $0.window = UInt8(window)
                $0.credit = RoundedSize(roundingDown: 1 << 24)
            }
        ) { $0.window = 64 }
        try session.enqueue([UInt8](repeating: 1, count: 60_000), as: MessageID(rawValue: 0), at: .zero)
        let chunks = try session.drain()
        let places = chunks.indices.filter { chunks[$0][0] >= 0x80 && chunks[$0][0] < 0xC0 && chunks[$0][0] & 2 != 0 }
        #expect(places == stride(from: interval - 1, to: window, by: interval).map { $0 })
    }

    // MARK: Receiving

    /// What becomes of a chunk with each sequence number, at a window of 8 chunks whose first three have been taken.
    @Test func theWindowTellsEarlyFromLate() {
        var window = ReceiveWindow(window: 8)
        for _ in 0..<3 { window.advance() }
        var kinds: [String] = []
        for sequence in 0..<UInt8(128) {
            switch window.arrival(of: sequence) {
            case .due: kinds.append("due")
            case .early(let distance):
                #expect(distance == Int(sequence) - 3)
                kinds.append("early")
            case .outside: kinds.append("outside")
            case .known: kinds.append("known")
            }
        }
        let expected: [(Range<Int>, String)] = [
            (0..<3, "known"), (3..<4, "due"), (4..<11, "early"), (11..<67, "outside"), (67..<128, "known"),
        ]
        for (range, kind) in expected {
            for sequence in range { #expect(kinds[sequence] == kind, "sequence number \(sequence)") }
        }
    }

    @Test func theCountOfHeldChunksIsRight() {
        var window = ReceiveWindow(window: 8)
        let header = DataHeader(sequence: 0, flags: [], bodyOffset: 2)
        func hold(_ distance: Int) { [1, 2 as UInt8].withUnsafeBytes { window.hold(distance, header, $0) } }
        #expect(window.due()?.body == nil)
        hold(1)
        hold(3)
        #expect(window.heldCount == 2)
        #expect(window.acknowledgement(credit: 5) == Acknowledgement(next: 0, credit: 5, bitmap: 0b101))
        #expect(window.due()?.body == nil)
        window.advance()
        #expect(window.heldCount == 2)
        #expect(window.due()?.body == [1, 2])
        window.advance()
        #expect(window.heldCount == 1)
        #expect(window.due()?.body == nil)
        window.advance()
        #expect(window.due()?.body == [1, 2])
        // One that proves damaged is as if it had never come.
        window.dropDue()
        #expect(window.heldCount == 0)
        #expect(window.due()?.body == nil)
        window.dropDue()
        #expect(window.heldCount == 0)
        hold(2)
        window.dropHeld()
        #expect(window.heldCount == 0)
        #expect(window.next == 3)
        #expect(window.acknowledgement(credit: 0) == Acknowledgement(next: 3, credit: 0))
        hold(7)
        #expect(window.acknowledgement(credit: 0).bitmap == 1 << 6)
        window.restart()
        #expect(window.next == 0)
        #expect(window.heldCount == 0)
        #expect(window.held.allSatisfy { !$0.isPresent })
    }
}
