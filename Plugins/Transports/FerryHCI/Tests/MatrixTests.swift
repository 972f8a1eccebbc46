#if HCI
    import FerryBluetooth
    import FerryHCI
    import TestSupport
    import Testing

    /// Every kind of value at every ATT_MTU, with and against Bumble's host.
    @Suite(.tags(.adapter), .withOthers, .serialized, .timeLimit(.minutes(5)))
    struct MatrixTests {
        @Test(arguments: [23, 185, 247, 517], RadioKind.all)
        func bumblesCentralReadsWritesAndSubscribes(mtu: Int, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            let psm = try #require(server.psm).rawValue
            let central = try Interop.Script(
                "peer.py",
                [
                    "central", radio.peers[1], "mtu=\(mtu)", "read", "write=300", "read", "write=10",
                    "command=20",
                    "notify=600", "reconnect", "mtu=\(mtu)", "indicate=600", "coc=\(psm):5000",
                ])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("C: mtu \(mtu)\n"))
            #expect(central.output.contains("C: read 400 match = True\nC: wrote\nC: read 300 match = True\nC: wrote\n"))
            #expect(central.lines.filter { $0 == "C: collected 600 match = True" }.count == 2)
            #expect(central.output.contains("C: echoed 5000 match = True"))
            try await server.journal.wait(for: "disconnected", 2)
            let lines = server.journal.all.filter { !$0.hasPrefix("log") && !$0.hasPrefix("state") }
            #expect(
                lines.prefix(4) == ["wrote 300 bytes", "wrote 10 bytes", "command true", "subscribed notify"],
                "\(lines)")
            #expect(lines.contains("subscribed indicate"))
            #expect(lines.contains("channel closed disconnected"))
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }

        @Test(arguments: [23, 185, 247, 517], RadioKind.all)
        func bumblesPeripheralIsReadWrittenAndSubscribedTo(mtu: Int, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0]])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let client = try await Client.open(radio.channels[1]) { $0.maximumMTU = mtu }
            let connection = try await client.connect()
            let (id, _) = try await client.discover(connection)
            #expect(connection.attMTU == mtu)
            #expect(try await connection.readValue(of: id) == Layout.pattern(400))
            for count in [300, 512, 1] {
                try await connection.writeValue(Layout.pattern(count), to: id)
                #expect(await peripheral.hasPrinted("P: written \(count) match = True"), "\(peripheral.output)")
                #expect(try await connection.readValue(of: id) == Layout.pattern(count))
            }
            #expect(
                try connection.tryWriteValue(Layout.pattern(20).span.bytes, to: id, type: .withoutResponse))
            #expect(await peripheral.hasPrinted("P: written 20 match = True"), "\(peripheral.output)")
            #expect(try await client.collect(connection, id, .notify) == Layout.pattern(600))
            #expect(try await client.collect(connection, id, .indicate) == Layout.pattern(600))
            try await client.exchange(connection)
            connection.disconnect()
            try await client.journal.wait(for: "disconnected")
            #expect(radio.complaints.isEmpty)
            client.close()
            peripheral.stop()
        }

        /// Each central gets values of its own size from one subscription's owner.
        @Test(arguments: RadioKind.two)
        func twoCentralsHaveTheirOwnMTU(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind, 3)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            var centrals: [Interop.Script] = []
            for (place, mtu) in [(1, 64), (2, 247)] {
                // One after the other: the virtual link loses the later of two that answer the same advertisement.
                let central = try Interop.Script(
                    "peer.py",
                    [
                        "central", radio.peers[place], "--address", "F0:F0:F0:F0:F0:0\(place)", "mtu=\(mtu)",
                        "line", "notify=600", "line",
                    ])
                #expect(await central.hasPrinted("C: mtu \(mtu)\n"), "\(central.output)")
                centrals.append(central)
            }
            for central in centrals { central.say("go") }
            for central in centrals {
                #expect(await central.hasPrinted("C: collected 600 match = True"), "\(central.output)")
            }
            for central in centrals { central.say("go") }
            for central in centrals { #expect(await central.exitStatus() == 0, "\(central.output)") }
            try await server.journal.wait(for: "disconnected", 2)
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }
    }
#endif
