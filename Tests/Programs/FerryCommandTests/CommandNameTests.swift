import ArgumentParser
import TestSupport
import Testing

@testable import FerryCommand

@Suite("Names of commands", .tags(.program)) struct CommandNameTests {
    @Test(
        "A misspelled command gets the closest name, and one that is far from all gets the list",
        arguments: [
            (["help", "recieve"], "'ferry' has no command 'recieve'. Did you mean 'ferry receive'?"),
            (["version"], "Did you mean 'ferry --version'?"),
            (["recieve"], "'ferry' has no command 'recieve'. Did you mean 'ferry receive'?"),
            (["SEND", "x"], "Did you mean 'ferry send'?"), (["advice"], "Did you mean 'ferry advise'?"),
            (
                ["fleet", "simulte", "x"],
                "'ferry fleet' has no command 'simulte'. Did you mean 'ferry fleet simulate'?"
            ),
            (["toast"], "'ferry' has no command 'toast'. Choose from: send, receive, "),
            (["\u{1B}[2J"], "'ferry' has no command '"),
            ([String(repeating: "send", count: 10_000)], "Choose from: "),
        ]) func suggested(arguments: [String], words: String)
    {
        let error = #expect(throws: UsageProblem.self) {
            try CommandName.check(arguments, in: FerryCommand.self)
        }
        let message = error?.message ?? ""
        #expect(message.contains(words), "\(message.prefix(300))")
        #expect(!message.contains("\u{1B}"))
    }

    @Test(
        "Commands, options and what follows them are left to the parser",
        arguments: [
            [], ["--help"], ["help", "receive"], ["send", "recieve"], ["fleet", "simulate", "lst"],
            ["fleet", "--help"],
        ]) func leftAlone(arguments: [String]) throws
    {
        try CommandName.check(arguments, in: FerryCommand.self)
    }

    @Test("Help of a command is help, and no error") func help() throws {
        for arguments in [["receive", "--help"], ["help", "fleet"], ["fleet", "simulate", "-h"], ["--version"]] {
            let error = #expect(throws: (any Error).self) {
                var command = try FerryCommand.parseAsRoot(arguments)
                try command.run()
            }
            guard let error else { continue }
            let ended = CommandEnd.words(for: error)
            #expect(FerryCommand.exitCode(for: ended) == .success, "\(arguments)")
            #expect(!FerryCommand.fullMessage(for: ended).contains("CommandError"), "\(arguments)")
        }
    }
}
