#if NATS && Records
    import FerryGateway
    import FerryNATS
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    /// `outlet` of a gateway's configuration, and `ferry gateway --mqtt`.
    @Suite("ferry gateway --mqtt", .tags(.program, .records), .timeLimit(.minutes(5))) struct GatewayOutletTests {
        private func read(_ text: String) throws -> GatewaySettings {
            try GatewaySettings.read(Data(text.utf8), "gateway.json")
        }

        private func failure(_ text: String) -> String {
            let error = #expect(throws: (any Error).self) { try read(text).destination() }
            return error.map { "\($0)" } ?? ""
        }

        @Test("An unknown key of an outlet is named, with those that there are", arguments: ["nats", "MQTT", "topic"])
        func unknownKey(_ key: String) {
            let text = failure(#"{"outlet": {"mqtt": "mqtt://a", "\#(key)": "b"}}"#)
            #expect(text.contains("'outlet.\(key)', which means nothing") && text.contains("authorities"), "\(text)")
        }

        @Test(
            "What is of NATS does not go with an outlet",
            arguments: [
                ("nats", #""nats": {"stream": "b"}"#), ("fleet", #""fleet": {"bucket": "b"}"#),
                ("downlink", #""downlink": {"stream": "b"}"#), ("trust.allow", #""trust": {"allow": "b"}"#),
            ])
        func keysOfNATS(_ key: String, _ settings: String) {
            let text = failure(#"{"outlet": {"mqtt": "mqtt://a"}, \#(settings)}"#)
            #expect(text.contains("\(key) is of NATS"), "\(text)")
        }

        @Test(
            "A wrong description of sensors is told",
            arguments: [
                (#""sensors": [], "topic": "b""#, "'outlet.homeAssistant.topic', which means nothing"),
                (
                    #""sensors": [{"field": "f", "name": "n", "units": "K"}]"#,
                    "'outlet.homeAssistant.sensors.units', which means nothing"
                ),
                (#""sensors": [{"field": 1, "name": "n"}]"#, "'outlet.homeAssistant.sensors.0.field' must be text"),
            ])
        func wrongSensors(_ settings: String, _ words: String) {
            let text = failure(#"{"outlet": {"mqtt": "mqtt://a", "homeAssistant": {\#(settings)}}}"#)
            #expect(text.contains(words), "\(text)")
        }

        @Test("An outlet without an address is refused") func noAddress() {
            #expect(failure(#"{"outlet": {}}"#).contains("The outlet has no address"))
        }

        @Test(
            "An outlet is of one kind",
            arguments: [
                (#""mqtt": "mqtt://a", "http": "http://a""#, "Leave the other out"),
                (#""mqtt": "mqtt://a", "token": "a""#, "outlet.token is of HTTP"),
                (#""mqtt": "mqtt://a", "contentType": "a/b""#, "outlet.contentType is of HTTP"),
                (#""http": "http://a", "client": "a""#, "outlet.client is of MQTT"),
                (#""http": "http://a", "homeAssistant": {"sensors": []}"#, "outlet.homeAssistant is of MQTT"),
            ])
        func twoKinds(_ settings: String, _ words: String) {
            let text = failure(#"{"outlet": {\#(settings)}}"#)
            #expect(text.contains(words), "\(text)")
        }

        @Test("Without an outlet it is NATS, as ever") func nats() throws {
            guard case .nats(let configuration) = try read(#"{"nats": {"servers": ["nats://a"]}}"#).destination() else {
                Issue.record("it is no NATS")
                return
            }
            #expect(configuration.servers.servers == ["nats://a"])
        }

        #if MQTT
            @Test("An outlet's bounds follow the configuration, and its address keeps secrets") func bounds() throws {
                let settings = try read(
                    #"{"outlet": {"mqtt": "mqtt://ada:secret@broker"}, "name": "attic", "keepSeconds": 8}"#)
                guard case .outlet(let outlet) = try settings.destination() else {
                    Issue.record("it is no outlet")
                    return
                }
                #expect(outlet.bounds.name == "attic" && outlet.welcome.contains("mqtt://broker:1883 lets"))
                #expect(outlet.bounds.retention == .seconds(8) && outlet.bounds.lookInterval == .seconds(2))
                #expect(failure(#"{"outlet": {"mqtt": "broker"}}"#).contains("does not begin with mqtt://"))
            }

            @Test(
                "What a sensor may not be is told",
                arguments: [
                    (#""stateClass": "mean""#, "There are: measurement, total, total_increasing"),
                    (#""expireSeconds": 0"#, "give 1 to"), (#""deviceClass": "Temp""#, "such as temperature"),
                ])
            func wrongSensor(_ setting: String, _ words: String) {
                let sensor = #"{"field": "t", "name": "Temperature", \#(setting)}"#
                let text = failure(#"{"outlet": {"mqtt": "mqtt://a", "homeAssistant": {"sensors": [\#(sensor)]}}}"#)
                #expect(text.contains(words), "\(text)")
            }

            @Test("--check says that no broker is there") func away() async throws {
                let output = try await ProgramShell.run(
                    """
                    $FERRY gateway --mqtt mqtt://127.0.0.1:1 --transport unix:x --store store.ferry --check 2>&1
                    echo "ended with $?"
                    ls
                    """, [:])
                #expect(
                    output.contains("The MQTT broker at mqtt://127.0.0.1:1 cannot be connected to")
                        && output.hasSuffix("ended with 1\n"), "\(output)")
            }
        #endif

        #if HTTP
            @Test("A server's bounds follow the configuration, and its address keeps secrets") func server() throws {
                let settings = try read(
                    #"{"outlet": {"http": "https://ada:secret@host/x?code=hidden"}, "name": "attic", "answerSeconds": 2}"#
                )
                guard case .outlet(let outlet) = try settings.destination() else {
                    Issue.record("it is no outlet")
                    return
                }
                #expect(outlet.bounds.name == "attic" && outlet.welcome == "the server at https://host/x answers")
                #expect(failure(#"{"outlet": {"http": "host"}}"#).contains("does not begin with http://"))
            }
        #else
            @Test("A build without HTTP says how to get it") func noHTTP() {
                #expect(failure(#"{"outlet": {"http": "http://a"}}"#).contains("Build with the trait HTTP"))
            }
        #endif

        #if !MQTT
            @Test("A build without MQTT says how to get it") func missing() {
                #expect(failure(#"{"outlet": {"mqtt": "mqtt://a"}}"#).contains("Install libmosquitto-dev"))
            }
        #endif
    }
#endif
