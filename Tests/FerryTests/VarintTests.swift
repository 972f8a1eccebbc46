import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core, .framing)) struct VarintTests {
    @Test(
        arguments: [
            (0, "00"), (1, "01"), (127, "7F"), (128, "80 01"), (300, "AC 02"), (16_383, "FF 7F"), (16_384, "80 80 01"),
            (2_097_151, "FF FF 7F"), (UInt64(UInt32.max), "FF FF FF FF 0F"), (1 << 63, "80 80 80 80 80 80 80 80 80 01"),
            (.max, "FF FF FF FF FF FF FF FF FF 01"),
        ] as [(UInt64, String)])
    func golden(_ value: UInt64, _ encoded: String) throws {
        var encoding: [UInt8] = []
        Varint.append(value, to: &encoding)
        #expect(hex(encoding) == encoded)
        #expect(Varint.encodedCount(value) == encoding.count)
        #expect(try decode(encoding) == value)
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

    @Test(arguments: ["80 00", "FF 00", "80 80 00", "80 80 80 80 80 80 80 80 80 00"])
    func longerFormsAreRefused(_ encoded: String) {
        #expect(throws: Varint.Failure.overlong) { try decode(bytes(encoded)) }
    }

    @Test(arguments: ["FF FF FF FF FF FF FF FF FF 02", "80 80 80 80 80 80 80 80 80 81"])
    func moreThan64BitsAreRefused(_ encoded: String) {
        #expect(throws: Varint.Failure.overflow) { try decode(bytes(encoded)) }
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
