import ArgumentParser
import Ferry
import FerrySequenced

/// `ferry trace`: says what each chunk of a captured exchange of the sequenced framing is.
struct Trace: ParsableCommand {
    static let configuration = CommandConfiguration(
        abstract: "Prints a captured stream of chunks of the sequenced framing as messages, acknowledgements and gaps.",
        discussion: """
            Reads lines from standard input: > or < for who sent a chunk, then its bytes in hexadecimal, with or without
            spaces. Give a link's chunks from its first on. Empty lines and lines that begin with # are passed over.
            """)

    func run() throws {
        var trace = SequencedTrace()
        var number = 0
        while let line = readLine() {
            number += 1
            guard let (side, chunk) = try Self.chunk(line, number) else { continue }
            print(trace.describe(chunk.span.bytes, from: side))
        }
    }

    /// What a line says, or nil when it says nothing.
    static func chunk(_ line: String, _ number: Int) throws -> (SequencedTrace.Side, [UInt8])? {
        let text = line.filter { !$0.isWhitespace }
        guard let first = text.first, first != "#" else { return nil }
        let digits = Array(text.dropFirst().utf8)
        var chunk: [UInt8] = []
        for index in stride(from: 0, to: digits.count, by: 2) {
            let pair = String(decoding: digits[index..<min(index + 2, digits.count)], as: UTF8.self)
            guard pair.utf8.count == 2, pair.allSatisfy(\.isHexDigit), let byte = UInt8(pair, radix: 16) else {
                throw ValidationError(
                    "Line \(number): '\(pair)' is not a byte in hexadecimal. Give two digits for each.")
            }
            chunk.append(byte)
        }
        switch first {
        case ">": return (.first, chunk)
        case "<": return (.second, chunk)
        default: throw ValidationError("Line \(number) begins with neither > nor <, which say who sent the chunk.")
        }
    }
}
