#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerrySequenced
    import FerryTesting
    import Synchronization
    import TestSupport
    import Testing

    /// Two centrals and one peripheral: three controllers.
    @Suite(
        .tags(.adapter), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(5)))
    struct CentralsTests {
        private static func third() async throws -> BlueZAdapter {
            let adapter = try await BlueZAdapter.open("bluez:hci2")
            try await Machine.wait(for: .poweredOn, of: adapter)
            return adapter
        }

        /// Each reads what it has written itself, whatever the other one writes meanwhile.
        @Test func twoCentralsAreToldApart() async throws {
            let (serving, asking) = try await Machine.adapters()
            let desk = Desk()
            let role = serving.openPeripheral(desk)
            desk.role.withLock { $0 = role }
            defer { role.close() }
            let drawer = CharacteristicDefinition(
                Visitor.drawer, properties: [.read, .write], permissions: [.readable, .writeable])
            _ = try await role.publish(ServiceDefinition(Visitor.desk, characteristics: [drawer]))
            _ = try await role.startAdvertising(Advertisement(localName: nil, services: [Visitor.desk]))
            let third = try await Self.third()
            defer { third.close() }
            let visitors = (try await Visitor.connect(asking), try await Visitor.connect(third))
            async let one: Void = visitors.0.putAndTake(1)
            async let other: Void = visitors.1.putAndTake(2)
            _ = try await (one, other)
            #expect(desk.kept.count == 2, "two centrals, each with a name of its own")
            for visitor in [visitors.0, visitors.1] { try await visitor.leave() }
        }

        /// BlueZ 5.66 has one socket for all subscribers of a characteristic: a second one is not invited, and its turn
        /// comes when the first has gone.
        @Test func theSecondSubscriberWaitsForTheFirst() async throws {
            let (serving, _) = try await Machine.adapters()
            let transport = GATTTransport(adapter: serving, configuration: Links.layout)
            let listener = try await transport.listen()
            let links = try await Links.next(on: listener)
            let third = try await Self.third()
            defer { third.close() }
            let second = GATTTransport(adapter: third, configuration: Links.layout)
            let error = await #expect(throws: FerryError.self) {
                _ = try await second.connect(timeout: .seconds(5))
            }
            #expect(error?.code == .timedOut)
            // The first link is as it was; its end is the second one's turn.
            try await Traffic.cross(links, Traffic.sizes(0..<20), BytesCodec(), SequencedFraming())
            async let coming = second.connect(timeout: .unreached)
            var incoming = listener.links.makeAsyncIterator()
            let central = try await coming
            let again = Links(
                listener: listener, peripheral: try #require(await incoming.next()), central: central)
            try await Traffic.cross(again, [1, 300], BytesCodec(), SequencedFraming())
            central.close()
            try await again.end()
        }

        /// The peer goes, and a stranger offers the same service: what is meant for the peer waits until that is back.
        @Test func aStrangerGetsNothing() async throws {
            let (serving, asking) = try await Machine.adapters()
            let listener = try await ReconnectingTransport(
                over: GATTTransport(adapter: serving, configuration: Links.layout)
            ).listen()
            let watched = WatchedTransport(GATTTransport(adapter: asking, configuration: Links.layout))
            var backoff = ReconnectingTransport<WatchedTransport<GATTTransport>>.Backoff()
            backoff.attempt = .seconds(5)
            backoff.maximum = .seconds(1)
            let client = try Self.channel(
                try await ReconnectingTransport(over: watched, backoff: backoff).connect(timeout: .unreached))
            var incoming = listener.links.makeAsyncIterator()
            let server = try Self.channel(try #require(await incoming.next()))
            var received = server.messages.makeAsyncIterator()
            try await client.send([1])
            #expect(try await received.next() == [1])

            try await Machine.shell("in_guest btmgmt --index 0 power off </dev/null")
            let third = try await Self.third()
            defer { third.close() }
            let stranger = try await GATTTransport(adapter: third, configuration: Links.layout).listen()
            let visits = Mutex(0)
            let accepting = Task { for await _ in stranger.links { visits.withLock { $0 += 1 } } }
            async let sending: Void = client.send([2], timeout: .unreached)
            try await Machine.time.wait("stranger", for: "attempts while the stranger is there") {
                watched.journal.count("failed") >= 3
            }
            #expect(visits.withLock { $0 } == 0)

            try await Machine.shell("in_guest btmgmt --index 0 power on </dev/null")
            #expect(try await received.next() == [2])
            try await sending
            #expect(visits.withLock { $0 } == 0)
            #expect(client.status.resumptions == 1)
            stranger.close()
            await accepting.value
            client.close()
            server.close()
            listener.close()
        }

        private static func channel(_ link: any Link) throws -> MessageChannel<[UInt8], [UInt8]> {
            try MessageChannel(over: link, codec: BytesCodec(), framing: SequencedFraming())
        }
    }

    /// Keeps for each central what it has written.
    private final class Desk: PeripheralRoleEvents {
        let role = Mutex<(any PeripheralRole)?>(nil)
        private let values = Mutex<[PeerID: [UInt8]]>([:])
        var kept: [PeerID: [UInt8]] { values.withLock { $0 } }

        func peripheralDidReceive(_ request: WriteRequest) {
            for part in request.parts { values.withLock { $0[request.central.peer] = part.value } }
            role.withLock { $0 }?.respond(to: request.id, with: .success([]))
        }

        func peripheralDidReceive(_ request: ReadRequest) {
            let value = kept[request.central.peer] ?? []
            role.withLock { $0 }?.respond(to: request.id, with: .success(Array(value.dropFirst(request.offset))))
        }
    }

    /// A central that is connected to the desk.
    private struct Visitor: Sendable {
        static let desk = BluetoothUUID(0x6E2A_0031_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128)
        static let drawer = BluetoothUUID(0x6E2A_0032_8F4D_4C0B_9B5E_9A7D_6F65_7272 as UInt128)

        private let role: any CentralRole
        private let connection: any PeripheralConnection
        private let events: Ear
        private let drawer: AttributeID

        static func connect(_ adapter: BlueZAdapter) async throws -> Visitor {
            let events = Ear()
            let role = adapter.openCentral(events)
            try role.startScan(ScanRequest(services: [desk]))
            try await Machine.time.wait("scan", for: "the desk to be heard") { events.found != nil }
            role.stopScan()
            let connection = try await role.connect(to: try #require(events.found), events: events)
            let service = try #require(try await connection.discoverServices([desk]).first)
            let found = try await connection.discoverCharacteristics([drawer], of: service.id)
            return Visitor(
                role: role, connection: connection, events: events, drawer: try #require(found.first).id)
        }

        /// Writes a few values, and reads each back.
        func putAndTake(_ own: UInt8) async throws {
            for number in 0..<20 as Range<UInt8> {
                let value = [UInt8](repeating: own, count: 10) + [number]
                try await connection.writeValue(value, to: drawer)
                #expect(try await connection.readValue(of: drawer) == value)
            }
        }

        func leave() async throws {
            connection.disconnect()
            try await Machine.time.wait("end", for: "the connection to be gone") { events.isOver }
            role.close()
        }
    }

    private final class Ear: CentralRoleEvents, PeripheralConnectionEvents {
        private let state = Mutex<(found: PeerID?, isOver: Bool)>((nil, false))
        var found: PeerID? { state.withLock { $0.found } }
        var isOver: Bool { state.withLock { $0.isOver } }

        func centralDidDiscover(_ discovery: Discovery) { state.withLock { $0.found = discovery.peripheral } }
        func peripheralDidDisconnect(_ reason: BluetoothError) { state.withLock { $0.isOver = true } }
    }
#endif
