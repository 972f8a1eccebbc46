import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// GATT links to peers that are not Ferry's: their services have more than one characteristic of a type, and their values may be
/// empty.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct OddPeerTests {
    private static let layout = GATTConfiguration(
        service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))

    /// A peripheral by hand.
    private final class Owner: PeripheralRoleEvents {
        let journal = Journal()
        let role = Mutex<(any PeripheralRole)?>(nil)
        let central = Mutex<ConnectedCentral?>(nil)

        func central(
            _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
        ) {
            self.central.withLock { $0 = central }
            journal.add("\(subscription) \(characteristic.rawValue)")
        }

        func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
            journal.add("command \(characteristic.rawValue)")
        }

        func peripheralDidReceive(_ request: WriteRequest) {
            journal.add("request \(request.parts[0].characteristic.rawValue)")
            role.withLock { $0 }?.respond(to: request.id, with: .success([]))
        }
    }

    /// A central by hand.
    private final class Client: CentralRoleEvents, PeripheralConnectionEvents {
        func peripheralDidDisconnect(_ reason: BluetoothError) {}
    }

    private static func service(_ properties: [CharacteristicProperties]) -> ServiceDefinition {
        ServiceDefinition(
            layout.service,
            characteristics: properties.map {
                CharacteristicDefinition(layout.characteristic, properties: $0, permissions: [.readable, .writeable])
            })
    }

    private static func open(
        _ server: LoopbackAdapter, _ services: [ServiceDefinition]
    ) async throws -> (Owner, any PeripheralRole, [PublishedService]) {
        let owner = Owner()
        let role = server.openPeripheral(owner)
        owner.role.withLock { $0 = role }
        var published: [PublishedService] = []
        for service in services { published.append(try await role.publish(service)) }
        _ = try await role.startAdvertising(Advertisement(localName: "odd", services: [layout.service]))
        return (owner, role, published)
    }

    /// What is offered, which of them is subscribed to, and which is written to, how.
    private static let arrangements:
        [(offered: [CharacteristicProperties], from: Int, as: Subscription, to: Int, write: String)] = [
            ([.read, .notify, .writeWithoutResponse], 1, .notify, 2, "command"),
            ([.writeWithoutResponse, .indicate, .notify], 2, .notify, 0, "command"),
            ([.indicate, [.read, .write]], 0, .indicate, 1, "request"),
            ([.write, .writeWithoutResponse, .notify], 2, .notify, 1, "command"),
            ([.read, [.notify, .writeWithoutResponse], .writeWithoutResponse], 1, .notify, 1, "command"),
        ]

    /// Within one service, and with a service of the same type before it that has nothing to subscribe to, or nothing at all.
    @Test(arguments: arrangements.indices, [[], [CharacteristicProperties.read]] as [[CharacteristicProperties]])
    func theCharacteristicsThatAreNeededAreChosen(place: Int, before: [CharacteristicProperties]) throws {
        let arrangement = Self.arrangements[place]
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let (owner, role, published) = try await Self.open(
                server, [Self.service(before), Self.service(arrangement.offered)])
            let link = try await GATTTransport(adapter: client, configuration: Self.layout, time: time)
                .connect(timeout: .unreached)
            let byte: [UInt8] = [7]
            let isTaken = try link.trySend(byte.span.bytes)
            #expect(isTaken)
            let ids = published[1].characteristics.map(\.rawValue)
            let expected = [
                "\(arrangement.as) \(ids[arrangement.from])", "\(arrangement.write) \(ids[arrangement.to])",
            ]
            try await owner.journal.wait(for: "a write") { $0.count == 2 }
            #expect(owner.journal.all == expected)
            link.close()
            role.close()
        }
    }

    /// Where nothing can be subscribed to the error says so.
    @Test func withoutAnyTheErrorSaysWhatIsMissing() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            for (offered, text) in [
                ([[.read, .write], .write], "offers neither notifications nor indications"),
                ([], "has no characteristic"),
            ] as [([CharacteristicProperties], String)] {
                let (_, role, _) = try await Self.open(server, [Self.service(offered)])
                let error = await #expect(throws: FerryError.self) {
                    try await GATTTransport(adapter: client, configuration: Self.layout, time: time)
                        .connect(timeout: .unreached)
                }
                #expect(error?.message.contains(text) == true, "\(error?.message ?? "")")
                role.close()
            }
        }
    }

    /// A value without bytes is an empty chunk, which neither framing has (Formats.md).
    @Test(arguments: [false, true]) func anEmptyValueIsNoChunkThatCanBe(isLengthPrefix: Bool) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let (owner, role, published) = try await Self.open(server, [Self.service([[.notify, .write]])])
            let link = try await GATTTransport(adapter: client, configuration: Self.layout, time: time)
                .connect(timeout: .unreached)
            try await owner.journal.wait(for: "notify") { $0.count == 1 }
            let empty: [UInt8] = []
            let isTaken = try role.tryUpdateValue(empty.span.bytes, of: published[0].characteristics[0], for: .all)
            #expect(isTaken)
            try await Self.expectMalformed(link, isLengthPrefix, time)
            role.close()
        }
    }

    /// The same that a central writes, by command and by request.
    @Test(arguments: [WriteType.withoutResponse, .withResponse], [false, true])
    func anEmptyWriteIsNoChunkThatCanBe(type: WriteType, isLengthPrefix: Bool) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        try time.run {
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let listener = try await GATTTransport(adapter: server, configuration: Self.layout, time: time).listen()
            let (events, role) = (Client(), client.openCentral(Client()))
            let connection = try await role.connect(to: client.identifier(of: server), events: events)
            let service = try #require(try await connection.discoverServices([Self.layout.service]).first)
            let found = try await connection.discoverCharacteristics(nil, of: service.id)
            let characteristic = try #require(found.first)
            try await connection.setSubscription(.notify, to: characteristic.id)
            var links = listener.links.makeAsyncIterator()
            let link = try #require(await links.next())
            let empty: [UInt8] = []
            let isTaken = try connection.tryWriteValue(empty.span.bytes, to: characteristic.id, type: type)
            #expect(isTaken)
            try await Self.expectMalformed(link, isLengthPrefix, time)
            withExtendedLifetime(events) { role.close() }
            listener.close()
        }
    }

    private static func expectMalformed(_ link: any Link, _ isLengthPrefix: Bool, _ time: VirtualTime) async throws {
        let channel =
            isLengthPrefix
            ? try MessageChannel(over: link, codec: BytesCodec(), framing: LengthPrefixFraming(), time: time)
            : try MessageChannel(over: link, codec: BytesCodec(), framing: EndOfMessageFraming(), time: time)
        let error = await #expect(throws: FerryError.self) { for try await _ in channel.messages {} }
        #expect(error?.code == .malformedStream, "\(error?.message ?? "")")
    }

    /// Not one that holds an unactivated link's memory: they are bounded in number, as others are in bytes.
    @Test func emptyChunksThatNobodyTakesAreBounded() {
        let gate = ReceiverGate(maximumHeldBytes: 16)
        let empty: [UInt8] = []
        var taken = 0
        for _ in 0..<32 where gate.receive(empty.span.bytes) { taken += 1 }
        #expect(taken == 16)
    }
}
