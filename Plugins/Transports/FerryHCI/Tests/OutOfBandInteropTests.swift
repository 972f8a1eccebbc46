#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryHCI

    /// Pairing with Bumble's host by data that take another way: here the scripts' standard input and output.
    @Suite(.tags(.adapter, .pairing), .serialized, .timeLimit(.minutes(5)))
    struct OutOfBandInteropTests {
        /// Who has the other's data.
        enum Way: CaseIterable { case here, there, both }

        private static let key = (1...16).map { UInt8($0 * 5) }

        private func require(_ configuration: inout HCIConfiguration) {
            configuration.pairing?.requiresAuthentication = true
        }

        /// Carries the data that are to be carried.
        private func carry(_ way: Way, _ script: Interop.Script, _ adapter: HCIAdapter) async throws {
            // The line before is whole then.
            try #require(await script.hasPrinted(": takes data"), "\(script.output)")
            let words = try #require(script.lines.first { $0.contains(": shares") }).split(separator: " ").suffix(3)
            let parts = Array(words)
            try #require(parts.count == 3)
            if way != .there {
                let value = bytes(parts[0].filter { $0 != ":" }[...]).reduce(UInt64(0)) { $0 << 8 | UInt64($1) }
                _ = try adapter.useOutOfBandData(
                    OutOfBandData(
                        address: Address(value, .random), confirm: bytes(parts[1]), random: bytes(parts[2])))
            }
            guard way != .here else { return script.say("-") }
            let own = try #require(adapter.makeOutOfBandData())
            script.say("\(digits(own.confirm)):\(digits(own.random))")
        }

        private func kept(_ adapter: HCIAdapter) -> Bond? {
            adapter.engine.state.withLock { $0.host.bonds.first }
        }

        @Test(.withOthers, arguments: Way.allCases)
        func bumblesCentralPairs(_ way: Way) async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0], require)
            let central = try Interop.Script(
                "peer.py", ["central", radio.peers[1], "--oob", "pair", "read=\(Layout.secretText)"])
            try await carry(way, central, adapter)
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.lines.contains("C: read 30 match = True"), "\(central.output)")
            let bond = try #require(kept(adapter))
            #expect(bond.isAuthenticated && bond.isSecureConnections)
            server.close()
            adapter.close()
        }

        @Test(.withOthers, arguments: Way.allCases)
        func bumblesPeripheralIsPairedWith(_ way: Way) async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0], "--oob"])
            let client = try await Client.open(radio.channels[1], require)
            try await carry(way, peripheral, client.adapter)
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let connection = try await client.connect()
            try await client.adapter.pair(with: connection.peripheral)
            let security = try #require(client.adapter.security(of: connection.peripheral))
            #expect(security.isAuthenticated && security.isSecureConnections, "\(peripheral.output)")
            client.close()
            peripheral.stop()
        }

        /// Legacy pairing: both sides have the key.
        @Test(.withOthers) func bumblesCentralPairsByATemporaryKey() async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0], require)
            _ = try adapter.useTemporaryKey(Self.key, of: .staticRandom(0xF0F0_F0F0_F0F0))
            let central = try Interop.Script(
                "peer.py",
                [
                    "central", radio.peers[1], "--legacy", "--tk", digits(Self.key), "pair",
                    "read=\(Layout.secretText)",
                ])
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.lines.contains("C: read 30 match = True"), "\(central.output)")
            let bond = try #require(kept(adapter))
            #expect(bond.isAuthenticated && !bond.isSecureConnections)
            server.close()
            adapter.close()
        }

        @Test(.withOthers) func bumblesPeripheralIsPairedWithByATemporaryKey() async throws {
            let radio = try await Radio.start()
            defer { radio.stop() }
            let peripheral = try Interop.Script(
                "peer.py", ["peripheral", radio.peers[0], "--legacy", "--tk", digits(Self.key)])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let client = try await Client.open(radio.channels[1], require)
            _ = try client.adapter.useTemporaryKey(Self.key, of: .staticRandom(0xF1F1_F1F1_F1F1))
            let connection = try await client.connect()
            try await client.adapter.pair(with: connection.peripheral)
            let security = try #require(client.adapter.security(of: connection.peripheral))
            #expect(security.isAuthenticated && !security.isSecureConnections, "\(peripheral.output)")
            client.close()
            peripheral.stop()
        }
    }
#endif
