#if MQTT
    import Ferry
    import FerryFleet
    import FerryMQTT
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// The conformance kit of outlets, run with a real mosquitto; and what MQTT has beside it.
    @Suite(
        .tags(.records, .recovery), .enabled(if: MosquittoServer.isHere, "needs mosquitto"), .timeLimit(.minutes(5)))
    struct MQTTOutletTests {
        private func configuration(_ server: MosquittoServer, _ user: String = "") throws -> MQTTConfiguration {
            var configuration = try MQTTConfiguration("mqtt://\(user)\(server.host):\(server.port)")
            configuration.prefix = "out"
            configuration.timeout = .seconds(3)
            configuration.maximumInFlight = 16
            return configuration
        }

        @Test func mqttOutletConforms() async throws {
            let server = try MosquittoServer()
            try await server.start()
            try await server.subscribe()
            let configuration = try configuration(server)
            let rig = OutletConformance.Rig(
                open: { try await MQTTOutlet.open(configuration) }, deliveries: { server.deliveries },
                kill: { await server.kill() }, start: { try await server.start() },
                halt: { try await server.halt() }, resume: { server.signal(SIGCONT) },
                fill: { try await server.halt() }, drain: { server.signal(SIGCONT) },
                refused: OutletMessage(
                    .init(sender: "large", stream: "s"), key: "large/s/0", bytes: [UInt8](repeating: 1, count: 200_000))
            )
            try await OutletConformance(rig).check()
        }

        @Test func wrongPasswordIsRefused() async throws {
            let server = try MosquittoServer("allow_anonymous false\npassword_file FOLDER/users")
            let users = "\(server.path)/users"
            try "ada:secret\n".write(toFile: users, atomically: true, encoding: .utf8)
            let hashing = try ChildProcess("/usr/bin/env", ["mosquitto_passwd", "-U", users])
            try #require(await hashing.ended() == .exited(0))
            try await server.start()
            for user in ["", "ada:wrong@"] {
                let error = await #expect(throws: FerryError.self) {
                    _ = try await MQTTOutlet.open(configuration(server, user))
                }
                #expect(error?.code == .mqttRefused && error?.message.contains("wrong") == false, "\(error as Any)")
            }
            let outlet = try await MQTTOutlet.open(configuration(server, "ada:secret@"))
            let message = OutletMessage(.init(sender: "a", stream: "s"), key: "a/s/1", bytes: [1])
            #expect(await outlet.publish(message).isTaken)
            await outlet.close()
        }

        @Test func clientCertificateOpensTLS() async throws {
            let server = try MosquittoServer(
                """
                cafile FOLDER/certificate.pem
                certfile FOLDER/certificate.pem
                keyfile FOLDER/key.pem
                require_certificate true
                use_identity_as_username true
                """)
            try await OwnCertificate.make(in: server.folder)
            try await server.start()
            var configuration = try MQTTConfiguration("mqtts://\(server.host):\(server.port)")
            configuration.authoritiesFile = "\(server.path)/certificate.pem"
            configuration.certificateFile = "\(server.path)/certificate.pem"
            configuration.keyFile = "\(server.path)/key.pem"
            let outlet = try await MQTTOutlet.open(configuration)
            let message = OutletMessage(.init(sender: "a", stream: "s"), key: "a/s/1", bytes: [1])
            #expect(await outlet.publish(message).isTaken)
            await outlet.close()
            // An authority that the client does not know.
            var stranger = configuration
            stranger.authoritiesFile = nil
            let unknowing = stranger
            let error = await #expect(throws: FerryError.self) {
                _ = try await MQTTOutlet.open(unknowing)
            }
            #expect(error?.code == .mqttInsecure, "\(error as Any)")
        }

        @Test func missingBrokerIsSaid() async throws {
            let server = try MosquittoServer()
            let error = await #expect(throws: FerryError.self) {
                _ = try await MQTTOutlet.open(configuration(server))
            }
            #expect(error?.code == .mqttNoServer, "\(error as Any)")
        }

        @Test func addressIsRead() throws {
            let plain = try MQTTConfiguration("mqtt://broker")
            #expect(plain.host == "broker" && plain.port == 1883 && !plain.isSecure && plain.user == nil)
            let full = try MQTTConfiguration("mqtts://a%40b:p:q%25@[::1]:9/")
            #expect(full.host == "::1" && full.port == 9 && full.isSecure)
            #expect(full.user == "a@b" && full.password == "p:q%" && full.publicAddress == "mqtts://[::1]:9")
            for wrong in ["", "broker", "http://a", "mqtt://", "mqtt://a:0", "mqtt://a:x", "mqtt://%0@a", "mqtt://a/b"]
            {
                let error = #expect(throws: FerryError.self) { _ = try MQTTConfiguration(wrong) }
                #expect(error?.code == .invalidConfiguration, "\(wrong)")
            }
        }
    }
#endif
