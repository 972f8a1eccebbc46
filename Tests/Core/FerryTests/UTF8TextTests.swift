import Ferry
import TestSupport
import Testing

/// The place of the first wrong byte, which messages of errors name: the same as the standard library's `UTF8Span` finds,
/// where there is one.
@Suite(.tags(.core, .codec)) struct UTF8TextTests {
    /// The first and last byte of each range of table 3-7 of The Unicode Standard, and the bytes beside them.
    private static let bytes: [UInt8] = [
        0x00, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE, 0xEF,
        0xF0, 0xF1,
        0xF3, 0xF4, 0xF5, 0xFF,
    ]

    @Test func everySequenceOfFourBytesIsJudgedAsTheStandardLibraryDoes() {
        var wrong: [[UInt8]] = []
        var accepted = 0
        for first in Self.bytes {
            for second in Self.bytes {
                for third in Self.bytes {
                    for fourth in Self.bytes {
                        let text = [first, second, third, fourth]
                        let found = UTF8Text.firstInvalidOffset(in: text)
                        if found == nil { accepted += 1 }
                        if found != Self.expected(text) { wrong.append(text) }
                    }
                }
            }
        }
        #expect(wrong.isEmpty, "\(wrong.count) differ, the first is \(wrong.first ?? [])")
        #expect(accepted > 100)
    }

    @Test(arguments: 0..<20) func placeIsFoundAfterLongText(count: Int) {
        let text = [UInt8](repeating: 0x61, count: count)
        #expect(UTF8Text.firstInvalidOffset(in: text) == nil)
        #expect(UTF8Text.firstInvalidOffset(in: text + [0xC3, 0xA9]) == nil)
        #expect(UTF8Text.firstInvalidOffset(in: text + [0xC3, 0xA9, 0xC3, 0x28] + text) == count + 2)
        #expect(UTF8Text.firstInvalidOffset(in: text + [0xE2, 0x82]) == count)
    }

    private static func expected(_ text: [UInt8]) -> Int? {
        if #available(macOS 26, iOS 26, tvOS 26, watchOS 26, visionOS 26, *) {
            do throws(UTF8.ValidationError) {
                _ = try UTF8Span(validating: text.span)
                return nil
            } catch { return error.byteOffsets.lowerBound }
        }
        guard String(validating: text, as: UTF8.self) == nil else { return nil }
        return (0..<text.count).last { String(validating: text[..<$0], as: UTF8.self) != nil }
    }
}
