import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// A codec that carries every message as it is, because it keeps it, with one fault.
private final class Keeping: Codec {
    struct Unreadable: Error {}
    typealias Fault = @Sendable (inout GeneratedMessage) throws -> Void

    private let kept = Mutex<[GeneratedMessage]>([])
    private let writing: Fault
    private let reading: Fault

    init(writing: @escaping Fault = { _ in }, reading: @escaping Fault = { _ in }) {
        self.writing = writing
        self.reading = reading
    }

    func encode(_ message: GeneratedMessage) throws -> [UInt8] {
        var message = message
        try writing(&message)
        return kept.withLock {
            $0.append(message)
            return [UInt8(truncatingIfNeeded: $0.count - 1), UInt8(truncatingIfNeeded: ($0.count - 1) >> 8)]
        }
    }

    func decode(_ payload: [UInt8]) throws -> GeneratedMessage {
        var message = kept.withLock { $0[Int(payload[0]) | Int(payload[1]) << 8] }
        try reading(&message)
        return message
    }
}

@Suite(.tags(.core, .codec), .timeLimit(.minutes(5))) struct GeneratedMessageTests {
    private func failure(writing: @escaping Keeping.Fault = { _ in }, reading: @escaping Keeping.Fault) throws -> String
    {
        let kit = CodecConformance(Keeping(writing: writing, reading: reading), samples: [])
        return try #require(throws: ConformanceFailure.self) { try kit.checkGenerated() }.requirement
    }

    @Test func aFaultlessCodecPasses() throws {
        try CodecConformance(Keeping(), samples: [.ordinary()], isDeterministic: false).checkGenerated()
    }

    @Test func sameSeedMakesSameMessages() {
        var (first, second) = (SplitMix64(seed: 7), SplitMix64(seed: 7))
        var different = 0
        for _ in 0..<100 {
            let message = GeneratedMessage.random(using: &first)
            #expect(message == GeneratedMessage.random(using: &second))
            if message != .ordinary() { different += 1 }
        }
        #expect(different > 90)
    }

    /// Each change of a value that a real coder has made, or could make, of an accepted one.
    private static let changes: [(String, Keeping.Fault)] = [
        ("a date that is no number becomes one", { if $0.seconds.isNaN { $0.seconds = -211_845_067_200 } }),
        ("an infinite date becomes finite", { if $0.seconds.isInfinite { $0.seconds = 0 } }),
        ("a year before our era becomes one of it", { if $0.seconds == -1e11 { $0.seconds = -2.6e10 } }),
        ("a date after the calendars is clamped", { $0.seconds = min($0.seconds, 15_927_175_497_600) }),
        ("a date before the calendars is clamped", { $0.seconds = max($0.seconds, -211_845_067_200) }),
        ("fractions of seconds are dropped", { if abs($0.seconds) < 1e15 { $0.seconds.round(.down) } }),
        ("the last bits of a fraction are lost", { $0.seconds = $0.seconds + 978_307_200 - 978_307_200 }),
        ("a year of five digits loses one", { if $0.seconds >= 252_423_993_600 { $0.seconds /= 10 } }),
        ("$null becomes nil", { if $0.note == "$null" { $0.note = nil } }),
        ("$null in a list becomes nil", { $0.notes = $0.notes.map { $0 == "$null" ? nil : $0 } }),
        ("U+0000 is dropped", { $0.text.unicodeScalars.removeAll { $0 == "\u{0}" } }),
        ("U+FFFF is dropped", { $0.text.unicodeScalars.removeAll { $0 == "\u{FFFF}" } }),
        ("line endings are made alike", { $0.text.replace("\r\n", with: "\n") }),
        ("text is composed", { if $0.text == "\u{E9}", $0.text.utf8.count == 3 { $0.text = "\u{E9}" } }),
        ("a byte order mark is dropped", { if $0.text.hasPrefix("\u{FEFF}a") { $0.text = "a" } }),
        ("a key is dropped", { $0.table["CF$UID"] = nil }),
        ("an empty key is dropped", { $0.table[""] = nil }),
        ("a value of a nested table is dropped", { if $0.tables.first?["$null"] != nil { $0.tables = [] } }),
        ("data loses its last group", { $0.data = $0.data.prefix($0.data.count / 3 * 3) }),
        ("large integers are doubles", { $0.integers.int64 = Int64(clamping: Int(Double($0.integers.int64) / 2) * 2) }),
        (
            "integers without a sign get one",
            { $0.integers.uint64 = UInt64(clamping: Int64(clamping: $0.integers.uint64)) }
        ),
        ("an integer is cut", { $0.integers.int8 = max($0.integers.int8, -127) }),
        ("an infinite number becomes finite", { if $0.real.isInfinite { $0.real = .greatestFiniteMagnitude } }),
        ("a number that is none becomes 0", { if $0.real.isNaN { $0.real = 0 } }),
        ("a small number becomes 0", { if abs($0.real) < 1e-307 { $0.real = 0 } }),
        ("a single is written in six digits", { if $0.single == Float(Double.pi) { $0.single = 3.14159 } }),
        ("deep lists are flattened", { if $0.nested == .deep(65) { $0.nested = .deep(64) } }),
        ("long lists are cut", { $0.notes = Array($0.notes.prefix(255)) }),
        ("false becomes true", { $0.truth = true }),
    ]

    @Test(arguments: changes.indices) func kitFindsAChangedValue(index: Int) throws {
        let (name, change) = Self.changes[index]
        #expect(try failure(reading: change) == "A message survives the round trip", "\(name)")
    }

    /// The kit finds a codec that writes a message it cannot read; a codec that refuses to write it passes.
    @Test func kitFindsWhatIsWrittenAndNotRead() throws {
        let limits: [Keeping.Fault] = [
            { if $0.nested == .deep(65) { throw Keeping.Unreadable() } },
            { if $0.notes.count > 999 { throw Keeping.Unreadable() } },
            { if $0.text.contains("\u{0}") { throw Keeping.Unreadable() } },
            { if $0.table["$null"] != nil { throw Keeping.Unreadable() } },
            { if !$0.real.isFinite { throw Keeping.Unreadable() } },
            { if $0.seconds.isNaN { throw Keeping.Unreadable() } },
        ]
        for limit in limits {
            #expect(try failure(reading: limit) == "An encoded message can be decoded")
            try CodecConformance(Keeping(writing: limit, reading: limit), samples: []).checkGenerated()
        }
    }

    @Test func kitFindsACodecThatRefusesAll() throws {
        #expect(
            try failure(writing: { _ in throw Keeping.Unreadable() }, reading: { _ in })
                == "Ordinary values can be encoded")
    }

    /// A message that a damaged payload became is a message like any other.
    @Test func kitFindsAValueThatCannotBeSentOn() throws {
        struct Sevens: Codec {
            func encode(_ message: Int) -> [UInt8] { [UInt8(message % 8)] }
            func decode(_ payload: [UInt8]) throws -> Int {
                guard payload.count == 1 else { throw Keeping.Unreadable() }
                return Int(payload[0])
            }
        }
        let failure = try #require(throws: ConformanceFailure.self) {
            try CodecConformance(Sevens(), samples: [3]).check()
        }
        #expect(failure.requirement == "A message survives the round trip")
        #expect(failure.detail.contains("decoded from sample 0 with damage"), "\(failure.detail)")
    }

    /// Outside codecs bring messages of their own.
    @Test func generatedMessagesOfOnesOwn() throws {
        struct Wrapping: Codec {
            func encode(_ message: Int) -> [UInt8] { [UInt8(truncatingIfNeeded: message)] }
            func decode(_ payload: [UInt8]) -> Int { Int(payload[0]) }
        }
        let kit = CodecConformance(Wrapping(), samples: [1], refusesForeignBytes: false)
        try kit.checkGenerated(100) { Int.random(in: 0...255, using: &$0) }
        let failure = try #require(throws: ConformanceFailure.self) {
            try kit.checkGenerated(100) { Int.random(in: 0...999, using: &$0) }
        }
        #expect(failure.requirement == "A message survives the round trip")
        #expect(failure.detail.contains("seed 1"))
    }

    @Test func theCodecsOfTheCoreCarryAllBytesAndTexts() throws {
        try CodecConformance(BytesCodec(), samples: [[]]).checkGenerated(200) {
            $0.bytes(Int.random(in: 0...300, using: &$0))
        }
        try CodecConformance(TextCodec(), samples: [""]).checkGenerated(500) {
            GeneratedMessage.random(using: &$0).text
        }
    }
}

extension GeneratedMessage {
    fileprivate var seconds: Double {
        get { date.timeIntervalSinceReferenceDate }
        set { date = Date(timeIntervalSinceReferenceDate: newValue) }
    }
}
