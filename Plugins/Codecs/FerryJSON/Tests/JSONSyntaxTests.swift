import Ferry
import TestSupport
import Testing

@testable import FerryJSON

/// The syntax check alone, at every edge of RFC 8259: no coder stands behind it that would refuse what it lets through.
@Suite(.tags(.codec)) struct JSONSyntaxTests {
    private func refusal(_ bytes: [UInt8], depth: Int = 64) -> String? {
        var check = JSONSyntaxCheck(bytes, maximumDepth: depth)
        do {
            try check.run()
            return nil
        } catch {
            return error.message
        }
    }

    private func isSound(_ text: String, depth: Int = 64) -> Bool { refusal(Array(text.utf8), depth: depth) == nil }

    /// Section 7: a pair is a lead surrogate and then a trail surrogate; neither stands alone.
    @Test func surrogatesComeInPairs() {
        func escape(_ unit: UInt16) -> String {
            "\\u" + (["d7ff", "d800", "dbff", "dc00", "dfff", "e000"][Self.index(unit)])
        }
        for first in Self.units {
            let isWhole = !(0xD800...0xDFFF).contains(first)
            #expect(isSound("\"\(escape(first))\"") == isWhole)
            #expect(isSound("\"\(escape(first))x\"") == isWhole)
            #expect(isSound("\"\(escape(first))\\n\"") == isWhole)
            for second in Self.units {
                let isPair = (0xD800...0xDBFF).contains(first) && (0xDC00...0xDFFF).contains(second)
                let areBothWhole = isWhole && !(0xD800...0xDFFF).contains(second)
                #expect(
                    isSound("\"\(escape(first))\(escape(second))\"") == (isPair || areBothWhole), "\(first) \(second)")
            }
        }
        #expect(
            refusal(Array("[\"\\udc00\\udc00\"]".utf8))?.contains("half a surrogate pair, at line 1, column 9") == true)
        #expect(isSound("\"\\uD83d\\uDe00\""))
    }

    private static let units: [UInt16] = [0xD7FF, 0xD800, 0xDBFF, 0xDC00, 0xDFFF, 0xE000]
    private static func index(_ unit: UInt16) -> Int { units.firstIndex(of: unit) ?? 0 }

    @Test func everyByteInAString() {
        for byte in UInt8(0)..<0x80 {
            let isPlain = byte >= 0x20 && byte != UInt8(ascii: "\"") && byte != UInt8(ascii: "\\")
            #expect((refusal([0x22, byte, 0x22]) == nil) == isPlain, "byte \(byte)")
            let isEscape = "\"\\/bfnrt".utf8.contains(byte)
            #expect((refusal([0x22, 0x5C, byte, 0x22]) == nil) == isEscape, "escaped byte \(byte)")
        }
    }

    @Test func everyByteBetweenValues() {
        for byte in UInt8(0)..<0x80 {
            let isSpace = [0x20, 0x09, 0x0A, 0x0D].contains(byte)
            #expect((refusal([byte, 0x5B, byte, 0x31, byte, 0x2C, byte, 0x32, byte, 0x5D, byte]) == nil) == isSpace)
        }
    }

    @Test(arguments: [
        "0", "-0", "10", "-19", "0.0", "1.50", "-0.5e-2", "1E3", "1e+30", "0e0", "12345678901234567890123",
    ]) func numbers(text: String) {
        #expect(isSound(text))
        #expect(isSound("[\(text),\(text)]"))
    }

    @Test(arguments: [
        "", "-", "+1", ".5", "01", "-01", "00", "1.", "-.5", "1e", "1e-", "1.e5", "0x1", "1 2", "--1", "1.2.3", "1e5.5",
        "Infinity", "NaN", "tru", "True", "nul", "fals", "truee", "true false",
    ]) func noNumbers(text: String) {
        #expect(!isSound(text))
        #expect(!isSound("[\(text),1]") || text.isEmpty)
    }

    @Test(arguments: [1, 2, 64, 256]) func depth(limit: Int) {
        for (opening, closing) in [("[", "]"), ("{\"a\":", "}")] {
            func nested(_ count: Int) -> String {
                String(repeating: opening, count: count) + (opening == "[" ? "" : "1")
                    + String(repeating: closing, count: count)
            }
            #expect(isSound(nested(limit), depth: limit))
            #expect(!isSound(nested(limit + 1), depth: limit))
            // What is closed does not count any more.
            let siblings = Array(repeating: nested(limit - 1), count: 5).filter { !$0.isEmpty }
            if limit > 1 { #expect(isSound("[\(siblings.joined(separator: ","))]", depth: limit)) }
        }
    }

    @Test func theDepthIsHeldToItsBounds() {
        #expect(JSONCodec<[Int]>(maximumDepth: 0).maximumDepth == 1)
        #expect(JSONCodec<[Int]>(maximumDepth: 256).maximumDepth == 256)
        #expect(JSONCodec<[Int]>(maximumDepth: 257).maximumDepth == 256)
        #expect(JSONCodec<[Int]>().maximumDepth == 64)
        #expect(JSONCodec<[Int]>().identifier == 3)
    }

    /// Every proper beginning of a message is refused, with its end as the place.
    @Test func whatIsCutShortIsRefusedAtItsEnd() {
        let text = Array(#"{"a":[1,-2.5e3,true,null,"x\u00e9\\",{}],"b":{"c":false}}"#.utf8)
        #expect(refusal(text) == nil)
        for count in text.indices {
            let message = refusal(Array(text.prefix(count)))
            #expect(message?.contains("its end where") == true, "\(count)")
            #expect(message?.contains("column \(count + 1) (byte \(count) of \(count))") == true, "\(message ?? "")")
        }
    }

    @Test func linesAndColumnsCountFromOne() {
        for (text, place) in [
            ("?", "line 1, column 1 (byte 0"), ("[\n?", "line 2, column 1 (byte 2"),
            ("[\n\n  ?", "line 3, column 3 (byte 5"),
            ("\u{FEFF}?", "line 1, column 4 (byte 3"), ("[\"\u{e9}\", ?", "line 1, column 8 (byte 7"),
        ] {
            #expect(refusal(Array(text.utf8))?.contains(place) == true, "\(refusal(Array(text.utf8)) ?? "")")
        }
    }

    /// Scalars, arrays and objects count, keys do not; one more than the bound is refused, with its place.
    @Test func valuesAreBounded() throws {
        let numbers = JSONCodec<[Int]>(maximumValues: 4)
        #expect(try numbers.decode(Array("[1,2,3]".utf8)) == [1, 2, 3])
        let error = #expect(throws: FerryError.self) { try numbers.decode(Array("[1,2,3,4]".utf8)) }
        #expect(error?.code == .decodingFailed)
        #expect(error?.message.contains("more than 4 values (JSONCodec.maximumValues)") == true)
        #expect(error?.message.contains("byte 7 of 9") == true)
        let lists = JSONCodec<[String: [Int]]>(maximumValues: 4)
        #expect(try lists.decode(Array(#"{"a":[1],"b":[]}"#.utf8)) == ["a": [1], "b": []])
        #expect(throws: FerryError.self) { try lists.decode(Array(#"{"a":[1],"b":[2]}"#.utf8)) }
        #expect(JSONCodec<[Int]>(maximumValues: 0).maximumValues == 1)
        #expect(JSONCodec<[Int]>().maximumValues == 1 << 20)
    }

    /// The quick look at JSON that this side wrote agrees with the check, at each limit.
    @Test(arguments: [
        "1", "\"a\"", "[]", "{}", "[1]", "[[],[]]", "[[[]],[1,2],3]", "{\"a\":[1,{\"b\":{}}],\"c\":\"[[,{\"}",
        "[ 1 ,\n[ ] ]",
        "[\"\\\\\",\"\\\"[,\",[{\"[\":[]}]]", "[[\"]\"],[\"\\\\\\\"}\"],{}]", "[-1.5e3,true,null,[false]]",
    ]) func theQuickLookAgrees(text: String) {
        let bytes = Array(text.utf8)
        for depth in 1...6 {
            for values in 1...10 {
                var check = JSONSyntaxCheck(bytes, maximumDepth: depth, maximumValues: values)
                var isSound = true
                do { try check.run() } catch { isSound = false }
                #expect(
                    JSONSyntaxCheck.isWithin(maximumDepth: depth, maximumValues: values, bytes) == isSound,
                    "depth \(depth), values \(values)")
            }
        }
    }

    /// Two megabytes of zeros, which compress to two kilobytes, are refused before Foundation makes values of them.
    @Test func aSmallMessageDoesNotBecomeALargeOne() throws {
        let zeros = [UInt8]("[".utf8) + [UInt8](String(repeating: "0,", count: 1 << 20).utf8)
        let error = #expect(throws: FerryError.self) {
            try JSONCodec<[Int]>().decode(zeros + [UInt8(ascii: "0"), UInt8(ascii: "]")])
        }
        #expect(error?.message.contains("more than 1048576 values") == true)
    }
}
