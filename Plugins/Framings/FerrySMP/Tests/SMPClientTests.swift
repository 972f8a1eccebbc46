import Ferry
import FerrySMP
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// A client against Ferry's own server, in virtual time.
@Suite(.tags(.channel, .codec), .timeLimit(.minutes(5))) struct SMPClientTests {
    /// The requests are byte by byte those of PyPI smp 4.2.0, sequence numbers apart.
    @Test func requestsAreThoseOfTheReference() throws {
        let lines = try Managed.run { rig async throws in
            rig.server.change { server in
                server.files["/lfs/a"] = Array("hello".utf8)
                server.settings["a/b"] = [1]
                server.images = [SMPImageState(slot: 0, version: "1", hash: pattern(32), active: true)]
            }
            #expect(try await rig.client.echo("hi") == "hi")
            #expect(try await rig.client.parameters() == SMPParameters(bufferSize: 2475, bufferCount: 4))
            try await rig.client.reset()
            _ = try await rig.client.images()
            // The hash is no image's.
            await #expect(throws: FerryError.self) { try await rig.client.setImage(Array(0..<32), confirm: true) }
            return rig.server.journal.all
        }
        #expect(lines.contains("> 0A 00 00 06 00 00 00 00 A1 61 64 62 68 69"))
        #expect(lines.contains("< 0B 00 00 06 00 00 00 00 A1 61 72 62 68 69"))
        #expect(lines.contains("> 08 00 00 01 00 00 01 06 A0"))
        #expect(
            lines.contains(
                "< 09 00 00 18 00 00 01 06 A2 68 62 75 66 5F 73 69 7A 65 19 09 AB 69 62 75 66 5F 63 6F 75 6E 74 04"))
        #expect(lines.contains("> 0A 00 00 01 00 00 02 05 A0"))
        #expect(lines.contains("> 08 00 00 01 00 01 03 00 A0"))
        let confirm =
            "> 0A 00 00 31 00 01 04 00 A2 64 68 61 73 68 58 20 " + hex(Array(0..<32)) + " 67 63 6F 6E 66 69 72 6D F5"
        #expect(lines.contains(confirm))
    }

    @Test func filesAndSettings() throws {
        let text = pattern(1000)
        try Managed.run { rig async throws in
            rig.server.change { $0.files["/lfs/a"] = Array("hello".utf8) }
            #expect(try await rig.client.readFile("/lfs/a") == Array("hello".utf8))
            #expect(try await rig.client.fileSize("/lfs/a") == 5)
            try await rig.client.writeFile("/lfs/b", text)
            #expect(try await rig.client.readFile("/lfs/b") == text)
            try await rig.client.writeFile("/lfs/b", [])
            #expect(try await rig.client.readFile("/lfs/b").isEmpty)
            try await rig.client.closeFile()
            try await rig.client.setSetting("a/b", to: [1])
            #expect(try await rig.client.setting("a/b") == [1])
            try await rig.client.commitSettings()
            try await rig.client.saveSettings()
            try await rig.client.deleteSetting("a/b")
            let error = await #expect(throws: FerryError.self) { _ = try await rig.client.setting("a/b") }
            #expect(error?.message.contains("error 3 of group 3, no such setting") == true)
            let missing = await #expect(throws: FerryError.self) { _ = try await rig.client.readFile("/lfs/none") }
            #expect(missing?.message.contains("no such file") == true)
            let large = await #expect(throws: FerryError.self) {
                _ = try await rig.client.readFile("/lfs/a", maximumSize: 4)
            }
            #expect(large?.code == .messageTooLarge)
            let lines = rig.server.journal.all
            // The golden rows of files and settings, sequence numbers apart.
            #expect(
                lines.contains {
                    $0.hasPrefix("> 08 00 00 12 00 08")
                        && $0.hasSuffix(" 00 A2 63 6F 66 66 00 64 6E 61 6D 65 66 2F 6C 66 73 2F 61")
                })
            #expect(
                lines.contains { $0.hasSuffix(" 00 A3 63 6C 65 6E 05 63 6F 66 66 00 64 64 61 74 61 45 68 65 6C 6C 6F") }
            )
            #expect(lines.contains { $0.hasSuffix(" 00 A2 63 76 61 6C 41 01 64 6E 61 6D 65 63 61 2F 62") })
        }
    }

    /// Both ways to write an error, of a server's own and of SMP's.
    @Test(arguments: [
        (SMPVersion.one, "error 3, "), (.two, "error 3 of group 8, no such file"),
    ])
    func errorsOfBothVersions(version: SMPVersion, text: String) throws {
        var configuration = SMPServer.Configuration()
        configuration.errors = version
        configuration.tellsParameters = false
        try Managed.run(configuration) { rig async throws in
            let missing = await #expect(throws: FerryError.self) { _ = try await rig.client.fileSize("/none") }
            #expect(
                missing?.code == .smpRefused && missing?.message.contains(text) == true, "\(missing?.message ?? "")")
            #expect(try await rig.client.parameters() == nil)
            let unknown = await #expect(throws: FerryError.self) { _ = try await rig.client.shell(["echo", "hi"]) }
            #expect(unknown?.message.contains("error 8, not supported") == true)
            // {"rc": 8}, in both versions: it is SMP's own error.
            #expect(rig.server.journal.all.contains { $0.hasSuffix(" A1 62 72 63 08") })
        }
    }

    /// Answers to requests that are under way at once find them, whatever order they come in.
    @Test func manyRequestsAtOnce() throws {
        try Managed.run { rig async throws in
            try await withThrowingTaskGroup(of: Bool.self) { group in
                for number in 0..<200 {
                    group.addTask { try await rig.client.echo("number \(number)") == "number \(number)" }
                }
                for try await isRight in group { #expect(isRight) }
            }
        }
    }

    /// A request that is dropped times out; its number is not given to the next one.
    @Test func aLateAnswerBelongsToNobody() throws {
        var configuration = SMPServer.Configuration()
        configuration.dropped = [0]
        try Managed.run(configuration) { rig async throws in
            let error = await #expect(throws: FerryError.self) { _ = try await rig.client.echo("lost") }
            #expect(error?.code == .timedOut && error?.fate == .mayHaveArrived)
            for _ in 0..<300 { #expect(try await rig.client.echo("next") == "next") }
            let firsts = rig.server.journal.all.filter { $0.hasPrefix("> 0A 00 00 08 00 00 00 00") }
            #expect(firsts.count == 1, "number 0 was used again")
        }
    }

    @Test func aRequestThatIsTooLargeIsNotSent() throws {
        var configuration = SMPServer.Configuration()
        configuration.bufferSize = 400
        try Managed.run(configuration) { rig async throws in
            #expect(try await rig.client.echo(String(repeating: "a", count: 350)).count == 350)
            let error = await #expect(throws: FerryError.self) {
                _ = try await rig.client.echo(String(repeating: "a", count: 400))
            }
            #expect(error?.code == .messageTooLarge && error?.fate == .nothingSent)
            #expect(rig.server.now.largestRequest <= 400)
        }
    }

    @Test func requestsFailWhenTheLinkEnds() throws {
        var configuration = SMPServer.Configuration()
        configuration.dropped = [0]
        try Managed.run(configuration) { rig async throws in
            try await withThrowingTaskGroup(of: Void.self) { group in
                group.addTask {
                    let error = await #expect(throws: FerryError.self) {
                        _ = try await rig.client.echo("never answered")
                    }
                    #expect(error?.code == .closed && error?.fate == .mayHaveArrived)
                }
                while rig.server.now.requestCount == 0 { try await rig.time.sleep(for: .milliseconds(1)) }
                rig.client.close()
                try await group.waitForAll()
            }
            let after = await #expect(throws: FerryError.self) { _ = try await rig.client.echo("after") }
            #expect(after?.code == .closed)
        }
    }
}
