/// The envelope of every payload on a channel with compression.
///
/// ```
/// stored:      00, payload
/// compressed:  01, plain length as a varint, compressed payload
/// likewise:    02, dictionary's checksum, plain length as a varint, compressed payload
/// ```
///
/// 01 is for compressions without a ``Compression/dictionaryChecksum``, 02 for those that have one: 4 bytes, the most
/// significant first. A receiver refuses the one that is not its own compression's, and another checksum.
///
/// The varint is unsigned LEB128: seven bits a byte, least significant first, the top bit set on all but the last byte,
/// at most 10 bytes, shortest form only. A payload is stored when compression would not make the whole smaller, or when
/// the compressed form would break ``Limits/maximumDecompressedSize`` or ``Limits/maximumCompressionRatio``, so two
/// channels with equal limits always understand each other.
package struct CompressionEnvelope: Sendable {
    /// What makes payloads smaller.
    package let compression: any Compression
    /// The bounds on what a compressed payload may become.
    package let limits: Limits

    private enum Kind {
        static let stored: UInt8 = 0x00
        static let compressed: UInt8 = 0x01
        static let compressedWithDictionary: UInt8 = 0x02
    }

    package init(compression: any Compression, limits: Limits) {
        self.compression = compression
        self.limits = limits
    }

    /// `payload` in its envelope: never more than one byte longer than it was.
    ///
    /// - Throws: ``FerryError`` with `encodingFailed` when the compression cannot work at all.
    package func wrap(_ payload: [UInt8]) throws(FerryError) -> [UInt8] {
        if payload.count <= limits.maximumDecompressedSize, let compressed = try compress(payload) {
            return compressed
        }
        var stored: [UInt8] = []
        stored.reserveCapacity(payload.count + 1)
        stored.append(Kind.stored)
        stored.append(contentsOf: payload)
        return stored
    }

    private func compress(_ payload: [UInt8]) throws(FerryError) -> [UInt8]? {
        var output = Self.head(compression.dictionaryChecksum)
        Varint.append(UInt64(payload.count), to: &output)
        let headerCount = output.count
        let budget = payload.count - headerCount  // the stored form has payload.count + 1 bytes
        guard budget > 0 else { return nil }
        do {
            guard try compression.compress(payload.span.bytes, into: &output, budget: budget) else { return nil }
        } catch let error as FerryError {
            throw error
        } catch {
            throw FerryError(
                .encodingFailed, "A payload of \(payload.count) bytes could not be compressed: \(error).", cause: error)
        }
        let compressedCount = output.count - headerCount
        guard compressedCount <= budget, isWithinRatio(plain: payload.count, compressed: compressedCount) else {
            return nil
        }
        return output
    }

    /// What a compressed payload begins with.
    private static func head(_ checksum: UInt32?) -> [UInt8] {
        guard let checksum else { return [Kind.compressed] }
        return [Kind.compressedWithDictionary]
            + [24, 16, 8, 0].map { UInt8(truncatingIfNeeded: checksum >> UInt32($0)) }
    }

    /// The payload in the envelope `bytes`. The stated length is checked before any memory is taken for it.
    ///
    /// - Throws: ``FerryError`` with `corruptCompression`, `decompressedTooLarge` or `compressionRatioExceeded`.
    package func unwrap(_ bytes: [UInt8]) throws(FerryError) -> [UInt8] {
        switch bytes.first {
        case nil:
            throw FerryError(
                .corruptCompression,
                "A message arrived without a compression envelope: it is empty. Turn compression on or off on both sides."
            )
        case Kind.stored:
            return Array(bytes.dropFirst())
        case Kind.compressed, Kind.compressedWithDictionary:
            return try decompress(bytes)
        case let kind?:
            throw FerryError(
                .corruptCompression,
                "A message of \(bytes.count) bytes begins with the envelope byte \(kind), which is neither 0 (stored) "
                    + "nor 1 or 2 (compressed). Turn compression on or off on both sides.")
        }
    }

    private func decompress(_ bytes: [UInt8]) throws(FerryError) -> [UInt8] {
        let head = Self.head(compression.dictionaryChecksum)
        guard bytes.starts(with: head) else { throw wrongDictionary(bytes) }
        let (stated, start) = try Self.readLength(bytes, from: head.count)
        guard let plainCount = Int(exactly: stated), plainCount <= limits.maximumDecompressedSize else {
            throw FerryError(
                .decompressedTooLarge,
                "A compressed message states a plain length of \(stated) bytes; the limit is "
                    + "\(limits.maximumDecompressedSize) (Limits.maximumDecompressedSize).")
        }
        let compressedCount = bytes.count - start
        guard isWithinRatio(plain: plainCount, compressed: compressedCount) else {
            throw FerryError(
                .compressionRatioExceeded,
                "A compressed message states that its \(compressedCount) bytes become \(plainCount); the limit is "
                    + "\(limits.maximumCompressionRatio) to 1 (Limits.maximumCompressionRatio).")
        }
        let compressed = bytes.span.bytes.extracting(start..<bytes.count)
        let plain = try compression.decompress(compressed, plainCount: plainCount)
        guard plain.count == plainCount else {
            throw FerryError(
                .corruptCompression,
                "A compressed message states \(plainCount) plain bytes and yields \(plain.count).")
        }
        return plain
    }

    private func isWithinRatio(plain: Int, compressed: Int) -> Bool {
        let (bound, overflow) = compressed.multipliedReportingOverflow(by: max(limits.maximumCompressionRatio, 0))
        return overflow || plain <= bound
    }

    /// The plain length that begins at `start`, and where it ends.
    private static func readLength(_ bytes: [UInt8], from start: Int) throws(FerryError) -> (UInt64, end: Int) {
        var decoder = Varint.Decoder()
        for index in start..<bytes.count {
            do {
                if let length = try decoder.push(bytes[index]) { return (length, index + 1) }
            } catch {
                throw corruptLength(
                    error == .overflow ? "is longer than 64 bits" : "is not in its shortest form", bytes)
            }
        }
        throw corruptLength("is cut short", bytes)
    }

    /// A compressed payload that does not begin as this side's do.
    private func wrongDictionary(_ bytes: [UInt8]) -> FerryError {
        func hex(_ number: UInt32) -> String {
            let digits = String(number, radix: 16)
            return String(repeating: "0", count: 8 - digits.count) + digits
        }
        let own = compression.dictionaryChecksum.map { "has the one of checksum \(hex($0))" } ?? "has none"
        let checksum = bytes.dropFirst().prefix(4)
        let theirs =
            if bytes.first == Kind.compressed {
                "without a dictionary, or by a version that does not name it"
            } else if checksum.count < 4 {
                "with a dictionary whose checksum is cut short"
            } else {
                "with the dictionary of checksum \(hex(checksum.reduce(0) { $0 << 8 | UInt32($1) }))"
            }
        return FerryError(
            .corruptCompression,
            "A message of \(bytes.count) bytes was compressed \(theirs); this side \(own). Use the same compression with the "
                + "same dictionary on both sides.")
    }

    private static func corruptLength(_ what: String, _ bytes: [UInt8]) -> FerryError {
        FerryError(
            .corruptCompression,
            "The plain length of a compressed message of \(bytes.count) bytes \(what). "
                + "Turn compression on or off on both sides.")
    }
}
