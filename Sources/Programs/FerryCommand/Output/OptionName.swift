import ArgumentParser
import FoundationEssentials

/// Names of options as typed, looked at when a command line was refused: an unknown option is often noticed as something
/// else that is missing, and a negative number as a missing value.
enum OptionName {
    /// The part of the argument parser's own description of a command that is needed here.
    private struct Tool: Decodable {
        struct Command: Decodable { var arguments: [Argument]? }
        struct Argument: Decodable {
            struct Name: Decodable {
                var kind: String
                var name: String
            }
            var kind: String
            var names: [Name]?
            /// `default` where a value may not begin with a minus sign.
            var parsingStrategy: String?
        }
        var command: Command
    }

    /// The arguments of one command: the parser takes most of a second to describe all commands in a debug build.
    private static func arguments(of command: any ParsableCommand.Type) -> [Tool.Argument]? {
        let tool = try? JSONDecoder().decode(Tool.self, from: Data(command._dumpHelp().utf8))
        return tool?.command.arguments
    }

    /// The problem with the first option that is not known, or that is followed by a negative number; `nil` where there is
    /// neither.
    ///
    /// - Parameter arguments: without the program's name.
    static func problem(in arguments: [String]) -> UsageProblem? {
        let path = UsageProblem.path(of: arguments)
        // Everything after it is no option.
        let rest = arguments.dropFirst(path.count - 1).prefix { $0 != "--" }
        guard rest.contains(where: { $0.hasPrefix("--") }), let command = path.last,
            let described = Self.arguments(of: command)
        else { return nil }
        let title = path.map { $0._commandName }.joined(separator: " ")
        let own = described.flatMap { argument in
            (argument.names ?? []).filter { $0.kind == "long" }.map {
                (name: $0.name, takesValue: argument.kind == "option" && argument.parsingStrategy == "default")
            }
        }
        let names = Set(own.map(\.name)).union(["help", "version"])
        let valued = Set(own.filter(\.takesValue).map(\.name))
        for (index, word) in zip(rest.indices, rest) where word.hasPrefix("--") {
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts.first ?? "")
            guard names.contains(name) else {
                // The parser's own are not in its description.
                if name.hasPrefix("experimental-") || name.hasPrefix("generate-completion") { continue }
                let hint =
                    CommandName.closest(to: name, in: names.sorted()).map { "Did you mean '--\($0)'?" }
                    ?? "'\(title) --help' lists them."
                return UsageProblem(
                    message:
                        "'\(title)' has no option '--\(String(name.prefix(60)).forTerminal)'. \(hint)",
                    path: path)
            }
            guard parts.count == 1, valued.contains(name), let value = rest[rest.index(after: index)...].first,
                value.hasPrefix("-"), Double(value) != nil
            else { continue }
            return UsageProblem(
                message:
                    "The value \(value) of --\(name) begins with a minus sign, as options do. If it is meant, write "
                    + "--\(name)=\(value).", path: path)
        }
        return nil
    }
}
