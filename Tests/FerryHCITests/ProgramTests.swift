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
            // As long as a busy machine may need until the client has come; it waits as long for others after it.
            let server = try Interop.Script(
                executable: card, ["serve", "--transport", "\(radio.channels[0])", "--timeout", "20"])
            #expect(await server.hasPrinted("Waiting for visitors"), "\(server.output)")
            let client = try Interop.Script(
                executable: card, ["receive", "--transport", "\(radio.channels[1])", "--timeout", "30"])
            #expect(await client.exitStatus() == 0, "\(client.output)")
            #expect(client.output.contains("Name            Ada Lovelace"))
            #expect(await server.exitStatus() == 0, "\(server.output)")
            #expect(server.output.contains("1 visitor served, 0 failed."))
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
