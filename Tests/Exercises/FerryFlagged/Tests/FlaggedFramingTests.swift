import Ferry
import FerryFlagged
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.framing)) struct FlaggedFramingTests {
    @Test func keepsTheContract() throws {
        let messages = [0, 1, 19, 20, 500].map { count in (0..<count).map { UInt8(truncatingIfNeeded: $0) } }
        try FramingVerifier(FlaggedFraming(), boundaries: .carryMeaning, minimumChunkSize: 2)
            .verify(messages, chunkSizes: [2, 3, 20, 244])
    }

    @Test(arguments: [[], [2, 1]] as [[UInt8]])
    func aChunkWithoutAFlagIsRefused(chunk: [UInt8]) {
        var session = FlaggedFraming().makeSession(limits: Limits())
        let error = #expect(throws: FerryError.self) {
            try session.receive(chunk.span.bytes, at: VirtualTime().now)
        }
        #expect(error?.code == .malformedStream)
    }
}
