#if MQTT
    import Ferry
    import FerryFleet
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryMQTT

    /// What Home Assistant is told of sensors; `scripts/interop home` holds the same rows to its own schema.
    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct HomeAssistantTests {
        /// A row of the golden file.
        private struct Row: Decodable, CustomTestStringConvertible {
            let prefix: String?
            let sender: String
            let stream: String
            let field: String
            let name: String
            let unit: String?
            let deviceClass: String?
            let stateClass: String?
            let expireSeconds: Int?
            let topic: String
            let payload: String

            var testDescription: String { topic }

            var home: HomeAssistant {
                var sensor = HomeAssistant.Sensor(stream: stream, field: field, name: name)
                (sensor.unit, sensor.deviceClass) = (unit, deviceClass)
                sensor.stateClass = stateClass.flatMap(HomeAssistant.StateClass.init)
                sensor.expireAfter = expireSeconds.map { .seconds($0) }
                var home = HomeAssistant(sensors: [sensor])
                home.prefix = prefix ?? home.prefix
                return home
            }
        }

        private static func rows() throws -> [Row] {
            let file = packageFolder.appending(path: "Tests/Interop/home-assistant.json")
            return try JSONDecoder().decode([Row].self, from: try Data(contentsOf: file))
        }

        @Test(arguments: try rows()) private func descriptionsAreGolden(_ row: Row) throws {
            try row.home.check()
            let lane = OutletMessage.Lane(sender: row.sender, stream: row.stream)
            let found = row.home.descriptions(
                of: lane, at: "out/\(OutletAddress.level(row.sender))/\(OutletAddress.level(row.stream))")
            #expect(found.map(\.topic) == [row.topic])
            #expect(found.map { String(decoding: $0.payload, as: UTF8.self) } == [row.payload])
        }

        /// Names that only look alike give other objects, all of letters, digits, `_` and `-`.
        @Test func objectsTellNamesApart() {
            let names = [
                "", "_", "__", "%", "a_b", "a-b", "a%5Fb", "a b", "_20", " ", "-", "_-", "z", "_z", "ä", "a", "A",
            ]
            var objects: Set<String> = []
            for first in names { for second in names { objects.insert(HomeAssistant.object([first, second])) } }
            #expect(objects.count == names.count * names.count)
            #expect(objects.allSatisfy { !$0.contains(#/[^a-zA-Z0-9_-]/#) })
        }

        @Test(arguments: [
            ("no sensors", HomeAssistant(sensors: [])),
            ("too many", HomeAssistant(sensors: (0...256).map { .init(stream: "s", field: "f\($0)", name: "n") })),
            ("no name", HomeAssistant(sensors: [.init(stream: "s", field: "f", name: "")])),
            ("no field", HomeAssistant(sensors: [.init(stream: "s", field: "", name: "n")])),
            ("an empty step", HomeAssistant(sensors: [.init(stream: "s", field: "a..b", name: "n")])),
            ("a quote", HomeAssistant(sensors: [.init(stream: "s", field: "a'] }}{{ x", name: "n")])),
            ("a backslash", HomeAssistant(sensors: [.init(stream: "s", field: #"a\"#, name: "n")])),
            (
                "twice",
                HomeAssistant(sensors: [
                    .init(stream: "s", field: "f", name: "a"), .init(stream: "s", field: "f", name: "b"),
                ])
            ),
        ]) func whatCannotBeIsRefused(_ what: String, _ home: HomeAssistant) {
            let error = #expect(throws: FerryError.self) { try home.check() }
            #expect(error?.code == .invalidConfiguration, "\(what)")
        }

        @Test(arguments: ["", "a/", "+", "a b"]) func aPrefixIsOfLevels(_ prefix: String) {
            var home = HomeAssistant(sensors: [.init(stream: "s", field: "f", name: "n")])
            home.prefix = prefix
            #expect(throws: FerryError.self) { try home.check() }
        }

        // MARK: With a broker

        private func configuration(_ server: MosquittoServer) throws -> MQTTConfiguration {
            var configuration = try MQTTConfiguration("mqtt://\(server.host):\(server.port)")
            configuration.prefix = "out"
            configuration.homeAssistant = HomeAssistant(sensors: [
                .init(stream: "air", field: "t", name: "Temperature"),
                .init(stream: "air", field: "h", name: "Humidity"),
                .init(stream: "soil", field: "w", name: "Water"),
            ])
            // The tests' subscriber receives topics below `out`.
            configuration.homeAssistant?.prefix = "out/home"
            return configuration
        }

        private func message(_ number: Int, _ stream: String = "air") -> OutletMessage {
            OutletMessage(.init(sender: "hive 7", stream: stream), key: "k\(number)", bytes: Array("{}".utf8))
        }

        @Test(.enabled(if: MosquittoServer.isHere, "needs mosquitto")) func sensorsAreDescribedOnceAConnection()
            async throws
        {
            let server = try MosquittoServer()
            try await server.start()
            try await server.subscribe()
            let outlet = try await MQTTOutlet.open(configuration(server))
            for number in 1...3 { #expect(await outlet.publish(message(number)).isTaken) }
            #expect(await outlet.publish(message(4, "other")).isTaken)
            try await until("the last record") { server.deliveries.contains { $0.key == "k4" } }
            let topics = server.deliveries.map(\.address)
            #expect(
                topics == [
                    "out/home/sensor/ferry_-hive_207_-air_-t/config", "out/home/sensor/ferry_-hive_207_-air_-h/config",
                    "out/hive%207/air", "out/hive%207/air", "out/hive%207/air", "out/hive%207/other",
                ])
            await server.kill()
            try await server.start()
            try await until("the record after the broker's end") { await outlet.publish(message(5)).isTaken }
            try await until("the descriptions are there again") {
                server.deliveries.count { $0.address.hasSuffix("_-t/config") } >= 2
            }
            await outlet.close()
        }

        @Test(.enabled(if: MosquittoServer.isHere, "needs mosquitto")) func aRefusedDescriptionHoldsUpNoRecord()
            async throws
        {
            let server = try MosquittoServer("allow_anonymous true\nacl_file FOLDER/acl")
            try "topic readwrite out/+/air\n".write(toFile: "\(server.path)/acl", atomically: true, encoding: .utf8)
            try await server.start()
            let told = Mutex<[FerryError]>([])
            let outlet = try await MQTTOutlet.open(configuration(server)) { error in told.withLock { $0.append(error) }
            }
            for number in 1...3 {
                // mosquitto 2.0 has ended the connection with its refusal.
                try await until("a record is taken") { await outlet.publish(message(number)).isTaken }
            }
            try await until("the refusal is told") { told.withLock { !$0.isEmpty } }
            #expect(outlet.connections <= 3)
            let errors = told.withLock { $0 }
            #expect(errors.map(\.code) == [.mqttRefused])
            #expect(errors[0].message.contains("out/home/"), "\(errors[0].message)")
            await outlet.close()
        }
    }
#endif
