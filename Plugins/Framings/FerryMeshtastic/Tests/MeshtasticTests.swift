import Ferry
import FerryBluetooth
import FerryLoopback
import FerryMeshtastic
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.framing, .bluetooth), .timeLimit(.minutes(5))) struct MeshtasticTests {
    /// Made by PyPI meshtastic 2.7.11: want_config_id, heartbeat, disconnect, a text to all, and the end of a configuration.
    private static let golden: [[UInt8]] = [
        [0x18, 0x2A], [0x3A, 0], [0x20, 1],
        [
            0x0A, 0x17, 0x15, 0xFF, 0xFF, 0xFF, 0xFF, 0x22, 0x09, 0x08, 0x01, 0x12, 0x05, 0x68, 0x65, 0x6C, 0x6C, 0x6F,
            0x35, 0x01, 0, 0, 0, 0x50, 0x01,
        ], [0x08, 0x01, 0x38, 0x2A],
    ]

    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 8)
        let messages = Self.golden + [1, 20, 244, 512].map { random.bytes($0) }
        let kit = FramingVerifier(MeshtasticFraming(), boundaries: .carryMeaning, minimumChunkSize: 512)
        try kit.verify(messages, chunkSizes: [512, 600])
        try kit.verifyReceiving(messages, as: messages)
    }

    @Test func aMessageIsAValue() throws {
        for message in Self.golden {
            var session = MeshtasticFraming().makeSession(limits: Limits())
            try session.enqueue(message, as: MessageID(rawValue: 0), at: .zero)
            var chunks: [[UInt8]] = []
            while try session.sendOne(atMost: 512, to: &chunks) == .accepted {}
            #expect(chunks == [message])
        }
    }

    /// It fails by itself: the message behind it goes.
    @Test func aMessageThatIsLongerThanTheLinkTakesFails() throws {
        var session = MeshtasticFraming().makeSession(limits: Limits())
        for (number, count) in [20, 21, 3].enumerated() {
            try session.enqueue(
                [UInt8](repeating: 7, count: count), as: MessageID(rawValue: UInt64(number)), at: .zero)
        }
        var chunks: [[UInt8]] = []
        while try session.sendOne(atMost: 20, to: &chunks) == .accepted {}
        #expect(chunks.map(\.count) == [20, 3])
        var (sent, failed): ([UInt64], [UInt64]) = ([], [])
        while let event = session.nextEvent() {
            switch event {
            case .sent(let id): sent.append(id.rawValue)
            case .failed(let id, let error):
                failed.append(id.rawValue)
                #expect(error.code == .messageTooLarge && error.fate == .nothingSent)
                #expect(error.message.contains("has 21 bytes and cannot be cut; the link takes 20"))
            default: break
            }
        }
        #expect(sent == [0, 2] && failed == [1])
    }

    @Test(arguments: [(0, FerryError.Code.invalidConfiguration), (513, .messageTooLarge)])
    func whatNoValueCarriesIsRefused(_ count: Int, _ code: FerryError.Code) {
        var session = MeshtasticFraming().makeSession(limits: Limits())
        let error = #expect(throws: FerryError.self) {
            try session.enqueue([UInt8](repeating: 1, count: count), as: MessageID(rawValue: 0), at: .zero)
        }
        #expect(error?.code == code)
    }

    @Test(arguments: [(0, FerryError.Code.malformedStream), (513, .messageTooLarge)])
    func hostileChunksEndTheSession(_ count: Int, _ code: FerryError.Code) throws {
        var session = MeshtasticFraming().makeSession(limits: Limits())
        for next in [[UInt8](repeating: 1, count: count), [1]] {
            let error = #expect(throws: FerryError.self) { try session.receive(next.span.bytes, at: .zero) }
            #expect(error?.code == code)
        }
        #expect(session.nextEvent() == nil)
    }

    /// A radio and an app over the virtual radio, at the smallest ATT_MTU too: what is read may have 512 bytes at any, and what is written as
    /// many as the link takes.
    @Test(arguments: [23, 247, 517]) func anAppHearsARadio(_ attMTU: Int) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.attMTU = attMTU
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let (device, phone) = (radio.makeAdapter(), radio.makeAdapter())
        try time.run(within: .seconds(1000)) {
            let listener = try await GATTTransport(adapter: device, configuration: .meshtastic, time: time).listen()
            let near = try await GATTTransport(adapter: phone, configuration: .meshtastic, time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            let far = try #require(await links.next())
            let node = try MessageChannel(over: far, codec: BytesCodec(), framing: MeshtasticFraming(), time: time)
            let app = try MessageChannel(over: near, codec: BytesCodec(), framing: MeshtasticFraming(), time: time)
            var asked = node.messages.makeAsyncIterator()
            var told = app.messages.makeAsyncIterator()
            try await app.send(Self.golden[0])
            #expect(try await asked.next() == Self.golden[0])
            let answers = [[UInt8](repeating: 0x22, count: 512), [0x22, 1], Self.golden[4]]
            for answer in answers { try await node.send(answer) }
            for answer in answers { #expect(try await told.next() == answer) }
            let long = [UInt8](repeating: 0x0A, count: min(512, attMTU - 3))
            try await app.send(long)
            #expect(try await asked.next() == long)
            guard long.count < 512 else { return }
            let error = await #expect(throws: FerryError.self) { try await app.send(long + [1]) }
            #expect(error?.code == .messageTooLarge && error?.fate == .nothingSent)
            app.close()
        }
    }

    @Test func theLayoutIsMeshtastics() {
        let layout = GATTConfiguration.meshtastic
        #expect(layout.service.uuidString == "6BA1B218-15A8-461F-9FA8-5DCAE273EAFD")
        #expect(layout.characteristic.uuidString == "ED9DA18C-A800-4F66-A670-AA7547E34453")
        #expect(layout.writeCharacteristic?.uuidString == "F75C76D2-129E-4DAD-A1DD-7866124401E7")
        #expect(layout.sides.queue?.uuidString == "2C55E69E-4993-11ED-B878-0242AC120002")
        #expect(layout.writeType == .withResponse && !layout.offersBothWriteTypes)
    }
}
