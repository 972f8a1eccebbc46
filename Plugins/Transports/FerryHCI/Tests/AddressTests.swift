#if HCI
    import BluetoothHost
    import Ferry
    import FerryBluetooth
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryHCI

    /// Adapters whose addresses change, over controllers that resolve addresses and such that do not.
    @Suite(.tags(.adapter, .pairing), .serialized, .timeLimit(.minutes(5)))
    struct AddressTests {
        private func rotate(_ configuration: inout HCIConfiguration) {
            configuration.privacy = HCIPrivacy()
            configuration.privacy?.rotation = .seconds(1)
        }

        private func waitForAnotherAddress(_ journal: Journal) async throws {
            let count = journal.all.count { $0.contains("is called") }
            try await journal.wait(for: "another address") { $0.count { $0.contains("is called") } > count }
        }

        /// The first meeting is under an address that stays, for whoever is not known yet is gone once it has another one.
        @Test(arguments: RadioKind.here([.bumble(acl: 251)]))
        func bondedPeersKnowEachOtherUnderEveryAddressAndInEveryRun(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let file = Interop.file("private-bonds")
            let open = { (rotation: Duration) in
                try await Server.open(radio.channels[0]) {
                    rotate(&$0)
                    $0.privacy?.rotation = rotation
                    $0.pairing?.bondFile = file
                }
            }
            let (first, server) = try await open(.seconds(3600))
            let client = try await Client.open(radio.channels[1], rotate)
            let stranger = try await client.connect()
            // A private address says who it is for this connection only.
            let name = stranger.identity.name
            #expect(stranger.identity.certainty == .connection)
            let (_, secret) = try await client.discover(stranger)
            #expect(try await stranger.readValue(of: secret) == Layout.pattern(30))
            let identity = stranger.identity
            // Nobody has compared a number: it is the bond, by the address of the pairing.
            #expect(identity == PeerIdentity(name, certainty: .bond))
            server.close()
            first.close()
            #expect(await radio.script.hasPrinted("0: host gone"))

            let (second, other) = try await open(.seconds(1))
            for _ in 0..<2 {
                try await waitForAnotherAddress(other.journal)
                let ends = client.journal.all.count { $0.hasPrefix("disconnected") }
                let again = try await client.connect()
                #expect(again.peripheral == stranger.peripheral)
                let (_, secret) = try await client.discover(again)
                #expect(try await again.readValue(of: secret) == Layout.pattern(30))
                #expect(again.identity == identity)
                again.disconnect()
                try await client.journal.wait(for: "another end") {
                    $0.count { $0.hasPrefix("disconnected") } > ends
                }
            }
            #expect(second.bondedPeers.count == 1)
            #expect(client.adapter.bondedPeers == [stranger.peripheral])
            client.close()
            other.close()
            second.close()
        }

        /// Bumble's host resolves each address that the adapter has by then, and for it RootCanal's controller by its list.
        /// Bumble's own controllers have a list, and resolve nothing.
        @Test(.withOthers, arguments: zip([RadioKind.bumble(acl: 251), .rootCanal, .rootCanal], [false, false, true]))
        func bumbleKnowsTheAdapterAgain(kind: RadioKind, isOffloaded: Bool) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0]) {
                rotate(&$0)
                $0.privacy?.rotation = .seconds(4)
            }
            let secret = "read=\(Layout.secretText)"
            let central = try Interop.Script(
                "peer.py",
                ["central", radio.peers[1], "--wait"] + (isOffloaded ? ["--offload"] : [])
                    + ["pair", secret, "rejoin", secret, "rejoin", secret])
            #expect(await central.hasPrinted("C: ready"), "\(central.output)")
            // Bumble connects to the address that it has seen. It looks when that is new, or it may be gone by then.
            for round in 0..<3 {
                #expect(await central.hasPrinted("C: read 30 match = True", times: round), "\(central.output)")
                try await waitForAnotherAddress(server.journal)
                central.say("")
            }
            #expect(await central.exitStatus() == 0, "\(central.output)")
            #expect(central.lines.count { $0 == "C: rejoined True anew = True" } == 2, "\(central.output)")
            #expect(central.lines.count { $0 == "C: read 30 match = True" } == 3, "\(central.output)")
            #expect(central.lines.count { $0.hasPrefix("C: paired") } == 1)
            #expect(adapter.bondedPeers.count == 1)
            server.close()
            adapter.close()
        }

        /// The same with the roles changed: a peripheral of Bumble's resolves the address that calls it.
        @Test(.withOthers, arguments: RadioKind.two)
        func bumblesPeripheralKnowsTheAdapterAgain(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0]])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let log = Journal()
            let client = try await Client.open(radio.channels[1]) {
                rotate(&$0)
                // Bumble's host advertises once a second, and RootCanal's controllers on the dot: attempts of less than a second
                // could all fall between.
                $0.privacy?.rotation = .seconds(3)
                $0.log = { log.add($0) }
            }
            for round in 1...3 {
                let connection = try await client.connect()
                let (_, secret) = try await client.discover(connection)
                #expect(try await connection.readValue(of: secret) == Layout.pattern(30), "\(peripheral.output)")
                connection.disconnect()
                try await client.journal.wait(for: "end \(round)") {
                    $0.count { $0.hasPrefix("disconnected") } == round
                }
                #expect(await peripheral.hasPrinted("P: disconnected", times: round), "\(peripheral.output)")
                try await waitForAnotherAddress(log)
            }
            let identity = Address.staticRandom(client.adapter.engine.address).description.prefix(17)
            let known = peripheral.lines.filter { $0.hasPrefix("P: knows \(identity) as ") }
            #expect(known.count == 2 && Set(known).count == 2, "\(peripheral.output)")
            #expect(peripheral.lines.count { $0.hasPrefix("P: paired") } == 1, "\(peripheral.output)")
            client.close()
            peripheral.stop()
        }

        /// The key in the file is the one that peers were given, also where addresses do not change any more.
        @Test func theKeyIsKept() async throws {
            let file = Interop.file("private-key")
            let key = [UInt8](repeating: 0xA7, count: 16)
            try BondFile(path: file).write {
                BondFile.Content(address: 7, identityResolvingKey: BondFile.Entry.text(key), bonds: [])
            }
            for isPrivate in [true, false] {
                let radio = try await Radio.start(.virtualControllers)
                defer { radio.stop() }
                let (adapter, server) = try await Server.open(radio.channels[0]) {
                    if isPrivate { rotate(&$0) }
                    $0.pairing?.bondFile = file
                }
                #expect(adapter.engine.resolvingKey == key)
                let address = adapter.engine.state.withLock { $0.host.address }
                #expect(address.isResolvable == isPrivate)
                server.close()
                adapter.close()
            }
            try BondFile(path: file).write { BondFile.Content(address: 7, identityResolvingKey: "no key", bonds: []) }
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let error = await #expect(throws: BluetoothError.self) {
                try await Server.open(radio.channels[0]) { $0.pairing?.bondFile = file }
            }
            #expect(error?.message.contains("identity resolving key") == true)
        }
    }
#endif
