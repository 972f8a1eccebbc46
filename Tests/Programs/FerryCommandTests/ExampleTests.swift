import Ferry
import FerryTransports
import Foundation
import TestSupport
import Testing

@testable import FerryCommand

/// What the help and the pages have people type.
@Suite("Examples of command lines", .tags(.program)) struct ExampleTests {
    /// The pages, and the sources with the help of commands.
    private static func texts() throws -> [(name: String, text: String)] {
        let files =
            try ["README.md"]
            + ["Documentation", "Sources", "Examples", "Plugins"].flatMap { folder in
                try FileManager.default.subpathsOfDirectory(atPath: packageFolder.appending(path: folder).path)
                    .filter {
                        $0.hasSuffix(".md")
                            || ($0.hasSuffix("Command.swift") || $0.contains("/Command")) && $0.hasSuffix(".swift")
                    }
                    .map { "\(folder)/\($0)" }
            }
        return try files.map { ($0, try String(contentsOf: packageFolder.appending(path: $0), encoding: .utf8)) }
    }

    @Test("Each transport that is named in an example is one") func transports() throws {
        var names: Set<String> = []
        for (file, text) in try Self.texts() {
            for match in text.matches(of: /--transport[ =]([a-z]+(?::[^\s`"'\)\],;|]+)*)/) {
                // Of adapters there may be several.
                for part in match.1.split(separator: /,(?=[a-z]+:)/) {
                    let name = part.hasSuffix(".") ? String(part.dropLast()) : String(part)
                    // Forms with parts to be filled in; of ferry bench, of ferry capture, and a word of a sentence.
                    let isForm = name.contains("..") || name.contains(/[A-Z$\\<]/)
                    guard !isForm, !["sim", "names"].contains(name), !name.hasPrefix("hci:monitor") else { continue }
                    names.insert(name)
                    do { _ = try NamedTransport.parse(name, program: "ferry") } catch {
                        Issue.record("\(file): \(name): \(error.message)")
                    }
                }
            }
        }
        #expect(names.count >= 8, "\(names)")
    }
}
