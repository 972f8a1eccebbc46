import ArgumentParser

/// Wrong usage that Ferry finds itself, with the usage of the command that it is about. The argument parser would show that of
/// the whole program.
struct UsageProblem: Error, CustomStringConvertible {
    let message: String
    /// The command and those above it, the program first.
    let path: [any ParsableCommand.Type]

    /// EX_USAGE of sysexits.h, with which the argument parser ends too.
    static let status: Int32 = 64

    var description: String {
        let names = path.map { $0._commandName }.joined(separator: " ")
        let usage = path.last.map { FerryCommand.usageString(for: $0) } ?? ""
        return "\(message)\nUsage: \(usage)\n  See '\(names) --help' for more information."
    }

    /// The commands that the first arguments name.
    static func path(of arguments: [String]) -> [any ParsableCommand.Type] {
        var path: [any ParsableCommand.Type] = [FerryCommand.self]
        for argument in arguments {
            let found = path.last?.configuration.subcommands.first { $0._commandName == argument }
            guard let found else { break }
            path.append(found)
        }
        return path
    }
}
