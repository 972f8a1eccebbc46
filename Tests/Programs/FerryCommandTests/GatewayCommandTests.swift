#if NATS && Records
    import ArgumentParser
    import Ferry
    import FerryFleet
    import FerryGateway
    import FerryNATS
    import FerryRecords
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
                {"nats": {"servers": ["nats://a", "nats://b"], "stream": "s", "prefix": "p.q", "credentials": "c", "streamBytes": 1000,
                          "streamReplicas": 3, "createStream": false},
                 "name": "g", "keepSeconds": 1200, "statusSeconds": 5}
                """)
            let gateway = try settings.gateway()
            #expect(gateway.servers.servers == ["nats://a", "nats://b"] && gateway.servers.credentialsFile == "c")
            #expect(gateway.stream.name == "s" && gateway.stream.subjects == ["p.q.>"] && gateway.name == "g")
            #expect(gateway.stream.maximumBytes == 1000 && gateway.stream.replicas == 3 && !gateway.createsStream)
            #expect(gateway.retention == .seconds(1200) && gateway.stream.duplicateWindow == .seconds(1211))
            #expect(try settings.status() == .seconds(5))
            let defaults = try read(#"{"nats": {"servers": ["nats://a"]}}"#).gateway()
            #expect(defaults.stream.name == "ferry" && defaults.stream.subjects == ["ferry.records.>"])
            #expect(defaults.retention == .seconds(240) && defaults.stream.duplicateWindow == .seconds(600))
        }

        @Test("Options come before the file") func options() throws {
            let file = FileManager.default.temporaryDirectory.appending(path: "ferry-\(UUID().uuidString).json")
            defer { try? FileManager.default.removeItem(at: file) }
            try #"{"nats": {"servers": ["nats://a"], "prefix": "p"}, "store": "one", "name": "g"}"#.write(
                to: file, atomically: true, encoding: .utf8)
            let command = try GatewayCommand.parse(["--config", file.path(), "--store", "two", "--nats", "nats://b"])
            let settings = try command.settings()
            #expect(settings.store == "two" && settings.name == "g")
            #expect(settings.nats == NATSSettings(servers: ["nats://b"], prefix: "p"))
        }

        @Test("What is wrong in the file is told") func wrong() {
            #expect(failure { _ = try read("[]") }.contains("not one JSON object"))
            #expect(failure { _ = try read("{") }.contains("is no JSON"))
            #expect(!failure { _ = try read("{") }.contains("NSCocoa"))
            #expect(
                failure { _ = try read(#"{"server": 1}"#) }.contains(
                    "'server', which means nothing. There are: name, transport"))
            for (part, known) in [
                ("nats", "servers"), ("downlink", "stream"), ("fleet", "bucket"), ("trust", "seal"), ("log", "level"),
            ] {
                let told = failure { _ = try read(#"{"\#(part)": {"x": 1}}"#) }
                #expect(told.contains("'\(part).x', which means nothing. There are: \(known)"), "\(told)")
            }
            #expect(failure { _ = try read(#"{"nats": "a"}"#) }.contains("'nats' must be an object"))
            #expect(failure { _ = try read(#"{"nats": {"servers": "a"}}"#) }.contains("'nats.servers' must be a list"))
            #expect(
                failure { _ = try read(#"{"nats": {"servers": ["a", 1]}}"#) }.contains("'nats.servers.1' must be text"))
            let wrong = failure { _ = try read(#"{"trust": {"seal": "maybe"}}"#).trustRequest() }
            #expect(wrong.contains(#"trust.seal is "maybe"; give always or never"#))
            #expect(failure { _ = try read("{}").gateway() }.contains("No NATS server is named"))
            #expect(
                failure { _ = try read(#"{"nats": {"servers": ["a"]}, "keepSeconds": 0}"#).gateway() }
                    .contains("keepSeconds is 0.0"))
            #expect(failure { _ = try read(#"{"statusSeconds": -1}"#).status() }.contains("statusSeconds is -1.0"))
        }

        @Test("A fleet has its own keys") func fleet() throws {
            let settings = try read(
                """
                {"nats": {"servers": ["nats://a"]}, "name": "g",
                 "fleet": {"bucket": "b", "leaseSeconds": 3, "capacity": 7, "peers": {"x": "unix:x"}}}
                """)
            let leases = try #require(try settings.leases())
            #expect(leases.bucket == "b" && leases.name == "g" && leases.capacity == 7)
            #expect(leases.policy.timeToLive == .seconds(3) && leases.policy.requestTimeout < .milliseconds(201))
            try leases.policy.validate()
            #expect(try settings.gateway().stream.subjects == ["ferry.records.>", "ferry.owners.>"])
            #expect(try read(#"{"nats": {"servers": ["nats://a"]}}"#).leases() == nil)
            let alone = failure {
                _ = try read(#"{"nats": {"servers": ["nats://a"]}, "fleet": {"capacity": 7}}"#).leases()
            }
            #expect(alone.contains("fleet has no bucket"))
            let down = failure {
                _ = try read(#"{"nats": {"servers": ["nats://a"]}, "downlink": {"prefix": "p"}}"#).messages()
            }
            #expect(down.contains("downlink has no stream"))
            for seconds in ["2", "30", "3600"] {
                let text =
                    #"{"nats": {"servers": ["nats://a"]}, "name": "g", "fleet": {"bucket": "b", "leaseSeconds": \#(seconds)}}"#
                try #require(try read(text).leases()).policy.validate()
            }
        }

        /// What a server answers to a request of so many lines, as curl would see it.
        private func ask(_ port: Int, _ lines: String...) async throws -> (status: Int, head: String, body: String) {
            let text = lines.map { $0 + #"\r\n"# }.joined()
            let output = try await ProgramShell.run(
                "exec 3<>/dev/tcp/127.0.0.1/\(port); printf '\(text)\r\n' >&3; cat <&3")
            let parts = output.split(separator: "\r\n\r\n", maxSplits: 1, omittingEmptySubsequences: false).map(
                String.init)
            let status = output.split(separator: " ").dropFirst().first.flatMap { Int($0) } ?? 0
            return (status, parts.first ?? "", parts.count > 1 ? parts[1] : "")
        }

        @Test("Prometheus is answered, and who asks for its health") func pages() async throws {
            let endpoint = try await GatewayEndpoint("127.0.0.1:0") { page in
                page == .readiness ? .init(isGood: false, text: "not yet\n") : .init(text: "a 1\n")
            }
            defer { endpoint.end() }
            let metrics = try await ask(endpoint.port, "GET /metrics HTTP/1.1", "Host: a")
            #expect(metrics.status == 200 && metrics.body == "a 1\n" && metrics.head.contains("version=0.0.4"))
            let head = try await ask(endpoint.port, "HEAD /metrics?x=1 HTTP/1.1", "Host: a")
            #expect(head.status == 200 && head.body.isEmpty && head.head.contains("ength: 4"), "\(head)")
            #expect(try await ask(endpoint.port, "GET /healthz HTTP/1.0").status == 200)
            let readiness = try await ask(endpoint.port, "GET /readyz HTTP/1.1", "Host: a")
            #expect(readiness.status == 503 && readiness.body == "not yet\n")
            let posted = try await ask(endpoint.port, "POST /metrics HTTP/1.1", "Host: a", "Content-Length: 0")
            #expect(posted.status == 405 && posted.head.contains("Allow: GET, HEAD"))
            let other = try await ask(endpoint.port, "GET / HTTP/1.1", "Host: a")
            #expect(other.status == 404 && other.body.contains("/metrics, /healthz, /readyz"))
            #expect(try await ask(endpoint.port, "nonsense").status == 400)
        }

        @Test("Clients that say nothing keep nobody out, and each place is given back") func silentClients()
            async throws
        {
            let endpoint = try await GatewayEndpoint("127.0.0.1:0") { _ in .init(text: "a 1\n") }
            defer { endpoint.end() }
            // They are there before it, and a server of one client at a time would wait for each.
            let output = try await ProgramShell.run(
                """
                for i in $(seq 20); do eval "exec $((i + 20))<>/dev/tcp/127.0.0.1/\(endpoint.port)"; done
                exec 3<>/dev/tcp/127.0.0.1/\(endpoint.port); printf 'GET /metrics HTTP/1.1\\r\\nHost: a\\r\\n\\r\\n' >&3; cat <&3
                """)
            #expect(output.hasSuffix("a 1\n"), "\(output)")
            for _ in 0..<(GatewayEndpoint.maximumConnections + 6) {
                #expect(try await ask(endpoint.port, "GET /metrics HTTP/1.1", "Host: a").status == 200)
            }
        }

        @Test("A port that is taken, and what is no address, are said") func noPlace() async throws {
            let endpoint = try await GatewayEndpoint("[::1]:0") { _ in .init(text: "") }
            defer { endpoint.end() }
            for (address, words) in [
                ("localhost:1", "give a numeric address"), ("127.0.0.1", "give a numeric address"),
                ("", "give a numeric address"),
                ("[::1]:\(endpoint.port)", "Address already in use. Choose another port."),
            ] {
                let error = await #expect(throws: FerryError.self) {
                    _ = try await GatewayEndpoint(address) { _ in .init(text: "") }
                }
                #expect(
                    error?.code == .invalidConfiguration && error?.message.contains(words) == true, "\(error as Any)")
            }
        }

        @Test("A gateway is ready when records go on, and lives while it looks") func readiness() async throws {
            let folder = FileManager.default.temporaryDirectory.appendingPathComponent("ferry-\(UUID().uuidString)")
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            defer { try? FileManager.default.removeItem(at: folder) }
            let store = try RecordStore.open(folder.appendingPathComponent("store").path)
            let now = ContinuousClock.now
            let gateway = try Gateway(store, Gateway.Configuration(servers: ["nats://a"], name: "g"))
            let figures = GatewayFigures(gateway, nil, nil, path: store.path, at: now)
            #expect(figures.answer(.health, at: now).isGood)
            #expect(figures.answer(.health, at: now + GatewayFigures.longestSilence).isGood)
            #expect(figures.answer(.health, at: now + GatewayFigures.longestSilence * 2).isGood == false)
            #expect(
                figures.answer(.readiness) == .init(isGood: false, text: "There is no connection to the stream yet.\n"))
            #expect(figures.answer(.metrics).text.contains("ferry_gateway_connected 0"))
            await store.close()
        }

        @Test("A fleet is looked at with TLS as a gateway is") func fleetOverTLS() throws {
            let place = try FleetPlace.parse([
                "--nats", "tls://a", "--authorities", "ca.pem", "--certificate", "me.pem", "--key", "me.key",
            ])
            #expect(place.servers.authoritiesFile == "ca.pem" && place.servers.servers == ["tls://a"])
            #expect(place.servers.certificateFile == "me.pem" && place.servers.keyFile == "me.key")
            let refusal = #expect(throws: (any Error).self) {
                try FleetPlace.parse(["--nats", "a", "--key", "me.key"])
            }
            #expect(refusal.map { FleetPlace.message(for: $0).contains("give both") } == true)
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
