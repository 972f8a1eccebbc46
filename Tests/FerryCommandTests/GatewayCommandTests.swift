#if NATS && Records
    import ArgumentParser
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// What `ferry gateway` makes of its options and its file.
    @Suite("ferry gateway", .tags(.program, .records), .timeLimit(.minutes(5))) struct GatewayCommandTests {
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
            #expect(!failure { _ = try read("{") }.contains("NSCocoa"))
            #expect(
                failure { _ = try read(#"{"server": 1}"#) }.contains(
                    "'server', which means nothing. There are: transport"))
            #expect(failure { _ = try read(#"{"nats": "a"}"#) }.contains("'nats' must be a list"))
            #expect(failure { _ = try read(#"{"nats": ["a", 1]}"#) }.contains("'nats.1' must be text"))
            #expect(failure { _ = try read("{}").gateway() }.contains("No NATS server is named"))
            #expect(
                failure { _ = try read(#"{"nats": ["a"], "keepSeconds": 0}"#).gateway() }.contains("keepSeconds is 0.0")
            )
            #expect(failure { _ = try read(#"{"statusSeconds": -1}"#).status() }.contains("statusSeconds is -1.0"))
        }

        @Test("A fleet has its own keys") func fleet() throws {
            let settings = try read(
                #"{"nats": ["nats://a"], "name": "g", "fleet": "b", "leaseSeconds": 3, "capacity": 7, "peers": {"x": "unix:x"}}"#
            )
            let leases = try #require(try settings.leases())
            #expect(leases.bucket == "b" && leases.name == "g" && leases.capacity == 7)
            #expect(leases.policy.timeToLive == .seconds(3) && leases.policy.requestTimeout < .milliseconds(201))
            try leases.policy.validate()
            #expect(try settings.gateway().stream.subjects == ["ferry.records.>", "ferry.owners.>"])
            #expect(try read(#"{"nats": ["nats://a"]}"#).leases() == nil)
            let alone = failure { _ = try read(#"{"nats": ["nats://a"], "capacity": 7}"#).leases() }
            #expect(alone.contains("capacity goes with fleet"))
            for seconds in ["2", "30", "3600"] {
                let text = #"{"nats": ["nats://a"], "name": "g", "fleet": "b", "leaseSeconds": \#(seconds)}"#
                try #require(try read(text).leases()).policy.validate()
            }
        }

        @Test("Prometheus is answered, and nobody else") func metrics() async throws {
            let endpoint = try MetricsEndpoint("127.0.0.1:0") { "a 1\n" }
            defer { endpoint.end() }
            func get(_ path: String) async throws -> (Int, String) {
                let url = try #require(URL(string: "http://127.0.0.1:\(endpoint.port)\(path)"))
                let output = try await ProgramShell.run(
                    "exec 3<>/dev/tcp/127.0.0.1/\(endpoint.port); printf 'GET \(url.path()) HTTP/1.1\r\n\r\n' >&3; cat <&3"
                )
                return (Int(output.split(separator: " ")[1]) ?? 0, String(output.suffix(4)))
            }
            #expect(try await get("/metrics") == (200, "a 1\n"))
            #expect(try await get("/").0 == 404)
            #expect(failure { _ = try MetricsEndpoint("localhost:1") { "" } }.contains("give an IPv4 address"))
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
