import Ferry
import TestSupport
import Testing

/// What the two simple framings do besides carrying bytes: progress, taking back, limits, damage, silence.
@Suite(.tags(.core, .framing)) struct FramingSessionTests {
    private static let first = MessageID(rawValue: 1)
    private static let second = MessageID(rawValue: 2)

    private static func limits(maximumMessageSize: Int) -> Limits {
        var limits = Limits()
        limits.maximumMessageSize = maximumMessageSize
        return limits
    }

    private func code(_ body: () throws(FerryError) -> Void) -> FerryError.Code? {
        do {
            try body()
            return nil
        } catch {
            return error.code
        }
    }

    // MARK: Sending

    @Test func endOfMessageProgressIsToldOnceForManySteps() throws {
        var session = EndOfMessageFraming().makeSession(limits: Limits())
        var chunks: [[UInt8]] = []
        try session.enqueue([UInt8](repeating: 1, count: 50), as: Self.first, at: .zero)
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .accepted)
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .accepted)
        #expect(session.eventDescriptions() == ["progress 1 40"])
        #expect(try session.sendOne(atMost: 20, to: &chunks, accepting: false) == .refused)
        #expect(session.eventDescriptions() == [])
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .accepted)
        #expect(session.eventDescriptions() == ["progress 1 50"])
        #expect(try session.sendOne(atMost: 20, to: &chunks, accepting: false) == .refused)
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .accepted)
        #expect(session.eventDescriptions() == ["sent 1"])
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .idle)
    }

    @Test func lengthProgressCountsPayloadBytesAcrossSharedChunks() throws {
        var session = LengthPrefixFraming().makeSession(limits: Limits())
        var chunks: [[UInt8]] = []
        try session.enqueue([1, 2, 3], as: Self.first, at: .zero)
        try session.enqueue([4, 5, 6], as: Self.second, at: .zero)
        #expect(try session.sendOne(atMost: 1, to: &chunks) == .accepted)
        #expect(session.eventDescriptions() == [])
        #expect(try session.sendOne(atMost: 5, to: &chunks, accepting: false) == .refused)
        #expect(try session.sendOne(atMost: 5, to: &chunks) == .accepted)
        #expect(session.eventDescriptions() == ["progress 1 3", "sent 1", "progress 2 1"])
        #expect(try session.sendOne(atMost: 5, to: &chunks) == .accepted)
        #expect(session.eventDescriptions() == ["progress 2 3", "sent 2"])
        #expect(chunks == [[3], [1, 2, 3, 3, 4], [5, 6]])
    }

    @Test func aMessageIsTakenBackOnlyBeforeItsFirstByte() throws {
        func check(_ framing: some Framing) throws {
            var session = framing.makeSession(limits: Limits())
            var chunks: [[UInt8]] = []
            #expect(session.cancel(Self.first, at: .zero) == false)
            for id in 0..<4 {
                try session.enqueue([UInt8(id), 9, 9, 9, 9], as: MessageID(rawValue: UInt64(id)), at: .zero)
            }
            #expect(session.cancel(MessageID(rawValue: 0), at: .zero) == true)
            #expect(try session.sendOne(atMost: 4, to: &chunks, accepting: false) == .refused)
            #expect(session.cancel(MessageID(rawValue: 2), at: .zero) == true)
            #expect(try session.sendOne(atMost: 4, to: &chunks) == .accepted)
            #expect(session.cancel(MessageID(rawValue: 1), at: .zero) == false)
            #expect(session.cancel(MessageID(rawValue: 3), at: .zero) == true)
            #expect(session.cancel(MessageID(rawValue: 3), at: .zero) == false)
            while try session.sendOne(atMost: 4, to: &chunks) == .accepted {}

            var receiver = framing.makeSession(limits: Limits())
            for chunk in chunks { try receiver.receive(chunk.span.bytes, at: .zero) }
            #expect(receiver.receivedMessages() == [[1, 9, 9, 9, 9]])
        }
        try check(EndOfMessageFraming())
        try check(LengthPrefixFraming())
    }

    /// A message whose beginning shared an accepted chunk with the one before has begun.
    @Test func aSharedChunkBeginsAMessage() throws {
        var session = LengthPrefixFraming().makeSession(limits: Limits())
        var chunks: [[UInt8]] = []
        try session.enqueue([1], as: Self.first, at: .zero)
        try session.enqueue([2, 2], as: Self.second, at: .zero)
        #expect(try session.sendOne(atMost: 3, to: &chunks) == .accepted)
        #expect(session.cancel(Self.second, at: .zero) == false)
        #expect(try session.sendOne(atMost: 3, to: &chunks) == .accepted)
        #expect(chunks == [[1, 1, 2], [2, 2]])
    }

    @Test func messagesAboveTheLimitAreNotTaken() throws {
        func check(_ framing: some Framing) throws {
            var session = framing.makeSession(limits: Self.limits(maximumMessageSize: 10))
            try session.enqueue([UInt8](repeating: 0, count: 10), as: Self.first, at: .zero)
            do {
                try session.enqueue([UInt8](repeating: 0, count: 11), as: Self.second, at: .zero)
                Issue.record("not refused")
            } catch {
                #expect(error.code == .messageTooLarge)
                #expect(error.message.contains("11 bytes"))
                #expect(error.message.contains("Limits.maximumMessageSize"))
            }
            #expect(session.cancel(Self.second, at: .zero) == false)
        }
        try check(EndOfMessageFraming())
        try check(LengthPrefixFraming())
    }

    @Test func twoBytesCannotExpressEveryLength() throws {
        var session = LengthPrefixFraming(prefix: .uint16(.big)).makeSession(limits: Limits())
        try session.enqueue([UInt8](repeating: 0, count: 65_535), as: Self.first, at: .zero)
        let tooLong = [UInt8](repeating: 0, count: 65_536)
        #expect(
            code { () throws(FerryError) in try session.enqueue(tooLong, as: Self.second, at: .zero) }
                == .messageTooLarge)
    }

    @Test(arguments: [
        ([UInt8]("ascii, then \u{FF}".utf8) + [0xFF], 14),
        ([0x80], 0),
        ([UInt8]("12345678".utf8) + [0xC3], 8),
        ([0x41, 0xF0, 0x9F, 0x98], 1),
        ([0xED, 0xA0, 0x80], 0),
        ([0xC3, 0xA9, 0xC0, 0x80], 2),
    ])
    func binaryIsRefusedInText(_ payload: [UInt8], _ offset: Int) throws {
        var session = try EndOfMessageFraming(content: .text).makeSession(limits: Limits())
        do {
            try session.enqueue(payload, as: Self.first, at: .zero)
            Issue.record("not refused")
        } catch {
            #expect(error.code == .notText)
            #expect(error.message.contains("at byte offset \(offset),"))
        }
        var chunks: [[UInt8]] = []
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .idle)
    }

    @Test func chunkSizesThatAreTooSmallEndTheSession() throws {
        func check(_ framing: some Framing, tooSmall: Int) throws {
            var session = framing.makeSession(limits: Limits())
            var chunks: [[UInt8]] = []
            #expect(try session.sendOne(atMost: tooSmall, to: &chunks) == .idle)
            try session.enqueue([1], as: Self.first, at: .zero)
            #expect(
                code { () throws(FerryError) in _ = try session.sendOne(atMost: tooSmall, to: &chunks) }
                    == .chunkSizeTooSmall)
            #expect(try session.sendOne(atMost: tooSmall + 1, to: &chunks) == .accepted)
        }
        try check(EndOfMessageFraming(), tooSmall: 2)
        try check(EndOfMessageFraming(content: .text), tooSmall: 3)
        try check(EndOfMessageFraming(marker: [UInt8]("END OF MESSAGE".utf8)), tooSmall: 13)
        try check(LengthPrefixFraming(), tooSmall: 0)
    }

    @Test func configurationIsChecked() {
        func isRefused(_ make: () throws(FerryError) -> EndOfMessageFraming) -> Bool {
            code { () throws(FerryError) in _ = try make() } == .invalidConfiguration
        }
        #expect(isRefused { () throws(FerryError) in try EndOfMessageFraming(marker: []) })
        #expect(isRefused { () throws(FerryError) in try EndOfMessageFraming(marker: [4]) })
        #expect(
            isRefused { () throws(FerryError) in try EndOfMessageFraming(marker: [UInt8](repeating: 0, count: 21)) })
        #expect(isRefused { () throws(FerryError) in try EndOfMessageFraming(chunkSize: 2) })
        #expect(isRefused { () throws(FerryError) in try EndOfMessageFraming(chunkSize: 3, content: .text) })
        #expect(isRefused { () throws(FerryError) in try EndOfMessageFraming(marker: [0xC3, 0xA9], content: .text) })
        #expect(!isRefused { () throws(FerryError) in try EndOfMessageFraming(marker: [0xC3, 0xA9], chunkSize: 2) })
    }

    // MARK: Receiving

    /// After an error a session repeats it and delivers nothing more.
    private func expectFailure(
        _ framing: some Framing, limits: Limits = Limits(), after chunks: [String] = [], from chunk: String,
        _ code: FerryError.Code, _ words: String, sourceLocation: SourceLocation = #_sourceLocation
    ) throws {
        var session = framing.makeSession(limits: limits)
        for chunk in chunks { try session.receive(hex: chunk) }
        _ = session.receivedMessages()
        for chunk in [chunk, "45 4F 4D", "00", chunk] {
            do {
                try session.receive(hex: chunk)
                Issue.record("not refused", sourceLocation: sourceLocation)
            } catch {
                #expect(error.code == code, sourceLocation: sourceLocation)
                #expect(error.message.contains(words), "\(error)", sourceLocation: sourceLocation)
            }
        }
        #expect(session.receivedMessages() == [], sourceLocation: sourceLocation)
        #expect(session.deadline == nil, sourceLocation: sourceLocation)
        try session.linkDidClose(at: .zero)
    }

    @Test func endOfMessageRefusesWhatCannotBe() throws {
        let framing = EndOfMessageFraming()
        try expectFailure(framing, from: "", .malformedStream, "after 0 bytes of message 1")
        try expectFailure(
            framing, after: ["01", "45 4F 4D", "01 02"], from: "", .malformedStream, "2 bytes of message 2")
        let limits = Self.limits(maximumMessageSize: 5)
        try expectFailure(framing, limits: limits, after: ["01 02 03"], from: "04 05 06", .messageTooLarge, "is 5")
    }

    @Test func lengthPrefixRefusesWhatCannotBe() throws {
        let varint = LengthPrefixFraming()
        try expectFailure(varint, from: "", .malformedStream, "empty chunk arrived after 0 bytes of message 1")
        try expectFailure(varint, after: ["03 01"], from: "", .malformedStream, "empty chunk arrived after 1 bytes")
        try expectFailure(varint, from: "80 00", .malformedStream, "shortest form")
        try expectFailure(varint, after: ["81"], from: "80 00", .malformedStream, "shortest form")
        try expectFailure(
            varint, after: ["00 00"], from: "FF FF FF FF FF FF FF FF FF 02", .malformedStream, "message 3")
        try expectFailure(varint, from: "FF FF FF FF FF FF FF FF FF 01", .messageTooLarge, "18446744073709551615 bytes")
        try expectFailure(varint, from: "81 80 80 08", .messageTooLarge, "the limit is 16777216")
        let limits = Self.limits(maximumMessageSize: 5)
        try expectFailure(
            varint, limits: limits, after: ["05 01 02 03 04 05"], from: "06", .messageTooLarge, "Message 2")
        let fixed = LengthPrefixFraming(prefix: .uint32(.little))
        try expectFailure(fixed, after: ["FF FF"], from: "FF FF", .messageTooLarge, "announces 4294967295 bytes")
    }

    /// Messages that wait to be read take about the memory that they are counted as, whatever came before them.
    @Test func messagesTakeTheirOwnSize() throws {
        var session = try EndOfMessageFraming(chunkSize: nil).makeSession(limits: Limits())
        let block = [UInt8](repeating: 7, count: 10_000)
        for size in [3_000_000, 10, 70_000, 200_000, 1, 100, 5000, 300, 1_500_000, 60] {
            var rest = size
            while rest > 0 {
                try session.receive(block.span.bytes.extracting(first: min(rest, block.count)), at: .zero)
                rest -= min(rest, block.count)
            }
            try session.receive(hex: "45 4F 4D")
            let message = try #require(session.receivedMessages().first)
            #expect(message.count == size)
            #expect(message.capacity <= 2 * size + 64, "\(size) bytes in \(message.capacity)")
        }
    }

    @Test func aLinkThatEndsInTheMiddleIsTold() throws {
        func check(_ framing: some Framing, _ chunks: [String], _ words: String) throws {
            var session = framing.makeSession(limits: Limits())
            for chunk in chunks { try session.receive(hex: chunk) }
            do {
                try session.linkDidClose(at: .zero)
                Issue.record("not told")
            } catch {
                #expect(error.code == .truncatedMessage)
                #expect(error.message.contains(words), "\(error)")
            }
            try session.linkDidClose(at: .zero)
        }
        try check(EndOfMessageFraming(), ["01 02", "03"], "after 3 bytes of it")
        try check(LengthPrefixFraming(), ["05 01 02", "03"], "after 3 of its 5 bytes")
        try check(LengthPrefixFraming(), ["01 01 05"], "Message 2")
        try check(LengthPrefixFraming(prefix: .uint32(.big)), ["00 00", "00"], "after 3 of the length's bytes")
        for framing: any Framing in [EndOfMessageFraming(), LengthPrefixFraming()] {
            var session = framing.makeSession(limits: Limits())
            try session.linkDidClose(at: .zero)
        }
    }

    @Test func silenceInTheMiddleHasADeadline() throws {
        func check(_ framing: some Framing, _ head: String, _ tail: String) throws {
            var limits = Limits()
            limits.inboundStallTimeout = .seconds(2)
            var session = framing.makeSession(limits: limits)
            #expect(session.deadline == nil)
            try session.wake(at: .distantFuture)
            let start = Timestamp(nanoseconds: 5)
            try session.receive(hex: head, at: start)
            #expect(session.deadline == start + .seconds(2))
            try session.receive(hex: head, at: start + .seconds(1))
            #expect(session.deadline == start + .seconds(3))
            try session.wake(at: start + .milliseconds(2999))
            // While this side has paused the peer its silence does not count.
            session.pauseReceiving(true, at: start + .seconds(2))
            #expect(session.deadline == nil)
            try session.wake(at: start + .seconds(1000))
            session.pauseReceiving(false, at: start + .seconds(1000))
            #expect(session.deadline == start + .seconds(1002))
            try session.receive(hex: tail, at: start + .seconds(1000))
            #expect(session.deadline == nil)
            #expect(session.receivedMessages().count == 1)

            try session.receive(hex: head, at: start)
            do {
                try session.wake(at: start + .seconds(2))
                Issue.record("not told")
            } catch {
                #expect(error.code == .truncatedMessage)
                #expect(error.message.contains("Limits.inboundStallTimeout"))
            }
            #expect(code { () throws(FerryError) in try session.receive(hex: tail) } == .truncatedMessage)
        }
        try check(EndOfMessageFraming(), "01 02", "45 4F 4D")
        try check(LengthPrefixFraming(), "02", "01")  // a length of 2, then the bytes 02 and 01
    }
}
