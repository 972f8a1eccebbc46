import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Layouts with characteristics beside those that carry chunks, between two of Ferry's own and with peers that get them wrong.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct SideCharacteristicTests {
    private static let service = BluetoothUUID(0xFE01 as UInt16)
    private static let updates = BluetoothUUID(0xFE02 as UInt16)
    private static let writes = BluetoothUUID(0xFE03 as UInt16)
    private static let state = BluetoothUUID(0xFE04 as UInt16)
    private static let queue = BluetoothUUID(0xFE05 as UInt16)
    private static let length = BluetoothUUID(0xFE06 as UInt16)
    private static let ident = BluetoothUUID(0xFE07 as UInt16)
    private static let changing = BluetoothUUID(0xFE08 as UInt16)
    private static let fixed = BluetoothUUID(0xFE09 as UInt16)

    enum Kind: String, CaseIterable, Sendable { case state, length, queue, compared, firstWrite, everything }

    private static func layout(_ kind: Kind) -> GATTConfiguration {
        var layout = GATTConfiguration(service: service, characteristic: updates, writeCharacteristic: writes)
        layout.offersBothWriteTypes = false
        let all = kind == .everything
        if kind == .state || all {
            layout.sides.state = .init(state, start: [1], end: [2])
        }
        if kind == .length || all { layout.sides.length = .init(length, bytes: 17) }
        if kind == .queue || all { layout.sides.queue = queue }
        if kind == .compared || all { layout.sides.values = [.init(ident, bytes: [1, 2, 3], use: .compared)] }
        if kind == .firstWrite {
            layout.opening = .firstWrite
            layout.writeType = .withResponse
            layout.subscription = .indicate
        }
        return layout
    }

    /// Messages both ways, the central's first, at every layout; and the end is told to the other side.
    @Test(arguments: Kind.allCases, LinkRole.allCases)
    func messagesCross(_ kind: Kind, closedBy closer: LinkRole) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        let layout = Self.layout(kind)
        try time.run {
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                .connect(timeout: .seconds(20))
            #expect(near.role == .initiator)
            #expect(near.maximumChunkSize == (layout.sides.length == nil ? near.maximumChunkSize : 17))
            var links = listener.links.makeAsyncIterator()
            // A link with a state begins when it is made, and not with its first chunk.
            let early = layout.sides.state == nil ? nil : await links.next()
            let one = try MessageChannel(over: near, codec: BytesCodec(), time: time)
            async let greeting: Void = one.send([UInt8](repeating: 7, count: 3000))
            let next = early == nil ? await links.next() : early
            let far = try #require(next)
            #expect(far.role == .responder)
            let other = try MessageChannel(over: far, codec: BytesCodec(), time: time)
            var heard = other.messages.makeAsyncIterator()
            #expect(try await heard.next() == [UInt8](repeating: 7, count: 3000))
            try await greeting
            var answers = one.messages.makeAsyncIterator()
            for count in [0, 1, 5000, 3] {
                try await other.send([UInt8](repeating: 9, count: count))
                #expect(try await answers.next()?.count == count)
            }
            let (closing, told) = closer == .initiator ? (one, other) : (other, one)
            closing.close()
            let reason = await told.closed
            #expect(reason?.code == .disconnected)
            if layout.sides.state != nil { #expect(reason?.message.contains("FE04 to 0x02") == true) }
            #expect(closing.closeReason?.code == .closed)
        }
    }

    /// Reads until it is empty go on after a pause, and nothing is lost.
    @Test func aQueueStopsWhereTheReaderPauses() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        let layout = Self.layout(.queue)
        try time.run {
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            var limits = Limits()
            limits.maximumInboundMessages = 8
            let reader = try MessageChannel(
                over: near, codec: BytesCodec(), framing: try EndOfMessageFraming(chunkSize: nil), limits: limits,
                time: time)
            let writer = try MessageChannel(
                over: far, codec: BytesCodec(), framing: try EndOfMessageFraming(chunkSize: nil), time: time)
            let sending = Task { for count in 1...100 { try await writer.send([UInt8](repeating: 1, count: count)) } }
            try await time.sleep(for: .seconds(10))
            #expect(reader.statistics.messagesReceived < 20)
            var messages = reader.messages.makeAsyncIterator()
            for count in 1...100 { #expect(try await messages.next()?.count == count) }
            try await sending.value
        }
    }

    /// The peripheral is another one than the central was told of: nothing is sent to it.
    @Test func anotherIdentificationIsRefused() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            var layout = Self.layout(.compared)
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            layout.sides.values[0].bytes = [1, 2, 4]
            let error = await #expect(throws: FerryError.self) {
                _ = try await GATTTransport(adapter: client, configuration: layout, time: time)
                    .connect(timeout: .seconds(20))
            }
            #expect(error?.code == .peerNotFound)
            #expect(error?.message.contains("FE07 is 0x010203, not 0x010204") == true)
            listener.close()
        }
    }

    @Test(arguments: [Kind.state, .length, .queue, .compared])
    func aMissingSideIsNamed(_ kind: Kind) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            let plain = GATTConfiguration(
                service: Self.service, characteristic: Self.updates, writeCharacteristic: Self.writes)
            let listener = try await GATTTransport(adapter: server, configuration: plain, time: time).listen()
            let layout = Self.layout(kind)
            let error = await #expect(throws: FerryError.self) {
                _ = try await GATTTransport(adapter: client, configuration: layout, time: time)
                    .connect(timeout: .seconds(20))
            }
            let missing = try #require(
                layout.sides.state?.uuid ?? layout.sides.length?.uuid ?? layout.sides.queue ?? Self.ident)
            #expect(error?.message.contains("has no characteristic \(missing)") == true)
            listener.close()
        }
    }

    /// A central by hand, which writes what it likes to the state.
    @Test(arguments: [[], [3], [1, 1], [UInt8](repeating: 0xEE, count: 20)] as [[UInt8]])
    func anUnknownStateEndsTheLink(_ value: [UInt8]) throws {
        try byHand(Self.layout(.state)) { central, far in
            try await central.write(value, to: Self.state)
            let channel = try MessageChannel(over: far, codec: BytesCodec())
            let reason = await channel.closed
            #expect(reason?.code == .malformedStream)
            #expect(reason?.message.contains(value.isEmpty ? "to an empty value" : "to 0x") == true)
        }
    }

    /// Field implementations set the state before the subscription is answered, or set it twice.
    @Test(arguments: [true, false])
    func theStartMayComeBeforeTheSubscription(_ isFirst: Bool) throws {
        try byHand(Self.layout(.state), startsFirst: isFirst) { central, far in
            try await central.write([1], to: Self.state)
            try await central.write([1, 0x41], to: Self.writes)
            let channel = try MessageChannel(over: far, codec: BytesCodec())
            var messages = channel.messages.makeAsyncIterator()
            #expect(try await messages.next() == [0x41])
        }
    }

    /// A layout with a value that changes and one that does not.
    private static var noted: GATTConfiguration {
        var layout = layout(.length)
        layout.sides.notes = [.init(changing, bytes: [1]), .init(fixed, bytes: [7, 8], isNotified: false)]
        return layout
    }

    /// What each note is at first comes before anything else; chunks and notes are told apart by their first byte, on both sides.
    @Test func notesComeWithTheirNumber() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            let listener = try await GATTTransport(adapter: server, configuration: Self.noted, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: Self.noted, time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let (heard, written) = (Heard(), Heard())
            near.activate(heard)
            far.activate(written)
            let long = [0] + [UInt8](repeating: 5, count: far.maximumChunkSize - 1)
            for chunk in [[0, 4], [1, 2], [1], long, [1, 3]] as [[UInt8]] {
                try await time.until("space") { (try? far.trySend(chunk.span.bytes)) == true }
            }
            #expect(try near.trySend(([9, 9] as [UInt8]).span.bytes))
            try await time.until("both") { heard.chunks.count == 7 && written.chunks.count == 1 }
            #expect(heard.chunks == [[1, 1], [2, 7, 8], [0, 4], [1, 2], [1], long, [1, 3]])
            // What the central writes has no number.
            #expect(written.chunks == [[9, 9]])
            for wrong in [[2, 1], [3, 1], [255]] as [[UInt8]] {
                let error = #expect(throws: FerryError.self) { try far.trySend(wrong.span.bytes) }
                #expect(error?.code == .invalidConfiguration)
                #expect(error?.message.contains("begins with \(wrong[0])") == true)
            }
            let tooLong = long + [5]
            let error = #expect(throws: FerryError.self) { try far.trySend(tooLong.span.bytes) }
            #expect(error?.code == .chunkTooLarge)
            near.close()
        }
    }

    /// A note is read as it was sent last, by each central its own link's, and from any offset.
    @Test func notesAreRead() throws {
        try byHand(Self.noted) { central, far in
            func read(_ uuid: BluetoothUUID) async throws -> [UInt8] {
                try await central.connection.readValue(of: central.attribute(uuid))
            }
            #expect(try await read(Self.changing) == [1])
            #expect(try await read(Self.fixed) == [7, 8])
            try await central.connection.setSubscription(.notify, to: central.attribute(Self.changing))
            #expect(try far.trySend(([1, 0xA, 0xB] as [UInt8]).span.bytes))
            #expect(try await read(Self.changing) == [0xA, 0xB])
        }
    }

    @Test(arguments: [changing, fixed]) func aMissingNoteIsNamed(_ missing: BluetoothUUID) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            var without = Self.noted
            without.sides.notes.removeAll { $0.uuid == missing }
            let listener = try await GATTTransport(adapter: server, configuration: without, time: time).listen()
            let error = await #expect(throws: FerryError.self) {
                _ = try await GATTTransport(adapter: client, configuration: Self.noted, time: time)
                    .connect(timeout: .seconds(20))
            }
            #expect(error?.message.contains("has no characteristic \(missing)") == true)
            listener.close()
        }
    }

    /// Of a central that writes and never subscribes no adapter tells the end. Once its link is closed another has its place.
    @Test func visitorsThatNeverSubscribeMakeRoom() throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let server = radio.makeAdapter()
        let layout = Self.layout(.firstWrite)
        try time.run {
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            var links = listener.links.makeAsyncIterator()
            for _ in 0..<40 {
                let central = try await HandCentral.connect(radio.makeAdapter(), to: Self.service, time)
                try await central.connection.writeValue([1, 0x41], to: central.attribute(Self.writes))
                try #require(await links.next()).close()
            }
            listener.close()
        }
    }

    private func byHand(
        _ layout: GATTConfiguration, startsFirst: Bool = false,
        _ body: @escaping @Sendable (HandCentral, any Link) async throws -> Void
    ) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let central = try await HandCentral.connect(client, to: Self.service, time)
            if startsFirst { try await central.write([1], to: Self.state) }
            try await central.connection.setSubscription(.notify, to: central.attribute(Self.updates))
            if layout.sides.state != nil {
                try await central.connection.setSubscription(.notify, to: central.attribute(Self.state))
                if !startsFirst { try await central.write([1], to: Self.state) }
            }
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            try await body(central, far)
            try central.connection.disconnect()
            listener.close()
        }
    }
}

/// A central that does what a test says.
private final class HandCentral: CentralRoleEvents, PeripheralConnectionEvents {
    private let found = Mutex<PeerID?>(nil)
    private let isOn = Atomic(false)
    private let parts = Mutex<
        (role: any CentralRole, connection: any PeripheralConnection, all: [RemoteCharacteristic])?
    >(nil)

    static func connect(_ adapter: LoopbackAdapter, to service: BluetoothUUID, _ time: VirtualTime) async throws
        -> HandCentral
    {
        let central = HandCentral()
        let role = adapter.openCentral(central)
        try await time.until("power") { central.isOn.load(ordering: .acquiring) }
        try role.startScan(ScanRequest(services: [service]))
        try await time.until("a peripheral") { central.found.withLock { $0 } != nil }
        role.stopScan()
        let connection = try await role.connect(to: try #require(central.found.withLock { $0 }), events: central)
        let services = try await connection.discoverServices([service])
        let all = try await connection.discoverCharacteristics(nil, of: try #require(services.first).id)
        central.parts.withLock { $0 = (role, connection, all) }
        return central
    }

    var connection: any PeripheralConnection {
        get throws { try #require(parts.withLock { $0?.connection }) }
    }

    func attribute(_ uuid: BluetoothUUID) throws -> AttributeID {
        try #require(parts.withLock { $0?.all.first { $0.uuid == uuid }?.id })
    }

    func write(_ value: [UInt8], to uuid: BluetoothUUID) async throws {
        let attribute = try attribute(uuid)
        _ = try connection.tryWriteValue(value.span.bytes, to: attribute, type: .withoutResponse)
    }

    func centralAdapterDidChange(_ state: AdapterState) { isOn.store(state == .poweredOn, ordering: .releasing) }
    func centralDidDiscover(_ discovery: Discovery) { found.withLock { $0 = discovery.peripheral } }
    func peripheralDidDisconnect(_ reason: BluetoothError) {}
}

/// A receiver that keeps what arrives.
private final class Heard: LinkReceiver {
    private let kept = Mutex<[[UInt8]]>([])
    var chunks: [[UInt8]] { kept.withLock { $0 } }

    func linkIsReady() {}
    func linkDidReceive(_ chunk: RawSpan) {
        let bytes = chunk.withUnsafeBytes { [UInt8]($0) }
        kept.withLock { $0.append(bytes) }
    }
    func linkDidClose(_ reason: FerryError) {}
}
