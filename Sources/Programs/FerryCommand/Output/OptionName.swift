import ArgumentParser
import FoundationEssentials

/// Names of options as typed, looked at when a command line was refused: an unknown option is often noticed as something
/// else that is missing, and a negative number as a missing value.
enum OptionName {
    /// The part of the argument parser's own description of commands that is needed here.
    private struct Tool: Decodable {
        struct Command: Decodable {
            var commandName: String
            var arguments: [Argument]?
            var subcommands: [Command]?
        }
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

    /// Made once: it describes all commands.
    private static let tool = try? JSONDecoder().decode(Tool.self, from: Data(FerryCommand._dumpHelp().utf8))

    /// The problem with the first option that is not known, or that is followed by a negative number; `nil` where there is
    /// neither.
    ///
    /// - Parameter arguments: without the program's name.
    static func problem(in arguments: [String]) -> UsageProblem? {
        guard let tool else { return nil }
        var command = tool.command
        var path = [command.commandName]
        var rest = arguments[...]
        while let word = rest.first, let found = command.subcommands?.first(where: { $0.commandName == word }) {
            command = found
            path.append(word)
            rest = rest.dropFirst()
        }
        let own = (command.arguments ?? []).flatMap { argument in
            (argument.names ?? []).filter { $0.kind == "long" }.map {
                (name: $0.name, takesValue: argument.kind == "option" && argument.parsingStrategy == "default")
            }
        }
        let names = Set(own.map(\.name)).union(["help", "version"])
        let valued = Set(own.filter(\.takesValue).map(\.name))
        // Everything after it is no option.
        rest = rest.prefix { $0 != "--" }
        for (index, word) in zip(rest.indices, rest) where word.hasPrefix("--") {
            let parts = word.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
            let name = String(parts.first ?? "")
            guard names.contains(name) else {
                // The parser's own are not in its description.
                if name.hasPrefix("experimental-") || name.hasPrefix("generate-completion") { continue }
                let hint =
                    CommandName.closest(to: name, in: names.sorted()).map { "Did you mean '--\($0)'?" }
                    ?? "'\(path.joined(separator: " ")) --help' lists them."
                return UsageProblem(
                    message:
                        "'\(path.joined(separator: " "))' has no option '--\(String(name.prefix(60)).forTerminal)'. \(hint)",
                    path: UsageProblem.path(of: arguments))
            }
            guard parts.count == 1, valued.contains(name), let value = rest[rest.index(after: index)...].first,
                value.hasPrefix("-"), Double(value) != nil
            else { continue }
            return UsageProblem(
                message:
                    "The value \(value) of --\(name) begins with a minus sign, as options do. If it is meant, write "
                    + "--\(name)=\(value).", path: UsageProblem.path(of: arguments))
        }
        return nil
    }
}
