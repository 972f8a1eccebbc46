import CFerry
import Ferry
import FerryC
import FerrySequenced
import TestSupport
import Testing

/// Two sessions to which the lines of a case of golden vectors are done. `Tests/Vectors/README.md` says what they mean.
private struct Exchange {
    /// In which language the sessions are used.
    enum Language: CaseIterable { case c, swift }

    let language: Language
    private var limits = ferry_limits()
    private var sides: [any Side] = []
    private var events: [[String]] = [[], []]
    private var size = 20
    private var now: Int64 = 0

    init(_ language: Language) {
        self.language = language
        _ = ferry_limits_default(&limits)
    }

    /// The number of an answer: 0 where it is that of a message.
    private func status(_ answer: String) -> String {
        answer.hasPrefix("number") ? "0" : String(answer.prefix { $0 != " " })
    }

    /// Returns what is there instead of what the line says; `nil` when it is right.
    mutating func perform(_ words: [String]) throws -> String? {
        switch words[0] {
        case "limits":
            limits.message_bytes = try #require(UInt32(words[1]))
            limits.inbound_bytes = try #require(UInt32(words[2]))
        case "framing":
            sides = try [make(Array(words.dropFirst()), side: 0), make(Array(words.dropFirst()), side: 1)]
            for side in 0...1 { try #require(sides[side].open(0) == "0") }
        case "link": size = try #require(Int(words[1]))
        case "time": now = try #require(Int64(words[1]))
        default: return try perform(words[1], Array(words.dropFirst(2)), on: words[0] == "a" ? 0 : 1)
        }
        return nil
    }

    private mutating func perform(_ verb: String, _ words: [String], on side: Int) throws -> String? {
        /// Whether an answer has the number at `index` of the words, or 0.
        func compare(_ answer: String, _ index: Int) -> String? {
            status(answer) == (words.count > index ? words[index] : "0") ? nil : answer
        }
        switch verb {
        case "send": return compare(sides[side].enqueue(vectorBytes(words[0]), now), 1)
        case "chunk", "lost":
            let (answer, bytes) = sides[side].chunk(atMost: size, now)
            guard let bytes, vectorWord(bytes) == words[0] else { return bytes.map(vectorWord) ?? answer }
            return verb == "lost" ? nil : compare(sides[1 - side].receive(bytes, now), 1)
        case "idle":
            let (answer, bytes) = sides[side].chunk(atMost: size, now)
            return bytes.map(vectorWord) ?? compare(status(answer) == "1" ? "0" : answer, 0)
        case "take": return compare(sides[side].receive(vectorBytes(words[0]), now), 1)
        case "message": return event(on: side, "received \(vectorBytes(words[0])[...])")
        case "failed": return event(on: side, "failed \(words[0]) \(words[1])")
        case "dropped": return event(on: side, "receive failed \(words[0])")
        case "nothing": return event(on: side, nil)
        case "cancel":
            let number = try #require(UInt64(words[0]))
            return sides[side].cancel(number, now) == (words[1] == "taken" ? "0" : "1") ? nil : "not \(words[1])"
        case "wake": return compare(sides[side].wake(now), 0)
        case "open": return compare(sides[side].open(now), 0)
        case "close": return compare(sides[side].close(now), 0)
        default: return "an unknown line"
        }
    }

    private mutating func event(on side: Int, _ expected: String?) -> String? {
        events[side] += sides[side].events(now).filter { !$0.hasPrefix("progress") && !$0.hasPrefix("sent") }
        guard events[side].first == expected else { return events[side].first ?? "nothing" }
        if expected != nil { events[side].removeFirst() }
        return nil
    }

    private func make(_ words: [String], side: Int) throws -> any Side {
        switch language {
        case .c: CSide { session in create(words, side, &session) }
        case .swift: try swift(words, side)
        }
    }

    private func create(_ words: [String], _ side: Int, _ session: inout OpaquePointer?) -> Int32 {
        var limits = limits
        switch words[0] {
        case "eom":
            let marker = vectorBytes(words[1])
            return ferry_create_end_of_message(&limits, marker, marker.count, UInt32(words[2]) ?? .max, &session)
        case "length":
            let prefixes = ["varint", "16-big", "16-little", "32-big", "32-little"]
            return ferry_create_length_prefix(&limits, Int32(prefixes.firstIndex(of: words[1]) ?? -1), &session)
        case "sequenced":
            let identifier = UInt32(words[2 + side], radix: 16) ?? 0
            return ferry_create_sequenced(&limits, identifier, UInt32(words[1]) ?? 0, &session)
        default: return Int32(FERRY_ERROR_ARGUMENT)
        }
    }

    private func swift(_ words: [String], _ side: Int) throws -> any Side {
        let given = swiftLimits(limits)
        switch words[0] {
        case "eom":
            let size = try #require(Int(words[2]))
            let framing = try EndOfMessageFraming(marker: vectorBytes(words[1]), chunkSize: size == 0 ? nil : size)
            return SwiftSide(
                framing.makeSession(limits: given), minimum: vectorBytes(words[1]).count, limits: limits)
        case "length":
            let prefixes: [String: LengthPrefixFraming.Prefix] = [
                "varint": .varint, "16-big": .uint16(.big), "16-little": .uint16(.little), "32-big": .uint32(.big),
                "32-little": .uint32(.little),
            ]
            let framing = LengthPrefixFraming(prefix: try #require(prefixes[words[1]]))
            return SwiftSide(framing.makeSession(limits: given), minimum: 1, limits: limits)
        case "sequenced":
            var configuration = SequencedFraming.Configuration()
            configuration.window = try #require(Int(words[1]))
            let identifier = try #require(UInt32(words[2 + side], radix: 16))
            let framing = SequencedFraming(configuration, sessionID: { identifier })
            return SwiftSide(framing.makeSession(limits: given), minimum: 20, limits: limits)
        default: throw FerryError(.invalidConfiguration, "no framing: \(words)")
        }
    }
}

/// The golden vectors of the framings, and what Ferry's sessions choose, in C and in Swift.
@Suite(.tags(.framing)) struct VectorTests {
    @Test(
        arguments: ["framing-eom", "framing-length", "framing-sequenced", "exchanges-sequenced"],
        Exchange.Language.allCases)
    private func vectorsHold(_ file: String, _ language: Exchange.Language) throws {
        let cases = try vectorCases(file)
        #expect(cases.count >= 15)
        for vector in cases {
            var exchange = Exchange(language)
            for words in vector.lines {
                guard let found = try exchange.perform(words) else { continue }
                Issue.record("\(file), \(vector.name): \(words.joined(separator: " ")): \(found)")
                break
            }
        }
    }
}
