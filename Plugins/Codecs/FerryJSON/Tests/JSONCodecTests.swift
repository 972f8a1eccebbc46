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

private struct Card: Codable, Equatable, Sendable {
    struct Contact: Codable, Equatable, Sendable {
        var kind: String
        var value: String
    }

    var lastName: String
    var firstName: String
    var height: Double?
    var contacts: [Contact] = []

    static let ada = Card(
        lastName: "Lovelace", firstName: "Ada", height: 1.65,
        contacts: [Contact(kind: "mail", value: "ada@example.org"), Contact(kind: "\"\\/\n\u{1}", value: "Zoë 👩‍👩‍👧")])
}

@Suite(.tags(.codec)) struct JSONCodecTests {
    private func refusal<M>(_ text: String, _ codec: JSONCodec<M>) throws -> FerryError {
        try #require(throws: FerryError.self) { _ = try codec.decode(Array(text.utf8)) }
    }

    @Test func conforms() throws {
        let samples = [Card.ada, Card(lastName: "", firstName: "")]
        try CodecConformance(JSONCodec(), samples: samples).check()
        try CodecConformance(JSONCodec(isIndented: true), samples: samples).check()
        try CodecConformance(JSONCodec(), samples: [["a": "b", "": "\u{FFFF}"], [:]]).check()
        try CodecConformance(JSONCodec(), samples: [[-1, 0, Int.max, Int.min], []]).check()
    }

    @Test(.timeLimit(.minutes(5))) func messagesLeaveInTheOrderOfTheCalls() async throws {
        try await expectOrder(JSONCodec<[String: Int]>()) { ["number": $0] }
    }

    @Test func goldenBytes() throws {
        let bytes = try JSONCodec<Card>().encode(.ada)
        #expect(
            String(decoding: bytes, as: UTF8.self)
                == #"{"contacts":[{"kind":"mail","value":"ada@example.org"},{"kind":"\"\\/\n\u0001","value":"Zoë 👩‍👩‍👧"}],"#
                + #""firstName":"Ada","height":1.65,"lastName":"Lovelace"}"#)
    }

    @Test func dates() throws {
        let date = Date(timeIntervalSince1970: 1_000_000_000)
        let expected: [(JSONCodec<[Date]>.DateFormat, String)] = [
            (.secondsSinceReferenceDate, "[21692800]"), (.secondsSince1970, "[1000000000]"),
            (.iso8601, "[\"2001-09-09T01:46:40Z\"]"),
        ]
        for (format, text) in expected {
            let codec = JSONCodec([Date].self, dates: format)
            #expect(try codec.encode([date]) == Array(text.utf8))
            #expect(try codec.decode(Array(text.utf8)) == [date])
        }
    }

    @Test(arguments: [
        ("", "its end where a value was expected, at line 1, column 1 (byte 0 of 0)"),
        ("{", "its end where a key in quotes was expected"),
        ("{\"a\":\"b\",\n \"c\":tru}", "'}' where 'true' was expected, at line 2, column 9 (byte 18 of 19)"),
        ("{\"a\":\"b\" x}", "'x' where ',' or '}' was expected, at line 1, column 10"),
        ("{\"a\":\"b\",}", "'}' where a key in quotes was expected"),
        ("[1,]", "']' where a value was expected"),
        ("[1}", "'}' where ',' or ']' was expected"),
        ("{\"a\" 1}", "'1' where ':' was expected"),
        ("{} {}", "'{' where the end of the message was expected"),
        ("{a:1}", "'a' where a key in quotes was expected"),
        ("[01]", "'1' where ',' or ']' was expected"),
        ("[-]", "']' where a digit was expected"),
        ("[1.]", "']' where a digit was expected"),
        ("[1e+]", "']' where a digit was expected"),
        ("[\"\\x\"]", "where one of \"\\/bfnrtu after '\\' was expected"),
        ("[\"\\u12G4\"]", "'G' where four hexadecimal digits"),
        ("[\"\\uD800\"]", "half a surrogate pair"),
        ("[\"\\uDC00\"]", "half a surrogate pair"),
        ("[\"\\uD800\\u0041\"]", "half a surrogate pair"),
        ("[\"a\nb\"]", "the control character 0x0A inside a string"),
        ("[\"abc", "its end where '\"' at the end of a string was expected"),
        ("\u{0}[\u{0}]", "the byte 0x00 where a value was expected"),  // UTF-16
        ("// no\n[]", "'/' where a value was expected"),
    ])
    func malformed(text: String, what: String) throws {
        let error = try refusal(text, JSONCodec<[String: String]>())
        #expect(error.code == .decodingFailed)
        #expect(error.message.contains(what), "\(error.message)")
    }

    @Test func notUTF8() throws {
        let error = try #require(throws: FerryError.self) {
            _ = try JSONCodec<[String]>().decode([0x5B, 0x22, 0xC3, 0x22, 0x5D])
        }
        #expect(error.message.contains("not UTF-8") && error.message.contains("byte 2 of 5"))
        #expect(throws: FerryError.self) { try JSONCodec<[String]>().decode([0xFF, 0xFE, 0x5B, 0x00, 0x5D, 0x00]) }
    }

    @Test func acceptsWhatTheStandardAllows() throws {
        let text =
            "\u{FEFF} { \"a\" : [ 0 , -0.5e-2,1E3 , true,false,null,\"\\u00e9\\uD83D\\uDE00\" , {} , [ ] ] }\r\n\t"
        struct Anything: Decodable, Encodable, Sendable { init(from decoder: any Decoder) {} }
        _ = try JSONCodec<[String: Anything]>().decode(Array(text.utf8))
    }

    @Test func wrongShapesNameTheCodingPath() throws {
        let codec = JSONCodec<Card>()
        let mismatch = try refusal(
            #"{"firstName":"A","lastName":"L","contacts":[{"kind":"k","value":"v"},{"kind":1,"value":"v"}]}"#, codec)
        #expect(mismatch.message.contains("at contacts[1].kind"), "\(mismatch.message)")
        #expect(mismatch.cause is DecodingError)
        let missing = try refusal(#"{"firstName":"A","contacts":[]}"#, codec)
        #expect(missing.message.contains("the key \"lastName\" is missing"), "\(missing.message)")
        let null = try refusal(#"{"firstName":null,"lastName":"L","contacts":[]}"#, codec)
        #expect(null.message.contains("at firstName"), "\(null.message)")
        let number = try refusal("[1, 300]", JSONCodec<[UInt8]>())
        #expect(number.message.contains("outside the type's range"), "\(number.message)")
    }

    @Test func whatJSONCannotSayIsRefused() throws {
        let error = try #require(throws: FerryError.self) {
            _ = try JSONCodec<Card>().encode(Card(lastName: "", firstName: "", height: .infinity))
        }
        #expect(error.code == .encodingFailed)
        #expect(error.message.contains("at height"), "\(error.message)")
    }

    @Test func nestingIsBounded() throws {
        let codec = JSONCodec<Nested>(maximumDepth: 256)
        for depth in [257, 100_000] {
            let error = try refusal(String(repeating: "[", count: depth), codec)
            #expect(error.message.contains("nesting deeper than 256"))
        }
        #expect(throws: FerryError.self) {
            try codec.decode(Array(String(repeating: "{\"a\":", count: 100_000).utf8))
        }
        #expect(JSONCodec<Nested>(maximumDepth: .max).maximumDepth == 256)
    }

    /// The deepest that can be configured, decoded by a type that recurses, where the stack is smallest: 512 KiB, as on
    /// Apple's secondary threads.
    @Test func theDeepestFitsASmallStack() throws {
        let text = String(repeating: "[", count: 256) + String(repeating: "]", count: 256)
        try onThread(stackSize: 512 << 10) {
            _ = try JSONCodec<Nested>(maximumDepth: 256).decode(Array(text.utf8))
            #expect(throws: FerryError.self) {
                try JSONCodec<Nested>().decode(Array(String(repeating: "[", count: 100_000).utf8))
            }
        }
    }

    /// Any change of one byte is either refused or read; the syntax check never lets through what Foundation calls
    /// malformed.
    @Test func agreesWithFoundationOnDamagedMessages() throws {
        let payload = try JSONCodec<Card>().encode(.ada)
        for index in payload.indices {
            for byte in [0x00, 0x20, 0x22, 0x2C, 0x30, 0x5B, 0x5C, 0x5D, 0x75, 0x7B, 0x7D, 0xED, 0xFF] as [UInt8] {
                var damaged = payload
                damaged[index] = byte
                do {
                    _ = try JSONCodec<Card>().decode(damaged)
                } catch {
                    #expect(error.code == .decodingFailed)
                    if case .dataCorrupted? = error.cause as? DecodingError {
                        Issue.record("passed the syntax check: \(String(decoding: damaged, as: UTF8.self))")
                    }
                }
            }
        }
    }
}
