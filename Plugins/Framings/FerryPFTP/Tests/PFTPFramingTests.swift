import Ferry
import FerryBluetooth
import FerryPFTP
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.framing)) struct PFTPFramingTests {
    private static let at = Timestamp.zero

    @Test func keepsTheContract() throws {
        var random = SplitMix64(seed: 0xFEEE)
        let messages = [0, 1, 18, 19, 20, 38, 39, 400, 2000].map { random.bytes($0) }
        try FramingVerifier(PFTPFraming(), boundaries: .carryMeaning, minimumChunkSize: 3)
            .verify(messages, chunkSizes: [3, 20, 182, 244, 512])
    }

    /// Messages and their chunks of at most 20 bytes, as PyPI polar-ble-tools 0.6.0 cuts them.
    @Test(arguments: [
        ("0500080012012f", ["020500080012012f"]),
        (
            "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f202122232425262728292a2b2c",
            [
                "06000102030405060708090a0b0c0d0e0f101112", "17131415161718191a1b1c1d1e1f202122232425",
                "23262728292a2b2c",
            ]
        ),
        ("0580", ["020580"]), ("00", ["0200"]),
    ])
    func goldenRow(_ message: String, _ chunks: [String]) throws {
        #expect(try cut(bytes(message), PFTPFraming()).map(digits) == chunks)
        // With a number in front the same goes over the air.
        let led = PFTPFraming(errors: .leadMessages)
        #expect(try cut([0, 0] + bytes(message), led).map(digits) == chunks)
        try FramingVerifier(PFTPFraming(), boundaries: .carryMeaning, minimumChunkSize: 3)
            .verifyReceiving(chunks.map(bytes), as: [bytes(message)])
        #expect(try take(chunks.map(bytes), led) == [[0, 0] + bytes(message)])
    }

    /// Numbers begin again after 15, the first chunk's bit never comes again.
    @Test func numbersAreModulo16() throws {
        let heads = try cut([UInt8](repeating: 7, count: 19 * 20), PFTPFraming()).map { $0[0] }
        #expect(
            heads.map { digits([$0]) }.joined(separator: " ")
                == "06 17 27 37 47 57 67 77 87 97 a7 b7 c7 d7 e7 f7 07 17 27 33")
    }

    /// A number of 2 bytes goes as an error; an error in the middle of a message is all that comes of it, and the next message is whole.
    @Test func errorsAreCarried() throws {
        let framing = PFTPFraming(errors: .leadMessages)
        #expect(try cut([0xFE, 0xFF], framing).map(digits) == ["00feff"])
        #expect(try take([[0x00, 103, 0]], framing) == [[103, 0]])
        #expect(
            try take([[0x06, 1, 2], [0x17, 3], [0x21, 0xFE, 0xFF], [0x02, 9]], framing) == [[0xFE, 0xFF], [0, 0, 9]])
        // What follows the two bytes is passed over, as polar-ble-tools does it.
        #expect(try take([[0x00, 103, 0, 5]], framing) == [[103, 0]])
        // The error 0 is success.
        #expect(try take([[0x00, 0, 0], [0x06, 1], [0x11, 0, 0]], framing) == [[0, 0], [0, 0, 1]])
        #expect(try take([[0x06, 1], [0x11, 0, 0]], PFTPFraming()) == [[1]])
        let error = #expect(throws: FerryError.self) { try take([[0x00, 103, 0], [0x02, 1]], PFTPFraming()) }
        #expect(error?.code == .pftpRefused && error?.message.contains("103: no such file or folder") == true)
    }

    /// Polar's library since 2026 takes chunks without content that say that more follow.
    @Test func emptyChunksBeforeTheLastAreTaken() throws {
        #expect(try take([[0x06], [0x17], [0x23, 5]], PFTPFraming()) == [[5]])
    }

    /// Each by itself or after the beginning of a message: an error that names what was met, and the same for what follows.
    @Test(
        arguments: [
            ([], [], "empty"), ([], [0x03], "a later chunk, number 0, where a message's first chunk was due"),
            ([], [0x12, 1], "number 1, where a message's first chunk was due"), ([], [0x04, 1], "the status 2"),
            ([], [0x00, 1], "an error of 1 bytes"), ([], [0x00], "an error of 0 bytes"),
            ([[0x06, 1]], [0x27, 2], "number 2, where number 1 of a message was due"),
            ([[0x06, 1]], [0x06, 1], "a message's first chunk, number 0"),
            ([[0x06, 1]], [0x16, 1], "first chunk, number 1"),
            ([[0x06, 1], [0x17, 2]], [0x17, 2], "number 1, where number 2"),
            ([[0x06, 1]], [0x15, 2], "the status 2"), ([[0x06, 1]], [], "empty"),
        ] as [([[UInt8]], [UInt8], String)])
    func hostileChunksAreNamed(_ before: [[UInt8]], _ chunk: [UInt8], _ what: String) throws {
        for framing in [PFTPFraming(), PFTPFraming(errors: .leadMessages)] {
            var session = framing.makeSession(limits: Limits())
            for chunk in before { try session.receive(chunk.span.bytes, at: Self.at) }
            for next in [chunk, [0x02, 1]] {
                let error = #expect(throws: FerryError.self) { try session.receive(next.span.bytes, at: Self.at) }
                #expect(error?.code == .malformedStream)
                #expect(error?.message.contains(what) == true, "\(error?.message ?? "none")")
            }
            #expect(session.nextEvent() == nil)
        }
    }

    @Test func aMessageAboveTheLimitIsRefusedBeforeItIsWhole() throws {
        var limits = Limits()
        limits.maximumMessageSize = 10
        for (framing, room) in [(PFTPFraming(), 10), (PFTPFraming(errors: .leadMessages), 8)] {
            var session = framing.makeSession(limits: limits)
            try session.receive(([0x06] + [UInt8](repeating: 7, count: room)).span.bytes, at: Self.at)
            let error = #expect(throws: FerryError.self) {
                try session.receive(([0x17, 1] as [UInt8]).span.bytes, at: Self.at)
            }
            #expect(error?.code == .messageTooLarge)
        }
    }

    @Test(arguments: [[], [0], [1, 0, 5]] as [[UInt8]]) func whatIsNoMessageWithANumberIsRefused(_ message: [UInt8]) {
        let error = #expect(throws: FerryError.self) { try cut(message, PFTPFraming(errors: .leadMessages)) }
        #expect(error?.code == .invalidConfiguration)
    }

    @Test func layoutsArePolars() {
        let (requests, notices) = (GATTConfiguration.polarPFTP, GATTConfiguration.polarNotices)
        #expect([requests, notices].allSatisfy { $0.service.description == "FEEE" })
        #expect(requests.characteristic.description == "FB005C51-02E7-F387-1CAD-8ACD2D8DF0C8")
        #expect(requests.writeCharacteristic == nil)
        #expect(notices.characteristic.description == "FB005C52-02E7-F387-1CAD-8ACD2D8DF0C8")
        #expect(notices.writeCharacteristic?.description == "FB005C53-02E7-F387-1CAD-8ACD2D8DF0C8")
    }

    // MARK: Helpers

    @discardableResult private func cut(_ message: [UInt8], _ framing: PFTPFraming) throws -> [[UInt8]] {
        var session = framing.makeSession(limits: Limits())
        try session.enqueue(message, as: MessageID(rawValue: 0), at: Self.at)
        var chunks: [[UInt8]] = []
        while try session.sendOne(atMost: 20, to: &chunks) == .accepted {}
        return chunks
    }

    @discardableResult private func take(_ chunks: [[UInt8]], _ framing: PFTPFraming) throws -> [[UInt8]] {
        var session = framing.makeSession(limits: Limits())
        for chunk in chunks { try session.receive(chunk.span.bytes, at: Self.at) }
        return session.receivedMessages()
    }
}
