#if HCI && BlueZ
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import TestSupport
    import Testing

    extension MixedTests {
        /// How far a visitor gets before the connection ends.
        private enum Phase: CaseIterable {
            case connected, discovered, reading, collecting, refusedByPeripheral
        }

        @Test(arguments: Way.allCases)
        func aConnectionMayEndInAnyPhase(way: Way) async throws {
            let (peripheral, central, host) = try await way.open()
            defer { host.close() }
            // More than is collected, and no more than a slow machine carries before the controller answers a command (4 s).
            let server = Server(total: 20_000)
            try await server.open(peripheral)
            let client = Client(central)
            for (round, phase) in Phase.allCases.enumerated() {
                let connection = try await client.connect()
                let ids = phase == .connected ? [:] : try await client.discover(connection)
                let before = server.get { $0.ends.count }
                switch phase {
                case .connected, .discovered: connection.disconnect()
                case .reading:
                    let id = try #require(ids[Layout.value])
                    let work = Task { while true { _ = try await connection.readValue(of: id) } }
                    _ = try await connection.readValue(of: id)
                    connection.disconnect()
                    let error = await #expect(throws: BluetoothError.self) { try await work.value }
                    #expect(
                        [.disconnectedLocally, .notConnected].contains(error?.code), "\(String(describing: error))")
                case .collecting, .refusedByPeripheral:
                    let id = try #require(ids[Layout.updates])
                    let bytes = try await client.collect(2000, connection, id, .notify)
                    #expect(Array(bytes.prefix(2000)) == Layout.pattern(2000))
                    if phase == .collecting {
                        connection.disconnect()
                    } else {
                        // bluetoothd 5.66 dies now and then when it is to disconnect while it looks for services itself.
                        if way == .bluezServes { try await Guest.shell("wait_until 200 has_resolved") }
                        let visitor = try #require(server.get { $0.sent.values.first?.central })
                        server.role?.disconnect(visitor)
                    }
                    try await until("the peripheral to be told, \(phase)") {
                        server.get { $0.ends.count } > before
                    }
                    #expect(
                        server.get { $0.ends.last?.code }
                            == (phase == .collecting ? .disconnectedByPeer : .disconnectedLocally))
                }
                try await until("the central to be told, \(phase)") {
                    client.get { $0.ends.count } == round + 1
                }
                #expect(
                    client.get { $0.ends.last?.code }
                        == (phase == .refusedByPeripheral ? .disconnectedByPeer : .disconnectedLocally))
            }
            let connection = try await client.connect()
            let id = try #require(try await client.discover(connection)[Layout.value])
            #expect(try await connection.readValue(of: id) == Layout.pattern(400))
            client.close()
            server.close()
        }

        /// bluetoothd is killed while values pass. The kernel then ends the connection, and what comes next works.
        @Test(arguments: Way.allCases)
        func theHostIsToldWhenBluetoothdDies(way: Way) async throws {
            let (peripheral, central, host) = try await way.open()
            defer { host.close() }
            let server = Server(total: 1_000_000)
            try await server.open(peripheral)
            let client = Client(central)
            let connection = try await client.connect()
            let id = try #require(try await client.discover(connection)[Layout.updates])
            _ = try await client.collect(2000, connection, id, .notify)
            try await Guest.shell("kill_bluetoothd")
            try await until("the central to be told") { client.get { !$0.ends.isEmpty } }
            let visited = client.get { $0.ends.map(\.code) }
            if way == .hostServes {
                #expect(visited == [.notConnected])
                try await until("the peripheral to be told") { server.get { !$0.ends.isEmpty } }
                #expect(server.get { $0.ends.map(\.code) } == [.disconnectedByPeer])
            } else {
                #expect(visited == [.disconnectedByPeer])
                // An adapter that cannot be used takes services and subscriptions with it; no central is told of.
                try await until("the peripheral to be told") { server.get { $0.states.last == .resetting } }
            }
            client.close()
            server.close()

            try await Guest.shell("start_bluetoothd 1 && in_guest btmgmt --index 1 power on")
            let next = Server()
            try await next.open(way == .hostServes ? host : try await Guest.bluez())
            let visitor = Client(way == .hostServes ? try await Guest.bluez() : host)
            let again = try await visitor.connect()
            let value = try #require(try await visitor.discover(again)[Layout.value])
            #expect(try await again.readValue(of: value) == Layout.pattern(400))
            visitor.close()
            next.close()
        }
    }
#endif
