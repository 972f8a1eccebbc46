import Ferry
import FerryTesting
import FerryZlib
import TestSupport
import Testing

/// Raw deflate streams written by CPython 3.11's zlib module, an encoder and caller that nobody here wrote:
/// `zlib.compressobj(level, zlib.DEFLATED, -15[, 8, 0, zdict])`.
private enum Golden {
    static let text = [UInt8](
        String(repeating: "Ferry carries an app's records across small links, chunk by chunk. ", count: 8).utf8)
    static let textLevel6 = bytes(
        "734b2d2aaa54484e2c2aca4c2d5648cc53482c28502f56284a4dce2f4a010a2417e517172b14e726e6e428e464e66517eb28246794e6"
            + "652b245542187a0a6ea3460c3f2300")

    static let dictionary = [UInt8]("\"firstName\":\"lastName\":\"organization\":".utf8)
    static let record = [UInt8]("{\"firstName\":\"Ada\",\"lastName\":\"Lovelace\"}".utf8)
    static let recordWithDictionary = bytes("ab564256e69892a8a483acd827bf2c3527313955a91600")
    /// 02, `zlib.crc32(dictionary)`, 41, and the above.
    static let envelopeWithDictionary = bytes("024055f34029") + recordWithDictionary

    static let empty = bytes("0300")
    static let stored = bytes("010600f9ff73746f726564")
}

private func decompress(
    _ bytes: [UInt8], _ plainCount: Int, _ compression: ZlibCompression = ZlibCompression()
) throws(FerryError) -> [UInt8] {
    try compression.decompress(bytes.span.bytes, plainCount: plainCount)
}

private func compress(
    _ plain: [UInt8], _ compression: ZlibCompression = ZlibCompression(), budget: Int = .max
) throws -> [UInt8]? {
    var output: [UInt8] = []
    return try compression.compress(plain.span.bytes, into: &output, budget: budget) ? output : nil
}

@Suite(.tags(.compression)) struct ZlibCompressionTests {
    @Test func theIdentifierTellsDictionariesApart() {
        #expect(ZlibCompression().identifier == 1)
        let (a, b) = (ZlibCompression(dictionary: [1, 2, 3]), ZlibCompression(dictionary: [1, 2, 4]))
        #expect(a.identifier >= 128)
        #expect(b.identifier >= 128)
        #expect(a.identifier != b.identifier)
    }

    @Test(arguments: [0, 1, 6, 9])
    func conforms(level: Int) throws {
        try CompressionConformance(ZlibCompression(level: .init(level))).check()
    }

    @Test func conformsWithADictionary() throws {
        let others = [
            ZlibCompression(), ZlibCompression(dictionary: Golden.dictionary.map { $0 ^ 1 }),
            ZlibCompression(dictionary: Golden.dictionary + [0]),
        ]
        try CompressionConformance(
            ZlibCompression(dictionary: Golden.dictionary), samples: [Golden.record], others: others
        ).check()
    }

    @Test func readsWhatPythonWrote() throws {
        #expect(try decompress(Golden.textLevel6, Golden.text.count) == Golden.text)
        #expect(try decompress(Golden.empty, 0) == [])
        #expect(try decompress(Golden.stored, 6) == Array("stored".utf8))
        let shared = ZlibCompression(dictionary: Golden.dictionary)
        #expect(try decompress(Golden.recordWithDictionary, Golden.record.count, shared) == Golden.record)
    }

    /// Other builds of libz may choose other matches, so only what they may not choose is compared byte for byte.
    @Test func writesRawDeflate() throws {
        #expect(try compress([]) == Golden.empty)
        #expect(try compress(Array("stored".utf8), ZlibCompression(level: .init(0))) == Golden.stored)
        let compressed = try #require(try compress(Golden.text))
        #expect(compressed.count <= Golden.textLevel6.count + 4)
    }

    @Test func dictionaryPaysForSmallRecords() throws {
        let with = try #require(try compress(Golden.record, ZlibCompression(dictionary: Golden.dictionary)))
        let without = try #require(try compress(Golden.record))
        #expect(with.count < without.count - 10)
        // Without the dictionary the stream points before its beginning.
        #expect(throws: FerryError.self) { try decompress(with, Golden.record.count) }
    }

    @Test(arguments: try vectorCases("envelope")) func goldenEnvelopes(_ vector: VectorCase) throws {
        let envelope = envelope(vector.bytes(of: "dictionary") ?? [])
        let bytes = try #require(vector.bytes(of: "bytes"))
        guard let plain = vector.bytes(of: "plain") else {
            let error = #expect(throws: FerryError.self) { try envelope.unwrap(bytes) }
            #expect(error?.code.description == vector.words(of: "error")?.first)
            return
        }
        #expect(try envelope.unwrap(bytes) == plain)
        if vector.words(of: "read-only") == nil { #expect(try envelope.wrap(plain) == bytes) }
    }

    private func envelope(_ dictionary: [UInt8]) -> CompressionEnvelope {
        CompressionEnvelope(compression: ZlibCompression(dictionary: dictionary), limits: Limits())
    }

    /// As `Documentation/Formats.md` has it. Other builds of libz may choose other matches.
    @Test func theEnvelopeNamesTheDictionary() throws {
        let shared = envelope(Golden.dictionary)
        #expect(try shared.unwrap(Golden.envelopeWithDictionary) == Golden.record)
        let written = try shared.wrap(Golden.record)
        #expect(written.prefix(6) == Golden.envelopeWithDictionary.prefix(6))
        #expect(written.count <= Golden.envelopeWithDictionary.count + 4)
        #expect(try shared.wrap([1, 2]) == [0, 1, 2])
        // Without a dictionary nothing has changed.
        let plain = [0x01, 0x98, 0x04] + Golden.textLevel6
        #expect(try envelope([]).unwrap(plain) == Golden.text)
        #expect(try envelope([]).wrap(Golden.text).prefix(3) == [0x01, 0x98, 0x04])
    }

    /// Wrong dictionaries of equal length: each byte changed in every bit, two neighbours exchanged, and three bytes changed so
    /// that sums stay what they were.
    @Test func anotherDictionaryIsRefused() throws {
        let dictionary = Golden.dictionary
        var others: [[UInt8]] = [[], Array(dictionary.dropFirst()), dictionary + [0], dictionary.reversed()]
        for index in dictionary.indices {
            for bit in 0..<8 {
                var other = dictionary
                other[index] ^= 1 << UInt8(bit)
                others.append(other)
            }
            guard index > 1 else { continue }
            var (exchanged, balanced) = (dictionary, dictionary)
            exchanged.swapAt(index, index - 1)
            if exchanged != dictionary { others.append(exchanged) }
            for (place, change) in [(index - 2, 1), (index - 1, 0xFE), (index, 1)] as [(Int, UInt8)] {
                balanced[place] &+= change
            }
            others.append(balanced)
        }
        for other in others {
            let error = try #require(throws: FerryError.self, "\(other)") {
                _ = try envelope(other).unwrap(Golden.envelopeWithDictionary)
            }
            #expect(error.code == .corruptCompression)
            #expect(error.message.contains("the dictionary of checksum 4055f340"), "\(error.message)")
        }
    }

    /// What names no dictionary was compressed without one, or by a version that did not tell.
    @Test func aMessageWithoutANameIsRefused() throws {
        let error = try #require(throws: FerryError.self) {
            _ = try envelope(Golden.dictionary).unwrap([0x01, 41] + Golden.recordWithDictionary)
        }
        #expect(
            error.code == .corruptCompression && error.message.contains("this side has the one of checksum 4055f340"))
        for count in 1..<Golden.envelopeWithDictionary.count {
            let cut = try #require(throws: FerryError.self) {
                _ = try envelope(Golden.dictionary).unwrap(Array(Golden.envelopeWithDictionary.prefix(count)))
            }
            #expect([.corruptCompression, .compressionRatioExceeded].contains(cut.code), "\(count)")
        }
    }

    @Test func onlyTheLast32KiBOfADictionaryCount() throws {
        let filler = ZlibCompression(dictionary: [UInt8](repeating: 0, count: 40_000) + Golden.dictionary)
        #expect(filler.dictionary.count == 32_768)
        let compressed = try #require(try compress(Golden.record, filler))
        #expect(try decompress(compressed, Golden.record.count, filler) == Golden.record)
    }

    @Test(arguments: [-1, 10, Int.max])
    func levelsOutsideZlibsRange(level: Int) throws {
        let error = try #require(throws: FerryError.self) { _ = try ZlibCompression.Level(level) }
        #expect(error.code == .invalidConfiguration)
    }

    @Test func errorsSayWhatAndWhere() throws {
        let cut = try #require(throws: FerryError.self) {
            _ = try decompress(Array(Golden.textLevel6.dropLast(3)), Golden.text.count)
        }
        #expect(cut.message.contains("is cut short after"))
        let long = try #require(throws: FerryError.self) { _ = try decompress(Golden.textLevel6, 535) }
        #expect(long.message.contains("goes on after the 535 plain bytes that were stated"))
        let short = try #require(throws: FerryError.self) { _ = try decompress(Golden.textLevel6, 537) }
        #expect(short.message.contains("with 536 plain bytes, 537 were stated"))
        let tail = try #require(throws: FerryError.self) { _ = try decompress(Golden.textLevel6 + [1], 536) }
        #expect(tail.message.contains("other bytes follow"))
        let damaged = try #require(throws: FerryError.self) { _ = try decompress([0x07, 0, 0], 3) }
        #expect(damaged.message.contains("at byte") && damaged.message.contains("invalid block type"))
    }

    @Test func impossibleClaimsAreRefusedAtOnce() throws {
        for claim in [3 * 1032 + 1, 1 << 40, Int.max, -1, Int.min] {
            let error = try #require(throws: FerryError.self) { _ = try decompress([1, 2, 3], claim) }
            #expect(error.code == .corruptCompression)
        }
    }
}

/// 1 KiB that would be 1 GiB, and its smaller kin.
@Suite(.tags(.compression, .hostility)) struct DecompressionBombTests {
    /// A real bomb: zeros at deflate's best ratio. 1 MiB of them takes about 1 KiB.
    private let bomb: [UInt8]
    private let plainCount = 1 << 20

    init() throws {
        let zeros = [UInt8](repeating: 0, count: plainCount)
        bomb = try #require(try compress(zeros, ZlibCompression(level: .smallest)))
        #expect(bomb.count < 1100)
    }

    /// Unsigned LEB128, written apart from the envelope's.
    private func varint(_ value: Int) -> [UInt8] {
        value < 128 ? [UInt8(value)] : [UInt8(value & 127 | 128)] + varint(value >> 7)
    }

    private func unwrap(_ bytes: [UInt8], _ adjust: (inout Limits) -> Void = { _ in }) throws(FerryError) -> [UInt8] {
        var limits = Limits()
        adjust(&limits)
        return try CompressionEnvelope(compression: ZlibCompression(), limits: limits).unwrap(bytes)
    }

    @Test func statedAsWhatItIs() throws {
        let gibibyte = [0x01] + varint(1 << 30) + bomb
        let error = try #require(throws: FerryError.self) { _ = try unwrap(gibibyte) }
        #expect(error.code == .decompressedTooLarge)
        let ratio = try #require(throws: FerryError.self) {
            _ = try unwrap(gibibyte) { $0.maximumDecompressedSize = 2 << 30 }
        }
        #expect(ratio.code == .compressionRatioExceeded)
        // Even with both limits raised, deflate cannot do it.
        let impossible = try #require(throws: FerryError.self) {
            _ = try unwrap(gibibyte) {
                $0.maximumDecompressedSize = 2 << 30
                $0.maximumCompressionRatio = .max
            }
        }
        #expect(impossible.code == .corruptCompression)
    }

    @Test func statedAsSmallerThanItIs() throws {
        let error = try #require(throws: FerryError.self) { _ = try unwrap([0x01] + varint(1000) + bomb) }
        #expect(error.code == .corruptCompression)
    }

    @Test func withinRaisedLimitsItIsAMessage() throws {
        let plain = try unwrap([0x01] + varint(plainCount) + bomb) { $0.maximumCompressionRatio = 1032 }
        #expect(plain.count == plainCount && plain.allSatisfy { $0 == 0 })
    }

    @Test func equalLimitsUnderstandEachOther() throws {
        let envelope = CompressionEnvelope(compression: ZlibCompression(), limits: Limits())
        let zeros = [UInt8](repeating: 0, count: plainCount)
        let wrapped = try envelope.wrap(zeros)
        #expect(wrapped.first == 0x00)  // about 1000 to 1, above the default limit of 256
        #expect(try envelope.unwrap(wrapped) == zeros)
    }
}
