import CZlib
public import Ferry

/// Raw deflate (RFC 1951) by the system's libz: no header, no checksum.
///
/// Both sides must use the same dictionary. Raw deflate does not name the dictionary it was made with, so the channel does
/// (``dictionaryChecksum``), and refuses messages that were made with another. The level may differ from side to side.
///
/// Per call, libz takes about 256 KiB for compressing and 40 KiB for decompressing, beside the result.
public struct ZlibCompression: Compression {
    /// How hard to try, from 0 (stored only) through 1 (fastest) to 9 (smallest).
    public struct Level: Sendable, Hashable {
        /// 0 to 9, as zlib counts.
        public let rawValue: Int

        /// Makes a level from zlib's number.
        ///
        /// - Throws: `FerryError` with `invalidConfiguration` outside 0...9.
        public init(_ rawValue: Int) throws(FerryError) {
            guard (0...9).contains(rawValue) else {
                throw FerryError(
                    .invalidConfiguration, "The compression level \(rawValue) is outside zlib's range, 0 to 9.")
            }
            self.rawValue = rawValue
        }

        private init(known rawValue: Int) { self.rawValue = rawValue }

        /// Level 1.
        public static let fastest = Level(known: 1)
        /// Level 6, zlib's own default.
        public static let balanced = Level(known: 6)
        /// Level 9.
        public static let smallest = Level(known: 9)
    }

    /// 1; with a dictionary 128 and the upper seven bits of its CRC-32, so that most wrong dictionaries are refused where the
    /// number is compared.
    public let identifier: UInt8

    /// The CRC-32 (RFC 1952) of ``dictionary``, nil without one. The channel states it with each compressed message.
    public let dictionaryChecksum: UInt32?

    /// How hard to try.
    public let level: Level

    /// What both sides know beforehand: text that is likely to occur in messages, the likeliest last. Worth much for
    /// records of some hundred bytes. Only the last 32 KiB are used, deflate's window.
    public let dictionary: [UInt8]

    /// Makes the compression.
    public init(level: Level = .balanced, dictionary: [UInt8] = []) {
        let dictionary = dictionary.count <= 32768 ? dictionary : Array(dictionary.suffix(32768))
        let checksum = dictionary.withUnsafeBufferPointer { crc32(0, $0.baseAddress, UInt32($0.count)) }
        self.level = level
        self.dictionary = dictionary
        identifier = dictionary.isEmpty ? 1 : 0x80 | UInt8(truncatingIfNeeded: checksum >> 25)
        dictionaryChecksum = dictionary.isEmpty ? nil : UInt32(truncatingIfNeeded: checksum)
    }

    /// Appends `plain` as one raw deflate stream.
    ///
    /// - Returns: false when the stream would need more than `budget` bytes.
    /// - Throws: `FerryError` with `invalidConfiguration` when libz cannot start.
    public func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws(FerryError) -> Bool {
        guard budget > 0 else { return false }
        var deflater = try Deflater(level: level.rawValue, dictionary: dictionary)
        return try deflater.deflate(plain, into: &output, budget: budget)
    }

    /// The plain form of one raw deflate stream.
    ///
    /// - Throws: `FerryError` with `corruptCompression`, naming libz's reason and the place in the stream;
    ///   `invalidConfiguration` when libz cannot start.
    public func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] {
        // One length and one distance code of one bit each stand for at most 258 bytes: 1032 bytes in 8 bits.
        let (mostPossible, overflow) = compressed.byteCount.multipliedReportingOverflow(by: 1032)
        guard plainCount >= 0, overflow || plainCount <= mostPossible else {
            throw FerryError(
                .corruptCompression,
                "\(compressed.byteCount) bytes of deflate cannot become \(plainCount): the most is 1032 to 1.")
        }
        var inflater = try Inflater()
        try inflater.setDictionary(dictionary)
        return try inflater.inflate(compressed, plainCount: plainCount)
    }
}
