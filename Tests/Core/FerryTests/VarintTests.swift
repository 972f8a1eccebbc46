import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core, .framing)) struct VarintTests {
    @Test(arguments: try vectorCases("varint")) func golden(_ vector: VectorCase) throws {
        let encoding = try #require(vector.bytes(of: "bytes"))
        let meaning = try #require(vector.lines.first)
        switch meaning.joined(separator: " ") {
        case "error overlong": #expect(throws: Varint.Failure.overlong) { try decode(encoding) }
        case "error overflow": #expect(throws: Varint.Failure.overflow) { try decode(encoding) }
        default:
            try #require(meaning[0] == "value")
            let value = try #require(UInt64(meaning[1]))
            var written: [UInt8] = []
            Varint.append(value, to: &written)
            #expect(written == encoding)
            #expect(Varint.encodedCount(value) == encoding.count)
            #expect(try decode(encoding) == value)
        }
    }

    @Test func everyWidth() throws {
        var generator = SplitMix64(seed: 1)
        for _ in 0..<20_000 {
            let value = generator.next() >> UInt64.random(in: 0...63, using: &generator)
            var encoding: [UInt8] = []
            Varint.append(value, to: &encoding)
            let decoded = try decode(encoding)
            if decoded != value || Varint.encodedCount(value) != encoding.count {
                Issue.record("\(value): \(hex(encoding))")
            }
        }
    }

    @Test func theDecoderBeginsAnew() throws {
        var decoder = Varint.Decoder()
        #expect(try decoder.push(0x80) == nil)
        #expect(decoder.byteCount == 1)
        #expect(try decoder.push(0x01) == 128)
        #expect(decoder.byteCount == 0)
        #expect(try decoder.push(0x05) == 5)
    }

    /// The number, which must end with the last byte.
    private func decode(_ bytes: [UInt8]) throws(Varint.Failure) -> UInt64? {
        var decoder = Varint.Decoder()
        for byte in bytes.dropLast() where try decoder.push(byte) != nil { return nil }
        return try decoder.push(bytes.last ?? 0)
    }
}
