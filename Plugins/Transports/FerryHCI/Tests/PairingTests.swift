#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// Pairing with Bumble's host, in both roles and every way.
    @Suite(.tags(.adapter, .pairing), .serialized, .timeLimit(.minutes(5)))
    struct PairingTests {
        struct Way: Sendable, CustomTestStringConvertible {
            let name: String
            let own: IOCapability
            let peer: IOCapability
            var isLegacy = false
            var isWrong = false
            var testDescription: String { name }

            /// Bumble's side.
            var options: [String] {
                var options = ["--io", "\(peer.rawValue)"]
                if peer != .noInputNoOutput { options.append("--mitm") }
                if isLegacy { options.append("--legacy") }
                if isWrong { options.append("--wrong") }
                return options
            }
        }

        static let ways = [
            Way(name: "Just Works", own: .noInputNoOutput, peer: .noInputNoOutput),
            Way(name: "legacy Just Works", own: .noInputNoOutput, peer: .noInputNoOutput, isLegacy: true),
            Way(name: "numeric comparison", own: .displayYesNo, peer: .displayYesNo),
            Way(name: "numbers differ", own: .displayYesNo, peer: .displayYesNo, isWrong: true),
            Way(name: "passkey shown here", own: .displayOnly, peer: .keyboardOnly),
            Way(name: "passkey entered here", own: .keyboardOnly, peer: .displayOnly),
            Way(name: "legacy passkey shown here", own: .displayOnly, peer: .keyboardOnly, isLegacy: true),
            Way(name: "legacy passkey entered here", own: .keyboardOnly, peer: .displayOnly, isLegacy: true),
        ]

        /// Has a person read both screens.
        private func meet(_ person: Person, _ script: Interop.Script) {
            person.decide {
                $0.show = { script.say("\($0)") }
                $0.compare = { await script.number(after: "compares ") == $0 }
                $0.passkey = { await script.number(after: "shows ") }
            }
        }

        private func configure(_ way: Way, _ person: Person) -> (inout HCIConfiguration) -> Void {
            { configuration in
                configuration.pairing?.capability = way.own
                configuration.pairing?.agent = way.own == .noInputNoOutput ? nil : person
            }
        }

        @Test(.withOthers, arguments: ways, RadioKind.two)
        func bumblesCentralPairs(_ way: Way, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let person = Person()
            let (adapter, server) = try await Server.open(radio.channels[0], configure(way, person))
            let central = try Interop.Script(
                "peer.py",
                ["central", radio.peers[1]] + way.options
                    + ["read=\(Layout.secretText)", "pair", "read=\(Layout.secretText)"]
                    + (way.isWrong ? [] : ["reconnect", "encrypt", "read=\(Layout.secretText)"]))
            meet(person, central)
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.output.contains("C: refused 0x05"), "\(central.output)")
            if way.isWrong {
                #expect(central.output.contains("pair failed"), "\(central.output)")
                #expect(!central.output.contains("C: read 30"))
            } else {
                #expect(central.output.contains("C: encrypted"))
                // With the key of the first connection the second time.
                #expect(
                    central.lines.filter { $0 == "C: read 30 match = True" }.count == 2, "\(central.output)")
                #expect(central.lines.filter { $0.hasPrefix("C: paired") }.count == 1)
                #expect(adapter.bondedPeers.count == 1)
            }
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }

        @Test(.withOthers, arguments: ways, RadioKind.two)
        func bumblesPeripheralIsPairedWithWhenItRefuses(_ way: Way, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script(
                "peer.py", ["peripheral", radio.peers[0]] + way.options)
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let person = Person()
            meet(person, peripheral)
            let client = try await Client.open(radio.channels[1], configure(way, person))
            let connection = try await client.connect()
            let (id, secret) = try await client.discover(connection)
            #expect(try await connection.readValue(of: id) == Layout.pattern(400))
            if way.isWrong {
                await #expect(throws: BluetoothError.self) { try await connection.readValue(of: secret) }
            } else {
                #expect(try await connection.readValue(of: secret) == Layout.pattern(30), "\(peripheral.output)")
                #expect(client.adapter.bondedPeers == [connection.peripheral])
                #expect(await peripheral.hasPrinted("P: paired"), "\(peripheral.output)")
                // The key serves the next connection too. Bumble does not find its own legacy keys again as peripheral.
                if way.isLegacy { return client.close() }
                connection.disconnect()
                try await client.journal.wait(for: "disconnected")
                let again = try await client.connect()
                try await client.adapter.pair(with: again.peripheral)
                let (_, secretAgain) = try await client.discover(again)
                #expect(try await again.readValue(of: secretAgain) == Layout.pattern(30))
                #expect(peripheral.lines.filter { $0.hasPrefix("P: paired") }.count == 1)
            }
            client.close()
            peripheral.stop()
        }

        /// The file keeps keys and address, so that two adapters in turn are one device to the peer.
        @Test(.withOthers) func keysOutliveTheAdapter() async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let file = Interop.file("bonds")
            let (adapter, server) = try await Server.open(radio.channels[0]) { $0.pairing?.bondFile = file }
            let central = try Interop.Script(
                "peer.py",
                [
                    "central", radio.peers[1], "pair", "read=\(Layout.secretText)", "hold", "line",
                ])
            #expect(await central.hasPrinted("C: read 30 match = True"), "\(central.output)")
            server.close()
            adapter.close()
            let mode = try FileManager.default.attributesOfItem(atPath: file)[.posixPermissions] as? Int
            #expect(mode == 0o600)
            let text = try String(contentsOfFile: file, encoding: .utf8)
            #expect(text.contains("\"isSecureConnections\" : true"))
            central.stop()
            #expect(await radio.script.hasPrinted("C0: host gone"))

            // As central now, with the key that was made as peripheral: Secure Connections' keys serve both ways.
            var configuration = HCIConfiguration()
            configuration.pairing?.bondFile = file
            let later = try await HCIAdapter.open(radio.channels[0], configuration)
            let peer = try #require(later.bondedPeers.first)
            try later.forget(peer)
            #expect(later.bondedPeers.isEmpty)
            #expect(!(try String(contentsOfFile: file, encoding: .utf8)).contains("longTermKey"))
            later.close()
            #expect(await radio.script.hasPrinted("C1: host gone"))

            try "{".write(toFile: file, atomically: true, encoding: .utf8)
            let error = await #expect(throws: BluetoothError.self) {
                _ = try await HCIAdapter.open(radio.channels[0], configuration)
            }
            #expect(error?.message.contains("is damaged, or is no bond file: it is not JSON") == true)
        }

        @Test(arguments: RadioKind.here([.bumble(acl: 251)]))
        func withoutPairingWhatNeedsItIsRefused(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0]) { $0.pairing = nil }
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            let (_, secret) = try await client.discover(connection)
            let error = await #expect(throws: BluetoothError.self) { try await connection.readValue(of: secret) }
            #expect(error?.code == .att(.insufficientAuthentication))
            client.close()
            server.close()
            adapter.close()
        }

        /// Ferry on both sides: Just Works, then a channel that needs an encrypted link.
        @Test(arguments: RadioKind.here([.bumble(acl: 251)]))
        func ferryPairsWithFerry(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            let psm = try await server.publishSecureChannel()
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            let channel = try await connection.openL2CAPChannel(psm)
            #expect(channel.maximumChunkSize > 0)
            #expect(client.adapter.bondedPeers.count == 1)
            #expect(adapter.bondedPeers.count == 1)
            let (_, secret) = try await client.discover(connection)
            #expect(try await connection.readValue(of: secret) == Layout.pattern(30))
            client.close()
            server.close()
            adapter.close()
        }
    }
#endif
