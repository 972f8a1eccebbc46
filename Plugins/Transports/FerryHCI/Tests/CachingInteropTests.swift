#if HCI
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// The Database Hash, what is done with it, and several values in one notification.
    @Suite(.tags(.adapter), .serialized, .timeLimit(.minutes(5)))
    struct CachingInteropTests {
        @Test(.withOthers, arguments: RadioKind.two)
        func bumbleMakesTheSameHash(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            server.limitValues(to: 10)
            let central = try Interop.Script(
                "peer.py", ["central", radio.peers[1], "mtu=247", "hash", "features=4", "notify=600"])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("match = True\nC: features 4\n"), "\(central.output)")
            #expect(!central.output.contains("match = False"), "\(central.output)")
            #expect(central.output.contains("C: collected 600 match = True"), "\(central.output)")
            // 17 values of 10 bytes fit ATT_MTU 247.
            #expect(central.output.contains("C: several 17 whole = True"), "\(central.output)")
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }

        /// ATT opcodes of an adapter's capture, in order, as tshark names them.
        private func opcodes(_ file: String) async throws -> [Substring] {
            try await Interop.run("tshark", ["-r", file, "-Y", "btatt", "-T", "fields", "-e", "btatt.opcode"])
                .split(separator: "\n").filter { $0.hasPrefix("0x") }
        }

        @Test(.withOthers, arguments: [RadioKind.rootCanal])
        func bumblesServicesAreFoundOnce(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0]])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let file = Interop.file("cache")
            let client = try await Client.open(radio.channels[1]) { $0.capture = file }
            for round in 1...2 {
                let connection = try await client.connect()
                let (id, _) = try await client.discover(connection)
                #expect(try await connection.readValue(of: id) == Layout.pattern(400))
                try await connection.setSubscription(.indicate, to: id)
                connection.disconnect()
                try await client.journal.wait(for: "disconnected", round)
            }
            client.close()
            peripheral.stop()
            // Each connection reads the hash first; all that finds something else is in the first one.
            let all = try await opcodes(file)
            let second = try #require(all.lastIndex(of: "0x02"))
            let finds = ["0x04", "0x06", "0x08", "0x10"].map { opcode in all[second...].filter { $0 == opcode }.count }
            #expect(finds == [0, 0, 1, 0], "\(all)")
            #expect(all[..<second].filter { $0 == "0x06" }.count >= 1)
        }

        /// A file beside the bonds keeps it, so that another run does not look either.
        @Test(.withOthers) func whatWasFoundOutlivesTheAdapter() async throws {
            let radio = try await Radio.start(.rootCanal, 3)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            let (bonds, file) = (Interop.file("bonds"), Interop.file("second"))
            for round in 1...2 {
                let client = try await Client.open(radio.channels[round]) {
                    $0.pairing?.bondFile = bonds
                    $0.capture = file
                }
                let connection = try await client.connect()
                let (_, secret) = try await client.discover(connection)
                #expect(try await connection.readValue(of: secret) == Layout.pattern(30))
                // What was found before the link was encrypted anybody may have said.
                if round == 1 { _ = try await client.discover(connection) }
                connection.disconnect()
                try await client.journal.wait(for: "disconnected")
                client.close()
                client.adapter.close()
            }
            server.close()
            adapter.close()
            #expect(
                try FileManager.default.attributesOfItem(atPath: bonds + ".peers")[.posixPermissions] as? Int == 0o600)
            let all = try await opcodes(file)
            let finds = ["0x04", "0x06", "0x08", "0x10"].map { opcode in all.filter { $0 == opcode }.count }
            #expect(finds == [0, 0, 1, 0], "\(all)")
        }

        @Test(arguments: RadioKind.here([.rootCanal]))
        func aChangeIsFoundAndToldOver(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            let before = try await connection.discoverServices(nil)
            let added = BluetoothUUID(0x1234 as UInt16)
            _ = try await server.publish(
                ServiceDefinition(
                    added,
                    characteristics: [
                        CharacteristicDefinition(added, properties: .read, permissions: .readable, value: [1])
                    ]))
            try await client.journal.wait(for: "modified")
            #expect(try await connection.discoverServices(nil).map(\.uuid) == before.map(\.uuid) + [added])
            connection.disconnect()
            try await client.journal.wait(for: "disconnected")
            let again = try await client.connect()
            #expect(try await again.discoverServices([added]).count == 1)
            client.close()
            server.close()
            adapter.close()
        }

        /// Between Ferry and Ferry, and what Wireshark's dissector makes of it.
        @Test(.withOthers, arguments: RadioKind.two)
        func smallValuesShareNotifications(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let file = Interop.file("multiple")
            let (adapter, server) = try await Server.open(radio.channels[0]) { $0.capture = file }
            server.limitValues(to: 20)
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            let (id, _) = try await client.discover(connection)
            #expect(try await client.collect(connection, id, .notify) == Layout.pattern(600))
            client.close()
            server.close()
            adapter.close()
            // 30 values of 20 bytes: 21 of them and their headers fit ATT_MTU 517.
            #expect(try await opcodes(file).filter { $0 == "0x23" }.count == 2)
        }
    }
#endif
