package import Foundation

/// A case of a file of golden vectors. `Tests/Vectors/README.md` has the format.
package struct VectorCase: Sendable, CustomStringConvertible {
    package let name: String
    /// Each line as its words.
    package var lines: [[String]] = []

    package var description: String { name }

    /// What follows `key` on the one line that begins with it; `nil` without one.
    package func words(of key: String) -> [String]? {
        lines.first { $0.first == key }.map { Array($0.dropFirst()) }
    }

    /// The bytes on the line that begins with `key`; `nil` without one.
    package func bytes(of key: String) -> [UInt8]? { words(of: key)?.first.map(vectorBytes) }

    /// The lines but those that begin with one of `keys`.
    package func lines(without keys: String...) -> [[String]] { lines.filter { !keys.contains($0[0]) } }
}

/// Where the vectors are.
package let vectorFolder = packageFolder.appending(path: "Tests/Vectors")

/// The folder that Package.swift is in.
package let packageFolder = URL(filePath: #filePath).deletingLastPathComponent().deletingLastPathComponent()
    .deletingLastPathComponent()

/// The cases of a file, by its name without `.txt`.
package func vectorCases(_ file: String) throws -> [VectorCase] {
    let text = try String(contentsOf: vectorFolder.appending(path: "\(file).txt"), encoding: .utf8)
    var cases: [VectorCase] = []
    for line in text.split(separator: "\n") where !line.hasPrefix("#") {
        if line.hasPrefix("case ") {
            cases.append(VectorCase(name: String(line.dropFirst(5))))
        } else {
            cases[cases.count - 1].lines.append(line.split(separator: " ").map(String.init))
        }
    }
    return cases
}

/// The bytes of a word: pairs of hexadecimal digits, or `-` for none.
package func vectorBytes(_ word: String) -> [UInt8] {
    guard word != "-" else { return [] }
    let digits = word.compactMap { $0.hexDigitValue.map(UInt8.init) }
    precondition(digits.count == word.utf8.count && digits.count % 2 == 0, "not hexadecimal: \(word)")
    return stride(from: 0, to: digits.count, by: 2).map { digits[$0] << 4 | digits[$0 + 1] }
}

/// Bytes as a word of a file of vectors.
package func vectorWord(_ bytes: [UInt8]) -> String {
    bytes.isEmpty ? "-" : bytes.map { ($0 < 16 ? "0" : "") + String($0, radix: 16) }.joined()
}
