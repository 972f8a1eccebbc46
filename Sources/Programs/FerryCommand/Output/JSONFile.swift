import Ferry
import FerryLab
import FoundationEssentials

/// Reading and writing JSON, with errors that name the file.
enum JSONFile {
    static func read<Value: Decodable>(_ path: String, _ what: String) throws(FerryError) -> Value {
        do {
            return try JSONDecoder().decode(Value.self, from: Data(contentsOf: URL(filePath: path)))
        } catch {
            throw FerryError(
                .unreadableFile, "Cannot read a \(what) from '\(path)': \(FileProblem.text(error)).")
        }
    }

    /// Sorted keys and one form of each number, so that equal values are equal bytes.
    static func text<Value: Encodable>(_ value: Value) throws -> String {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
        return String(decoding: try encoder.encode(value), as: UTF8.self).harmlessJSON + "\n"
    }

    /// Refuses a path that cannot be written to, before the work that the file is for.
    static func checkFolder(of path: String) throws(FerryError) {
        let folder = URL(filePath: path).deletingLastPathComponent().path()
        guard FileManager.default.isWritableFile(atPath: folder) else {
            throw FerryError(
                .unreadableFile, "Cannot write '\(path)': its folder does not exist or is not writable.")
        }
        var isFolder = false
        if FileManager.default.fileExists(atPath: path, isDirectory: &isFolder), isFolder {
            throw FerryError(.unreadableFile, "Cannot write '\(path)': it is a folder. Name a file in it.")
        }
    }

    static func write(_ text: String, to path: String) throws(FerryError) {
        do {
            try Data(text.utf8).write(to: URL(filePath: path), options: .atomic)
        } catch {
            throw FerryError(.invalidConfiguration, "Cannot write '\(path)': \(FileProblem.text(error)).")
        }
    }
}
