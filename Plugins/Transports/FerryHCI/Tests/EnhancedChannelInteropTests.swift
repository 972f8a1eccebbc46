#if HCI
    import FerryBluetooth
    import FerryHCI
    import TestSupport
    import Testing

    /// Channels opened by the request for several, with Bumble's host in both roles.
    @Suite(.tags(.adapter, .l2cap), .withOthers, .serialized, .timeLimit(.minutes(5)))
    struct EnhancedChannelInteropTests {
        @Test(arguments: [1, 5], RadioKind.two)
        func bumbleOpensSeveral(count: Int, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            let psm = try #require(server.psm).rawValue
            let central = try Interop.Script(
                "peer.py", ["central", radio.peers[1], "mtu=185", "ecoc=\(psm):5000:\(count)", "ecoc=153:1:2"])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("C: echoed by \(count) match = True"), "\(central.output)")
            #expect(central.output.contains("SPSM_NOT_SUPPORTED"), "\(central.output)")
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }

        /// Bumble has used the request itself, so this side does.
        @Test(arguments: RadioKind.two)
        func bumbleIsAskedByTheRequestItKnows(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0], "--enhanced"])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let file = Interop.file("enhanced")
            let client = try await Client.open(radio.channels[1]) { $0.capture = file }
            let connection = try await client.connect()
            #expect(await peripheral.hasPrinted("P: refused 2"), "\(peripheral.output)")
            try await client.exchange(connection)
            await #expect(throws: BluetoothError.self) {
                try await connection.openL2CAPChannel(PSM(rawValue: 0x98))
            }
            connection.disconnect()
            try await client.journal.wait(for: "disconnected")
            client.close()
            peripheral.stop()
            let codes = try await Interop.run(
                "tshark", ["-r", file, "-Y", "btl2cap.cmd_code", "-T", "fields", "-e", "btl2cap.cmd_code"])
            let signals = codes.split(separator: "\n")
            #expect(signals.filter { $0 == "0x17" }.count == 3, "\(codes)")
            #expect(!signals.contains("0x14"), "\(codes)")
        }
    }
#endif
