#if HCI
    import BluetoothHost
    import FerryBluetooth
    import FerryHCI
    import TestSupport
    import Testing

    /// Ferry's host over sockets on an air that changes: who is near and who is far, while they are connected.
    @Suite(.tags(.adapter, .recovery), .timeLimit(.minutes(5))) struct AirTests {
        @Test func peersMoveInAndOutOfReach() async throws {
            let folder = Interop.folder()
            let air = try Interop.Script(
                executable: Interop.program("virtual-controllers"),
                ["--count", "4", "unix:\(folder)", "--control", "-"])
            defer { air.stop() }
            #expect(await air.hasPrinted("Controller 3 serves unix:\(folder)3."), "\(air.output)")
            var answers = 0
            func say(_ line: String) async {
                answers += 1
                air.say(line)
                #expect(await air.hasPrinted("ok\n", times: answers), "\(air.output)")
            }
            // The peripheral hears 2 and 3, and they it; 1 is too far away.
            await say("signal 0 1 out")
            await say("signal 0 2 -61")
            let (adapter, server) = try await Server.open(.unix(path: folder + "0")) {
                // So that an end is soon seen; it need not be.
                $0.preferredParameters = PreferredParameters(interval: 12...24, supervisionTimeout: 100)
            }
            let far = try await Client.open(.unix(path: folder + "1"))
            let near = try await Client.open(.unix(path: folder + "2"))
            let moving = try await Client.open(.unix(path: folder + "3"))
            async let late = far.connect()
            let first = try await near.connect()
            #expect(near.signals.first == -61)
            #expect(try await first.readRSSI() == -61)
            let (id, _) = try await near.discover(first)
            await say("signal 0 2 -72")
            #expect(try await first.readRSSI() == -72)
            #expect(try await near.collect(first, id, .notify).count == Server.total)
            // Out of reach: both are told that nothing was heard for too long.
            await say("signal 0 2 out")
            try await near.journal.wait(for: "disconnected connectionTimeout")
            try await server.journal.waitForEnds(1)
            #expect(server.journal.all.contains { $0.contains("has ended: connection timeout") })
            // The other was heard by nobody all the time; now it comes near.
            #expect(far.signals.isEmpty)
            await say("signal 0 1 -80")
            let second = try await late
            #expect(far.signals.first == -80)
            #expect(try await second.readRSSI() == -80)
            second.disconnect()
            try await far.journal.wait(for: "disconnected")
            // With losses all arrives, later.
            await say("loss 0 3 20")
            let third = try await moving.connect()
            let (other, _) = try await moving.discover(third)
            #expect(try await moving.collect(third, other, .notify) == Layout.pattern(Server.total))
            // Who ends a connection to a peer that is out of reach is told that it did, when the supervision timeout is over.
            await say("signal 0 3 out")
            third.disconnect()
            try await moving.journal.wait(for: "disconnected disconnectedLocally")
            #expect(!air.lines.contains { $0.hasPrefix("!!") }, "\(air.output)")
            for client in [far, near, moving] {
                client.close()
                client.adapter.close()
            }
            server.close()
            adapter.close()
        }
    }
#endif
