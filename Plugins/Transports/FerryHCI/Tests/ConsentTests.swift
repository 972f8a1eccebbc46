#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import TestSupport
    import Testing

    /// Who may pair, and what becomes of a peer that has lost its keys: two adapters over controllers in a process of their own.
    @Suite(.tags(.adapter), .serialized, .timeLimit(.minutes(5)))
    struct ConsentTests {
        /// Reads what needs an encrypted link.
        private func readSecret(_ client: Client, _ connection: any PeripheralConnection) async throws -> [UInt8] {
            let (_, secret) = try await client.discover(connection)
            return try await connection.readValue(of: secret)
        }

        @Test func whoMayPairIsTheApplicationsToSay() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let person = Person(agrees: false)
            let (adapter, server) = try await Server.open(radio.channels[0]) { $0.pairing?.agent = person }
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()

            adapter.isPairable = false
            await #expect(throws: BluetoothError.self) { try await readSecret(client, connection) }
            #expect(person.journal.all.isEmpty)
            adapter.isPairable = true
            let error = await #expect(throws: BluetoothError.self) { try await readSecret(client, connection) }
            #expect(error?.code == .att(.insufficientAuthentication))
            #expect(person.journal.all == ["allow"])
            #expect(client.adapter.security(of: connection.peripheral)?.level == 1)
            #expect(adapter.bondedPeers.isEmpty)
            #expect(client.adapter.bondedPeers.isEmpty)

            person.decide { $0.allow = { true } }
            #expect(try await readSecret(client, connection) == Layout.pattern(30))
            let security = try #require(client.adapter.security(of: connection.peripheral))
            #expect(security.isBonded)
            #expect(security.level == 2)
            #expect(adapter.bondedPeers.count == 1)
            client.close()
            server.close()
            adapter.close()
        }

        /// The person is told when the peer has gone, and what is said then allows nothing.
        @Test func aPersonIsNotAskedAnyMoreWhenThePeerHasGone() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let person = Person()
            let (adapter, server) = try await Server.open(radio.channels[0]) { $0.pairing?.agent = person }
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            person.decide { $0.allow = { [unowned person] in await person.thinkTooLong() } }
            let reading = Task { try await readSecret(client, connection) }
            try await person.journal.wait(for: "allow")
            connection.disconnect()
            try await person.journal.wait(for: "cancelled")
            await #expect(throws: BluetoothError.self) { try await reading.value }

            person.decide { $0.allow = { false } }
            let again = try await client.connect()
            await #expect(throws: BluetoothError.self) { try await readSecret(client, again) }
            #expect(person.journal.count("allow") == 2)
            #expect(adapter.bondedPeers.isEmpty)
            client.close()
            server.close()
            adapter.close()
        }

        /// It may be somebody else: nothing is read in the clear, the keys stay until the application forgets them, and the
        /// reason is in the error.
        @Test func aPeerThatHasLostItsKeysIsNotReadFrom() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let address: UInt64 = 0xF3F3_F3F3_F3F3
            let (first, server) = try await Server.open(radio.channels[0]) { $0.address = address }
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            #expect(try await readSecret(client, connection) == Layout.pattern(30))
            connection.disconnect()
            try await client.journal.wait(for: "disconnected")
            server.close()
            first.close()
            #expect(await radio.script.hasPrinted("0: host gone"))

            let (second, other) = try await Server.open(radio.channels[0]) { $0.address = address }
            let again = try await client.connect()
            #expect(again.peripheral == connection.peripheral)
            var error = await #expect(throws: BluetoothError.self) { try await readSecret(client, again) }
            if error?.code == .notConnected {
                // The host knew of the end before the owner was told why.
                try await client.journal.wait(for: "disconnected", 2)
                error = await #expect(throws: BluetoothError.self) { try await readSecret(client, again) }
            }
            #expect(
                error?.message.contains("has lost its keys, or another uses its address") == true, "\(error as Any)")
            #expect(client.adapter.bondedPeers == [connection.peripheral])
            #expect(second.bondedPeers.isEmpty)

            try client.adapter.forget(connection.peripheral)
            let third = try await client.connect()
            #expect(try await readSecret(client, third) == Layout.pattern(30))
            client.close()
            other.close()
            second.close()
        }
    }
#endif
