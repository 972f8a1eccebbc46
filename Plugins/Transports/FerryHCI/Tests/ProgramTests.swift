#if HCI
    import TestSupport
    import Testing

    /// The programs, as people run them over controllers of their own.
    @Suite(.tags(.adapter), .serialized, .timeLimit(.minutes(5)))
    struct ProgramTests {
        @Test(arguments: RadioKind.here(RadioKind.two))
        func aCardCrossesBetweenTwoProcesses(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let card = Interop.program("business-card")
            let server = try Interop.Script(
                executable: card, ["serve", "--transport", "\(radio.channels[0])", "--timeout", "3600"])
            #expect(await server.hasPrinted("Waiting for visitors"), "\(server.output)")
            let client = try Interop.Script(
                executable: card, ["receive", "--transport", "\(radio.channels[1])", "--timeout", "3600"])
            #expect(await client.exitStatus() == 0, "\(client.output)")
            #expect(client.output.contains("Name            Ada Lovelace"))
            // The end of its patience is a test of its own; here it would have to wait for that.
            #expect(await server.hasPrinted("Visitor 1 was sent the card"), "\(server.output)")
            server.interrupt()
            #expect(await server.exitStatus() == 130, "\(server.output)")
            #expect(radio.complaints.isEmpty, "\(radio.complaints)")
        }

        @Test func bothRolesDoNotFitOneController() async throws {
            let run = try Interop.Script(
                executable: Interop.program("business-card"), ["--transport", "hci:unix:/tmp/x"])
            #expect(await run.exitStatus() == 64)
            #expect(run.output.contains("it does not hear itself"))
        }

        @Test func nobodyAtTheAddressIsSaidSo() async throws {
            let run = try Interop.Script(
                executable: Interop.program("business-card"), ["receive", "--transport", "hci:unix:/tmp/none.sock"])
            #expect(await run.exitStatus() == 1)
            #expect(run.output.contains("Cannot reach an HCI controller at hci:unix:/tmp/none.sock"))
        }

        @Test func theBenchMeasuresOverControllers() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let channels = radio.channels.map { "\($0)" }.joined(separator: ",")
            let bench = try Interop.Script(
                executable: Interop.program("ferry"),
                ["bench", "--transport", channels, "--mtu", "185", "--seconds", "0.5", "--csv"])
            #expect(await bench.exitStatus() == 0, "\(bench.output)")
            #expect(bench.output.contains("185"))
            let few = try Interop.Script(
                executable: Interop.program("ferry"), ["bench", "--transport", "hci:unix:/tmp/a", "--csv"])
            #expect(await few.exitStatus() == 64)
            #expect(few.output.contains("need 2 adapters"))
        }
    }
#endif
