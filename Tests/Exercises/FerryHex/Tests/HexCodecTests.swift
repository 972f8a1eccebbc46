import Ferry
import FerryHex
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.codec)) struct HexCodecTests {
    @Test func keepsTheContract() throws {
        // No bytes are no digits, which is a message.
        try CodecConformance(HexCodec(), samples: [[0], [1, 0xAB, 0xFF], Array(0...255)], refusesForeignBytes: false)
            .check()
    }

    @Test func isReadAloud() { #expect(HexCodec().encode([0, 0x1F, 0xA0]) == Array("001fa0".utf8)) }

    @Test(arguments: ["0", "0g", "AB", "00 1"])
    func whatIsNoDigitIsRefused(text: String) {
        let error = #expect(throws: FerryError.self) { try HexCodec().decode(Array(text.utf8)) }
        #expect(error?.code == .malformedStream)
    }
}
