public import Ferry

/// Checks a ``/Ferry/Compression`` against its contract, in any test library:
///
/// ```swift
/// @Test func conforms() throws { try CompressionConformance(ZlibCompression()).check() }
/// ```
///
/// A compression with settings that both sides must share names some that differ, and contents that use them:
///
/// ```swift
/// try CompressionConformance(
///     ZlibCompression(dictionary: names), samples: [record],
///     others: [ZlibCompression(dictionary: otherNames), ZlibCompression()]
/// ).check()
/// ```
///
/// A trap or a hang cannot be caught and ends the test run; that is a failure too.
public struct CompressionConformance {
    private let compression: any Compression
    private let samples: [[UInt8]]
    private let others: [any Compression]
    private let seed: UInt64

    /// Makes the kit.
    ///
    /// - Parameters:
    ///   - compression: the compression to be checked.
    ///   - samples: contents beside those of the kit, such as ones that a dictionary is good for.
    ///   - others: the same compression with other settings. What one of them compressed is refused by the other, or becomes
    ///     what it was; never other bytes.
    ///   - seed: of the random contents; a failure names it.
    public init(
        _ compression: any Compression, samples: [[UInt8]] = [], others: [any Compression] = [], seed: UInt64 = 1
    ) {
        self.compression = compression
        self.samples = samples
        self.others = others
        self.seed = seed
    }

    /// Runs all checks.
    ///
    /// - Throws: ``ConformanceFailure`` for the first requirement that is not met.
    public func check() throws(ConformanceFailure) {
        for (index, sample) in samples.enumerated() { try check(sample, "sample \(index) of \(sample.count) bytes") }
        for size in [0, 1, 2, 3, 15, 16, 17, 255, 256, 257, 4095, 4096, 65_535, 65_536, 100_000] {
            for (kind, plain) in contents(size) {
                try check(plain, "\(size) bytes of \(kind) (seed \(seed))")
            }
        }
    }

    private func check(_ plain: [UInt8], _ what: String) throws(ConformanceFailure) {
        let compressed = try checkRoundTrip(plain, what)
        try checkBudget(plain, compressed, what)
        try checkWrongCounts(plain, compressed, what)
        try checkTrailingBytes(plain, compressed, what)
        if compressed.count <= 300 { try checkTruncation(plain, compressed, what) }
        if compressed.count <= 80 { try checkBitFlips(plain, compressed, what) }
        for (index, other) in others.enumerated() {
            try checkOther(plain, from: other, to: compression, "\(what), compressed by other \(index)")
            try checkOther(plain, from: compression, to: other, "\(what), decompressed by other \(index)")
        }
    }

    /// Settings that differ are noticed, or make no difference.
    private func checkOther(
        _ plain: [UInt8], from sender: any Compression, to receiver: any Compression, _ what: String
    ) throws(ConformanceFailure) {
        var limits = Limits()
        limits.maximumCompressionRatio = .max
        let enveloped: [UInt8]
        do throws(FerryError) {
            enveloped = try CompressionEnvelope(compression: sender, limits: limits).wrap(plain)
        } catch {
            throw ConformanceFailure("Anything can be compressed", "\(what): \(error)")
        }
        let decompressed: [UInt8]
        do throws(FerryError) {
            decompressed = try CompressionEnvelope(compression: receiver, limits: limits).unwrap(enveloped)
        } catch {
            return try requireCorruptCompression(error, what)
        }
        guard decompressed == plain else {
            throw ConformanceFailure("A payload compressed with other settings is refused", what)
        }
    }

    private func contents(_ size: Int) -> [(String, [UInt8])] {
        var random = SplitMix64(seed: seed &+ UInt64(size))
        let text = Array("Ferry carries an app's records across small links, chunk by chunk. ".utf8)
        return [
            ("zeros", [UInt8](repeating: 0, count: size)),
            ("text", (0..<size).map { text[$0 % text.count] }),
            ("a ramp", (0..<size).map { UInt8(truncatingIfNeeded: $0) }),
            ("random bytes", random.bytes(size)),
        ]
    }

    /// Compresses with a budget that is always enough, behind two bytes that must stay as they are.
    private func checkRoundTrip(_ plain: [UInt8], _ what: String) throws(ConformanceFailure) -> [UInt8] {
        let before: [UInt8] = [0xA5, 0x5A]
        var output = before
        let enough = 2 * plain.count + 1024
        guard try compress(plain, into: &output, budget: enough, what) else {
            throw ConformanceFailure("A budget of twice the plain size and 1 KiB is enough", what)
        }
        guard output.starts(with: before), output.count - before.count <= enough else {
            throw ConformanceFailure("The compressed form is appended", what)
        }
        let compressed = Array(output.dropFirst(before.count))
        let decompressed: [UInt8]
        do throws(FerryError) { decompressed = try decompress(compressed, plain.count) } catch {
            throw ConformanceFailure("A compressed payload can be decompressed", "\(what): \(error)")
        }
        guard decompressed == plain else { throw ConformanceFailure("A payload survives the round trip", what) }
        return compressed
    }

    private func checkBudget(
        _ plain: [UInt8], _ compressed: [UInt8], _ what: String
    ) throws(ConformanceFailure) {
        let needed = compressed.count
        let before: [UInt8] = [1, 2, 3]
        for budget in Set([needed, needed - 1, needed / 2, 1, 0]) where budget >= 0 {
            var output = before
            let fits = try compress(plain, into: &output, budget: budget, what)
            guard fits || output == before else {
                throw ConformanceFailure("Over budget, the output is as it was", "\(what), budget \(budget)")
            }
            guard fits || budget < needed else {
                throw ConformanceFailure("A budget of exactly the needed size is enough", "\(what), budget \(budget)")
            }
            guard output.count - before.count <= budget, output.starts(with: before) else {
                throw ConformanceFailure("The budget is respected", "\(what), budget \(budget), wrote \(output.count)")
            }
        }
    }

    private func checkWrongCounts(
        _ plain: [UInt8], _ compressed: [UInt8], _ what: String
    ) throws(ConformanceFailure) {
        for count in Set([0, plain.count / 2, plain.count - 1, plain.count + 1, 2 * plain.count + 1, -1])
        where count != plain.count {
            try mustRefuse(compressed, count, "A wrong plain length is refused", "\(what), stated as \(count)")
        }
    }

    private func checkTrailingBytes(
        _ plain: [UInt8], _ compressed: [UInt8], _ what: String
    ) throws(ConformanceFailure) {
        for tail in [[0x00], [0xFF], compressed] where !tail.isEmpty {
            try mustRefuse(
                compressed + tail, plain.count, "Bytes after the end are refused", "\(what), \(tail.count) more bytes")
        }
    }

    private func checkTruncation(
        _ plain: [UInt8], _ compressed: [UInt8], _ what: String
    ) throws(ConformanceFailure) {
        for count in 0..<compressed.count {
            try mustRefuse(
                Array(compressed.prefix(count)), plain.count, "A stream cut short is refused",
                "\(what), cut to \(count) of \(compressed.count) bytes")
        }
    }

    /// Damage that cannot be noticed yields as many bytes as were stated.
    private func checkBitFlips(
        _ plain: [UInt8], _ compressed: [UInt8], _ what: String
    ) throws(ConformanceFailure) {
        for bit in 0..<compressed.count * 8 {
            var damaged = compressed
            damaged[bit / 8] ^= 1 << UInt8(bit % 8)
            let decompressed: [UInt8]
            do throws(FerryError) { decompressed = try decompress(damaged, plain.count) } catch {
                try requireCorruptCompression(error, "\(what), bit \(bit) flipped")
                continue
            }
            guard decompressed.count == plain.count else {
                throw ConformanceFailure(
                    "A damaged stream is refused or has the stated length", "\(what), bit \(bit) flipped")
            }
        }
    }

    private func mustRefuse(
        _ compressed: [UInt8], _ plainCount: Int, _ requirement: String, _ detail: String
    ) throws(ConformanceFailure) {
        do throws(FerryError) {
            _ = try decompress(compressed, plainCount)
        } catch {
            return try requireCorruptCompression(error, detail)
        }
        throw ConformanceFailure(requirement, detail)
    }

    private func requireCorruptCompression(_ error: FerryError, _ detail: String) throws(ConformanceFailure) {
        guard error.code == .corruptCompression else {
            throw ConformanceFailure("A bad stream is reported as corruptCompression", "\(detail): \(error)")
        }
    }

    private func compress(
        _ plain: [UInt8], into output: inout [UInt8], budget: Int, _ what: String
    ) throws(ConformanceFailure) -> Bool {
        do { return try compression.compress(plain.span.bytes, into: &output, budget: budget) } catch {
            throw ConformanceFailure("Anything can be compressed", "\(what): \(error)")
        }
    }

    private func decompress(_ compressed: [UInt8], _ plainCount: Int) throws(FerryError) -> [UInt8] {
        try compression.decompress(compressed.span.bytes, plainCount: plainCount)
    }
}
