#if NATS && Records
    import Foundation
    import TestSupport
    import Testing

    @testable import FerryCommand

    #if Observability
        import FerryGateway
        import FerryNATS
        import Logging

        /// What `ferry gateway --log-level` writes.
        @Suite("ferry gateway --log-level", .tags(.program, .records), .timeLimit(.minutes(5))) struct GatewayLogTests {
            private let noon = Date(timeIntervalSince1970: 1_795_521_600.25)

            @Test("A line says when, how grave, what, and about what") func line() {
                let metadata: Logger.Metadata = ["peer": "press 7", "gateway": "g1", "reason": "", "mark": "a=\"b\""]
                #expect(
                    LogFormat.text.line(noon, .warning, "The stream is full.", metadata)
                        == #"2026-11-24T12:00:00.250Z warning: The stream is full. gateway=g1 mark="a=\"b\"" peer="press 7" reason="""#
                        + "\n")
            }

            @Test("A peer's name makes no line of its own") func forged() {
                let forged = "x\n2026-11-24T12:00:00.250Z error: All is lost\u{1B}[2J"
                let line = LogFormat.text.line(noon, .info, forged, ["peer": "\(forged)"])
                #expect(line.unicodeScalars.count { $0.properties.generalCategory == .control } == 1)
                #expect(line.hasSuffix("\n") && line.hasPrefix("2026-11-24T12:00:00.250Z info: x\\n2026"))
            }

            @Test("A line of JSON is one object, whatever names are in it") func json() throws {
                let forged = "x\"}\n{\"level\":\"error\"\u{1B}"
                let line = LogFormat.json.line(noon, .info, forged, ["peer": "\(forged)", "records": "20"])
                #expect(
                    line.unicodeScalars.count { $0.properties.generalCategory == .control } == 1 && line.hasSuffix("\n")
                )
                let object = try #require(JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any])
                #expect(object["time"] as? String == "2026-11-24T12:00:00.250Z" && object["level"] as? String == "info")
                #expect(object["message"] as? String == forged)
                #expect(object["metadata"] as? [String: String] == ["peer": forged, "records": "20"])
                let dropped = LogFormat.json.dropped(5, noon)
                let told = try #require(JSONSerialization.jsonObject(with: Data(dropped.utf8)) as? [String: Any])
                #expect(
                    (told["message"] as? String)?.hasPrefix("5 lines") == true && told["level"] as? String == "warning")
            }

            @Test("What nobody reads is left out, and said, and nobody waits") func full() async throws {
                let pipe = Pipe()
                let writer = LineWriter(pipe.fileHandleForWriting.fileDescriptor, most: 10)
                // More than a pipe holds: one is being written, nine wait.
                let line = String(repeating: "x", count: 100_000)
                for number in 0..<30 { writer.write("\(number) \(line)\n") }
                let reading = Task.detached {
                    var text = Data(), lines = 0
                    while lines < 12 {
                        let data = pipe.fileHandleForReading.availableData
                        guard !data.isEmpty else { break }
                        text += data
                        lines += data.count { $0 == 0x0A }
                    }
                    return String(decoding: text, as: UTF8.self)
                }
                // There is room when the others are written.
                try await until("an empty queue") { writer.waiting == 0 }
                writer.write("last\n")
                let lines = await reading.value.split(separator: "\n").map { $0.prefix { $0 != "x" } }
                #expect(lines.prefix(10) == (0..<10).map { "\($0) " }[...])
                #expect(lines.suffix(2) == ["(20 lines are left out here: they were not read in time)", "last"])
                try pipe.fileHandleForWriting.close()
            }

            @Test("A level that there is not is refused") func level() {
                do {
                    _ = try GatewayLog("loud", gateway: "g1")
                    Issue.record("there is no such level")
                } catch {
                    #expect(
                        "\(error)" == "There is no level 'loud' of logs. There are: trace, debug, info, notice, "
                            + "warning, error, critical.")
                }
            }

            @Test("A format that there is not is refused") func format() {
                do {
                    _ = try GatewayLog("info", "xml", gateway: "g1")
                    Issue.record("there is no such format")
                } catch { #expect("\(error)" == "There is no format 'xml' of logs. There are text and json.") }
            }

            @Test("Lines are on standard error, and the others where they were", .enabled(if: NATSServer.isHere))
            func program() async throws {
                let server = try NATSServer()
                try await server.start()
                let output = try await ProgramShell.run(
                    """
                    echo one | $FERRY send --store peer --transport unix:socket --timeout 3600 --lines - >sent 2>&1 &
                    sender=$!
                    $FERRY gateway --transport unix:socket --store store --nats $NATS --name g1 --log-level trace >out 2>err &
                    gateway=$!
                    until_there err 'The stream has the record'; until_there err 'A visit is over'
                    wait $sender
                    kill $gateway; wait $gateway
                    grep -o 'info: Connected. gateway=g1 part=stream' err
                    grep -o 'debug: The link is open. peer=' err | head -n 1
                    grep -o 'trace: The record was read. gateway=g1' err
                    grep -o 'trace: The stream has the record. gateway=g1 .* place=1 ' err | grep -o 'place=1'
                    grep -o 'debug: A visit is over. gateway=g1 peer=.* received=1 sent=0 ' err | grep -o 'received=1 sent=0'
                    grep -c 'connected, ' out | sed 's/[1-9].*/status/'
                    grep -c 'trace:' out
                    tail -n 1 err | grep -o 'info: The gateway ends.'
                    """, ["NATS": server.url])
                // It is there until then.
                await server.kill()
                #expect(
                    output == """
                        info: Connected. gateway=g1 part=stream
                        debug: The link is open. peer=
                        trace: The record was read. gateway=g1
                        place=1
                        received=1 sent=0
                        status
                        0
                        info: The gateway ends.

                        """, "\(output)")
            }
        }
    #else
        /// A build without the trait says what to build with.
        @Suite("ferry gateway --log-level", .tags(.program, .records)) struct GatewayLogTests {
            @Test func untold() {
                do {
                    _ = try GatewayLog("info", gateway: "g1")
                    Issue.record("nothing logs")
                } catch { #expect("\(error)".contains("swift run --traits Records,NATS,Observability ferry gateway")) }
            }
        }
    #endif
#endif
