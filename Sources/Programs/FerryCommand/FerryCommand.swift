import ArgumentParser
import FerryTransports
import Foundation

/// `ferry`: carries files, measures what a link gives, advises on how to use it, and makes and reads captures.
@main struct FerryCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "ferry",
        abstract:
            "Carries files and messages across small links, measures how they cross, and advises on how to send them.",
        version: FerryVersion.text,
        subcommands: [
            Send.self, Receive.self, Scan.self, Inspect.self, Watch.self, Read.self, Write.self, Serve.self,
            PipeCommand.self,
            Pair.self, Bonds.self, Unbond.self, Bench.self,
            Advise.self,
            KeyCommand.self, TrustCommand.self, InviteCommand.self, Trace.self, Capture.self, Outbox.self, Fleet.self,
            GatewayCommand.self, CommandsCommand.self, SMP.self, Serial.self, DictionaryCommand.self,
        ])

    static func main() async {
        do {
            try CommandEnd.checkArguments(CommandLine.unsafeArgv)
            let arguments = Array(CommandLine.arguments.dropFirst())
            var command = try parsed(arguments)
            do {
                if var command = command as? any AsyncParsableCommand {
                    try await command.run()
                } else {
                    try command.run()
                }
            } catch let error as ValidationError {
                throw UsageProblem(message: error.message, path: UsageProblem.path(of: arguments))
            } catch { throw CommandEnd.words(for: error) }
        } catch let problem as UsageProblem {
            note("Error: \(problem)")
            Foundation.exit(UsageProblem.status)
        } catch { exit(withError: error) }
        guard !StandardOutput.tookAll() else { return }
        note("Error: \(StandardOutput.problem)")
        _Exit(1)
    }

    /// The command that the arguments name, checked.
    ///
    /// - Parameter arguments: without the program's name.
    /// - Throws: the problem with the arguments, or help.
    static func parsed(_ arguments: [String]) throws -> any ParsableCommand {
        try CommandName.check(arguments, in: Self.self)
        do { return try parseAsRoot(arguments) } catch {
            // A misspelled option may have been noticed as something else that is missing.
            if exitCode(for: error) != .success, let problem = OptionName.problem(in: arguments) { throw problem }
            throw error
        }
    }
}
