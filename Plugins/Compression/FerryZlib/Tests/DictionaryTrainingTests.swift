import Ferry
import FerryTesting
import FerryZlib
import TestSupport
import Testing

/// Dictionaries that are made from samples, and what messages that were not among them gain.
@Suite(.tags(.compression)) struct DictionaryTrainingTests {
    /// Records of one kind, of about 100 bytes, which differ in what records differ in.
    private static func records(_ count: Int, seed: UInt64 = 1) -> [[UInt8]] {
        let names = ["Ada", "Grace", "Edsger", "Barbara", "Alan", "Radia"]
        var random = SplitMix64(seed: seed)
        return (0..<count).map { _ in
            let name = names[Int(random.next() % 6)]
            return Array(
                "{\"firstName\":\"\(name)\",\"mail\":\"\(name)\(random.next() % 1000)@example.org\",\"organization\":\"Engines\",\"room\":\(random.next() % 900)}"
                    .utf8)
        }
    }

    private func size(of messages: [[UInt8]], _ compression: ZlibCompression) throws -> Int {
        try messages.reduce(0) { sum, message in
            var output: [UInt8] = []
            return try compression.compress(message.span.bytes, into: &output, budget: .max) ? sum + output.count : sum
        }
    }

    @Test func messagesThatWereNotSamplesTakeAQuarterOfTheirBytes() throws {
        let dictionary = try ZlibCompression.dictionary(trainedOn: Self.records(100))
        let unseen = Self.records(100, seed: 2)
        let (plain, without) = (unseen.reduce(0) { $0 + $1.count }, try size(of: unseen, ZlibCompression()))
        let with = try size(of: unseen, ZlibCompression(dictionary: dictionary))
        #expect(with * 4 < plain, "\(with) of \(plain) bytes")
        #expect(with * 3 < without, "\(with) of \(without) bytes")
        let compression = ZlibCompression(dictionary: dictionary)
        try CompressionConformance(compression, samples: Array(unseen.prefix(3)), others: [ZlibCompression()]).check()
    }

    @Test func theSameSamplesGiveTheSameBytes() throws {
        let samples = Self.records(60)
        let dictionary = try ZlibCompression.dictionary(trainedOn: samples)
        #expect(try ZlibCompression.dictionary(trainedOn: samples) == dictionary)
        // The most valuable part is nearest to the message: what all records have is there once, in the second half.
        let text = String(decoding: dictionary, as: UTF8.self)
        #expect(
            text.suffix(text.count / 2 + 60).contains("@example.org\",\"organization\":\"Engines\",\"room\":"),
            "\(text)")
    }

    @Test(arguments: [64, 100, 1000, 32_768]) func noDictionaryIsLargerThanAskedFor(size: Int) throws {
        let dictionary = try ZlibCompression.dictionary(trainedOn: Self.records(80), maximumSize: size)
        #expect((size == 64 ? 40 : 60)...size ~= dictionary.count, "\(dictionary.count)")
    }

    @Test func whatCannotBeTrainedOnIsRefused() throws {
        func message(_ samples: [[UInt8]], _ size: Int = 4096) throws -> String {
            let error = try #require(throws: FerryError.self) {
                _ = try ZlibCompression.dictionary(trainedOn: samples, maximumSize: size)
            }
            #expect(error.code == .invalidConfiguration)
            return error.message
        }
        let records = Self.records(3)
        for size in [Int.min, 0, 63, 32_769, Int.max] {
            #expect(try message(records, size).contains("give 64 to 32768"))
        }
        #expect(try message([]).contains("0 samples of 0 bytes"))
        #expect(try message([records[0]]).contains("give 2 to 100000 samples"))
        #expect(try message([[UInt8]](repeating: [1], count: 100_001)).contains("100001 samples"))
        #expect(try message([[1, 2, 3, 4, 5], [6, 7, 8, 9]]).contains("share no 4 bytes"))
        #expect(try message([[], [], [1], [2, 3]]).contains("share no 4 bytes"))
    }

    /// Samples of one byte, empty ones, one that is larger than the window, and many that are equal.
    @Test func samplesOfAllSizesAreTaken() throws {
        let record = Self.records(1)[0]
        let large = [UInt8](repeating: 7, count: 100_000) + record
        let dictionary = try ZlibCompression.dictionary(trainedOn: [
            [], [1], record, large, record, record + record, [],
        ])
        #expect(dictionary.count >= record.count - 8)
        let equal = try ZlibCompression.dictionary(trainedOn: [[UInt8]](repeating: record, count: 500))
        #expect(try size(of: [record], ZlibCompression(dictionary: equal)) < 12)
    }

    /// Damage in any place of a message that a dictionary made becomes an error or as many bytes as were stated.
    @Test(.tags(.hostility)) func damagedMessagesStayWithinLimits() throws {
        let dictionary = try ZlibCompression.dictionary(trainedOn: Self.records(50))
        var limits = Limits()
        limits.maximumDecompressedSize = 4096
        let envelope = CompressionEnvelope(compression: ZlibCompression(dictionary: dictionary), limits: limits)
        var random = SplitMix64(seed: 5)
        var arrived = 0
        for record in Self.records(40, seed: 3) {
            let message = try envelope.wrap(record)
            #expect(message.first == 2)
            for _ in 0..<500 {
                var damaged = message
                for _ in 0..<1 + random.next() % 4 {
                    // The name stays: a message of another dictionary is refused before libz sees it.
                    let place = 5 + Int(random.next() % UInt64(damaged.count - 5))
                    damaged[place] = UInt8(truncatingIfNeeded: random.next())
                }
                guard let plain = try? envelope.unwrap(damaged) else { continue }
                arrived += 1
                #expect(plain.count <= 4096)
            }
        }
        #expect(arrived > 100)
    }
}
