import Ferry
import FerryPropertyList
import FerryTesting
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// What the codec of property lists accepts arrives as it was; what it cannot carry is refused by name.
@Suite(.tags(.codec), .timeLimit(.minutes(5))) struct CarriedValuesTests {
    enum Kind: CaseIterable {
        case binary, xml

        func codec<Message>(
            _ type: Message.Type = Message.self, depth: Int = 64, size: Int = 64 << 20
        ) -> PropertyListCodec<Message> {
            switch self {
            case .binary: PropertyListCodec(format: .binary, maximumDepth: depth, maximumExpandedSize: size)
            case .xml: PropertyListCodec(format: .xml, maximumDepth: depth, maximumExpandedSize: size)
            }
        }
    }

    private func refusal<Message>(_ codec: PropertyListCodec<Message>, writing message: Message) throws -> String {
        let error = try #require(throws: FerryError.self) { _ = try codec.encode(message) }
        #expect(error.code == .encodingFailed)
        return error.message
    }

    private func refusal<Message: Codable & Sendable>(_ element: String, as type: Message.Type) throws -> String {
        let text = "<plist version=\"1.0\"><dict><key>k</key>\(element)</dict></plist>"
        let error = try #require(throws: FerryError.self) {
            _ = try PropertyListCodec<[String: Message]>().decode(Array(text.utf8))
        }
        #expect(error.code == .decodingFailed)
        return error.message
    }

    private func read<Message: Codable & Sendable>(_ element: String, as type: Message.Type) throws -> Message? {
        let text = "<plist version=\"1.0\"><dict><key>k</key>\(element)</dict></plist>"
        return try PropertyListCodec<[String: Message]>().decode(Array(text.utf8))["k"]
    }

    @Test(arguments: Kind.allCases) func generatedMessages(kind: Kind) throws {
        let codec = kind.codec(GeneratedMessage.self)
        try CodecConformance(codec, samples: [.ordinary()]).check()
        try CodecConformance(codec, samples: [.ordinary()]).checkGenerated(2000)
        let narrow = kind.codec(GeneratedMessage.self, depth: 3, size: 2000)
        try CodecConformance(narrow, samples: [.ordinary()]).checkGenerated(200)
    }

    // MARK: Strings and keys

    @Test(arguments: Kind.allCases) func nullIsNoString(kind: Kind) throws {
        struct Notes: Codable, Equatable, Sendable {
            var note: String?
            var list: [[String?]] = []
        }
        let codec = kind.codec(Notes.self)
        for notes in [Notes(), Notes(note: "null", list: [["a", nil], []]), Notes(note: "a$null", list: [[nil]])] {
            #expect(try codec.decode(codec.encode(notes)) == notes)
        }
        for (notes, place) in [
            (Notes(note: "$null"), "at note: "), (Notes(list: [[nil, "a"], ["$null"]]), "at list[1][0]: "),
        ] {
            let message = try refusal(codec, writing: notes)
            #expect(message.contains(place) && message.contains("the string \"$null\" for nil"), "\(message)")
        }
        let message = try refusal(kind.codec(), writing: ["$null": 1])
        #expect(message.contains("key") && message.contains("$null"), "\(message)")
        _ = try refusal(kind.codec(), writing: [["a": 1], ["b": 2, "$null": 3]])
    }

    /// Foundation's reader of XML looks at the first bytes of a string or key.
    @Test(arguments: ["$nully", "$null ", "$null\u{e9}", "$null&", "$null\n"]) func nullBegins(text: String) throws {
        for message in [[text: "a"], ["a": text]] {
            #expect(try Plain().decode(Plain().encode(message)) == message)
            let reason = try refusal(Plain(format: .xml), writing: message)
            #expect(reason.contains("begins with \"$null\"") && reason.contains("at line "), "\(reason)")
        }
    }

    @Test(arguments: ["\u{0}", "a\u{0}b", "a\u{0}"]) func nulInXML(text: String) throws {
        for message in [[text: "a"], ["a": text]] {
            #expect(try Plain().decode(Plain().encode(message)) == message)
            let reason = try refusal(Plain(format: .xml), writing: message)
            #expect(reason.contains("a byte 0, which XML does not allow"), "\(reason)")
        }
    }

    @Test func dictionariesThatAreTakenForUIDs() throws {
        let alone = [["CF$UID": ["a"]]]
        #expect(try Kind.binary.codec().decode(Kind.binary.codec().encode(alone)) == alone)
        #expect(try refusal(Kind.xml.codec(), writing: alone).contains("the key \"CF$UID\" alone"))
        #expect(try refusal(Kind.xml.codec(), writing: ["CF$UID": 1]).contains("the key \"CF$UID\" alone"))
        #expect(try refusal(Kind.xml.codec(), writing: ["a": ["CF$UID": 1]]).contains("the key \"CF$UID\" alone"))
        let together = [["CF$UID": ["a"], "a": []], ["CF$UI": ["CF$UID"]]]
        #expect(try Kind.xml.codec().decode(Kind.xml.codec().encode(together)) == together)
    }

    // MARK: Dates

    @Test(arguments: [Double.nan, .infinity, -.infinity, 1e300, 15_927_175_497_601, -211_845_067_201], Kind.allCases)
    func datesOutsideTheCalendarsAreRefused(seconds: Double, kind: Kind) throws {
        let dates = ["at": [Date(timeIntervalSinceReferenceDate: seconds)]]
        let message = try refusal(kind.codec(), writing: dates)
        #expect(message.contains("at at[0]: The date is"), "\(message)")
    }

    @Test(arguments: [
        (-1e11, "years 1 to 9999"), (-63_114_076_801, "years 1 to 9999"), (252_423_993_600, "years 1 to 9999"),
        (1e13, "years 1 to 9999"), (0.5, "fraction of a second"), (816_946_200.001, "Round the date"),
    ]) func xmlCannotSayEveryDate(seconds: Double, reason: String) throws {
        struct Reading: Codable, Equatable, Sendable { var at: Date }
        let reading = Reading(at: Date(timeIntervalSinceReferenceDate: seconds))
        #expect(try Kind.binary.codec().decode(Kind.binary.codec().encode(reading)) == reading)
        let message = try refusal(Kind.xml.codec(), writing: reading)
        #expect(message.contains("at at: ") && message.contains(reason), "\(message)")
    }

    @Test func xmlSaysEveryDay() throws {
        for first in [-63_114_076_800, -13_222_000_000, 0, 252_340_000_000] as [Double] {
            let dates = (0..<970).map { Date(timeIntervalSinceReferenceDate: first + Double($0) * 86_399) }
            #expect(try Kind.xml.codec().decode(Kind.xml.codec().encode(dates)) == dates)
        }
        let ends: [Date] = [.distantPast, .distantFuture]
        #expect(try Kind.xml.codec().decode(Kind.xml.codec().encode(ends)) == ends)
    }

    /// A date is found wherever a type encodes it.
    @Test func datesAreFoundInEveryContainer() throws {
        class Base: Codable {
            var at = Date(timeIntervalSinceReferenceDate: 0.5)
        }
        final class Derived: Base, @unchecked Sendable {
            override func encode(to encoder: any Encoder) throws {
                var container = encoder.container(keyedBy: Key.self)
                var list = container.nestedUnkeyedContainer(forKey: .list)
                try list.encodeNil()
                var inner = list.nestedContainer(keyedBy: Key.self)
                try inner.encode(1, forKey: .list)
                try super.encode(to: container.superEncoder())
            }
            enum Key: CodingKey { case list }
        }
        #expect(try refusal(Kind.xml.codec(), writing: Derived()).contains("at super.at: The date has a fraction"))
        enum Choice: Codable, Sendable { case at(Date, [Date]) }
        let choice = Choice.at(.distantPast, [.distantPast, Date(timeIntervalSinceReferenceDate: 0.5)])
        #expect(try refusal(Kind.xml.codec(), writing: choice).contains("at at._1[1]: The date has a fraction"))
    }

    @Test(arguments: [
        "2026-99-99T99:99:99Z", "2026-02-30T00:00:00Z", "2026-13-01T00:00:00Z", "2026-00-01T00:00:00Z",
        "2026-01-00T00:00:00Z", "2100-02-29T00:00:00Z", "1582-10-10T00:00:00Z", "2026-11-21T24:00:00Z",
        "2026-11-21T09:60:00Z", "2026-11-21T09:30:60Z", "99999-01-01T00:00:00Z", "-2026-01-01T00:00:00Z",
        "0000-01-01T00:00:00Z", "26-11-21T09:30:00Z", "9223372036854775807-01-01T00:00:00Z",
    ]) func xmlDatesThatAreNone(text: String) throws {
        let message = try refusal("<date>\(text)</date>", as: Date.self)
        #expect(
            message.contains("a date that is no day and time") && message.contains("at line 1, column 46"), "\(message)"
        )
    }

    // MARK: Other values of XML

    @Test(arguments: [
        "####", "QQ", "QUI", "QUJ", "QQ=", "Q===", "====", "=", "QQ==QQ==", "QQ= =", "Q Q==x", "QUI=A", "Q", "QUJD#",
        "\u{e9}", "QQ==\n=",
    ]) func dataThatIsNoBase64(text: String) throws {
        let message = try refusal("<data>\(text)</data>", as: Data.self)
        #expect(message.contains("data that is not base64 with padding"), "\(message)")
    }

    @Test(
        arguments: [
            ("", []), ("QQ==", [0x41]), (" Q Q\n\t== \n", [0x41]), ("QUI=", [0x41, 0x42]),
            ("QUJD", [0x41, 0x42, 0x43]),
            ("Q\nUJDR\r\nA==", [0x41, 0x42, 0x43, 0x44]), ("+/+/", [0xFB, 0xFF, 0xBF]),
        ] as [(String, [UInt8])]) func dataThatIsBase64(text: String, bytes: [UInt8]) throws
    {
        #expect(try read("<data>\(text)</data>", as: Data.self) == Data(bytes))
    }

    @Test(arguments: ["1e999", "-1e999", " 1e999", "+1E400", String(repeating: "9", count: 400)])
    func realsThatAreTooLarge(text: String) throws {
        #expect(try refusal("<real>\(text)</real>", as: Double.self).contains("too large for a real"))
    }

    /// Foundation reads a `Float` as infinity.
    @Test(arguments: ["1e39", "-1e300", "3.5e38", String(repeating: "9", count: 39)])
    func realsThatAreTooLargeForTheirType(text: String) throws {
        let message = try refusal("<array><real>inf</real><real>\(text)</real></array>", as: [Float].self)
        #expect(message.contains("at k[1]: A number is too large for the type's 32 bits"), "\(message)")
        let doubles = try read("<array><real>inf</real><real>\(text)</real></array>", as: [Double].self)
        #expect(doubles?.last == Double(text))
    }

    @Test func largeNumbersBesideInfinity() throws {
        struct Numbers: Codable, Equatable, Sendable {
            var single: Float = -.infinity
            var real = 1e300
            var other = Double.infinity
        }
        #expect(try Kind.xml.codec().decode(Kind.xml.codec().encode(Numbers())) == Numbers())
        #expect(try read("<real>3.4028235e38</real>", as: Float.self) == .greatestFiniteMagnitude)
    }

    @Test func realsThatAreNot() throws {
        #expect(try read("<real>1e308</real>", as: Double.self) == 1e308)
        #expect(try read("<real>+infinity</real>", as: Double.self) == .infinity)
        #expect(try read("<real>-inf</real>", as: Double.self) == -.infinity)
        #expect(try read("<real>\(String(repeating: "0", count: 400))1.5</real>", as: Double.self) == 1.5)
    }

    @Test(arguments: [
        "&#;", "&#x;", "&#0;", "&#x0;", "&#xD800;", "&#x110000;", "&#4294967361;", "&#x100000041;", "&#-65;", "&#+65;",
        "&#65",
    ])
    func referencesToNoCharacter(text: String) throws {
        #expect(try refusal("<string>\(text)</string>", as: String.self).contains("a reference to no character"))
        #expect(try refusal("<string>\(text)<![CDATA[;]]></string>", as: String.self).contains("to no character"))
    }

    @Test func referencesToCharacters() throws {
        #expect(
            try read("<string>&#65;&#x1F600;&lt;&#36;null<![CDATA[&#;]]></string>", as: String.self) == "A😀<$null&#;")
        #expect(try read("<string>&#36;null</string>", as: String?.self) == "$null")
    }

    // MARK: Keys that occur twice

    @Test(arguments: [
        ("a", "a"), ("", ""), ("a", "&#97;"), ("a", "<![CDATA[a]]>"),
        ("&lt;&gt;&amp;&apos;&quot;", "<![CDATA[<>&'\"]]>"),
        ("\u{e9}", "e\u{301}"), ("&#xe9;", "e&#x301;"),
    ]) func aKeyTwiceInXML(first: String, second: String) throws {
        let text =
            "<plist><dict><key>\(first)</key><string>1</string><key>\(second)</key><string>2</string></dict></plist>"
        let error = try #require(throws: FerryError.self) { _ = try Plain().decode(Array(text.utf8)) }
        #expect(error.message.contains("twice in one dictionary"), "\(error.message)")
        if first.isEmpty {
            let empty = "<plist><dict><key/><string>1</string><key></key><string>2</string></dict></plist>"
            #expect(throws: FerryError.self) { _ = try Plain().decode(Array(empty.utf8)) }
        }
    }

    @Test func aKeyInSeveralDictionaries() throws {
        let tables = ["a": [["a": 1, "b": 2], ["a": 3], [:]], "b": [["a": 4]], "": []]
        for kind in Kind.allCases { #expect(try kind.codec().decode(kind.codec().encode(tables)) == tables) }
    }

    // MARK: Limits

    @Test(arguments: [1, 2, 63, 64, 65, 256], Kind.allCases) func nestingIsRefusedWhenWritten(limit: Int, kind: Kind)
        throws
    {
        typealias Nested = GeneratedMessage.Nested
        let codec = kind.codec(Nested.self, depth: limit)
        #expect(try codec.decode(codec.encode(.deep(limit))) == .deep(limit))
        for depth in [limit + 1, limit + 50] where kind == .binary || depth - limit > 1 {
            let message = try refusal(codec, writing: .deep(depth))
            #expect(message.contains("deeper than \(limit) (PropertyListCodec.maximumDepth)"), "\(message)")
        }
    }

    @Test(arguments: [8, 100, 1000]) func sizesAreRefusedWhenWritten(limit: Int) throws {
        let codec = Kind.binary.codec([String].self, size: limit)
        let fitting = [String](repeating: "1234", count: (limit - 8) / 12)
        #expect(try codec.decode(codec.encode(fitting)) == fitting)
        for count in [limit / 12 + 1, limit] {
            let message = try refusal(codec, writing: [String](repeating: "1234", count: count))
            #expect(message.contains("the limit is \(limit) (PropertyListCodec.maximumExpandedSize)"), "\(message)")
        }
    }
}
