import Ferry
import FerryBluetooth
import FerryImprov
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.framing, .hostility), .timeLimit(.minutes(5))) struct ImprovFramingTests {
    private static let app = PayloadFormat()

    /// Packets of PyPI py-improv-ble-client 2.0.1.
    @Test(arguments: [
        ("010c04686f6d650673656372657446", ImprovPacket(.wifiSettings, text: ["home", "secret"])),
        ("020002", ImprovPacket(.identify)), ("030003", ImprovPacket(.deviceInfo)), ("040004", ImprovPacket(.scan)),
        ("010908687474703a2f2f78e2", ImprovPacket(.wifiSettings, text: ["http://x"])),
        ("010001", ImprovPacket(.wifiSettings)),
        (
            "031202667703312e30054553503332046c616d7086",
            ImprovPacket(.deviceInfo, text: ["fw", "1.0", "ESP32", "lamp"])
        ),
    ])
    func goldenRow(_ text: String, _ packet: ImprovPacket) throws {
        #expect(try packet.bytes() == bytes(text))
        #expect(try ImprovPacket(bytes(text)) == packet)
    }

    /// py-improv-ble-client cannot make strings of 128 bytes and more; a length is an unsigned byte.
    @Test func stringsMayBeLong() throws {
        let packet = ImprovPacket(.wifiSettings, [[UInt8](repeating: 7, count: 200), [UInt8](repeating: 8, count: 53)])
        #expect(try packet.bytes().count == 258)
        #expect(try ImprovPacket(packet.bytes()) == packet)
        let error = #expect(throws: FerryError.self) {
            try ImprovPacket(.wifiSettings, [[UInt8](repeating: 7, count: 255)]).bytes()
        }
        #expect(error?.code == .encodingFailed && error?.message.contains("have 256") == true)
    }

    @Test(arguments: [
        ("", "too short"), ("0100", "too short"), ("010101", "says that it has 4"), ("01000100", "says that it has 3"),
        ("010002", "has the sum 2 where 1 was due"), ("01010204", "has a string of 2 bytes where 0 are left"),
    ])
    func whatIsNoPacketIsNamed(_ text: String, _ what: String) {
        let error = #expect(throws: FerryError.self) { try ImprovPacket(bytes(text)) }
        #expect(error?.code == .decodingFailed && error?.message.contains(what) == true, "\(error?.message ?? "")")
    }

    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 0x4677)
        let messages = try [0, 1, 18, 100, 254].map { try [0] + ImprovPacket(.scan, [random.bytes($0)]).bytes() }
        try FramingVerifier(ImprovFraming(), boundaries: .carryMeaning, minimumChunkSize: 2)
            .verifyExchange(messages, chunkSizes: [2, 3, 20, 182, 244, 512])
        try FramingVerifier(ImprovFraming(), boundaries: .carryMeaning, minimumChunkSize: 2)
            .verifyCancelling(messages, chunkSizes: [20, 244])
    }

    /// A device's state and errors lie between its results, also within one.
    @Test func notesComeBetween() throws {
        var session = ImprovFraming().makeSession(limits: Limits())
        for chunk in ["00 01 00", "01 04", "00 01", "02 00", "03 0F"] { try session.receive(hex: chunk) }
        #expect(session.receivedMessages() == [[1, 4], [0, 1, 0, 1], [2, 0], [3, 0x0F]])
    }

    /// What the device sends begins with the number of its characteristic; what the app sends does not.
    @Test func onlyTheDeviceMarksItsChunks() throws {
        for (role, chunks) in [(LinkRole.initiator, [[0x02, 0, 2]]), (.responder, [[0, 0x02, 0, 2]])]
            as [(LinkRole, [[UInt8]])]
        {
            var session = ImprovFraming().makeSession(limits: Limits(), payloads: PayloadFormat(), role: role)
            try session.enqueue([0, 0x02, 0, 2], as: MessageID(rawValue: 0), at: .zero)
            var sent: [[UInt8]] = []
            while try session.sendOne(atMost: 20, to: &sent) == .accepted {}
            #expect(sent == chunks)
        }
    }

    @Test(arguments: [
        ("", "An empty chunk"), ("00", "an empty value"), ("04 01", "begins with 4"), ("FF", "begins with 255"),
        ("01", "a note of 0 bytes"), ("02 00 00", "a note of 2 bytes"),
        ("00 01 00 01 01", "1 bytes behind a packet of 3"),
        ("00 01 00 07", "the sum 7 where 1 was due"), ("00 01 01 05 07", "a string of 5 bytes where 0 are left"),
    ])
    func hostileChunksAreNamed(_ text: String, _ what: String) throws {
        var session = ImprovFraming().makeSession(limits: Limits())
        for next in [text, "01 01"] {
            let error = #expect(throws: FerryError.self) { try session.receive(hex: next) }
            #expect(error?.message.contains(what) == true, "\(error?.message ?? "")")
        }
        #expect(session.nextEvent() == nil && session.deadline == nil)
    }

    @Test func aResultThatIsCutShortIsNoticed() throws {
        var session = ImprovFraming().makeSession(limits: Limits())
        try session.receive(hex: "00 01 09 08 68")
        let deadline = try #require(session.deadline)
        var other = session
        let silent = #expect(throws: FerryError.self) { try session.wake(at: deadline) }
        #expect(silent?.code == .truncatedMessage)
        #expect(silent?.message.contains("fell silent after 4 of 12 bytes") == true, "\(silent?.message ?? "")")
        let ended = #expect(throws: FerryError.self) { try other.linkDidClose(at: .zero) }
        #expect(ended?.code == .truncatedMessage)
    }

    @Test func whatIsNoMessageIsRefused() {
        for (role, payloads) in [
            (LinkRole.initiator, [[], [0], [0, 1, 0], [1, 1], [3, 0]]), (.responder, [[1], [2, 0, 0], [3, 0], [9]]),
        ] as [(LinkRole, [[UInt8]])] {
            for payload in payloads {
                var session = ImprovFraming().makeSession(limits: Limits(), payloads: Self.app, role: role)
                #expect(throws: FerryError.self) {
                    try session.enqueue(payload, as: MessageID(rawValue: 0), at: .zero)
                }
            }
        }
    }

    /// Bytes of any kind, cut anywhere: messages of the format, or an error, and never more kept than a packet.
    @Test func mutatedInputs() throws {
        var random = SplitMix64(seed: 10)
        for _ in 0..<Effort.of(20_000, full: 1_000_000) {
            var session = ImprovFraming().makeSession(limits: Limits())
            do throws(FerryError) {
                for _ in 0..<4 {
                    var chunk: [UInt8] = [UInt8(random.next() % 4)] + random.bytes(Int(random.next() % 5))
                    if random.next() % 2 == 0 { chunk = [0] + (try ImprovPacket(.scan, [random.bytes(3)]).bytes()) }
                    if random.next() % 3 == 0 { chunk[Int(random.next() % UInt64(chunk.count))] ^= 1 }
                    try session.receive(chunk.span.bytes, at: .zero)
                    #expect((session.arriving?.receivedBytes ?? 0) <= 259)
                    for message in session.receivedMessages() {
                        if message[0] == 0 { _ = try ImprovPacket(Array(message.dropFirst())) }
                        #expect(message[0] == 0 || message[0] < 4 && message.count == 2)
                    }
                }
            } catch {
                #expect(error.code == .malformedStream || error.code == .decodingFailed)
            }
        }
    }

    @Test func theLayoutIsImprovs() {
        let layout = GATTConfiguration.improv()
        let uuids = [layout.service, layout.characteristic, layout.writeCharacteristic ?? layout.service]
        #expect(
            (uuids + layout.sides.notes.map(\.uuid)).map(\.uuidString)
                == ["00", "04", "03", "01", "02", "05"].map { "00467768-6228-2272-4663-2774782680\($0)" })
        #expect(layout.sides.notes.map(\.isNotified) == [true, true, false] && layout.writeType == .withResponse)
    }
}
