#if HCI && BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryHCI
    import FerryTesting
    import TestSupport
    import Testing

    /// Ferry's own host against the kernel's host and bluetoothd, one test after another.
    @Suite(
        .tags(.adapter), .enabled(if: Guest.isHere, "runs in the virtual machine: scripts/interop mixed"), .serialized,
        .timeLimit(.minutes(5)))
    struct MixedTests {
        /// What of the adapter seam's contract both sides have a part in.
        static let shared: [AdapterConformance.Requirement] = [
            .scansFilterByService, .discoveryFindsWhatWasPublished, .limitsFollowFromATTMTU,
            .longFixedValuesAreReadWhole, .readsComeAsRequestsWithOffsets, .answeredErrorsArrive,
            .permissionsAreEnforced, .longWritesComeAsOneRequest, .writesWithoutResponseArriveInOrder,
            .subscriptionsAreTold, .notificationsArriveInOrder, .indicationsArriveInOrder, .longUpdatesAreCut,
            .centralsDisconnect, .peripheralsDisconnect, .withdrawnServicesAreTold,
            .addedServicesAreTold, .channelsOpen,
        ]

        /// The contract, with one stack on each side. ATT_MTU is 185, as between two of our own hosts.
        @Test(arguments: Way.allCases, shared)
        func theContractIsKeptAcrossStacks(way: Way, requirement: AdapterConformance.Requirement) async throws {
            let (peripheral, central, host) = try await way.open(mtu: 185)
            defer { host.close() }
            let kit = AdapterConformance(
                peripheral: peripheral, central: central, deviations: way.deviations, time: Guest.time)
            try await kit.check(requirement)
        }

        /// Long reads and writes, writes without response, notifications and indications.
        @Test(arguments: Way.allCases, [23, 185, 247, 517])
        func valuesOfEveryKindCross(way: Way, mtu: Int) async throws {
            let (peripheral, central, host) = try await way.open(mtu: mtu)
            defer { host.close() }
            let server = Server()
            try await server.open(peripheral)
            let client = Client(central)
            let connection = try await client.connect()
            let ids = try await client.discover(connection)
            let value = try #require(ids[Layout.value])
            #expect(try await connection.readValue(of: value) == Layout.pattern(400))
            #expect(connection.attMTU == mtu)
            for count in [300, 1, 500] {
                try await connection.writeValue(Layout.pattern(count, 5), to: value)
                #expect(server.get { $0.value }.count == count)
                #expect(try await connection.readValue(of: value) == Layout.pattern(count, 5))
            }

            let commands = try #require(ids[Layout.commands])
            // BlueZ 5.66 drops longer ones.
            let longest = min(connection.maximumWriteLength(.withoutResponse), 510)
            let expected = (0..<40).map { Layout.pattern(1 + $0 * (longest - 1) / 39, $0) }
            for bytes in expected {
                let readies = client.get { $0.readies }
                while try !connection.tryWriteValue(bytes.span.bytes, to: commands, type: .withoutResponse) {
                    try await until("space for a write") { client.get { $0.readies } > readies }
                }
            }
            try await until("40 writes") { server.get { $0.commands.count } >= 40 }
            #expect(server.get { $0.commands } == expected)

            let total = server.total
            let updates = try #require(ids[Layout.updates])
            #expect(try await client.collect(total, connection, updates, .notify) == Layout.pattern(total))
            let confirmed = try #require(ids[Layout.confirmed])
            #expect(try await client.collect(total, connection, confirmed, .indicate) == Layout.pattern(total))
            #expect(server.get { $0.subscribed } == [.notify, .indicate])

            connection.disconnect()
            try await until("both sides to be told of the end") {
                !client.get { $0.ends }.isEmpty && !server.get { $0.ends }.isEmpty
            }
            #expect(client.get { $0.ends.map(\.code) } == [.disconnectedLocally])
            #expect(server.get { $0.ends.map(\.code) } == [.disconnectedByPeer])
            client.close()
            server.close()
        }
    }
#endif
