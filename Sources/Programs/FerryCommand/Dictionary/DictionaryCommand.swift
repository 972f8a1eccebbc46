import ArgumentParser
import Ferry
import FerryZlib
import FoundationEssentials

/// `ferry dictionary`: makes and shows what both sides of a channel with compression know beforehand.
struct DictionaryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "dictionary", abstract: "Makes a compression dictionary from sample messages, and shows one.",
        discussion: """
            A message of some hundred bytes hardly becomes smaller by itself: what it shares, it shares with other messages. A \
            dictionary has that, and both sides of a channel need the same one. Each compressed message names it by its \
            checksum, so that another dictionary is noticed.

            ferry dictionary train --lines -o card.dictionary cards.jsonl
            ferry advise --records cards.jsonl --dictionary card.dictionary

            In an app: ZlibCompression(dictionary: [UInt8](try Data(contentsOf: file))).
            """,
        subcommands: [Train.self, Show.self])

    /// `ferry dictionary train`.
    struct Train: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Makes a dictionary from sample messages, and says what it gains.",
            discussion: """
                The samples are messages as the codec writes them, not compressed; some hundred of one kind are plenty. What is \
                printed beside the dictionary's name are the sizes of every second sample with a dictionary of the others: \
                what messages that it has not seen will take.
                """)

        @Argument(help: "Files that are a message each; with --lines each line of them is one.")
        var samples: [String]

        @Option(
            name: [.customShort("o"), .long], help: ArgumentHelp("Where to write the dictionary.", valueName: "file"))
        var output: String

        @Flag(help: "Each line of the files is a message, without the line break.")
        var lines = false

        @Option(help: ArgumentHelp("The most bytes of the dictionary, 64 to 32768.", valueName: "bytes"))
        var size = 4096

        @Flag(name: .long, help: "Print JSON.")
        var json = false

        func validate() throws {
            guard (64...32_768).contains(size) else {
                throw ValidationError("--size is \(size); give 64 to 32768 bytes, deflate's window.")
            }
            do { try JSONFile.checkFolder(of: output) } catch { throw CommandEnd.usage(error) }
        }

        func run() async throws {
            var messages: [[UInt8]] = []
            for path in samples {
                let bytes = try SampleFile.contents(of: path)
                messages += lines ? SampleFile.lines(of: bytes) : [bytes]
                guard messages.count <= SampleFile.mostSamples else { break }
            }
            messages.removeAll(where: \.isEmpty)
            let dictionary = try ZlibCompression.dictionary(trainedOn: messages, maximumSize: size)
            let halves = try DictionaryGain(messages, maximumSize: size)
            do { try Data(dictionary).write(to: URL(filePath: output), options: .atomic) } catch {
                throw CommandFailure("Cannot write '\(output)': \(FileProblem.text(error)).")
            }
            let shown = DictionaryFile(dictionary)
            if json {
                let report = TrainingReport(dictionary: shown, samples: messages.count, gain: halves)
                return print(try JSONFile.text(report), terminator: "")
            }
            print("\(shown.checksum)  \(shown.size) bytes, from \(messages.count) samples")
            print(halves.words)
        }
    }

    /// `ferry dictionary show`.
    struct Show: AsyncParsableCommand {
        static let configuration = CommandConfiguration(
            abstract: "Prints a dictionary's checksum, its number in a hello, its size and its text.")

        @Argument(help: "The dictionary's file.")
        var file: String

        @Flag(name: .long, help: "Print JSON, without the text.")
        var json = false

        func run() async throws {
            let (bytes, shown) = try DictionaryFile.read(file)
            if json { return print(try JSONFile.text(shown), terminator: "") }
            print("checksum  \(shown.checksum)   (CRC-32, in each message that is compressed with it)")
            print("number    \(shown.number)   (in the hello of the sequenced framing)")
            print("size      \(shown.size) bytes")
            print("")
            print(String(decoding: bytes, as: UTF8.self).harmless)
        }
    }
}

/// What `ferry dictionary train --json` prints.
private struct TrainingReport: Encodable {
    var dictionary: DictionaryFile
    var samples: Int
    var gain: DictionaryGain
}

/// A dictionary as it is named.
struct DictionaryFile: Codable, Sendable {
    /// Eight hexadecimal digits: the CRC-32 that the envelope of messages has.
    var checksum: String
    /// What ``ZlibCompression`` states as its identifier.
    var number: UInt8
    /// In bytes; only the last 32 KiB of a file count.
    var size: Int

    init(_ dictionary: [UInt8]) {
        let compression = ZlibCompression(dictionary: dictionary)
        let digits = String(compression.dictionaryChecksum ?? 0, radix: 16)
        checksum = String(repeating: "0", count: 8 - digits.count) + digits
        number = compression.identifier
        size = compression.dictionary.count
    }

    /// The bytes of the file that count, and what they are called.
    ///
    /// - Throws: `FerryError` with `unreadableFile`, for an empty file too: it would be no dictionary.
    static func read(_ path: String) throws(FerryError) -> (bytes: [UInt8], name: DictionaryFile) {
        let bytes = try SampleFile.contents(of: path)
        guard !bytes.isEmpty else {
            throw FerryError(
                .unreadableFile, "'\(path)' is empty, which is no dictionary. Make one with ferry dictionary train.")
        }
        return (ZlibCompression(dictionary: bytes).dictionary, DictionaryFile(bytes))
    }
}

/// What a dictionary of one half of some messages makes of the other half, in bytes together, each in its envelope.
struct DictionaryGain: Codable, Sendable {
    /// How many messages were judged.
    var messages: Int
    var plain: Int
    var compressed: Int
    /// `nil` for fewer than four messages, and where the first half shares nothing.
    var withDictionary: Int?

    init(_ messages: [[UInt8]], maximumSize: Int) throws(FerryError) {
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

    var words: String {
        func each(_ sum: Int) -> String { "\(number(messages > 0 ? Double(sum) / Double(messages) : 0, 1)) bytes" }
        let gain =
            withDictionary.map { "with a dictionary of the others \(each($0))" }
            ?? "too few samples to judge a dictionary"
        return "Every second sample: \(each(plain)), compressed \(each(compressed)), \(gain)."
    }
}

/// Files with sample messages.
enum SampleFile {
    /// Most samples that are looked at.
    static let mostSamples = 100_000

    /// The bytes of a file, at most 64 MiB.
    ///
    /// - Throws: `FerryError` with `unreadableFile`.
    static func contents(of path: String) throws(FerryError) -> [UInt8] {
        let bytes: [UInt8]
        do { bytes = Array(try Data(contentsOf: URL(filePath: path))) } catch {
            throw FerryError(.unreadableFile, "Cannot read '\(path)': \(FileProblem.text(error)).")
        }
        guard bytes.count <= 64 << 20 else {
            throw FerryError(.unreadableFile, "'\(path)' has \(bytes.count) bytes; give at most 64 MiB of samples.")
        }
        return bytes
    }

    /// The lines of a file, without line breaks, empty ones left out.
    static func lines(of bytes: [UInt8]) -> [[UInt8]] {
        bytes.split(separator: 10).map { $0.last == 13 ? Array($0.dropLast()) : Array($0) }.filter { !$0.isEmpty }
    }
}
