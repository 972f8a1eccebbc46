import Ferry
import FerryCBOR
import FerryTesting
import TestSupport
import Testing

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

private struct Reading: Codable, Equatable, Sendable {
    enum CodingKeys: Int, CodingKey {
        case sensor = 1
        case celsius = 2
        case at = -1
        case notes = 40
    }

    var sensor: UInt16
    var celsius: Float
    var at: Date
    var notes: [String: String]?
}

/// What RFC 8949 says of bytes, and what the codec adds to it.
@Suite(.tags(.codec), .timeLimit(.minutes(5))) struct CBORCodecTests {
    private static let date = Date(timeIntervalSince1970: 1_363_896_240)

    @Test func conforms() throws {
        let samples = [
            Reading(sensor: 7, celsius: 21.5, at: Self.date, notes: nil),
            Reading(sensor: .max, celsius: -0.1, at: .distantPast, notes: ["": "Zoë", "007": "", "7": "a"]),
        ]
        try CodecConformance(CBORCodec(), samples: samples).check()
        try CodecConformance(CBORCodec(dates: .text), samples: samples.prefix(1) + []).check()
        try CodecConformance(CBORCodec(), samples: [[-1, 0, Int.max, Int.min], []]).check()
        try CodecConformance(CBORCodec(), samples: [["a": "b", "": "\u{FFFF}"], [:]]).check()
        try CodecConformance(CBORCodec(), samples: [[Data(), Data([1, 2])], []]).check()
    }

    @Test(arguments: [CBORDateFormat.secondsSince1970, .text])
    func generatedMessages(dates: CBORDateFormat) throws {
        let codec = CBORCodec<GeneratedMessage>(dates: dates)
        try CodecConformance(codec, samples: [.ordinary()]).check()
        try CodecConformance(codec, samples: [.ordinary()]).checkGenerated(2000)
        let narrow = CBORCodec<GeneratedMessage>(dates: dates, maximumDepth: 4, maximumValues: 50)
        try CodecConformance(narrow, samples: [.ordinary()]).checkGenerated(200)
    }

    /// The largest messages that are within limits arrive, and one value or level more is refused by both sides.
    @Test func limitsAreThoseOfBothSides() throws {
        let wide = Array(repeating: [0.1], count: 10)
        let generous = CBORCodec<[[Double]]>()
        let payload = try generous.encode(wide)
        #expect(try CBORCodec<[[Double]]>(maximumDepth: 2, maximumValues: 21).encode(wide) == payload)
        #expect(try CBORCodec<[[Double]]>(maximumDepth: 2, maximumValues: 21).decode(payload) == wide)
        for narrow in [
            CBORCodec<[[Double]]>(maximumDepth: 1), CBORCodec<[[Double]]>(maximumValues: 20),
        ] {
            #expect(throws: FerryError.self) { _ = try narrow.encode(wide) }
            #expect(throws: FerryError.self) { _ = try narrow.decode(payload) }
        }
        // A date that takes a tag, a map and an array, in an array.
        let dates = [Date(timeIntervalSinceReferenceDate: 800_000_000.1)]
        let deep = try CBORCodec<[Date]>(maximumDepth: 4, maximumValues: 5).encode(dates)
        #expect(try CBORCodec<[Date]>(maximumDepth: 4, maximumValues: 5).decode(deep) == dates)
        #expect(throws: FerryError.self) { _ = try CBORCodec<[Date]>(maximumDepth: 3).encode(dates) }
        #expect(throws: FerryError.self) { _ = try CBORCodec<[Date]>(maximumValues: 4).encode(dates) }
    }

    // MARK: Golden bytes

    /// Integers, floating-point numbers, texts and byte strings of RFC 8949, appendix A.
    @Test(
        arguments: [
            ("00", 0), ("17", 23), ("1818", 24), ("1864", 100), ("1903e8", 1000), ("1a000f4240", 1_000_000),
            ("1b000000e8d4a51000", 1_000_000_000_000), ("1bffffffffffffffff", 18_446_744_073_709_551_615),
            ("c249010000000000000000", 18_446_744_073_709_551_616), ("3bffffffffffffffff", -18_446_744_073_709_551_616),
            ("c349010000000000000000", -18_446_744_073_709_551_617), ("20", -1), ("29", -10), ("3863", -100),
            ("3903e7", -1000),
        ] as [(String, Int128)])
    func integers(hex: String, value: Int128) throws {
        #expect(try CBORCodec<Int128>().encode(value).hex == hex)
        #expect(try CBORCodec<Int128>().decode(bytes(hex)) == value)
    }

    @Test(
        arguments: [
            ("f90000", 0), ("f98000", -0.0), ("f93c00", 1), ("fb3ff199999999999a", 1.1), ("f93e00", 1.5),
            ("f97bff", 65504),
            ("fa47c35000", 100_000), ("fa7f7fffff", 3.4028234663852886e+38), ("fb7e37e43c8800759c", 1.0e+300),
            ("f90001", 5.960464477539063e-8), ("f90400", 0.00006103515625), ("f9c400", -4),
            ("fbc010666666666666", -4.1),
            ("f97c00", .infinity), ("f97e00", .nan), ("f9fc00", -.infinity), ("f903ff", 0x3FFp-24),
            ("fa33000000", 0x1p-25),
            ("fa477fff00", 65535), ("fb36a0000000000001", 0x1.0000000000001p-149),
        ] as [(String, Double)])
    func reals(hex: String, value: Double) throws {
        #expect(try CBORCodec<Double>().encode(value).hex == hex)
        let decoded = try CBORCodec<Double>().decode(bytes(hex))
        #expect(decoded == value && decoded.sign == value.sign || decoded.isNaN && value.isNaN)
    }

    /// The same numbers as other senders write them (RFC 8949, appendix A).
    @Test(arguments: ["fa7f800000", "fb7ff0000000000000"]) func longerInfinities(hex: String) throws {
        #expect(try CBORCodec<Double>().decode(bytes(hex)) == .infinity)
    }

    @Test(arguments: ["fa7fc00000", "fb7ff8000000000000"]) func longerNumbersThatAreNone(hex: String) throws {
        #expect(try CBORCodec<Double>().decode(bytes(hex)).isNaN)
    }

    @Test(arguments: [
        ("60", ""), ("6161", "a"), ("6449455446", "IETF"), ("62225c", "\"\\"), ("62c3bc", "\u{FC}"),
        ("63e6b0b4", "\u{6C34}"), ("64f0908591", "\u{10151}"),
    ]) func texts(hex: String, value: String) throws {
        #expect(try CBORCodec<String>().encode(value).hex == hex)
        #expect(try CBORCodec<String>().decode(bytes(hex)) == value)
    }

    @Test func bytesAndTruth() throws {
        #expect(try CBORCodec<Data>().encode(Data([1, 2, 3, 4])).hex == "4401020304")
        #expect(try CBORCodec<[UInt8]>().encode([1, 2, 3, 4]).hex == "4401020304")
        #expect(try CBORCodec<[UInt8]>().decode(bytes("8401020304")) == [1, 2, 3, 4])
        #expect(try CBORCodec<Data>().decode(bytes("8401020304")) == Data([1, 2, 3, 4]))
        #expect(try CBORCodec<[Bool?]>().encode([true, false, nil]).hex == "83f5f4f6")
        #expect(try CBORCodec<[Bool?]>().decode(bytes("83f5f4f7")) == [true, false, nil])
        let uuid = try #require(UUID(uuidString: "00112233-4455-6677-8899-AABBCCDDEEFF"))
        #expect(try CBORCodec<UUID>().encode(uuid).hex == "d8255000112233445566778899aabbccddeeff")
        #expect(try CBORCodec<UUID>().decode(bytes("5000112233445566778899aabbccddeeff")) == uuid)
        #expect(try CBORCodec<UUID>().decode(CBORCodec<String>().encode(uuid.uuidString)) == uuid)
    }

    @Test func containers() throws {
        #expect(
            try CBORCodec<[Int]>().encode(Array(1...25)).hex
                == "98190102030405060708090a0b0c0d0e0f101112131415161718181819")
        #expect(try CBORCodec<[Int: Int]>().encode([3: 4, 1: 2]).hex == "a201020304")
        #expect(
            try CBORCodec<[String: String]>().encode(["e": "E", "a": "A", "c": "C", "b": "B", "d": "D"]).hex
                == "a56161614161626142616361436164614461656145")
        // Indefinite lengths, as appendix A has them.
        #expect(
            try CBORCodec<[[Int]]>().decode(bytes("9f018202039f0405ffff".replacing("9f01", with: "9f8101"))) == [
                [1], [2, 3], [4, 5],
            ])
        #expect(
            try CBORCodec<[String: Bool]>().decode(bytes("bf6346756ef563416d74f4ff")) == ["Fun": true, "Amt": false])
        #expect(try CBORCodec<String>().decode(bytes("7f657374726561646d696e67ff")) == "streaming")
        #expect(try CBORCodec<Data>().decode(bytes("5f42010243030405ff")) == Data([1, 2, 3, 4, 5]))
    }

    @Test func keysOfTypesAreIntegersWhereTheyHaveThem() throws {
        let reading = Reading(sensor: 7, celsius: 21.5, at: Self.date, notes: ["7": "a"])
        let golden = "a40107" + "02f94d60" + "1828a161376161" + "20c11a514b67b0"
        #expect(try CBORCodec<Reading>().encode(reading).hex == golden)
        // In another order, with longer heads, a name for an integer, and an entry that nobody asks for.
        let other =
            "bf" + "20c11a514b67b0" + "190001fb401c000000000000" + "6763656c73697573fb4035800000000000"
            + "6375736581c16161" + "1828a161376161" + "ff"
        #expect(try CBORCodec<Reading>().decode(bytes(other)) == reading)
    }

    /// Text that is a number stays text in dictionaries, with its zeros.
    @Test func keysOfDictionariesKeepTheirKind() throws {
        #expect(try CBORCodec<[String: Int]>().encode(["7": 1, "07": 2]).hex == "a2613701623037" + "02")
        #expect(try CBORCodec<[String: Int]>().decode(bytes("a10701")) == ["7": 1])
        #expect(try CBORCodec<[Int: Int]>().decode(bytes("a1613701")) == [7: 1])
        #expect(throws: FerryError.self) { _ = try CBORCodec<[String: Int]>().decode(bytes("a2613701" + "0702")) }
    }

    /// Many entries are found without a look at each.
    @Test func manyEntries() throws {
        let table = Dictionary(uniqueKeysWithValues: (0..<100_000).map { ("key \($0)", $0) })
        let codec = CBORCodec<[String: Int]>()
        #expect(try codec.decode(codec.encode(table)) == table)
        let numbers = Dictionary(uniqueKeysWithValues: (-500..<500).map { ($0, "\($0)") })
        #expect(try CBORCodec<[Int: String]>().decode(CBORCodec<[Int: String]>().encode(numbers)) == numbers)
    }

    // MARK: Dates

    @Test func dates() throws {
        let codec = CBORCodec<Date>()
        #expect(try codec.encode(Self.date).hex == "c11a514b67b0")
        #expect(try codec.encode(Self.date + 0.5).hex == "c1fb41d452d9ec200000")
        #expect(
            try CBORCodec<Date>(dates: .text).encode(Self.date).hex == "c074323031332d30332d32315432303a30343a30305a")
        for hex in [
            "c11a514b67b0", "1a514b67b0", "c1fb41d452d9ec000000", "c074323031332d30332d32315432303a30343a30305a",
        ] {
            #expect(try codec.decode(bytes(hex)) == Self.date)
        }
        #expect(try codec.decode(bytes("d903e9a1011a514b67b0")) == Self.date)
        #expect(try codec.decode(bytes("d903e9a10582201aa296cf60")) == Self.date)
    }

    /// 2^-23 s since 2001 has no `Double` since 1970.
    @Test func fractionsKeepAllBits() throws {
        let date = Date(timeIntervalSinceReferenceDate: 0x17D78400p0 + 0x1p-23)
        let codec = CBORCodec<Date>()
        let payload = try codec.encode(date)
        #expect(payload.hex.hasPrefix("d903e9a1058236"))
        #expect(try codec.decode(payload) == date)
        for seconds in [816_946_200.123_456, 800_000_000.1, -978_307_200.7, 0.5, -0.25, 1e9 + 0.1, -1e9 - 0.3] {
            let date = Date(timeIntervalSinceReferenceDate: seconds)
            #expect(try codec.decode(codec.encode(date)) == date)
        }
        let fine = try #require(throws: FerryError.self) {
            _ = try codec.encode(Date(timeIntervalSinceReferenceDate: 0.1))
        }
        #expect(fine.message.contains("finer than 2^-32 s"))
    }

    @Test(arguments: [
        "c1f97c00", "c1f97e00", "c1fb7e37e43c8800759c", "c11bffffffffffffffff", "c13bffffffffffffffff", "c061",
        "c06161",
        "d903e9a0", "d903e9a20100" + "0500", "d903e9a1038220" + "01", "d903e9a1058138", "d903e9a10582387f01",
        "d903e9a1058220" + "3b8000000000000000", "d903e9a1058200" + "3b7fffffffffffffff", "c180", "f5",
    ]) func datesThatAreNone(hex: String) {
        #expect(throws: FerryError.self) { _ = try CBORCodec<Date>().decode(bytes(hex)) }
    }

    // MARK: Refusals

    @Test(arguments: [
        ("", "it ends where an item was expected, at byte 0 of 0"),
        ("0000", "bytes follow the message's only item, at byte 1 of 2"),
        ("18", "it ends within a number"), ("1c", "the initial byte 28 is not defined"), ("1f", "initial byte 31"),
        ("ff", "a break where an item was expected"), ("8201ff", "a break where"), ("bf01ff", "a break where"),
        ("f814", "the simple value 20 has a byte too many"), ("62e6b0", "text is not UTF-8, at byte 1"),
        ("7f6161", "it ends where"), ("7f4161ff", "a string in pieces has something else in it, at byte 1"),
        ("7f7f6161ffff", "a string in pieces"), ("6261", "a string of 2 bytes has only 1"),
        ("9bffffffffffffffff00", "a container of 18446744073709551615 has only 1 bytes"),
        ("ba7fffffff00", "a container of"),
        ("a2010001f6", "the key 1 is there twice, at byte 3 of 5"),
        ("a3616100616201616102", "the key a is there twice"),
        ("a2" + "62c3a900" + "63" + "65cc8100", "the key e\u{301} is there twice"),
        ("a1f600", "a key is neither an integer nor text"),
        ("a1c10000", "a key is neither"), ("c1", "it ends where"),
    ]) func malformed(hex: String, why: String) throws {
        let error = try #require(throws: FerryError.self) { _ = try CBORCodec<[Int]>().decode(bytes(hex)) }
        #expect(error.code == .decodingFailed)
        #expect(error.message.contains(why), "\(error.message)")
    }

    /// Containers within containers, tags too, take neither the stack nor memory.
    @Test(arguments: [UInt8(0x81), 0x9F, 0xC1, 0xA1, 0xBF]) func deepNesting(byte: UInt8) throws {
        let isMap = byte == 0xA1 || byte == 0xBF
        let level: [UInt8] = isMap ? [byte, 0] : [byte]
        let payload = Array(repeatElement(level, count: 1_000_000).joined())
        let error = try #require(throws: FerryError.self) { _ = try CBORCodec<[Int]>().decode(payload) }
        #expect(error.message.contains("nests deeper than 64 levels"))
    }

    @Test func shapesAreRefusedWithTheirPlace() throws {
        func refusal<T: Codable & Sendable>(_ type: T.Type, _ hex: String) throws -> String {
            try #require(throws: FerryError.self) { _ = try CBORCodec<T>().decode(bytes(hex)) }.message
        }
        #expect(
            try refusal([String: [Int]].self, "a161618201f5").contains(
                "a[1]: Expected an integer, found a truth value at byte 5"))
        #expect(
            try refusal([UInt8?].self, "82f6190100").contains("The number does not fit UInt8: an integer at byte 2"))
        #expect(try refusal([Float].self, "8160").contains("Expected a number, found text at byte 1"))
        #expect(try refusal(Int.self, "f93e00").contains("does not fit Int"))
        #expect(try refusal(Int.self, "f97e00").contains("does not fit Int"))
        #expect(try refusal(Reading.self, "a1" + "0107").contains("the key \"celsius\" is missing"))
        #expect(try refusal(Int128.self, "c251" + "01" + String(repeating: "00", count: 16)).isEmpty == false)
        #expect(try refusal(String.self, "e0").contains("found the simple value 0 at byte 0"))
    }

    @Test func whatIsWrittenTwiceIsRefused() throws {
        struct Twice: Codable {
            enum CodingKeys: String, CodingKey { case a, b }
            init(from decoder: any Decoder) {}
            func encode(to encoder: any Encoder) throws {
                var first = encoder.container(keyedBy: CodingKeys.self)
                try first.encode(1, forKey: .a)
                try first.encode(2, forKey: .a)
            }
        }
        let error = try #require(throws: FerryError.self) {
            _ = try CBORCodec<Twice>().encode(CBORCodec<Twice>().decode([0xA0]))
        }
        #expect(error.message.contains("A key is written twice"))
    }

    // MARK: Messages in messages

    @Test func embedded() throws {
        typealias Embedded = CBOREmbedded<[String: [Int]]>
        let codec = CBORCodec<[Embedded]>()
        let payload = try codec.encode([Embedded(["a": [1]])])
        #expect(payload.hex == "81d81845a161618101")
        #expect(try codec.decode(payload) == [Embedded(["a": [1]])])
        #expect(try codec.decode(bytes("8145a161618101")) == [Embedded(["a": [1]])])
        #expect(try codec.decode(bytes("815f42a16143618101ff")) == [Embedded(["a": [1]])])
        #expect(throws: FerryError.self) { _ = try codec.decode(bytes("81d81846a16161810100")) }
        #expect(throws: FerryError.self) {
            _ = try CBORCodec<[Embedded]>(maximumDepth: 3).encode([Embedded(["a": [1]])])
        }
        #expect(throws: FerryError.self) { _ = try CBORCodec<[Embedded]>(maximumDepth: 3).decode(payload) }
        #expect(try CBORCodec<[Embedded]>(maximumDepth: 4).decode(payload) == [Embedded(["a": [1]])])
    }
}

extension [UInt8] {
    fileprivate var hex: String { map { String($0 >> 4, radix: 16) + String($0 & 15, radix: 16) }.joined() }
}
