import ArgumentParser
import Ferry
import FerryLab
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
                The samples are messages as the codec writes them, not compressed; some hundred of one kind are plenty. The \
                sizes printed beside the dictionary's name are those of every second sample with a dictionary of the others: \
                the sizes of messages that it has not seen.
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
