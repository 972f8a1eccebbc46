/// Names of items, which come from another machine: what may lead out of the folder that is written to is refused.
enum TransferName {
    /// The parts of a name that is safe: a relative path that goes down only. Nil for any other.
    static func parts(_ name: String) -> [String]? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false).map(String.init)
        guard parts.count <= 64, parts.allSatisfy(isSafe) else { return nil }
        return parts
    }

    private static func isSafe(_ part: String) -> Bool {
        !part.isEmpty && part != "." && part != ".." && part.utf8.count <= 240
            && !part.utf8.contains { $0 == 0 || $0 == UInt8(ascii: "\\") }
            && !part.hasSuffix(partial)
    }

    /// What a file is called while it is not complete.
    static func partial(of part: String) -> String { ".\(part)\(partial)" }

    private static let partial = ".ferry-part"
}

extension String {
    /// With nothing that could take over a terminal.
    var forTerminal: String {
        String(
            String.UnicodeScalarView(
                unicodeScalars.prefix(300).map { scalar in
                    switch scalar.properties.generalCategory {
                    case .control, .format, .lineSeparator, .paragraphSeparator, .surrogate, .unassigned: "\u{FFFD}"
                    default: scalar
                    }
                }))
    }
}
