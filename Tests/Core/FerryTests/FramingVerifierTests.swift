import Ferry
import FerryTesting
import TestSupport
import Testing

/// The verifier on both framings, and on framings with a fault that it must find.
@Suite(.tags(.core, .framing)) struct FramingVerifierTests {
    static let messages: [[UInt8]] = [
        [], [0], [UInt8]("EOM".utf8), [UInt8](repeating: 0x45, count: 20), [], [UInt8](0...130),
        [UInt8]("..EOM".utf8),
    ]

    static let prefixes: [LengthPrefixFraming.Prefix] = [
        .varint, .uint16(.big), .uint16(.little), .uint32(.big), .uint32(.little),
    ]

    @Test(arguments: prefixes)
    func lengthPrefix(_ prefix: LengthPrefixFraming.Prefix) throws {
        let verifier = FramingVerifier(LengthPrefixFraming(prefix: prefix), boundaries: .carryNoMeaning)
        try verifier.verify(Self.messages, chunkSizes: [1, 2, 3, 20, 244, 512])
        try verifier.verify([[1], [2, 3]], chunkSizes: 1...10)
        try verifier.verify([], chunkSizes: [20])
    }

    @Test func endOfMessage() throws {
        let classic = FramingVerifier(EndOfMessageFraming(), boundaries: .carryMeaning, minimumChunkSize: 3)
        try classic.verify(Self.messages, chunkSizes: [3, 4, 19, 20, 512])
        let wide = try EndOfMessageFraming(chunkSize: nil)
        let verifier = FramingVerifier(wide, boundaries: .carryMeaning, minimumChunkSize: wide.minimumChunkSize)
        try verifier.verify(Self.messages, chunkSizes: 3...64)
    }

    @Test func endOfMessageText() throws {
        let framing = try EndOfMessageFraming(chunkSize: nil, content: .text)
        let verifier = FramingVerifier(framing, boundaries: .carryMeaning, minimumChunkSize: framing.minimumChunkSize)
        let messages = ["", "EOM", "Grüße aus Łódź 😀😀😀", "EOMéEOM"].map { [UInt8]($0.utf8) }
        try verifier.verify(messages, chunkSizes: 4...40)
    }

    /// Larger messages cross the growth steps of the assembled array.
    @Test func largeMessages() throws {
        var generator = SplitMix64(seed: 7)
        let messages = [700_000, 65_536, 65_537, 3].map { generator.bytes($0) }
        let length = FramingVerifier(LengthPrefixFraming(), boundaries: .carryNoMeaning)
        try length.verifyReceiving(
            [[0x80, 0x80, 0x04] + messages[1], [0x03] + messages[3]], as: [messages[1], messages[3]])
        try length.verifyExchange(messages, chunkSizes: [5000])
        let endOfMessage = try FramingVerifier(
            EndOfMessageFraming(chunkSize: nil), boundaries: .carryMeaning, minimumChunkSize: 3)
        try endOfMessage.verifyExchange(messages, chunkSizes: [5000])
    }

    /// A message longer than any chunk and than what is cut at every byte, at small chunks.
    @Test func longMessages() throws {
        var generator = SplitMix64(seed: 8)
        let messages = [generator.bytes(70_000), [1, 2, 3]]
        let length = FramingVerifier(LengthPrefixFraming(), boundaries: .carryNoMeaning)
        try length.verify(messages, chunkSizes: [20, 244])
        let endOfMessage = try FramingVerifier(
            EndOfMessageFraming(chunkSize: nil), boundaries: .carryMeaning, minimumChunkSize: 3)
        try endOfMessage.verify(messages, chunkSizes: [20, 244])
    }

    @Test(arguments: Fault.allCases)
    func faultsAreFound(_ fault: Fault) {
        let verifier = FramingVerifier(FaultyFraming(fault: fault), boundaries: .carryNoMeaning)
        #expect(throws: (any Error).self) {
            try verifier.verify([[1, 2, 3], [UInt8](0...130)], chunkSizes: [1, 20])
        }
    }
}

/// Faults that field implementations have had.
enum Fault: CaseIterable {
    case losesAfterRefusal, doublesChunks, readsBeyondTheChunk, neverReportsSent, saysNothingAtTheEnd
    case ignoresTheChunkSize, reportsEachStep, forgetsTheDeadline
    case swallowsErrors, takesBackWhatHasBegun, takesBackInWordsOnly, takesNothingBack, ignoresTheLimit
}

/// Length-prefix framing with one fault.
struct FaultyFraming: Framing {
    var fault: Fault
    var name: String { "faulty" }
    func makeSession(limits: Limits) -> Session {
        var limits = limits
        if fault == .ignoresTheLimit { limits.maximumMessageSize = .max }
        return Session(fault: fault, base: LengthPrefixFraming().makeSession(limits: limits))
    }

    struct Session: FramingSession {
        var fault: Fault
        var base: LengthPrefixFraming.Session
        var extra: [FramingEvent] = []

        mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
            try base.enqueue(payload, as: id, at: now)
        }

        mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
            switch fault {
            case .takesBackInWordsOnly: return true
            case .takesBackWhatHasBegun:
                _ = base.cancel(id, at: now)
                return true
            case .takesNothingBack: return false
            default: return base.cancel(id, at: now)
            }
        }

        mutating func transmit(
            atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
            _ offer: (RawSpan) throws(FerryError) -> Bool
        ) throws(FerryError) -> Transmission {
            let size = maximumChunkSize() + (fault == .ignoresTheChunkSize ? 1 : 0)
            let fault = fault
            var isAccepted = true
            let outcome = try base.transmit(atMost: size, at: now) { (chunk) throws(FerryError) in
                isAccepted = try offer(chunk)
                return isAccepted || fault == .losesAfterRefusal
            }
            guard outcome == .accepted else { return outcome }
            return isAccepted ? .accepted : .refused
        }

        mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
            do { try base.receive(chunk, at: now) } catch { if fault != .swallowsErrors { throw error } }
            if fault == .doublesChunks { try base.receive(chunk, at: now) }
            if fault == .readsBeyondTheChunk {
                let twice = chunk.withUnsafeBytes { [UInt8]($0) } + [0xEE]
                try base.receive(twice.span.bytes.extracting(droppingFirst: chunk.byteCount), at: now)
            }
        }

        mutating func nextEvent() -> FramingEvent? {
            if let event = extra.popLast() { return event }
            let event = base.nextEvent()
            if fault == .neverReportsSent, case .sent = event { return nil }
            if fault == .reportsEachStep, case .progress(let id, let bytes) = event {
                extra = [.progress(id, acceptedBytes: bytes)]
            }
            return event
        }

        var deadline: Timestamp? { fault == .forgetsTheDeadline ? nil : base.deadline }

        mutating func wake(at now: Timestamp) throws(FerryError) { try base.wake(at: now) }

        mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
            if fault != .saysNothingAtTheEnd { try base.linkDidClose(at: now) }
        }
    }
}
