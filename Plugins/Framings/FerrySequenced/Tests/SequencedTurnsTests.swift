import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

/// Which message goes next: levels, turns, and what may be open at once.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedTurnsTests {
    private typealias Session = SequencedFraming.Session

    private func session(
        maximum: Int = 1 << 20, _ change: (inout SequencedFraming.Configuration) -> Void = { _ in }
    ) throws -> Session {
        try Session.met(
            SequencedHello.fromPeer {
                $0.window = 64
                $0.maximumMessageSize = RoundedSize(roundingDown: maximum)
                $0.credit = RoundedSize(roundingDown: 1 << 24)
            }
        ) {
            $0.window = 64
            change(&$0)
        }
    }

    private func send(_ session: inout Session, _ number: Int, _ count: Int, _ options: SendOptions = SendOptions())
        throws
    {
        try session.enqueue(
            [UInt8](repeating: UInt8(number), count: count), as: MessageID(rawValue: UInt64(number)), options: options,
            at: .zero)
    }

    /// Takes up to `count` chunks, acknowledges them, and says which message is in each: the first one's number.
    private func owners(_ session: inout Session, _ count: Int, acknowledging: Bool = true) throws -> [Int] {
        var owners: [Int] = []
        for _ in 0..<count {
            let number = session.window.next
            guard try session.transmit(atMost: 20, at: .zero, { _ in true }) == .accepted else { break }
            guard session.window.next > number else { continue }
            let message = Int(session.window[number].segments[0].message)
            owners.append(Int(session.outbox.messages[message].payload.first ?? 255))
            if acknowledging { try session.take(Acknowledgement.chunk(UInt8((number + 1) & 127), credit: 1 << 18)) }
        }
        return owners
    }

    /// Runs of equal numbers: (number, length).
    private func runs(_ owners: [Int]) -> [[Int]] {
        var runs: [[Int]] = []
        for owner in owners {
            if runs.last?[0] == owner { runs[runs.count - 1][1] += 1 } else { runs.append([owner, 1]) }
        }
        return runs
    }

    @Test func turnsHaveFourChunksTimesTheWeightFromTheFirstOn() throws {
        var session = try session()
        try send(&session, 1, 20_000)
        try send(&session, 2, 20_000, SendOptions(weight: 4))
        try send(&session, 3, 20_000, SendOptions(weight: 2))
        let turns = runs(try owners(&session, 84))
        #expect(turns == [[1, 4], [2, 16], [3, 8], [1, 4], [2, 16], [3, 8], [1, 4], [2, 16], [3, 8]])
    }

    @Test func refusedChunksSpendNoTurn() throws {
        var session = try session()
        try send(&session, 1, 20_000)
        try send(&session, 2, 20_000)
        var all: [Int] = []
        for _ in 0..<16 {
            for _ in 0..<3 { #expect(try session.transmit(atMost: 20, at: .zero) { _ in false } == .refused) }
            all += try owners(&session, 1)
        }
        #expect(runs(all) == [[1, 4], [2, 4], [1, 4], [2, 4]])
    }

    @Test func aHigherLevelGoesFirstAndTheLowerGoesOnWhereItWas() throws {
        var session = try session()
        try send(&session, 1, 20_000, SendOptions(priority: .background))
        #expect(runs(try owners(&session, 6)) == [[1, 6]])
        try send(&session, 2, 60, SendOptions(priority: .high))
        try send(&session, 3, 60, SendOptions(priority: .urgent))
        try send(&session, 4, 60, SendOptions(priority: .normal))
        let turns = runs(try owners(&session, 16))
        #expect(turns.map { $0[0] } == [3, 2, 4, 1])
    }

    @Test(arguments: 1...8) func atMostSoManyOfALevelAreOpen(maximum: Int) throws {
        var session = try session { $0.maximumOpenMessages = maximum }
        for number in 0..<10 { try send(&session, number, 5000) }
        let owners = try owners(&session, 120)
        #expect(Set(owners) == Set(0..<maximum))
        #expect(session.outbox.levels[1].active.count == maximum)
    }

    // MARK: The peer's room

    @Test func messagesOfALevelShareThePeersMaximum() throws {
        for (second, isOpened) in [(524, true), (525, false)] {
            var session = try session(maximum: 1024)
            try send(&session, 1, 500)
            try send(&session, 2, second)
            let begun = Set(try owners(&session, 12))
            #expect(begun == (isOpened ? [1, 2] : [1]), "\(second) bytes")
            // It waits for the first one's end.
            if !isOpened { #expect(runs(try owners(&session, 18)).map { $0[0] } == [1, 2]) }
        }
    }

    @Test func theSecondHalfOfThePeersRoomIsForTheUrgent() throws {
        var session = try session(maximum: 1024)
        try send(&session, 1, 1024, SendOptions(priority: .background))
        #expect(try owners(&session, 2) == [1, 1])
        try send(&session, 2, 10, SendOptions(priority: .background))
        #expect(Set(try owners(&session, 8)) == [1])
        // More urgent than all that is open: it begins, to the second maximum and no further.
        try send(&session, 3, 1024, SendOptions(priority: .high))
        #expect(Set(try owners(&session, 4)) == [3])
        try send(&session, 4, 0, SendOptions(priority: .high))
        #expect(Set(try owners(&session, 4)) == [3])
        try send(&session, 5, 0, SendOptions(priority: .urgent))
        #expect(try owners(&session, 1) == [255])
        try send(&session, 6, 1, SendOptions(priority: .urgent))
        #expect(Set(try owners(&session, 4)) == [3])
        #expect(session.outbox.openBytes == 2048)
        // They end in the order of their levels, and the room is free again.
        let rest = runs(try owners(&session, 200))
        #expect(rest == [[3, 42], [6, 1], [1, 45], [2, 1]])
        #expect(session.outbox.openBytes == 0)
        #expect(session.outbox.freeSlots == .max)
        #expect(session.outbox.isEmpty)
    }

    // MARK: Taking back

    @Test func onlyWhatHasNotLeftWholeIsTakenBack() throws {
        var session = try session()
        let id = MessageID(rawValue: 1)
        #expect(session.cancel(id, at: .zero) == false)
        try send(&session, 1, 20)
        #expect(try owners(&session, 1, acknowledging: false) == [1])
        #expect(try owners(&session, 1, acknowledging: false) == [1])
        #expect(session.cancel(id, at: .zero) == false)
        try session.take(Acknowledgement.chunk(2))
        #expect(session.eventDescriptions().last == "sent 1")
        #expect(session.cancel(id, at: .zero) == false)
    }

    @Test func whatWaitsLeavesNoTraceAndWhatIsBegunIsCancelledWithTheNextChunk() throws {
        var session = try session()
        try send(&session, 1, 2000)
        try send(&session, 2, 2000)
        #expect(Set(try owners(&session, 3)) == [1])
        #expect(session.cancel(MessageID(rawValue: 2), at: .zero) == true)
        #expect(session.outbox.readyCount == 1)
        #expect(session.cancel(MessageID(rawValue: 1), at: .zero) == true)
        #expect(session.cancel(MessageID(rawValue: 1), at: .zero) == false)
        #expect(session.outbox.readyCount == 0)
        _ = session.eventDescriptions()
        let chunks = try session.drain()
        #expect(chunks == [[0xA8, 3, 2, Record.cancel.byte(slot: 0)]])
        #expect(session.outbox.openBytes == 0)
        // The slot is free for what comes next, and what the peer has is told to nobody.
        try send(&session, 3, 5)
        try session.drain()
        try session.take(Acknowledgement.chunk(5))
        #expect(session.eventDescriptions() == ["progress 3 5", "sent 3"])
        #expect(session.outbox.indices.isEmpty)
    }

    @Test func aCancelledTurnGoesToTheNext() throws {
        var session = try session()
        for number in 1...3 { try send(&session, number, 5000) }
        #expect(runs(try owners(&session, 10)) == [[1, 4], [2, 4], [3, 2]])
        #expect(session.cancel(MessageID(rawValue: 3), at: .zero) == true)
        #expect(try owners(&session, 1) == [3])
        let turns = runs(try owners(&session, 12))
        #expect(turns == [[1, 4], [2, 4], [1, 4]])
    }

    /// What is settled leaves nothing behind, however many messages there have been.
    @Test func thePlacesOfSettledMessagesAreUsedAgain() throws {
        var session = try session()
        for number in 1...100 {
            try send(&session, number, 300)
            let before = UInt8(session.window.next & 127)
            if number % 3 == 0 {
                _ = try session.transmit(atMost: 20, at: .zero) { _ in true }
                #expect(session.cancel(MessageID(rawValue: UInt64(number)), at: .zero) == true)
            }
            if number % 3 == 1 { #expect(session.cancel(MessageID(rawValue: UInt64(number)), at: .zero) == true) }
            try session.drain()
            let count = UInt8(truncatingIfNeeded: session.window.next & 127) &- before
            try session.take(Acknowledgement.chunk((before &+ count) & 127, credit: 1 << 18))
        }
        #expect(session.window.count == 0)
        #expect(session.outbox.messages.count == 1)
        #expect(session.outbox.messages.first?.payload == [])
        #expect(session.outbox.indices.isEmpty)
        #expect(session.outbox.freeSlots == .max)
        #expect(session.outbox.openBytes == 0)
        #expect(session.outbox.readyCount == 0)
    }

    // MARK: What is told

    @Test func progressIsToldOnceForEachAcknowledgement() throws {
        var session = try session()
        try send(&session, 1, 100)
        try send(&session, 2, 100)
        #expect(runs(try owners(&session, 8, acknowledging: false)) == [[1, 4], [2, 4]])
        try session.take(Acknowledgement.chunk(2))
        #expect(session.eventDescriptions() == ["progress 1 34"])
        try session.take(Acknowledgement.chunk(2))
        #expect(session.eventDescriptions() == [])
        try session.take(Acknowledgement.chunk(6))
        #expect(session.eventDescriptions() == ["progress 1 72", "progress 2 35"])
    }

    @Test func aReceiptOfTheLinkIsToldOnceTheLastChunkHasLeft() throws {
        var session = try session { $0.receipt = .handedOver }
        try send(&session, 1, 30)
        try send(&session, 2, 30, SendOptions(receipt: .delivered))
        #expect(try owners(&session, 1, acknowledging: false) == [1])
        #expect(session.eventDescriptions() == [])
        _ = try owners(&session, 10, acknowledging: false)
        #expect(session.eventDescriptions() == ["sent 1"])
        try session.take(Acknowledgement.chunk(UInt8(session.window.next)))
        #expect(session.eventDescriptions() == ["progress 2 30", "sent 2"])
        #expect(session.outbox.indices.isEmpty)
    }

    @Test func whatCannotBeSentIsNotBegun() throws {
        // Credit for 16 bytes is what an empty message costs; more is needed for one to begin.
        for (credit, count) in [(16, 0), (18, 1)] {
            var session = try Session.met(SequencedHello.fromPeer { $0.credit = RoundedSize(roundingDown: credit) })
            try send(&session, 1, 0)
            #expect(try session.drain().count == count, "credit \(credit)")
        }
    }

    @Test func theConfigurationKeepsToItsBounds() {
        var configuration = SequencedFraming.Configuration()
        configuration.window = 0
        #expect(configuration.window == 1)
        configuration.window = 65
        #expect(configuration.window == 64)
        configuration.creditWindow = 1023
        #expect(configuration.creditWindow == 1024)
        configuration.creditWindow = 1 << 30 + 1
        #expect(configuration.creditWindow == 1 << 30)
        configuration.chunksPerAcknowledgement = 0
        #expect(configuration.chunksPerAcknowledgement == 1)
        configuration.maximumOpenMessages = 0
        #expect(configuration.maximumOpenMessages == 1)
        configuration.maximumOpenMessages = 9
        #expect(configuration.maximumOpenMessages == 8)
        configuration.maximumTimeouts = 0
        #expect(configuration.maximumTimeouts == 1)
    }
}

/// When a receiver says what it has.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedAcknowledgingTests {
    private typealias Session = SequencedFraming.Session

    /// After which of `count` chunks that ask for nothing an acknowledgement goes out.
    private func answers(
        _ session: inout Session, _ numbers: some Sequence<UInt8>, at now: Timestamp = .zero
    ) throws -> [UInt8] {
        var answered: [UInt8] = []
        for number in numbers {
            let chunk = number == 0 ? messageBegins(0, count: 60_000, [1]) : messageGoesOn(number, [1])
            try session.take(chunk, at: now)
            if try !session.drain(at: now).isEmpty { answered.append(number) }
        }
        return answered
    }

    @Test func sevenEighthsOfTheWindowAreAnsweredAtTheLatest() throws {
        var session = try Session.met { $0.window = 16 }
        #expect(try answers(&session, 0..<50) == [13, 27, 41])
        session = try Session.met { $0.window = 1 }
        #expect(try answers(&session, 0..<4) == [0, 1, 2, 3])
        session = try Session.met { $0.chunksPerAcknowledgement = 5 }
        #expect(try answers(&session, 0..<16) == [4, 9, 14])
    }

    /// Full chunks that go on with one message take a short way, and count as much.
    @Test func plainChunksAreAnsweredAsOften() throws {
        var session = try Session.met { $0.window = 16 }
        var first = messageBegins(0, count: 4000, [UInt8](repeating: 1, count: 14))
        first[2] |= 1
        try session.take(first)
        var answered: [UInt8] = []
        for number in 1..<UInt8(44) {
            try session.take([number] + [UInt8](repeating: 2, count: first.count - 1))
            if try !session.drain().isEmpty { answered.append(number) }
        }
        #expect(answered == [13, 27, 41])
    }

    @Test func whileSomethingIsMissingEveryThirdChunkIsAnswered() throws {
        var session = try Session.met()
        #expect(try answers(&session, 0..<2) == [])
        // With the two before it is the third that is not acknowledged.
        #expect(try answers(&session, 3..<14) == [3, 6, 9, 12])
        // What was missing comes: with the one before it two are not acknowledged, and the usual way begins.
        #expect(try answers(&session, [2]) == [])
        #expect(session.arrivals.next == 14)
        #expect(session.arrivals.heldCount == 0)
        #expect(try answers(&session, 14..<20) == [])
        #expect(session.deadline == .zero + .milliseconds(150))
    }

    @Test func whatWaitsIsAnsweredByTheClock() throws {
        var session = try Session.met { $0.acknowledgementDelay = .milliseconds(40) }
        #expect(try answers(&session, [0], at: .zero + .milliseconds(5)) == [])
        #expect(try answers(&session, [1, 2], at: .zero + .milliseconds(30)) == [])
        // From the first one on.
        #expect(session.deadline == .zero + .milliseconds(45))
        try session.wake(at: .zero + .milliseconds(44))
        #expect(try session.drain(at: .zero + .milliseconds(44)) == [])
        try session.wakeNext()
        let answer = try session.drain(at: .zero + .milliseconds(45))
        #expect(answer.map { $0.prefix(2) } == [[0xE0, 3]])
        #expect(session.statistics.acknowledgementChunks == 1)
        #expect(try answers(&session, [3], at: .zero + .milliseconds(100)) == [])
        #expect(session.deadline == .zero + .milliseconds(140))
    }

    @Test func whoAsksIsAnsweredAtOnceAlsoForWhatIsKnown() throws {
        var session = try Session.met()
        let chunk = wholeMessage(0, [1], asks: true)
        for _ in 0..<2 {
            try session.take(chunk)
            #expect(try session.drain().map { $0.prefix(2) } == [[0xE0, 1]])
        }
        #expect(session.statistics.doubledChunks == 1)
        #expect(session.eventDescriptions() == ["received 1"])
        // Beyond the window nothing is said.
        try session.take(wholeMessage(1 + 56, [1], asks: true))
        #expect(try session.drain() == [])
        try session.take(wholeMessage(1 + 55, [1], asks: true))
        #expect(try session.drain().count == 1)
        #expect(session.statistics.earlyChunks == 1)
    }

    @Test func anAcknowledgementRidesOnData() throws {
        var session = try Session.met()
        try session.enqueue([1, 2], as: MessageID(rawValue: 0), at: .zero)
        try session.take(wholeMessage(0, [1], asks: true))
        let chunks = try session.drain()
        #expect(chunks.count == 1)
        #expect(chunks.first.map { $0[0] & 0x90 } == 0x90)
        #expect(session.deadline == .zero + .seconds(1))
        #expect(session.statistics.acknowledgementChunks == 0)
        // With a gap it goes alone, and first.
        session = try Session.met()
        try session.enqueue([1, 2], as: MessageID(rawValue: 0), at: .zero)
        try session.take(wholeMessage(1, [1], asks: true))
        #expect(try session.drain().map { $0[0] == 0xE0 } == [true, false])
    }

    @Test func anAcknowledgementThatTheLinkRefusesIsStillDue() throws {
        var session = try Session.met()
        try session.take(wholeMessage(0, [1], asks: true))
        for _ in 0..<3 { #expect(try session.transmit(atMost: 20, at: .zero) { _ in false } == .refused) }
        #expect(session.statistics.acknowledgementChunks == 0)
        #expect(try session.drain().count == 1)
    }

    @Test func aDamagedChunkIsAsIfItHadNeverCome() throws {
        var session = try Session.met()
        try session.take(messageBegins(0, count: 60, Array(1...10)))
        let cut = messageGoesOn(1, Array(11...20)).dropLast()
        try session.take(Array(cut))
        #expect(session.arrivals.next == 1)
        #expect(session.statistics.damagedChunks == 1)
        // Early, it is found out when its turn comes, and those after it are kept.
        try session.take(Array(messageGoesOn(2, Array(21...30)).dropLast()))
        try session.take(messageGoesOn(3, Array(31...60)))
        #expect(session.arrivals.heldCount == 2)
        try session.take(messageGoesOn(1, Array(11...20)))
        #expect(session.arrivals.next == 2)
        #expect(session.arrivals.heldCount == 1)
        #expect(session.statistics.damagedChunks == 2)
        try session.take(messageGoesOn(2, Array(21...30)))
        #expect(session.arrivals.next == 4)
        #expect(session.arrivals.heldCount == 0)
        let payload = (1...60).map { UInt8($0) }
        var trailer: [UInt8] = []
        for shift: UInt32 in [0, 8, 16, 24] { trailer.append(UInt8(truncatingIfNeeded: crc32c(payload) >> shift)) }
        try session.take(messageGoesOn(4, trailer))
        #expect(session.receivedMessages() == [payload])
    }
}
