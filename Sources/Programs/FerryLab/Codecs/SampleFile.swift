package import Ferry
import Foundation

/// Files with sample messages.
package enum SampleFile {
    /// Most samples that are looked at.
    package static let mostSamples = 100_000

    /// The bytes of a file, at most 64 MiB.
    ///
    /// - Throws: `FerryError` with `unreadableFile`.
    package static func contents(of path: String) throws(FerryError) -> [UInt8] {
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
    package static func lines(of bytes: [UInt8]) -> [[UInt8]] {
        bytes.split(separator: 10).map { $0.last == 13 ? Array($0.dropLast()) : Array($0) }.filter { !$0.isEmpty }
    }
}

extension FerryError.Code {
    /// A file that a person named cannot be read.
    package static let unreadableFile = FerryError.Code("command.unreadableFile")
}
