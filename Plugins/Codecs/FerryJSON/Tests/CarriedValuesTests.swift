import Ferry
import FerryJSON
import FerryTesting
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What JSON's codec accepts arrives as it was; what it cannot carry is refused by name.
@Suite(.tags(.codec), .timeLimit(.minutes(5))) struct CarriedValuesTests {
    typealias Format<Message: Codable & Sendable> = JSONCodec<Message>.DateFormat

    private func refusal<Message>(_ codec: JSONCodec<Message>, _ text: String) throws -> String {
        let error = try #require(throws: FerryError.self) { _ = try codec.decode(Array(text.utf8)) }
        #expect(error.code == .decodingFailed)
        return error.message
    }

    private func refusal<Message>(_ codec: JSONCodec<Message>, writing message: Message) throws -> String {
        let error = try #require(throws: FerryError.self) { _ = try codec.encode(message) }
        #expect(error.code == .encodingFailed)
        return error.message
    }

    @Test(arguments: [Format<GeneratedMessage>.secondsSinceReferenceDate, .secondsSince1970, .iso8601])
    func generatedMessages(dates: Format<GeneratedMessage>) throws {
        let codec = JSONCodec<GeneratedMessage>(dates: dates)
        try CodecConformance(codec, samples: [.ordinary()]).check()
        try CodecConformance(codec, samples: [.ordinary()]).checkGenerated(2000)
        let narrow = JSONCodec<GeneratedMessage>(isIndented: true, dates: dates, maximumDepth: 4, maximumValues: 50)
        try CodecConformance(narrow, samples: [.ordinary()]).checkGenerated(200)
    }

    // MARK: Dates

    private static let seconds: [Double] = [
        0, -1, 816_946_200, 816_946_200.123_456, 800_000_000.1, 0.1, -978_307_200.7, 1e-5, -63_114_076_800, 1e12,
        15_927_175_497_600, -211_845_067_200,
    ]

    /// The sum with 978 307 200 loses the last bits of a fraction; the text of the sum does not.
    @Test(arguments: seconds) func secondsKeepAllBits(seconds: Double) throws {
        let date = Date(timeIntervalSinceReferenceDate: seconds)
        for format in [Format<[Date]>.secondsSinceReferenceDate, .secondsSince1970] {
            let codec = JSONCodec<[Date]>(dates: format)
            #expect(try codec.decode(codec.encode([date])) == [date], "\(format)")
        }
    }

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, 15_927_175_497_601, -211_845_067_201])
    func datesOutsideTheCalendarsAreRefused(seconds: Double) throws {
        let dates = ["at": [Date(timeIntervalSinceReferenceDate: seconds)]]
        for format in [Format<[String: [Date]]>.secondsSinceReferenceDate, .secondsSince1970, .iso8601] {
            let message = try refusal(JSONCodec(dates: format), writing: dates)
            #expect(message.contains("at at[0]: The date is"), "\(message)")
        }
        guard seconds.isFinite else { return }
        let codec = JSONCodec<[Date]>()
        let message = try refusal(codec, "[\(seconds)]")
        #expect(message.contains("at [0]") && message.contains("outside Foundation's calendars"), "\(message)")
        _ = try refusal(JSONCodec<[Date]>(dates: .secondsSince1970), "[\(seconds * 2)]")
    }

    @Test(arguments: [
        (1e13, "outside the years 1 to 9999"), (252_423_993_600, "outside the years 1 to 9999"),
        (-63_114_076_801, "outside the years 1 to 9999"), (-1e11, "outside the years 1 to 9999"),
        (0.5, "has a fraction of a second"), (816_946_200.001, "Round the date"),
    ]) func textCannotSayEveryDate(seconds: Double, reason: String) throws {
        let codec = JSONCodec<[Date]>(dates: .iso8601)
        let message = try refusal(codec, writing: [Date(timeIntervalSinceReferenceDate: seconds)])
        #expect(message.contains("at [0]") && message.contains(reason), "\(message)")
    }

    /// Every day of a leap year and of one that is none, of the year in which the Gregorian calendar began, and the first
    /// and last days that are carried.
    @Test func textSaysEveryDay() throws {
        let codec = JSONCodec<[Date]>(dates: .iso8601)
        for first in [-63_114_076_800, -13_222_000_000, 0, 252_340_000_000] as [Double] {
            let dates = (0..<970).map { Date(timeIntervalSinceReferenceDate: first + Double($0) * 86_399) }
            #expect(try codec.decode(codec.encode(dates)) == dates)
        }
        #expect(try codec.decode(codec.encode([.distantPast, .distantFuture])) == [.distantPast, .distantFuture])
    }

    @Test(arguments: [
        ("2026-11-21T09:30:00Z", 816_946_200), ("2026-11-21T11:30:00+02:00", 816_946_200),
        ("2026-11-21T07:00:00-02:30", 816_946_200), ("2026-11-21T09:30:00.5Z", 816_946_200.5),
        ("2024-02-29T00:00:00Z", 730_857_600), ("9999-12-31T23:59:59Z", 252_423_993_599),
    ]) func textThatIsADate(text: String, seconds: Double) throws {
        let date = try JSONCodec<Date>(dates: .iso8601).decode(Array("\"\(text)\"".utf8))
        #expect(date.timeIntervalSinceReferenceDate == seconds)
    }

    @Test(arguments: [
        "2026-02-30T00:00:00Z", "2026-02-29T00:00:00Z", "2100-02-29T00:00:00Z", "2026-04-31T00:00:00Z",
        "2026-00-10T00:00:00Z", "2026-13-10T00:00:00Z", "2026-01-00T00:00:00Z", "2026-01-32T00:00:00Z",
        "1582-10-10T00:00:00Z", "2026-11-21T24:00:00Z", "2026-11-21T25:00:00Z", "2026-11-21T09:60:00Z",
        "2016-12-31T23:59:60Z", "2026-11-21T09:30:00Zx", "2026-11-21T09:30:00Z ", "2026-11-21T09:30:00ZZ",
        " 2026-11-21T09:30:00Z", "2026-1-2T9:30:00Z", "0000-01-01T00:00:00Z", "-0001-01-01T00:00:00Z",
        "12026-11-21T09:30:00Z", "2026-11-21T09:30:00", "2026-11-21T09:30:00.Z", "2026-11-21T09:30:00+02",
        "2026-11-21T09:30:00+24:00", "2026-11-21T09:30:00+02:60", "2026-11-21 09:30:00Z", "2026-11-21", "", "Z",
        "\u{0662}026-11-21T09:30:00Z",
    ]) func textThatIsNoDate(text: String) throws {
        let message = try refusal(JSONCodec<[Date]>(dates: .iso8601), "[\"\(text)\"]")
        #expect(message.contains("at [0]") && message.contains("is no date as in RFC 3339"), "\(message)")
        let alone = try refusal(JSONCodec<Date>(dates: .iso8601), "\"\(text)\"")
        #expect(alone.contains("at the top") && alone.contains("is no date as in RFC 3339"), "\(alone)")
    }

    // MARK: Names that occur twice

    @Test(arguments: [
        (#"{"a":1,"a":2}"#, #""a" twice in one object, at line 1, column 8"#),
        (#"{"a":1,"b":2,"\u0061":3}"#, #""a" twice"#), ("{\"\u{e9}\":1,\"e\u{301}\":2}", "twice"),
        (#"{"\u00e9":1,"\u0065\u0301":2}"#, "twice"), (#"{"":1,"":2}"#, #""" twice"#),
        (#"{"\"\\\/\b\f\n\r\t":1,"\u0022\u005c/\u0008\u000C\u000a\u000d\u0009":2}"#, "twice"),
        (#"{"\uD83D\uDE00":1,"😀":2}"#, "twice"),
        ("{\n\"a\":1,\n\"a\":2}", "at line 3, column 1 (byte 9 of 15)"),
    ]) func aNameTwiceInOneObject(text: String, what: String) throws {
        let message = try refusal(JSONCodec<[String: Int]>(), text)
        #expect(message.contains(what), "\(message)")
        // Neither does it hide in an object that the type does not read.
        struct Empty: Codable, Sendable {}
        #expect(try refusal(JSONCodec<Empty>(), "{\"other\":[[],{\"x\":{}},\(text)]}").contains("twice"))
    }

    @Test func aNameInSeveralObjects() throws {
        typealias Tables = [String: [[String: Int]]]
        let text = #"{"a":[{"a":1,"b":2},{"a":3},{}],"b":[{"a":4}],"A":[],"a\\u0062":[]}"#
        let tables: Tables = ["a": [["a": 1, "b": 2], ["a": 3], [:]], "b": [["a": 4]], "A": [], "a\\u0062": []]
        #expect(try JSONCodec<Tables>().decode(Array(text.utf8)) == tables)
        // Many names, and then the same ones in the object after it.
        let many = "{" + (0..<1000).map { "\"\($0)\":\($0)" }.joined(separator: ",") + "}"
        let objects = try JSONCodec<[[String: Int]]>().decode(Array("[\(many),{\"1\":1},\(many)]".utf8))
        #expect(objects.map(\.count) == [1000, 1, 1000])
    }

    // MARK: Limits

    @Test(arguments: [1, 2, 63, 64, 65, 256]) func nestingIsRefusedWhenWritten(limit: Int) throws {
        typealias Nested = GeneratedMessage.Nested
        let codec = JSONCodec<Nested>(maximumDepth: limit)
        #expect(try codec.decode(codec.encode(.deep(limit))) == .deep(limit))
        for depth in [limit + 1, limit + 50] {
            let message = try refusal(codec, writing: .deep(depth))
            #expect(message.contains("nesting deeper than \(limit) (JSONCodec.maximumDepth)"), "\(message)")
            #expect(message.contains("raise the limit on both sides"), "\(message)")
        }
    }

    @Test(arguments: [1, 2, 3, 4, 100]) func valuesAreCountedWhenWritten(limit: Int) throws {
        let codec = JSONCodec<[Int]>(maximumValues: limit)
        let fitting = [Int](repeating: 1, count: limit - 1)
        #expect(try codec.decode(codec.encode(fitting)) == fitting)
        for count in [limit, limit + 1, limit * 10] {
            let message = try refusal(codec, writing: [Int](repeating: 1, count: count))
            #expect(message.contains("more than \(limit) values (JSONCodec.maximumValues)"), "\(message)")
        }
        let names = JSONCodec<[String: Int]>(maximumValues: limit)
        #expect(throws: FerryError.self) {
            try names.encode(Dictionary(uniqueKeysWithValues: (0..<limit).map { ("\($0)", $0) }))
        }
    }
}
