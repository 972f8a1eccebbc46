import Ferry
import TestSupport
import Testing

/// What a session of the simple framings keeps from one message to the next, and what it must not keep.
@Suite(.tags(.core, .framing)) struct FramingStateTests {
    private static func limits(_ maximumMessageSize: Int) -> Limits {
        var limits = Limits()
        limits.maximumMessageSize = maximumMessageSize
        return limits
    }

    private static let framings: [any Framing] = [
        EndOfMessageFraming(), LengthPrefixFraming(), LengthPrefixFraming(prefix: .uint16(.big)),
        LengthPrefixFraming(prefix: .uint32(.little)),
    ]

    /// The limit is each message's own, however its chunks are cut and whatever came before it.
    @Test(arguments: [1, 3, 4, 7, 20]) func everyMessageMayBeAsLargeAsTheLimit(chunkSize: Int) throws {
        func check(_ framing: some Framing) throws {
            guard framing.name == "length" || chunkSize >= 3 else { return }
            var sender = framing.makeSession(limits: Self.limits(10))
            var receiver = framing.makeSession(limits: Self.limits(10))
            let messages = [8, 8, 10, 0, 10, 1, 10, 10].map { [UInt8](repeating: 0x20 + UInt8($0), count: $0) }
            for (number, message) in messages.enumerated() {
                try sender.enqueue(message, as: MessageID(rawValue: UInt64(number)), at: .zero)
            }
            var chunks: [[UInt8]] = []
            while try sender.sendOne(atMost: chunkSize, to: &chunks) == .accepted {}
            for chunk in chunks { try receiver.receive(chunk.span.bytes, at: .zero) }
            #expect(receiver.receivedMessages() == messages, "\(framing.name), chunks of \(chunkSize)")
            #expect(receiver.deadline == nil)
            try receiver.linkDidClose(at: .zero)
        }
        for framing in Self.framings { try check(framing) }
    }

    /// A byte more than the limit is refused after messages of the very limit as before them.
    @Test(arguments: 0..<3) func aByteMoreIsRefusedInEveryMessage(before count: Int) throws {
        var session = EndOfMessageFraming().makeSession(limits: Self.limits(10))
        for _ in 0..<count {
            try session.receive(hex: "01 02 03 04 05 06 07 08 09 0A")
            try session.receive(hex: "45 4F 4D")
        }
        // A chunk of the marker's length takes another way.
        for chunk in ["01 02 03 04", "01 02 03", "01 02 03"] { try session.receive(hex: chunk) }
        var copy = session
        do {
            try copy.receive(hex: "01")
            Issue.record("not refused")
        } catch {
            #expect(error.code == .messageTooLarge)
            #expect(error.message.contains("essage \(count + 1)"), "\(error)")
        }
        do {
            try session.receive(hex: "01 02 03")
            Issue.record("not refused")
        } catch {
            #expect(error.code == .messageTooLarge)
        }
        #expect(session.receivedMessages().count == count)
    }

    @Test func theLengthIsMeasuredAgainstTheLimit() throws {
        for (length, isTaken) in [("0A", true), ("0B", false)] {
            var session = LengthPrefixFraming().makeSession(limits: Self.limits(10))
            var code: FerryError.Code?
            do { try session.receive(hex: length) } catch { code = error.code }
            #expect(code == (isTaken ? nil : .messageTooLarge))
        }
    }

    /// What a message leaves behind is not told of the next one.
    @Test func progressBeginsAnewWithEachMessage() throws {
        func check(_ framing: some Framing, _ expected: [String]) throws {
            var session = framing.makeSession(limits: Limits())
            for number in 1...2 {
                try session.enqueue([1, 2, 3, 4, 5], as: MessageID(rawValue: UInt64(number)), at: .zero)
            }
            var chunks: [[UInt8]] = []
            var told: [String] = []
            while try session.sendOne(atMost: 4, to: &chunks) == .accepted { told += session.eventDescriptions() }
            #expect(told == expected)
        }
        try check(
            try EndOfMessageFraming(chunkSize: nil),
            ["progress 1 4", "progress 1 5", "sent 1", "progress 2 4", "progress 2 5", "sent 2"])
        try check(
            LengthPrefixFraming(),
            ["progress 1 3", "progress 1 5", "sent 1", "progress 2 1", "progress 2 5", "sent 2"])
    }

    @Test func aMessageTakenBackLeavesTheNextOneWhole() throws {
        func check(_ framing: some Framing) throws {
            var session = framing.makeSession(limits: Limits())
            var receiver = framing.makeSession(limits: Limits())
            for number in 1...3 {
                try session.enqueue(
                    [UInt8](repeating: UInt8(number), count: 7), as: MessageID(rawValue: UInt64(number)), at: .zero)
            }
            #expect(session.cancel(MessageID(rawValue: 1), at: .zero) == true)
            #expect(session.cancel(MessageID(rawValue: 3), at: .zero) == true)
            var chunks: [[UInt8]] = []
            while try session.sendOne(atMost: 5, to: &chunks) == .accepted {}
            #expect(session.eventDescriptions().last == "sent 2")
            for chunk in chunks { try receiver.receive(chunk.span.bytes, at: .zero) }
            #expect(receiver.receivedMessages() == [[UInt8](repeating: 2, count: 7)])
            try session.enqueue([9], as: MessageID(rawValue: 4), at: .zero)
            while try session.sendOne(atMost: 5, to: &chunks) == .accepted {}
            #expect(session.eventDescriptions().last == "sent 4")
        }
        try check(EndOfMessageFraming())
        try check(LengthPrefixFraming())
    }
}

/// Makes any payload `count` bytes, and gives zeros back.
private struct Shrinking: Compression {
    var count: Int

    func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) -> Bool {
        output += [UInt8](repeating: 7, count: count)
        return true
    }

    func decompress(_ compressed: RawSpan, plainCount: Int) -> [UInt8] { [UInt8](repeating: 0, count: plainCount) }
}

/// The envelope's limits, at the limit and one beyond it.
@Suite(.tags(.core, .framing)) struct CompressionLimitTests {
    private func envelope(_ count: Int, ratio: Int = 256, largest: Int = 1 << 20) -> CompressionEnvelope {
        var limits = Limits()
        limits.maximumCompressionRatio = ratio
        limits.maximumDecompressedSize = largest
        return CompressionEnvelope(compression: Shrinking(count: count), limits: limits)
    }

    private func code(_ body: () throws(FerryError) -> Void) -> FerryError.Code? {
        do {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    @Test func theRatioMayBeReachedAndNotExceeded() throws {
        let message = [0x01, 100] + [UInt8](repeating: 7, count: 25)
        #expect(try envelope(0, ratio: 4).unwrap(message).count == 100)
        #expect(
            code { () throws(FerryError) in _ = try envelope(0, ratio: 4).unwrap(message.dropLast()) }
                == .compressionRatioExceeded)
        #expect(
            code { () throws(FerryError) in _ = try envelope(0, ratio: 3).unwrap(message) }
                == .compressionRatioExceeded)
        // No message is sent that the peer would refuse.
        let payload = [UInt8](repeating: 0, count: 100)
        #expect(try envelope(25, ratio: 4).wrap(payload) == message)
        #expect(try envelope(24, ratio: 4).wrap(payload) == [0x00] + payload)
    }

    @Test func aPlainLengthMayBeTheLimitAndNotMore() throws {
        #expect(try envelope(0, largest: 100).unwrap([0x01, 100, 7, 7]).count == 100)
        #expect(
            code { () throws(FerryError) in _ = try envelope(0, largest: 99).unwrap([0x01, 100, 7, 7]) }
                == .decompressedTooLarge)
        let payload = [UInt8](repeating: 0, count: 100)
        #expect(try envelope(10, largest: 100).wrap(payload).first == 0x01)
        #expect(try envelope(10, largest: 99).wrap(payload) == [0x00] + payload)
    }

    /// What is compressed has to be shorter than what is stored, header and all.
    @Test func compressionThatSavesNothingIsNotUsed() throws {
        let payload = [UInt8](repeating: 0, count: 100)
        #expect(try envelope(98).wrap(payload).count == 100)
        #expect(try envelope(99).wrap(payload) == [0x00] + payload)
        #expect(try envelope(0, ratio: 0).wrap(payload) == [0x00] + payload)
        #expect(try envelope(0).wrap([]) == [0x00])
        #expect(try envelope(0).wrap([1, 2]) == [0x00, 1, 2])
    }

    @Test func noRatioOverflows() throws {
        #expect(try envelope(0, ratio: .max).unwrap([0x01, 100, 7, 7]).count == 100)
        #expect(
            code { () throws(FerryError) in _ = try envelope(0, ratio: -1).unwrap([0x01, 100, 7, 7]) }
                == .compressionRatioExceeded)
        #expect(try envelope(0, ratio: -1).unwrap([0x01, 0]) == [])
    }
}
