#if HCI && BlueZ
    import FerryBlueZ
    import FerryBluetooth
    import FerryHCI
    import TestSupport
    import Testing

    extension MixedTests {
        /// Just Works with the kernel's Security Manager, which the read of a value that needs it sets off; the next
        /// connection is encrypted with the key of the first.
        @Test(arguments: Way.allCases)
        func pairingEncryptsTheLink(way: Way) async throws {
            let (peripheral, central, host) = try await way.open()
            defer { host.close() }
            let bluez = try await Guest.bluez()
            let server = Server()
            try await server.open(peripheral)
            let client = Client(central)
            for round in 1...2 {
                let connection = try await client.connect()
                let secret = try #require(try await client.discover(connection)[Layout.secret])
                #expect(try await connection.readValue(of: secret) == Layout.pattern(400), "in round \(round)")
                #expect(host.bondedPeers.count == 1)
                #expect(await bluez.bondedPeers.count == 1)
                connection.disconnect()
                try await until("the central to be told") { client.get { $0.ends.count } == round }
            }
            client.close()
            server.close()
            for peer in await bluez.bondedPeers { try await bluez.forget(peer) }
        }
    }
#endif
