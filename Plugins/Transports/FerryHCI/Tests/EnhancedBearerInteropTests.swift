#if HCI
    import FerryBluetooth
    import Synchronization
    import TestSupport
    import Testing

    @testable import BluetoothHost
    @testable import FerryHCI

    /// Enhanced ATT bearers, with Bumble's host in both roles.
    @Suite(.tags(.adapter, .gatt), .withOthers, .serialized, .timeLimit(.minutes(5)))
    struct EnhancedBearerInteropTests {
        private func use(_ configuration: inout HCIConfiguration) { configuration.usesEnhancedBearers = true }

        @Test(arguments: [1, 5])
        func bumbleReadsBySeveral(count: Int) async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0], use)
            let central = try Interop.Script(
                "peer.py", ["central", radio.peers[1], "read", "eatt=1", "pair", "eatt=\(count)", "read"])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("eatt=1 failed"), "\(central.output)")
            #expect(central.lines.contains("C: read by \(count) bearers match = True"), "\(central.output)")
            #expect(central.lines.count { $0 == "C: read 400 match = True" } == 2, "\(central.output)")
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }

        @Test func bumbleIsAskedByOne() async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0], "--eatt"])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let client = try await Client.open(radio.channels[1], use)
            let connection = try await client.connect()
            try await client.adapter.pair(with: connection.peripheral)
            let bearer = {
                client.adapter.engine.state.withLock { state in
                    state.host.connections.first?.channels.first { $0.psm == 0x27 && $0.state == .open }?.id
                }
            }
            try await until("a bearer: \(peripheral.output)") { bearer() != nil }
            let channel = try #require(bearer())
            let (id, secret) = try await client.discover(connection)
            #expect(try await connection.readValue(of: id) == Layout.pattern(400))
            let used = client.adapter.engine.state.withLock { $0.host.connections.first?.requestBearer }
            #expect(used == channel)
            #expect(try await connection.readValue(of: secret) == Layout.pattern(30))
            #expect(try await client.collect(connection, id, .indicate) == Layout.pattern(Server.total))
            client.close()
            peripheral.stop()
        }
    }
#endif
