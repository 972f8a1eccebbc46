import Foundation
import Testing

/// Another implementation as a process: a line to its standard input, a line of its standard output in answer.
package final class LinePeer {
    private let process: ChildProcess
    private let input = Pipe()
    private let output = Pipe()
    private var rest = Data()

    /// - Parameters:
    ///   - program: the interpreter.
    ///   - script: what it runs, from the package's folder.
    package init(_ program: String, _ script: String) throws {
        process = try ChildProcess(program, [script], input: .pipe(input), output: .pipe(output), errors: .none)
    }

    deinit {
        try? input.fileHandleForWriting.close()
        process.signal(SIGTERM)
        process.endedHere()
    }

    /// The answer to a line.
    package func ask(_ line: String) throws -> String {
        try input.fileHandleForWriting.write(contentsOf: Data((line + "\n").utf8))
        while !rest.contains(0x0A) {
            let more = output.fileHandleForReading.availableData
            try #require(!more.isEmpty, "the other implementation has ended at \(line)")
            rest += more
        }
        let end = try #require(rest.firstIndex(of: 0x0A))
        defer { rest = Data(rest[(end + 1)...]) }
        return String(decoding: rest[..<end], as: UTF8.self)
    }
}
