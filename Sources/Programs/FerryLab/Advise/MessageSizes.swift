package import Ferry
import FerryZlib
import FoundationEssentials

/// How large the messages are, and what compression makes of them where that is known.
package struct MessageSizes {
    /// Sizes with their weights, smallest first.
    private(set) var plain: [(size: Int, weight: Double)]
    /// Compressed size over plain size, all samples together; nil without samples.
    let compressionRatio: Double?

    /// Most samples that are looked at.
    private static let mostSamples = 100_000
    private static let largest = 16 << 20

    /// From text such as `60:70,2000:30`: sizes in bytes with optional weights.
    package init(distribution: String) throws(FerryError) {
        (plain, compressionRatio) = ([], nil)
        for part in distribution.split(separator: ",") {
            let numbers = part.split(separator: ":", omittingEmptySubsequences: false).map {
                Double($0.filter { $0 != " " })
            }
            guard (1...2).contains(numbers.count), let size = numbers[0],
                let weight = numbers.count > 1 ? numbers[1] : 1,
                size >= 0, size <= Double(Self.largest), size == size.rounded(), weight > 0, weight < 1e12
            else {
                throw FerryError(
                    .invalidConfiguration,
                    "'\(part)' is not a message size: write 2000, or 60:70,2000:30 for sizes with weights; 0 to "
                        + "\(Self.largest) bytes (Limits.maximumMessageSize).")
            }
            plain.append((Int(size), weight))
        }
        try sort()
    }

    /// From a file with one size in bytes on each line.
    package init(sizesIn path: String) throws(FerryError) {
        let text = String(decoding: try Self.contents(of: path), as: UTF8.self)
        (plain, compressionRatio) = ([], nil)
        for (number, line) in text.split(omittingEmptySubsequences: false, whereSeparator: \.isNewline).enumerated() {
            let trimmed = line.filter { !$0.isWhitespace }
            guard !trimmed.isEmpty, plain.count < Self.mostSamples else { continue }
            guard let size = Int(trimmed), (0...Self.largest).contains(size) else {
                throw FerryError(
                    .unreadableFile,
                    "Line \(number + 1) of '\(path)' is '\(line.prefix(40))'; each line has a message size in bytes, 0 to "
                        + "\(Self.largest).")
            }
            plain.append((size, 1))
        }
        try sort()
    }

    /// From files each of which is one message.
    package init(samples paths: [String]) throws(FerryError) {
        var messages: [(name: String, bytes: [UInt8])] = []
        for path in paths.prefix(Self.mostSamples) {
            let bytes = try Self.contents(of: path)
            guard bytes.count <= Self.largest else {
                throw FerryError(.messageTooLarge, "'\(path)' has \(bytes.count) bytes; at most \(Self.largest).")
            }
            messages.append((path, bytes))
        }
        try self.init(messages: messages)
    }

    /// From messages as they are sent. An error names the one that it is about.
    package init(messages: [(name: String, bytes: [UInt8])]) throws(FerryError) {
        plain = []
        var (before, after) = (0, 0)
        let compression = ZlibCompression()
        for (name, bytes) in messages {
            plain.append((bytes.count, 1))
            var compressed: [UInt8] = []
            let isSmaller: Bool
            do {
                isSmaller = try compression.compress(bytes.span.bytes, into: &compressed, budget: bytes.count)
            } catch {
                throw FerryError(.encodingFailed, "'\(name)' cannot be compressed.", cause: error)
            }
            before += bytes.count
            after += isSmaller ? compressed.count : bytes.count
        }
        compressionRatio = before > 0 ? Double(after) / Double(before) : 1
        try sort()
    }

    private static func contents(of path: String) throws(FerryError) -> [UInt8] {
        do { return Array(try Data(contentsOf: URL(filePath: path))) } catch {
            throw FerryError(.unreadableFile, "Cannot read '\(path)': \(FileProblem.text(error)).")
        }
    }

    private mutating func sort() throws(FerryError) {
        guard !plain.isEmpty else {
            throw FerryError(.invalidConfiguration, "There are no message sizes. Give at least one.")
        }
        plain.sort { $0.size < $1.size }
    }

    /// The size that so large a part of the messages, 0 to 1, does not exceed.
    package func quantile(_ part: Double) -> Int {
        let total = plain.map(\.weight).reduce(0, +)
        var sum = 0.0
        for entry in plain {
            sum += entry.weight
            if sum >= part * total { return entry.size }
        }
        return plain.last?.size ?? 0
    }
}
