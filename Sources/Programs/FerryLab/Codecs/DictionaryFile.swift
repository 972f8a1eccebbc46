package import Ferry
import FerryZlib

/// A dictionary as it is named.
package struct DictionaryFile: Codable, Sendable {
    /// Eight hexadecimal digits: the CRC-32 that the envelope of messages has.
    package var checksum: String
    /// What ``ZlibCompression`` states as its identifier.
    package var number: UInt8
    /// In bytes; only the last 32 KiB of a file count.
    package var size: Int

    package init(_ dictionary: [UInt8]) {
        let compression = ZlibCompression(dictionary: dictionary)
        let digits = String(compression.dictionaryChecksum ?? 0, radix: 16)
        checksum = String(repeating: "0", count: 8 - digits.count) + digits
        number = compression.identifier
        size = compression.dictionary.count
    }

    /// The bytes of the file that count, and what they are called.
    ///
    /// - Throws: `FerryError` with `unreadableFile`, for an empty file too: it would be no dictionary.
    package static func read(_ path: String) throws(FerryError) -> (bytes: [UInt8], name: DictionaryFile) {
        let bytes = try SampleFile.contents(of: path)
        guard !bytes.isEmpty else {
            throw FerryError(
                .unreadableFile, "'\(path)' is empty, which is no dictionary. Make one with ferry dictionary train.")
        }
        return (ZlibCompression(dictionary: bytes).dictionary, DictionaryFile(bytes))
    }
}

/// What a dictionary of one half of some messages makes of the other half, in bytes together, each in its envelope.
package struct DictionaryGain: Codable, Sendable {
    /// How many messages were judged.
    var messages: Int
    var plain: Int
    var compressed: Int
    /// `nil` for fewer than four messages, and where the first half shares nothing.
    var withDictionary: Int?

    package init(_ messages: [[UInt8]], maximumSize: Int) throws(FerryError) {
        let judged = messages.indices.filter { $0 % 2 == 1 }.map { messages[$0] }
        let others = messages.indices.filter { $0 % 2 == 0 }.map { messages[$0] }
        self.messages = judged.count
        plain = judged.reduce(0) { $0 + $1.count }
        compressed = try Self.size(of: judged, ZlibCompression())
        guard messages.count >= 4,
            let dictionary = try? ZlibCompression.dictionary(trainedOn: others, maximumSize: maximumSize)
        else { return }
        withDictionary = try Self.size(of: judged, ZlibCompression(dictionary: dictionary))
    }

    /// The bytes of all of them as they cross a channel with this compression.
    static func size(of messages: [[UInt8]], _ compression: ZlibCompression) throws(FerryError) -> Int {
        // The sender's own messages: none of them is too large, and no ratio too good.
        var limits = Limits()
        limits.maximumCompressionRatio = .max
        let envelope = CompressionEnvelope(compression: compression, limits: limits)
        var sum = 0
        for message in messages { sum += try envelope.wrap(message).count }
        return sum
    }

    package var words: String {
        func each(_ sum: Int) -> String { "\(number(messages > 0 ? Double(sum) / Double(messages) : 0, 1)) bytes" }
        let gain =
            withDictionary.map { "with a dictionary of the others \(each($0))" }
            ?? "too few samples to judge a dictionary"
        return "Every second sample: \(each(plain)), compressed \(each(compressed)), \(gain)."
    }
}
