#if NATS && Records
    import FerryNATS
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// `ferry gateway --check` as people run it: what is in the way, where, and what to do.
    @Suite(
        "ferry gateway --check", .tags(.program, .records), .enabled(if: NATSServer.isHere, "needs nats-server"),
        .timeLimit(.minutes(5)))
    struct GatewayCheckTests {
        /// What it printed, how it ended, and which files it left: none beside its configuration.
        private func check(
            _ address: String, _ more: [String: String] = [:], _ place: SourceLocation = #_sourceLocation
        ) async throws -> String {
            // Of another shape or away is one thing, a machine that does much else is another.
            var settings: [String: Any] = ["name": "g", "store": "store.ferry", "answerSeconds": 50]
            var nats: [String: Any] = ["servers": [address]]
            for (key, value) in more where key != "fleet" {
                if ["store", "metrics"].contains(key) { settings[key] = value } else { nats[key] = value }
            }
            settings["nats"] = nats
            if let bucket = more["fleet"] {
                settings["fleet"] = ["bucket": bucket, "peers": ["a": "unix:x"]] as [String: Any]
            } else {
                settings["transport"] = "unix:x"
            }
            let json = try JSONSerialization.data(withJSONObject: settings)
            let output = try await ProgramShell.run(
                """
                printf %s "$SETTINGS" >gateway.json
                $FERRY gateway --config gateway.json --check 2>&1
                echo "ended with $?"
                ls
                """, ["SETTINGS": String(decoding: json, as: UTF8.self)])
            #expect(output.hasSuffix("\ngateway.json\n"), "\(output)", sourceLocation: place)
            return output
        }

        private func expect(_ output: String, _ words: [String], _ place: SourceLocation = #_sourceLocation) {
            for word in words { #expect(output.contains(word), "\(output)", sourceLocation: place) }
        }

        private func connect(_ server: NATSServer) async throws -> NATSConnection {
            var configuration = NATSConfiguration(servers: [server.url])
            configuration.connectTimeout = .unreached
            configuration.requestTimeout = .unreached
            return try await NATSConnection.connect(configuration)
        }

        @Test("No server") func away() async throws {
            expect(
                try await check("nats://127.0.0.1:1"),
                [
                    "NATS at nats://127.0.0.1:1 cannot be connected to", "Check that nats-server runs there",
                    "ended with 1",
                ])
        }

        @Test("A place that is not there, cannot be written or is taken") func places() async throws {
            let nobody = "nats://127.0.0.1:1"
            expect(
                try await check(nobody, ["store": "missing/store.ferry"]),
                ["missing/store.ferry has no folder", "Make it, or name another store", "ended with 1"])
            let taken = try await GatewayEndpoint("127.0.0.1:0") { _ in .init(text: "") }
            expect(
                try await check(nobody, ["metrics": "127.0.0.1:\(taken.port)"]),
                ["Metrics cannot be served at 127.0.0.1:\(taken.port)", "Choose another port", "ended with 1"])
            taken.end()
        }

        @Test("No peer at once, or too many", arguments: [0, -1, 10_001]) func slots(_ slots: Int) throws {
            let settings = try GatewaySettings.read(Data(#"{"slots": \#(slots)}"#.utf8), "gateway.json")
            let error = #expect(throws: (any Error).self) { try settings.peersAtOnce() }
            #expect(error.map { "\($0)" }?.contains("slots is \(slots); give 1 to 10000") == true)
        }

        @Test("Too little room for a peer, or too much", arguments: [0, 65_535, 1 << 40 + 1])
        func peerBytes(_ bytes: Int) throws {
            let settings = try GatewaySettings.read(Data(#"{"peerBytes": \#(bytes)}"#.utf8), "gateway.json")
            let error = #expect(throws: (any Error).self) { try settings.bytesOfAPeer() }
            #expect(error.map { "\($0)" }?.contains("peerBytes is \(bytes); give 65536 to 2^40") == true)
        }

        @Test("Wrong credentials") func credentials() async throws {
            let server = try NATSServer("authorization { user: ada, password: secret, timeout: 3600 }")
            try await server.start()
            let place = "127.0.0.1:\(server.port)"
            let refused = try await check("nats://ada:wrong@\(place)")
            expect(refused, ["NATS at nats://\(place) cannot", "Check the user, the password", "ended with 1"])
            #expect(!refused.contains("wrong"))
            expect(
                try await check("nats://\(place)", ["credentials": "/nowhere/ada.creds"]),
                ["/nowhere/ada.creds", "ended with 1"])
            let taken = try await check("nats://ada:secret@\(place)")
            expect(taken, ["no stream ferry yet; it is made when the gateway begins", "ended with 0"])
        }

        @Test("A stream of another shape") func stream() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            var other = NATSStream("short", subjects: ["short.>"])
            other.duplicateWindow = .seconds(100)
            other.maximumBytes = 1 << 20
            try await connection.open(other)
            other = NATSStream("elsewhere", subjects: ["elsewhere.>"])
            other.maximumBytes = 1 << 20
            try await connection.open(other)
            expect(
                try await check(server.url, ["stream": "short", "prefix": "short"]),
                ["The stream short remembers", "nats stream edit short --dupe-window=600s", "ended with 1"])
            expect(
                try await check(server.url, ["stream": "elsewhere"]),
                [
                    "The stream elsewhere has the subjects elsewhere.>, and not ferry.records.>",
                    "nats stream edit elsewhere --subjects=elsewhere.>,ferry.records.>", "ended with 1",
                ])
            expect(
                try await check(server.url, ["stream": "elsewhere", "prefix": "elsewhere"]),
                ["stream elsewhere is as it must be, and has 0 messages", "ended with 0"])
            await connection.close()
        }

        @Test("A bucket of another shape") func bucket() async throws {
            let server = try NATSServer()
            try await server.start()
            let connection = try await connect(server)
            expect(
                try await check(server.url, ["fleet": "leases"]),
                ["no stream ferry yet", "no bucket leases yet; it is made when the gateway begins", "ended with 0"])
            // A bucket is a stream, and this one keeps what it has.
            let shape = """
                {"name":"KV_forever","subjects":["$KV.forever.>"],"max_msgs_per_subject":1,"discard":"new","storage":"file",
                "retention":"limits","num_replicas":1,"max_age":0,"max_msgs":-1,"max_bytes":-1,"max_consumers":-1,
                "allow_rollup_hdrs":true,"deny_delete":true}
                """
            try await connection.publish(NATSMessage("$JS.API.STREAM.CREATE.KV_forever", bytes: Array(shape.utf8)))
            try await until("the bucket") { (try? await connection.state(of: "KV_forever")) != nil }
            expect(
                try await check(server.url, ["fleet": "forever"]),
                [
                    "The bucket forever has no expiry", "Remove it, or name another one",
                    "nats kv add forever --ttl=30000ms",
                    "ended with 1",
                ])
            _ = try await NATSBucket.open("brief", expiry: .seconds(7), on: connection)
            expect(
                try await check(server.url, ["fleet": "brief"]),
                [
                    "The keys of bucket brief expire after 7000 ms", "goes by 30000ms",
                    "Give all programs the same expiry",
                    "ended with 1",
                ])
            _ = try await NATSBucket.open("good", expiry: .seconds(30), on: connection)
            expect(try await check(server.url, ["fleet": "good"]), ["bucket good is as it must be", "ended with 0"])
            await connection.close()
        }

        @Test("An authority that nobody knows") func authority() async throws {
            let server = try NATSServer(
                "tls { cert_file: \"FOLDER/certificate.pem\", key_file: \"FOLDER/key.pem\", timeout: 3600 }")
            try await server.makeCertificate()
            try await server.start()
            let address = "tls://localhost:\(server.port)"
            expect(
                try await check(address),
                ["NATS at \(address) cannot be connected to", "name the file of the authority", "ended with 1"])
            expect(
                try await check(address, ["authorities": server.certificate]), ["no stream ferry yet", "ended with 0"])
        }
    }
#endif
