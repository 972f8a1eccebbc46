import ArgumentParser

/// Names of commands as typed: a misspelled one gets a suggestion, which the argument parser has for options only.
enum CommandName {
    /// Refuses a command that does not exist.
    ///
    /// - Parameters:
    ///   - arguments: without the program's name.
    ///   - root: the command whose subcommands the first argument may name.
    /// - Throws: ``UsageProblem`` with the closest name, where one is close.
    static func check(_ arguments: [String], in root: any ParsableCommand.Type) throws {
        var path = [root]
        for (index, argument) in arguments.enumerated() {
            // The parser's own command for help shows the program's for a command that does not exist.
            if index == 0, argument == "help" { continue }
            let subcommands = path.last?.configuration.subcommands ?? []
            guard !subcommands.isEmpty, !argument.hasPrefix("-") else { return }
            let found = subcommands.first {
                $0._commandName == argument || $0.configuration.aliases.contains(argument)
            }
            guard let found else {
                let names = subcommands.map { $0._commandName }
                let full = path.map { $0._commandName }.joined(separator: " ")
                let meant = path.count == 1 && argument == "version" ? "--version" : closest(to: argument, in: names)
                let hint = meant.map { "Did you mean '\(full) \($0)'?" }
                throw UsageProblem(
                    message: "'\(full)' has no command '\(String(argument.prefix(60)).forTerminal)'. "
                        + (hint ?? "Choose from: \(names.joined(separator: ", "))."), path: path)
            }
            path.append(found)
        }
    }

    /// The name that the fewest edits make of `typed`; `nil` where a third of its characters or more would change.
    static func closest(to typed: String, in names: [String]) -> String? {
        // No name is that long, and the work grows with the square of the length.
        guard typed.count <= 40 else { return nil }
        let nearest = names.map { (name: $0, edits: edits(typed.lowercased(), $0)) }.min { $0.edits < $1.edits }
        guard let nearest, nearest.edits <= max(1, min(typed.count, nearest.name.count) / 3) else { return nil }
        return nearest.name
    }

    /// Insertions, deletions, replacements and swaps of neighbours that make `b` of `a` (optimal string alignment).
    private static func edits(_ a: String, _ b: String) -> Int {
        let (a, b) = (Array(a), Array(b))
        var before: [Int] = []
        var row = Array(0...b.count)
        for i in a.indices {
            var next = [i + 1]
            for j in b.indices {
                var cost = min(row[j] + (a[i] == b[j] ? 0 : 1), row[j + 1] + 1, next[j] + 1)
                if i > 0, j > 0, a[i] == b[j - 1], a[i - 1] == b[j] { cost = min(cost, before[j - 1] + 1) }
                next.append(cost)
            }
            before = row
            row = next
        }
        return row[b.count]
    }
}
