import CoreBluetooth
import CoreBluetoothRig
import Ferry
import FerryBluetooth
import FerryCoreBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

/// What the adapter makes of Apple's defects, where the kit and messages alone would not show it.
@Suite(.tags(.adapter, .coreBluetooth), .timeLimit(.minutes(5))) struct QuirkTests {
    private static let first = BluetoothUUID(0xFE01 as UInt16)
    private static let second = BluetoothUUID(0xFE02 as UInt16)
    private static let value = BluetoothUUID(0xFE03 as UInt16)

    private static func service(_ uuid: BluetoothUUID) -> ServiceDefinition {
        ServiceDefinition(
            uuid,
            characteristics: [
                CharacteristicDefinition(
                    value, properties: [.writeWithoutResponse, .notify], permissions: [.readable, .writeable])
            ])
    }

    /// A peripheral that offers the first service, and a central that has found it.
    private final class World: Sendable {
        let there = Ear()
        let here = Ear()
        let peripheral: any PeripheralRole
        let central: any CentralRole
        let offered: PublishedService
        let peer: PeerID

        init(_ quirks: CBQuirks) async throws {
            var configuration = LoopbackRadio.Configuration()
            configuration.advertisingInterval = .milliseconds(10)
            let radio = try LoopbackRadio(configuration: configuration)
            peripheral = overCoreBluetooth(radio.makeAdapter(), quirks).openPeripheral(there)
            central = overCoreBluetooth(radio.makeAdapter(), quirks).openCentral(here)
            offered = try await peripheral.publish(service(first))
            _ = try await peripheral.startAdvertising(Advertisement(services: [first]))
            try central.startScan(ScanRequest(services: [first]))
            let here = here
            try await until("the peripheral") { here.found.withLock { $0 != nil } }
            peer = try #require(here.found.withLock { $0 })
            central.stopScan()
        }

        func connect() async throws -> any PeripheralConnection {
            try await central.connect(to: peer, events: here)
        }

        func disconnect(_ connection: any PeripheralConnection) async throws {
            let before = here.journal.count("disconnected")
            connection.disconnect()
            try await here.journal.wait(for: "disconnected", before + 1)
        }
    }

    /// Writes down what it hears.
    private final class Ear: CentralRoleEvents, PeripheralRoleEvents, PeripheralConnectionEvents {
        let journal = Journal()
        let found = Mutex<PeerID?>(nil)
        let central = Mutex<ConnectedCentral?>(nil)
        let channels = Mutex<[any L2CAPChannel]>([])

        func centralAdapterDidChange(_ state: AdapterState) {}
        func peripheralAdapterDidChange(_ state: AdapterState) {}
        func centralDidDiscover(_ discovery: Discovery) { found.withLock { $0 = discovery.peripheral } }
        func central(
            _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
        ) {
            self.central.withLock { $0 = central }
            journal.add("subscribed")
        }
        func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
            journal.add("write \(value.byteCount)")
        }
        func peripheralDidOpen(_ channel: any L2CAPChannel) {
            channels.withLock { $0.append(channel) }
            journal.add("channel")
        }
        func peripheralDidDisconnect(_ reason: BluetoothError) { journal.add("disconnected") }
    }

    /// Takes the bytes of a channel.
    private final class Bytes: LinkReceiver {
        let received = Mutex<[UInt8]>([])
        func linkIsReady() {}
        func linkDidReceive(_ chunk: RawSpan) {
            received.withLock { received in chunk.withUnsafeBytes { received.append(contentsOf: $0) } }
        }
        func linkDidClose(_ reason: FerryError) {}
    }

    /// Each channel of several that are asked for at once leads to the PSM that it was asked for.
    @Test func channelsAreOpenedOneAtATime() async throws {
        let world = try await World(.confusesChannels)
        var psms: [PSM] = []
        for _ in 0..<4 { psms.append(try await world.peripheral.publishL2CAPChannel(encryptionRequired: false)) }
        let connection = try await world.connect()
        let opened = try await withThrowingTaskGroup(of: (PSM, any L2CAPChannel).self) { group in
            for psm in psms { group.addTask { (psm, try await connection.openL2CAPChannel(psm)) } }
            return try await group.reduce(into: []) { $0.append($1) }
        }
        try await world.there.journal.wait(for: "channel", psms.count)
        let bytes = opened.map { _ in Bytes() }
        for ((_, channel), bytes) in zip(opened, bytes) { channel.activate(bytes) }
        let far = world.there.channels.withLock { $0 }
        for channel in far {
            channel.activate(Bytes())
            #expect(try channel.trySend([UInt8(channel.psm.rawValue)].span.bytes))
        }
        for ((psm, channel), bytes) in zip(opened, bytes) {
            try await until("a byte") { bytes.received.withLock { !$0.isEmpty } }
            #expect(bytes.received.withLock { $0 } == [UInt8(psm.rawValue)])
            #expect(channel.psm == psm)
        }
        world.central.close()
        world.peripheral.close()
    }

    @Test func aStalePSMIsRefusedWithWhatToDo() async throws {
        let world = try await World(.stalePSMs)
        let stale = try await world.peripheral.publishL2CAPChannel(encryptionRequired: false)
        let before = try await world.connect()
        try await before.openL2CAPChannel(stale).close()
        try await world.disconnect(before)
        let connection = try await world.connect()
        let error = await #expect(throws: BluetoothError.self) { _ = try await connection.openL2CAPChannel(stale) }
        #expect(error?.code == .channelRefused)
        #expect(
            error?.message.contains("have the peer publish its channel anew") == true, "\(String(describing: error))")
        let new = try await world.peripheral.publishL2CAPChannel(encryptionRequired: false)
        try await connection.openL2CAPChannel(new).close()
        world.central.close()
        world.peripheral.close()
    }

    /// The first discovery of a connection finds what is there, not what was there on the one before.
    @Test func servicesAreThoseOfNow() async throws {
        let world = try await World(.cachedServices)
        let before = try await world.connect()
        #expect(try await before.discoverServices([Self.first]).map(\.uuid) == [Self.first])
        try await world.disconnect(before)
        world.peripheral.unpublish(world.offered.id)
        _ = try await world.peripheral.publish(Self.service(Self.second))
        let connection = try await world.connect()
        let found = try await connection.discoverServices([Self.second])
        #expect(found.map(\.uuid) == [Self.second])
        let id = try #require(found.first?.id)
        #expect(try await connection.discoverCharacteristics(nil, of: id).map(\.uuid) == [Self.value])
        #expect(try await connection.discoverServices([Self.first]).isEmpty)
        world.central.close()
        world.peripheral.close()
    }

    /// Lengths follow ATT_MTU, of whose change nothing tells.
    @Test func longerValuesGoOnceTheyMay() async throws {
        let world = try await World(.lateATTMTU)
        let connection = try await world.connect()
        let service = try #require(try await connection.discoverServices([Self.first]).first?.id)
        let characteristic = try #require(try await connection.discoverCharacteristics(nil, of: service).first?.id)
        try await connection.setSubscription(.notify, to: characteristic)
        try await world.there.journal.wait(for: "subscribed")
        let central = try #require(world.there.central.withLock { $0 })
        #expect(connection.maximumWriteLength(.withoutResponse) == 20)
        #expect(world.peripheral.maximumUpdateValueLength(for: central) == 20)
        for _ in 0..<3 {
            try await until("a write") {
                (try? connection.tryWriteValue(([1] as [UInt8]).span.bytes, to: characteristic, type: .withoutResponse))
                    == true
            }
            try await until("an update") {
                (try? world.peripheral.tryUpdateValue(
                    ([1] as [UInt8]).span.bytes, of: world.offered.characteristics[0], for: .one(central))) == true
            }
        }
        #expect(connection.maximumWriteLength(.withoutResponse) == 182)
        #expect(world.peripheral.maximumUpdateValueLength(for: central) == 182)
        world.central.close()
        world.peripheral.close()
    }

    /// AccessorySetupKit, for one, tells an app nothing but the identifier.
    @Test func aPeerIsKnownByTheSystemsIdentifier() async throws {
        let world = try await World([])
        let connection = try await world.connect()
        let name = try #require(connection.identity.description.split(separator: ":").last)
        let identifier = try #require(UUID(uuidString: String(name.prefix(36))))
        #expect(CoreBluetoothAdapter.identity(of: identifier) == connection.identity)
        #expect(world.central.retrievePeripheral(CoreBluetoothAdapter.identity(of: identifier)) == world.peer)
        #expect(world.central.retrievePeripheral(CoreBluetoothAdapter.identity(of: UUID())) == nil)
        try await world.disconnect(connection)
        world.central.close()
        world.peripheral.close()
    }

    /// As reported of iOS 26.5: nothing says that there is room, so the adapter has to look.
    @Test(arguments: [CBQuirks.neverSaysReady, [.neverSaysReady, .losesReadyCalls, .cannotSendBeforeFirstWrite]])
    func aConnectionThatNeverSaysReadyGoesOn(_ quirks: CBQuirks) async throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(10)
        configuration.connectionInterval = .milliseconds(5)
        configuration.transmitQueueDepth = 4
        let radio = try LoopbackRadio(configuration: configuration)
        let layout = GATTConfiguration(service: Self.first, characteristic: Self.value)
        let app = overCoreBluetooth(radio.makeAdapter(), quirks)
        let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
        let link = try await GATTTransport(adapter: app, configuration: layout).connect(timeout: .unreached)
        let near = try MessageChannel(over: link, codec: BytesCodec(), framing: LengthPrefixFraming())
        var links = listener.links.makeAsyncIterator()
        let far = try MessageChannel(
            over: try #require(await links.next()), codec: BytesCodec(), framing: LengthPrefixFraming())
        // More than the queue takes at once, several times.
        let message = (0..<12_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        async let sent: Void = near.send(message)
        var messages = far.messages.makeAsyncIterator()
        #expect(try await messages.next() == message)
        try await sent
        near.close()
        far.close()
        listener.close()
    }

    /// A connection that carries less than is written, to a queue that drops what it has no room for and says nothing, as in
    /// the background on an old phone.
    @Test func aSlowConnectionInTheBackgroundLosesNothing() async throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(10)
        configuration.connectionInterval = .milliseconds(20)
        configuration.packetsPerEvent = 1
        let radio = try LoopbackRadio(configuration: configuration)
        let layout = GATTConfiguration(service: Self.first, characteristic: Self.value)
        let app = overCoreBluetooth(radio.makeAdapter(), [.silentInBackground, .shallowWriteQueue])
        let listener = try await GATTTransport(adapter: radio.makeAdapter(), configuration: layout).listen()
        let link = try await GATTTransport(adapter: app, configuration: layout).connect(timeout: .unreached)
        let near = try MessageChannel(over: link, codec: BytesCodec(), framing: LengthPrefixFraming())
        var links = listener.links.makeAsyncIterator()
        let far = try MessageChannel(
            over: try #require(await links.next()), codec: BytesCodec(), framing: LengthPrefixFraming())
        let message = (0..<12_000).map { UInt8(truncatingIfNeeded: $0 &* 7) }
        async let sent: Void = near.send(message)
        var messages = far.messages.makeAsyncIterator()
        #expect(try await messages.next() == message)
        try await sent
        near.close()
        far.close()
        listener.close()
    }
}
