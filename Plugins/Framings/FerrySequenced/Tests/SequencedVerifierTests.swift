import Ferry
import FerrySequenced
import FerryTesting
import TestSupport
import Testing

/// The kit for framings. Both sides speak, so what one sends cannot be replayed to another receiver: the exchange alone.
@Suite(.tags(.framing, .sequenced)) struct SequencedVerifierTests {
    private func verifier(window: Int = 56) -> FramingVerifier<SequencedFraming> {
        var configuration = SequencedFraming.Configuration()
        configuration.maximumOpenMessages = 1
        configuration.window = window
        return FramingVerifier(SequencedFraming(configuration), boundaries: .carryMeaning, minimumChunkSize: 20)
    }

    @Test(arguments: [1, 2, 48, 64]) func conforms(_ window: Int) throws {
        let messages: [[UInt8]] = [
            [], [0], [UInt8](repeating: 0x45, count: 20), [], [UInt8](0...130), [UInt8](repeating: 7, count: 3000),
        ]
        try verifier(window: window).verifyExchange(messages, chunkSizes: [20, 21, 23, 64, 182, 244, 512])
        try verifier(window: window).verifyCancelling(messages, chunkSizes: [20, 64, 244])
    }

    /// Larger messages cross the growth steps of the assembled array.
    @Test func conformsWithLargeMessages() throws {
        var generator = SplitMix64(seed: 7)
        let messages = [700_000, 65_536, 65_537, 3].map { generator.bytes($0) }
        try verifier().verifyExchange(messages, chunkSizes: [5000])
    }
}
