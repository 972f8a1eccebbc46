#if NATS && Records
    import ArgumentParser
    import FerryGateway
    import FerryNATS
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// What `ferry gateway` makes of its options and its file.
    @Suite("ferry gateway", .tags(.program, .records), .timeLimit(.minutes(2))) struct GatewayCommandTests {
        private func read(_ text: String) throws -> GatewaySettings {
            try GatewaySettings.read(Data(text.utf8), "gateway.json")
        }

        private func failure(_ body: () throws -> Void) -> String {
            do { try body() } catch { return "\(error)" }
            return ""
        }

        @Test("The file says what the options say, and more") func file() throws {
            let settings = try read(
                """
                {"nats": ["nats://a", "nats://b"], "name": "g", "stream": "s", "prefix": "p.q", "keepSeconds": 1200,
                 "credentials": "c", "streamBytes": 1000, "streamReplicas": 3, "createStream": false, "statusSeconds": 5}
                """)
            let gateway = try settings.gateway()
            #expect(gateway.servers.servers == ["nats://a", "nats://b"] && gateway.servers.credentialsFile == "c")
            #expect(gateway.stream.name == "s" && gateway.stream.subjects == ["p.q.>"] && gateway.name == "g")
            #expect(gateway.stream.maximumBytes == 1000 && gateway.stream.replicas == 3 && !gateway.createsStream)
            #expect(gateway.retention == .seconds(1200) && gateway.stream.duplicateWindow == .seconds(1211))
            #expect(try settings.status() == .seconds(5))
            let defaults = try read(#"{"nats": ["nats://a"]}"#).gateway()
            #expect(defaults.stream.name == "ferry" && defaults.stream.subjects == ["ferry.records.>"])
            #expect(defaults.retention == .seconds(240) && defaults.stream.duplicateWindow == .seconds(600))
        }

        @Test("Options come before the file") func options() throws {
            let file = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString).json")
            defer { try? FileManager.default.removeItem(at: file) }
            try #"{"nats": ["nats://a"], "store": "one", "name": "g"}"#.write(
                to: file, atomically: true, encoding: .utf8)
            let command = try GatewayCommand.parse(["--config", file.path(), "--store", "two", "--nats", "nats://b"])
            let settings = try command.settings()
            #expect(settings.store == "two" && settings.nats == ["nats://b"] && settings.name == "g")
        }

        @Test("What is wrong in the file is told") func wrong() {
            #expect(failure { _ = try read("[]") }.contains("not one JSON object"))
            #expect(failure { _ = try read("{") }.contains("is no JSON"))
            #expect(
                failure { _ = try read(#"{"server": 1}"#) }.contains(
                    "'server', which means nothing. There are: transport"))
            #expect(failure { _ = try read(#"{"nats": "a"}"#) }.contains("'nats' must be of type"))
            #expect(failure { _ = try read(#"{"nats": ["a", 1]}"#) }.contains("'nats.1' must be of type String"))
            #expect(failure { _ = try read("{}").gateway() }.contains("No NATS server is named"))
            #expect(
                failure { _ = try read(#"{"nats": ["a"], "keepSeconds": 0}"#).gateway() }.contains("keepSeconds is 0.0")
            )
            #expect(failure { _ = try read(#"{"statusSeconds": -1}"#).status() }.contains("statusSeconds is -1.0"))
        }

        @Test("Without a server, and with a wrong transport, it says so") func refused() async throws {
            let output = try await ProgramShell.run(
                """
                $FERRY gateway --transport unix:x --store s --nats nats://127.0.0.1:1 --check 2>&1 | grep -o 'Check that nats-server runs there'
                $FERRY gateway --transport nothing --store s --nats nats://a 2>&1 | grep -o 'There is no transport "nothing"'
                $FERRY gateway --transport unix:x --nats nats://a 2>&1 | grep -o 'No store is named'
                ls
                """)
            #expect(
                output == """
                    Check that nats-server runs there
                    There is no transport "nothing"
                    No store is named

                    """, "\(output)")
        }
    }
#endif
