import Ferry
import FerryBluetooth
import FerryLoopback
import FerryMdoc
import FerryTesting
import TestSupport
import Testing

/// A mobile document and its reader over the virtual radio, in both modes.
@Suite(.tags(.framing, .bluetooth), .timeLimit(.minutes(5))) struct MdocLinkTests {
    private static let service = BluetoothUUID(0x1234_5678_9ABC_4DEF_8123_4567_89AB_CDEF as UInt128)
    private static let ident = [UInt8](1...16)

    enum Mode: CaseIterable, Sendable {
        case peripheralServer, centralClient

        var layout: GATTConfiguration {
            switch self {
            case .peripheralServer: .mdocPeripheralServer(service: service)
            case .centralClient: .mdocCentralClient(service: service, ident: ident)
            }
        }
    }

    /// 1 000 messages of mixed sizes, half of them each way at once; then the end, as the state says it.
    @Test(arguments: Mode.allCases, [23, 185, 247, 517])
    func messagesOfMixedSizesCross(_ mode: Mode, attMTU: Int) throws {
        let time = VirtualTime()
        let radio = try Self.radio(time, attMTU)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run(within: .seconds(100_000)) {
            let listener = try await GATTTransport(adapter: server, configuration: mode.layout, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: mode.layout, time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let one = try MessageChannel(over: near, codec: BytesCodec(), framing: MdocFraming(), time: time)
            let other = try MessageChannel(over: far, codec: BytesCodec(), framing: MdocFraming(), time: time)
            async let there: Void = Self.send(seed: 1, over: one)
            async let back: Void = Self.send(seed: 2, over: other)
            async let heard: Void = Self.expect(seed: 2, over: one)
            try await Self.expect(seed: 1, over: other)
            _ = try await (there, back, heard)
            one.close()
            let reason = await other.closed
            #expect(reason?.code == .disconnected)
            #expect(reason?.message.contains("to 0x02") == true)
        }
    }

    /// The document does not talk to a reader that has not read its engagement.
    @Test func aReaderWithAnotherIdentIsRefused() throws {
        let time = VirtualTime()
        let radio = try Self.radio(time, 185)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run {
            let reader = GATTConfiguration.mdocCentralClient(service: Self.service, ident: [UInt8](2...17))
            let listener = try await GATTTransport(adapter: server, configuration: reader, time: time).listen()
            let error = await #expect(throws: FerryError.self) {
                _ = try await GATTTransport(adapter: client, configuration: Mode.centralClient.layout, time: time)
                    .connect(timeout: .seconds(20))
            }
            #expect(error?.code == .peerNotFound)
            listener.close()
        }
    }

    /// Both modes as the standard's tables 5 and 6 have them.
    @Test func layoutsAreTheStandards() throws {
        let server = GATTConfiguration.mdocPeripheralServer(service: Self.service, psm: PSM(rawValue: 0x92))
        let tail = "-A123-48CE-896B-4C76973373E6"
        #expect(server.sides.state?.uuid.description == "00000001" + tail)
        #expect(server.writeCharacteristic?.description == "00000002" + tail)
        #expect(server.characteristic.description == "00000003" + tail)
        #expect(server.sides.values.map(\.uuid.description) == ["0000000A" + tail])
        #expect(server.sides.values.map(\.bytes) == [[0, 0, 0, 0x92]])
        let client = GATTConfiguration.mdocCentralClient(
            service: Self.service, ident: Self.ident, psm: PSM(rawValue: 0x92))
        #expect(client.sides.state?.uuid.description == "00000005" + tail)
        #expect(client.writeCharacteristic?.description == "00000006" + tail)
        #expect(client.characteristic.description == "00000007" + tail)
        #expect(client.sides.values.map(\.uuid.description) == ["00000008" + tail, "0000000B" + tail])
        for layout in [server, client] {
            #expect(layout.subscription == .notify)
            #expect(layout.writeType == .withoutResponse)
            #expect(!layout.offersBothWriteTypes)
            #expect(layout.sides.state?.start == [1])
            #expect(layout.sides.state?.end == [2])
        }
    }

    @Test(
        arguments: [[], [0, 0, 0, 0], [0x92, 0, 0, 0], [0x92, 0], [0, 0, 1, 0], [UInt8](repeating: 1, count: 512)]
            as [[UInt8]])
    func aPSMThatIsNoneIsNamed(_ value: [UInt8]) throws {
        let error = #expect(throws: FerryError.self) { _ = try PSM(mdocValue: value) }
        #expect(error?.message.contains("\(value.count) bytes") == true)
        #expect(try PSM(mdocValue: PSM(rawValue: 0x92).mdocValue).rawValue == 0x92)
    }

    /// Over L2CAP a length stands before each message.
    @Test func overL2CAPALengthStandsBeforeEachMessage() throws {
        var session = MdocFraming.overL2CAP.makeSession(limits: Limits())
        try session.enqueue([0xAA, 0xBB], as: MessageID(rawValue: 0), at: .zero)
        var sent: [UInt8] = []
        _ = try session.transmit(atMost: 100, at: .zero) { (chunk) throws(FerryError) in
            sent = chunk.withUnsafeBytes { [UInt8]($0) }
            return true
        }
        #expect(digits(sent) == "00000002aabb")
    }

    // MARK: Helpers

    private static func radio(_ time: VirtualTime, _ attMTU: Int) throws -> LoopbackRadio {
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = attMTU
        return try LoopbackRadio(time: time, configuration: configuration)
    }

    /// 500 messages: most small, some of several chunks, a few large.
    private static func messages(_ seed: UInt64) -> [[UInt8]] {
        var random = SplitMix64(seed: seed)
        return (0..<500).map { index in
            let largest = index % 100 == 99 ? 20_000 : index % 10 == 9 ? 1500 : 64
            return random.bytes(1 + Int(random.next() % UInt64(largest)))
        }
    }

    private static func send(seed: UInt64, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        for message in messages(seed) { try await channel.send(message) }
    }

    private static func expect(seed: UInt64, over channel: MessageChannel<[UInt8], [UInt8]>) async throws {
        var arriving = channel.messages.makeAsyncIterator()
        for message in messages(seed) { #expect(try await arriving.next() == message) }
    }
}
