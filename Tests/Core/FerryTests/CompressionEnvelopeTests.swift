import Ferry
import TestSupport
import Testing

/// Runs of one byte as (count, byte); counts above 255 take several.
private struct RunLength: Compression {
    /// What decompressing yields beyond the truth, to play a faulty plugin.
    var excess = 0

    func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws -> Bool {
        let start = output.count
        var index = 0
        while index < plain.byteCount {
            let byte = plain.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            var run = 1
            while run < 255, index + run < plain.byteCount,
                plain.unsafeLoad(fromByteOffset: index + run, as: UInt8.self) == byte
            { run += 1 }
            guard output.count + 2 - start <= budget else {
                output.removeSubrange(start...)
                return false
            }
            output += [UInt8(run), byte]
            index += run
        }
        return true
    }

    func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] {
        var plain: [UInt8] = []
        for index in stride(from: 0, to: compressed.byteCount - 1, by: 2) {
            let run = compressed.unsafeLoad(fromByteOffset: index, as: UInt8.self)
            let byte = compressed.unsafeLoad(fromByteOffset: index + 1, as: UInt8.self)
            plain += [UInt8](repeating: byte, count: Int(run))
        }
        return plain + [UInt8](repeating: 0, count: excess)
    }
}

/// Fails a test in which it is asked for anything.
private struct Untouched: Compression {
    struct Broken: Error {}

    func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws -> Bool { throw Broken() }

    func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] {
        Issue.record("asked to decompress to \(plainCount) bytes")
        return []
    }
}

@Suite(.tags(.core, .compression)) struct CompressionEnvelopeTests {
    private func envelope(
        _ compression: any Compression = RunLength(), _ adjust: (inout Limits) -> Void = { _ in }
    ) -> CompressionEnvelope {
        var limits = Limits()
        adjust(&limits)
        return CompressionEnvelope(compression: compression, limits: limits)
    }

    private func refusal(_ bytes: [UInt8], _ envelope: CompressionEnvelope) throws -> FerryError {
        try #require(throws: FerryError.self) { _ = try envelope.unwrap(bytes) }
    }

    @Test(
        arguments: [
            ([], [0x00]),
            ([7], [0x00, 7]),
            ([7, 7, 7], [0x00, 7, 7, 7]),  // 01 03 03 07 would be no shorter
            ([7, 7, 7, 7], [0x01, 4, 4, 7]),
            (Array(repeating: 9, count: 200), [0x01, 0xC8, 0x01, 200, 9]),
            ([1, 2, 3, 4, 5], [0x00, 1, 2, 3, 4, 5]),
        ] as [([UInt8], [UInt8])])
    func goldenBytes(plain: [UInt8], wrapped: [UInt8]) throws {
        #expect(try envelope().wrap(plain) == wrapped)
        #expect(try envelope().unwrap(wrapped) == plain)
    }

    @Test func storesWhatThePeerWouldRefuse() throws {
        let plain = [UInt8](repeating: 9, count: 255)  // 2 bytes compressed: 127.5 to 1
        #expect(try envelope { $0.maximumCompressionRatio = 128 }.wrap(plain).first == 0x01)
        #expect(try envelope { $0.maximumCompressionRatio = 127 }.wrap(plain) == [0x00] + plain)
        #expect(try envelope { $0.maximumDecompressedSize = 255 }.wrap(plain).first == 0x01)
        #expect(try envelope { $0.maximumDecompressedSize = 254 }.wrap(plain) == [0x00] + plain)
    }

    @Test(arguments: [0, 1, -1, Int.min])
    func meaninglessRatioStoresEverything(ratio: Int) throws {
        let plain = [UInt8](repeating: 9, count: 100)
        let envelope = envelope { $0.maximumCompressionRatio = ratio }
        #expect(try envelope.unwrap(envelope.wrap(plain)) == plain)
        #expect(try envelope.wrap(plain).first == 0x00)
    }

    @Test func limitsAreCheckedBeforeDecompressing() throws {
        let untouched = envelope(Untouched()) { $0.maximumDecompressedSize = 1000 }
        #expect(try refusal([0x01, 0xE9, 0x07, 1, 2, 3, 4], untouched).code == .decompressedTooLarge)  // 1001
        #expect(try refusal([0x01, 0x81, 0x06, 1, 2, 3], untouched).code == .compressionRatioExceeded)  // 769 from 3
        let huge: [UInt8] = [0x01] + [UInt8](repeating: 0xFF, count: 9) + [0x01, 5]  // 2^64 - 1
        #expect(try refusal(huge, untouched).code == .decompressedTooLarge)
        #expect(try refusal([0x01, 5], untouched).code == .compressionRatioExceeded)  // from nothing
    }

    @Test func errorsNameTheLimit() throws {
        let error = try refusal([0x01, 0xE9, 0x07, 1], envelope { $0.maximumDecompressedSize = 1000 })
        #expect(error.message.contains("1001") && error.message.contains("Limits.maximumDecompressedSize"))
    }

    @Test(
        arguments: [
            [],  // no envelope
            [0x02, 1],  // unknown kind
            [0xFF],
            [0x01],  // no length
            [0x01, 0x80],  // length cut short
            [0x01, 0x85, 0x00, 5, 7],  // 5, not in its shortest form
            [0x01, 0x80, 0x00],  // 0, not in its shortest form
            [0x01] + Array(repeating: 0xFF, count: 9) + [0x02, 1],  // 65 bits
            [0x01] + Array(repeating: 0x80, count: 10) + [0x01, 1],  // 11 bytes
            [0x01] + Array(repeating: 0x80, count: 40),
        ] as [[UInt8]])
    func malformedEnvelopes(bytes: [UInt8]) throws {
        #expect(try refusal(bytes, envelope(Untouched())).code == .corruptCompression)
    }

    @Test func anotherLengthThanStatedIsRefused() throws {
        #expect(try refusal([0x01, 5, 5, 7], envelope(RunLength(excess: 1))).code == .corruptCompression)
    }

    @Test func aBrokenCompressionIsReportedAsEncodingFailed() throws {
        let error = try #require(throws: FerryError.self) {
            _ = try envelope(Untouched()).wrap([UInt8](repeating: 1, count: 100))
        }
        #expect(error.code == .encodingFailed)
        #expect(error.cause is Untouched.Broken)
    }

    @Test func everyLengthSurvives() throws {
        let envelope = envelope { $0.maximumCompressionRatio = 1000 }
        for count in Array(0..<600) + [16_383, 16_384, 65_536, 2_097_151, 2_097_152] {
            let plain = [UInt8](repeating: 1, count: count)
            let wrapped = try envelope.wrap(plain)
            #expect(wrapped.count <= count + 1)
            #expect(try envelope.unwrap(wrapped) == plain)
        }
    }
}
