#if Records
    import ArgumentParser
    import Ferry
    import FerryRecords
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// The programs of a folder as commands.
    @Suite(.tags(.program, .records), .timeLimit(.minutes(5))) struct CommandFolderTests {
        private func inFolder(_ body: (String) async throws -> Void) async throws {
            let path = FileManager.default.temporaryDirectory.appendingPathComponent("commands-\(UUID().uuidString)")
                .path
            try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(atPath: path) }
            try await body(path)
        }

        private func write(_ text: String, to path: String, _ permissions: Int = 0o755) throws {
            try Data("#!/bin/sh\n\(text)\n".utf8).write(to: URL(fileURLWithPath: path))
            try FileManager.default.setAttributes([.posixPermissions: permissions], ofItemAtPath: path)
        }

        private func run(_ folder: CommandFolder, _ name: String, _ body: String = "") async throws -> String {
            let handler = try #require(folder.handler(name))
            let command = try RemoteCommand(name, Array(body.utf8), deadline: .max)
            return String(decoding: try await handler.run(command), as: UTF8.self)
        }

        @Test func aProgramGetsTheBodyAndItsOutputIsTheAnswer() async throws {
            try await inFolder { path in
                try write("cat; pwd; echo $FERRY_COMMAND; echo ${#FERRY_COMMAND_ID}", to: path + "/say")
                try write("head -c 20 /dev/zero | wc -c >&2; exit 7", to: path + "/fail")
                try write("kill -KILL $$", to: path + "/die")
                let folder = try CommandFolder(path)
                let body = String(repeating: "a line\n", count: 20_000)
                let place = URL(fileURLWithPath: path).resolvingSymlinksInPath().path
                #expect(try await run(folder, "say", body) == body + "\(place)\nsay\n32\n")
                for (name, words) in [("fail", "It ended with 7. 20"), ("die", "It ended with signal 9.")] {
                    let error = await #expect(throws: CommandFailure.self) { try await run(folder, name) }
                    #expect(error?.description.hasPrefix(words) == true, "\(error as Any)")
                }
                // One that reads nothing and leaves another behind with its output open.
                try write("sleep 1000 & echo done", to: path + "/leave")
                #expect(try await run(folder, "leave", body) == "done\n")
            }
        }

        @Test func onlyTheFoldersProgramsAreCommands() async throws {
            try await inFolder { path in
                try write("echo outside", to: path + "/outside")
                let inside = path + "/run"
                try FileManager.default.createDirectory(atPath: inside + "/folder", withIntermediateDirectories: true)
                try write("echo no program", to: inside + "/text", 0o644)
                let folder = try CommandFolder(inside)
                for name in ["text", "folder", "missing"] { #expect(folder.handler(name) == nil, "\(name)") }
                // A name with a slash is no command's: none arrives.
                for name in ["../outside", "folder/../text", "."] { #expect(!RemoteCommand.isName(name)) }
                #expect(throws: CommandFailure.self) { try CommandFolder(path + "/outside") }
                #expect(throws: CommandFailure.self) { try CommandFolder(path + "/missing") }
            }
        }

        /// At its deadline a program is ended, also one that would not hear of it.
        @Test(arguments: ["", "trap '' TERM; "]) func aCancelledProgramIsEnded(_ trap: String) async throws {
            try await inFolder { path in
                try write("\(trap)echo $$ >\"$0.pid\"; while :; do sleep 0.05; done", to: path + "/stay")
                let folder = try CommandFolder(path)
                let running = Task { try await run(folder, "stay") }
                let file = path + "/stay.pid"
                try await until("its number") {
                    FileManager.default.contents(atPath: file).map { $0.last == 10 } == true
                }
                let number = try #require(
                    Int32(
                        String(decoding: FileManager.default.contents(atPath: file) ?? Data(), as: UTF8.self).dropLast()
                    ))
                running.cancel()
                await #expect(throws: (any Error).self) { try await running.value }
                #expect(kill(number, 0) != 0)
            }
        }

        @Test(arguments: [
            (["--commands", "x", "a"], "--store and --inbox"),
            (["--store", "s", "--files", "x"], "--store and --inbox"),
            (["--inbox", "i", "a"], "go with --store"),
        ]) func optionsGoTogether(_ options: [String], _ words: String) {
            let error = #expect(throws: (any Error).self) { try Send.parse(["--transport", "unix:/tmp/x"] + options) }
            #expect(error.map { Send.message(for: $0).contains(words) } == true, "\(error as Any)")
        }

        /// Where a stranger can be in the gateway's place, commands need a seal.
        @Test(
            arguments: [
                ("unix:/tmp/x", [], true), ("hci:unix:/tmp/x", [], false), ("tcp:localhost:7000", [], false),
                ("tcp:localhost:7000", ["--sealed"], true), ("hci:unix:/tmp/x", ["--sealed"], true),
                ("tcp:10.0.0.7:7000", [], true), ("tcp:10.0.0.7:7000", ["--plain"], false),
            ] as [(String, [String], Bool)])
        func commandsNeedAProvenGateway(_ transport: String, _ options: [String], _ isTaken: Bool) throws {
            let arguments = ["--transport", transport, "--store", "s", "--inbox", "i", "--files", "f"] + options
            guard !isTaken else {
                _ = try Send.parse(arguments)
                return
            }
            let error = #expect(throws: (any Error).self) { try Send.parse(arguments) }
            #expect(error.map { Send.message(for: $0).contains("Add --sealed") } == true, "\(error as Any)")
        }

        #if NATS
            @Test(arguments: [
                (["call", "p", "a/b"], "is no command's name"), (["call", "p", "a", "--within", "0"], "out of range"),
                (["call", "p", "a", "--within", "2592001"], "out of range"),
                (["file", "p", "f", "--piece", "63"], "out of range"),
            ]) func whatCannotBeAskedForIsToldAtOnce(_ arguments: [String], _ words: String) {
                let all = arguments + ["--nats", "nats://127.0.0.1:1"]
                let error = #expect(throws: (any Error).self) { try CommandsCommand.parseAsRoot(all) }
                #expect(error.map { CommandsCommand.message(for: $0).contains(words) } == true, "\(error as Any)")
            }
        #endif
    }
#endif
