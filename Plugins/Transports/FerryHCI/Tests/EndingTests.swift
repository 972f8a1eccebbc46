#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Synchronization
    import TestSupport
    import Testing

    /// Connections that end in every phase, and controllers that die.
    @Suite(.tags(.adapter, .recovery), .serialized, .timeLimit(.minutes(5)))
    struct EndingTests {
        /// How far a visitor gets before it is gone: what it prints, and the actions until then.
        static let phases: [(String, [String])] = [
            ("C: connected", ["hold"]), ("C: mtu 185", ["mtu=185", "hold"]), ("C: read 400", ["read", "hold"]),
            ("C: wrote", ["write=300", "hold"]), ("C: subscribed", ["indicate=100000"]),
            ("C: encrypted", ["pair", "hold"]),
        ]

        /// Killed, so that its controller goes silent, or leaving of its own accord; the next visitor is served.
        @Test(.withOthers, arguments: [true, false], RadioKind.two)
        func aCentralThatGoesInAnyPhaseLeavesRoomForTheNext(isKilled: Bool, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            for (round, (mark, actions)) in Self.phases.enumerated() {
                let central = try Interop.Script(
                    "peer.py",
                    ["central", radio.peers[1]] + (isKilled ? actions : actions.filter { $0 != "hold" }))
                #expect(await central.hasPrinted(mark), "\(central.output)")
                if isKilled || mark == "C: subscribed" { central.stop() } else { _ = await central.exitStatus() }
                if kind != .rootCanal {
                    #expect(await radio.script.hasPrinted("C1: host gone", times: round + 1))
                }
                try await server.journal.waitForEnds(round + 1)
            }
            let last = try Interop.Script("peer.py", ["central", radio.peers[1], "mtu=247", "notify=600"])
            #expect(await last.exitStatus() == 0, "\(last.output)")
            #expect(last.output.contains("C: collected 600 match = True"))
            #expect(radio.complaints.isEmpty)
            server.close()
            adapter.close()
        }

        /// The peripheral is killed while the central connects, discovers, reads or collects.
        @Test(.withOthers, arguments: ["connect", "discover", "read", "write", "subscribe", "pair"], RadioKind.two)
        func aPeripheralThatGoesEndsWhatTheCentralWaitsFor(phase: String, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0]])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            if phase == "connect" {
                peripheral.stop()
                try await client.journal.wait(for: "disconnected")
            } else {
                let (id, secret) = try await client.discover(connection)
                let work = Task {
                    while true {
                        switch phase {
                        case "discover": _ = try await connection.discoverServices(nil)
                        case "read": _ = try await connection.readValue(of: id)
                        case "write": try await connection.writeValue(Layout.pattern(512), to: id)
                        case "pair": _ = try await connection.readValue(of: secret)
                        default:
                            try await connection.setSubscription(.indicate, to: id)
                            try await connection.setSubscription(nil, to: id)
                        }
                        client.journal.add("did it")
                    }
                }
                try await client.journal.wait(for: "did it", 2)
                peripheral.stop()
                let error = await #expect(throws: BluetoothError.self) { _ = try await work.value }
                let codes: [BluetoothError.Code] = [.connectionTimeout, .disconnectedByPeer]
                #expect(error.map { codes.contains($0.code) } == true, "\(String(describing: error))")
                try await client.journal.wait(for: "disconnected")
            }
            client.close()
            #expect(radio.complaints.isEmpty)
        }

        /// Asks for something of another owner's hold on the same link in the very moment in which it hears of the end.
        private final class Successor: PeripheralConnectionEvents, Sendable {
            let other = Mutex<(connection: any PeripheralConnection, attribute: AttributeID)?>(nil)
            let codes = Mutex<[BluetoothError.Code?]>([])

            func peripheralDidDisconnect(_ reason: BluetoothError) {
                guard let (connection, attribute) = other.withLock({ $0 }) else { return }
                let error = #expect(throws: BluetoothError.self) {
                    _ = try connection.tryWriteValue(([1] as [UInt8]).span.bytes, to: attribute, type: .withResponse)
                }
                codes.withLock { $0 = [reason.code, error?.code] }
            }
        }

        /// None of a link's owners finds it gone without the reason, though they are told one after another.
        @Test func whoAsksWhileTheEndIsBeingToldIsToldWhy() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let (serving, server) = try await Server.open(radio.channels[0])
            let client = try await Client.open(radio.channels[1])
            let successor = Successor()
            let peer = try await client.connect().peripheral
            let roles = [client.adapter.openCentral(client), client.adapter.openCentral(client)]
            let asking = try await roles[0].connect(to: peer, events: successor)
            let asked = try await roles[1].connect(to: peer, events: client)
            let (id, _) = try await client.discover(asked)
            successor.other.withLock { $0 = (asked, id) }
            serving.close()
            try await client.journal.wait(for: "disconnected", 2)
            #expect(successor.codes.withLock { $0 } == [.disconnectedByPeer, .disconnectedByPeer])
            withExtendedLifetime((asking, roles, server)) {}
            client.close()
        }

        /// The same with Bumble's host on the other controller, in the middle of what it asks for.
        @Test(.withOthers, arguments: ["read", "indicate"], RadioKind.two)
        func aControllerThatDiesUnderBumblesCentralIsSaid(phase: String, kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (adapter, server) = try await Server.open(radio.channels[0])
            let central = try Interop.Script(
                "peer.py", ["central", radio.peers[1], phase == "read" ? "read" : "indicate=100000", "hold"])
            #expect(await central.hasPrinted(phase == "read" ? "C: read 400" : "C: subscribed"), "\(central.output)")
            radio.stop()
            try await server.journal.wait(for: "state poweredOff")
            if phase == "indicate" { try await server.journal.wait(for: "disconnected") }
            try await server.journal.waitForEnds(1)
            #expect(adapter.state == .poweredOff)
            central.stop()
            server.close()
        }

        @Test(.withOthers, arguments: RadioKind.two)
        func aControllerThatDiesUnderBumblesPeripheralIsSaid(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let peripheral = try Interop.Script("peer.py", ["peripheral", radio.peers[0]])
            #expect(await peripheral.hasPrinted("P: advertising"), "\(peripheral.output)")
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            let (id, _) = try await client.discover(connection)
            let work = Task {
                while true {
                    _ = try await connection.readValue(of: id)
                    client.journal.add("did it")
                }
            }
            try await client.journal.wait(for: "did it", 2)
            radio.stop()
            await #expect(throws: BluetoothError.self) { _ = try await work.value }
            try await client.journal.wait(for: "state poweredOff")
            try await client.journal.wait(for: "disconnected")
            client.close()
            peripheral.stop()
        }

        @Test(arguments: RadioKind.here(RadioKind.two))
        func aControllerThatDiesEndsEverythingAndSaysSo(kind: RadioKind) async throws {
            let radio = try await Radio.start(kind)
            defer { radio.stop() }
            let (_, server) = try await Server.open(radio.channels[0])
            let client = try await Client.open(radio.channels[1])
            let connection = try await client.connect()
            let (id, _) = try await client.discover(connection)
            _ = try await client.collect(connection, id, .notify)
            radio.stop()
            try await client.journal.wait(for: "state poweredOff")
            try await server.journal.wait(for: "state poweredOff")
            try await client.journal.wait(for: "disconnected")
            #expect(client.adapter.state == .poweredOff)
            let error = await #expect(throws: BluetoothError.self) { try await connection.readValue(of: id) }
            #expect(error?.code != nil)
            client.close()
            server.close()
        }
    }
#endif
