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

typealias Plain = PropertyListCodec<[String: String]>

/// What CPython 3.11's plistlib wrote.
enum Golden {
    static let card = [
        "firstName": "Ada", "lastName": "Lovelace", "organization": "Zoë", "contact": "ada@example.org",
    ]

    /// `plistlib.dumps(card, fmt=plistlib.FMT_BINARY)`
    static let cardBinary = bytes(
        "62706c6973743030d4010203040506070857636f6e746163745966697273744e616d65586c6173744e616d655c6f7267616e697a6174"
            + "696f6e5f100f616461406578616d706c652e6f726753416461584c6f76656c61636563005a006f00eb081119232c394b4f58"
            + "000000000000010100000000000000090000000000000000000000000000005f")

    /// `plistlib.dumps(card)`
    static let cardXML = """
        <?xml version="1.0" encoding="UTF-8"?>
        <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
        <plist version="1.0">
        <dict>
        \t<key>contact</key>
        \t<string>ada@example.org</string>
        \t<key>firstName</key>
        \t<string>Ada</string>
        \t<key>lastName</key>
        \t<string>Lovelace</string>
        \t<key>organization</key>
        \t<string>Zoë</string>
        </dict>
        </plist>

        """

    /// `{"text": "a & <b>", "list": [1, -1, 300, 2**40, 1.5, True, False], "data": b"\\x00\\xff",
    /// "date": datetime.datetime(2001, 9, 9, 1, 46, 40), "nested": {"deep": [[]]}, "long": "x" * 20}`
    static let richBinary = bytes(
        "62706c6973743030d601020304050607080911121654646174615464617465546c697374546c6f6e67566e65737465645474657874"
            + "4200ff334174b01800000000a70a0b0c0d0e0f10100113ffffffffffffffff11012c130000010000000000233ff8000000000000"
            + "09085f10147878787878787878787878787878787878787878d113145464656570a115a057612026203c623e08151a1f24293035"
            + "3841494b545760696a6b82858a8c8d0000000000000101000000000000001700000000000000000000000000000095")
}

struct Rich: Codable, Equatable, Sendable {
    var text: String
    var list: [Item]
    var data: Data
    var date: Date
    var nested: [String: [[Int]]]
    var long: String

    enum Item: Codable, Equatable, Sendable {
        case integer(Int)
        case real(Double)
        case truth(Bool)

        init(from decoder: any Decoder) throws {
            let container = try decoder.singleValueContainer()
            if let value = try? container.decode(Bool.self) {
                self = .truth(value)
            } else if let value = try? container.decode(Int.self) {
                self = .integer(value)
            } else {
                self = .real(try container.decode(Double.self))
            }
        }

        func encode(to encoder: any Encoder) throws {
            var container = encoder.singleValueContainer()
            switch self {
            case .integer(let value): try container.encode(value)
            case .real(let value): try container.encode(value)
            case .truth(let value): try container.encode(value)
            }
        }
    }

    static let sample = Rich(
        text: "a & <b>",
        list: [
            .integer(1), .integer(-1), .integer(300), .integer(1 << 40), .real(1.5), .truth(true), .truth(false),
        ],
        data: Data([0, 255]), date: Date(timeIntervalSince1970: 1_000_000_000), nested: ["deep": [[]]],
        long: String(repeating: "x", count: 20))
}

@Suite(.tags(.codec)) struct PropertyListCodecTests {
    @Test(.timeLimit(.minutes(5))) func messagesLeaveInTheOrderOfTheCalls() async throws {
        try await expectOrder(PropertyListCodec<[String: Int]>()) { ["number": $0] }
    }

    @Test(arguments: [Plain.Format.binary, .xml])
    func conforms(format: Plain.Format) throws {
        let dictionaries = [Golden.card, [:], ["": ""], ["a\u{1F600}": "<&>\"']]>\u{FFFD}"]]
        try CodecConformance(Plain(format: format), samples: dictionaries).check()
        let isBinary = format == .binary
        try CodecConformance(
            PropertyListCodec(format: isBinary ? .binary : .xml), samples: [Rich.sample]
        ).check()
        try CodecConformance(
            PropertyListCodec(format: isBinary ? .binary : .xml), samples: [[-1, 0, Int.max, Int.min], []]
        ).check()
    }

    @Test func goldenBytes() throws {
        #expect(try Plain(format: .binary).encode(Golden.card) == Golden.cardBinary)
        #expect(try Plain(format: .xml).encode(Golden.card) == Array(Golden.cardXML.utf8))
    }

    /// Either format is read, whichever the codec writes.
    @Test(arguments: [Plain.Format.binary, .xml])
    func readsWhatPythonWrote(format: Plain.Format) throws {
        #expect(try Plain(format: format).decode(Golden.cardBinary) == Golden.card)
        #expect(try Plain(format: format).decode(Array(Golden.cardXML.utf8)) == Golden.card)
        #expect(try PropertyListCodec<Rich>().decode(Golden.richBinary) == Rich.sample)
    }

    @Test func readsPythonsXMLWithEveryElement() throws {
        let xml = """
            <?xml version="1.0" encoding="UTF-8"?>
            <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
            <plist version="1.0">
            <dict>
            \t<key>data</key>
            \t<data>
            \tAP8=
            \t</data>
            \t<key>date</key>
            \t<date>2001-09-09T01:46:40Z</date>
            \t<key>list</key>
            \t<array>
            \t\t<integer>1</integer>
            \t\t<integer>-1</integer>
            \t\t<integer>300</integer>
            \t\t<integer>1099511627776</integer>
            \t\t<real>1.5</real>
            \t\t<true/>
            \t\t<false/>
            \t</array>
            \t<key>long</key>
            \t<string>xxxxxxxxxxxxxxxxxxxx</string>
            \t<key>nested</key>
            \t<dict>
            \t\t<key>deep</key>
            \t\t<array>
            \t\t\t<array/>
            \t\t</array>
            \t</dict>
            \t<key>text</key>
            \t<string>a &amp; &lt;b&gt;</string>
            </dict>
            </plist>

            """
        #expect(try PropertyListCodec<Rich>().decode(Array(xml.utf8)) == Rich.sample)
    }

    @Test func wrongShapesNameTheCodingPath() throws {
        for format in [Plain.Format.binary, .xml] {
            let payload = try PropertyListCodec<[String: [Int]]>(format: format == .xml ? .xml : .binary)
                .encode(["ages": [1, 2]])
            let error = try #require(throws: FerryError.self) { _ = try Plain().decode(payload) }
            #expect(error.code == .decodingFailed)
            #expect(error.message.contains("at ages"), "\(error.message)")
            #expect(error.cause is DecodingError)
        }
    }

    @Test func aLoneValueCannotBeEncoded() throws {
        for format in [PropertyListCodec<String>.Format.binary, .xml] {
            let error = try #require(throws: FerryError.self) {
                _ = try PropertyListCodec<String>(format: format).encode("alone")
            }
            #expect(error.code == .encodingFailed)
        }
    }

    /// The deepest that can be configured, decoded by a type that recurses, where the stack is smallest: 512 KiB, as on
    /// Apple's secondary threads. And what is much deeper, in either format.
    @Test func theDeepestFitsASmallStack() throws {
        @Sendable func nested(_ depth: Int) -> Nested { (1..<depth).reduce(.list([])) { item, _ in .list([item]) } }
        let binary = try PropertyListCodec<Nested>(format: .binary, maximumDepth: 256).encode(nested(256))
        let xml =
            "<plist>" + String(repeating: "<array>", count: 256) + String(repeating: "</array>", count: 256)
            + "</plist>"
        let tooDeep = [
            String(repeating: "<array>", count: 100_000), String(repeating: "<plist>", count: 100_000),
            "<plist>" + String(repeating: "<dict><key>a</key>", count: 100_000),
        ]
        try onThread(stackSize: 512 << 10) {
            let codec = PropertyListCodec<Nested>(maximumDepth: 256)
            #expect(try codec.encode(codec.decode(binary)) == binary)
            _ = try codec.decode(Array(xml.utf8))
            for text in tooDeep {
                #expect(throws: FerryError.self) { try codec.decode(Array(text.utf8)) }
            }
        }
        let shallow = PropertyListCodec<Nested>(maximumDepth: 255)
        for payload in [binary, Array(xml.utf8)] {
            let error = try #require(throws: FerryError.self) { _ = try shallow.decode(payload) }
            #expect(error.message.contains("deeper than 255"), "\(error.message)")
        }
    }
}
