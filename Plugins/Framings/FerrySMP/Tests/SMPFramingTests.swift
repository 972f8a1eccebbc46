import Ferry
import FerryBluetooth
import FerrySMP
import FerryTesting
import TestSupport
import Testing

/// Bytes of SMP, and what its framing does with any.
@Suite(.tags(.framing, .hostility), .timeLimit(.minutes(5))) struct SMPFramingTests {
    /// A message with so many bytes after its header.
    static func message(_ count: Int, sequence: UInt8 = 0) -> [UInt8] {
        SMPHeader(operation: .write, group: .image, sequence: sequence, command: 1).message(pattern(count))
    }

    /// Made by PyPI smp 4.2.0, with what each header says.
    @Test(arguments: [
        ("0a 00 00 06 00 00 00 00 a1 61 64 62 68 69", SMPVersion.two, SMPOperation.write, 0, 0, 0),
        ("02 00 00 06 00 00 00 00 a1 61 64 62 68 69", .one, .write, 0, 0, 0),
        ("0b 00 00 06 00 00 00 00 a1 61 72 62 68 69", .two, .writeResponse, 0, 0, 0),
        ("08 00 00 01 00 00 01 06 a0", .two, .read, 0, 1, 6),
        ("08 00 00 01 00 01 04 00 a0", .two, .read, 1, 4, 0),
        ("0a 00 00 01 00 3f 12 00 a0", .two, .write, 63, 18, 0),
        ("03 00 00 05 00 00 00 00 a1 62 72 63 08", .one, .writeResponse, 0, 0, 0),
    ])
    func goldenHeaders(
        _ text: String, _ version: SMPVersion, _ operation: SMPOperation, _ group: UInt16, _ sequence: UInt8,
        _ command: UInt8
    ) throws {
        let message = bytes(text)
        let header = try #require(SMPHeader(message))
        #expect(header.version == version && header.operation == operation && header.sequence == sequence)
        #expect(header.group.rawValue == group && header.command == command)
        #expect(header.message(Array(message.dropFirst(8))) == message)
    }

    /// A link that takes 20 bytes, as smpclient 7.3.0 cuts an upload's first request.
    @Test func aMessageIsCutWithoutAByteAdded() throws {
        let message = Self.message(0x177)
        var session = SMPFraming().makeSession(limits: Limits())
        try session.enqueue(message, as: MessageID(rawValue: 0), at: .zero)
        var chunks: [[UInt8]] = []
        while try session.sendOne(atMost: 20, to: &chunks) == .accepted {}
        #expect(chunks.map(\.count) == Array(repeating: 20, count: 19) + [3])
        #expect(Array(chunks.joined()) == message)
    }

    @Test func keepsTheContract() throws {
        let kit = FramingVerifier(SMPFraming(), boundaries: .carryNoMeaning, minimumChunkSize: 8)
        try kit.verify([0, 1, 11, 12, 13, 0, 300].map { Self.message($0) }, chunkSizes: [8, 9, 20, 182, 244, 512])
        try kit.verifyExchange([Self.message(65_535), Self.message(3)], chunkSizes: [244])
        try kit.verifyReceiving([bytes("08 00 00 00 00 00 00 06")], as: [bytes("08 00 00 00 00 00 00 06")])
    }

    /// A server halves its notifications when it runs out of buffers, and never says so.
    @Test func shorterChunksAreNoEnd() throws {
        let message = Self.message(500)
        var session = SMPFraming().makeSession(limits: Limits())
        var rest = message[...]
        var size = 244
        while !rest.isEmpty {
            try session.receive(Array(rest.prefix(size)).span.bytes, at: .zero)
            rest = rest.dropFirst(size)
            size = max(10, size / 2)
        }
        #expect(session.receivedMessages() == [message])
    }

    @Test func whatIsNoMessageIsNotSent() throws {
        var session = SMPFraming().makeSession(limits: Limits())
        for wrong in [[], bytes("0A 00 00 00"), bytes("0C 00 00 00 00 00 00 00"), Self.message(4) + [0]] {
            let error = #expect(throws: FerryError.self) {
                try session.enqueue(wrong, as: MessageID(rawValue: 0), at: .zero)
            }
            #expect(error?.code == .notSMP)
        }
        var chunks: [[UInt8]] = []
        #expect(try session.sendOne(atMost: 20, to: &chunks) == .idle)
        try session.enqueue(Self.message(4), as: MessageID(rawValue: 1), at: .zero)
        let error = #expect(throws: FerryError.self) { try session.sendOne(atMost: 7, to: &chunks) }
        #expect(error?.code == .chunkSizeTooSmall)
    }

    /// Each ends the session with an error that names what was met.
    @Test(arguments: [
        ("", "empty"), ("0C 00 00 00 00 00 00 00", "0xc,"), ("12 00 00 00 00 00 00 00", "0x12,"),
        ("FF FF FF FF FF FF FF FF", "0xff,"), ("A1 62 72 63 08 00 00 00", "0xa1,"),
    ])
    func hostileHeaders(_ text: String, _ named: String) throws {
        var session = SMPFraming().makeSession(limits: Limits())
        let error = #expect(throws: FerryError.self) { try session.receive(hex: text) }
        #expect(error?.code == .malformedStream)
        #expect(error?.message.contains(named) == true, "\(error?.message ?? "")")
        let again = #expect(throws: FerryError.self) { try session.receive(hex: "08 00 00 00 00 00 00 00") }
        #expect(again?.message == error?.message)
        #expect(session.nextEvent() == nil && session.deadline == nil)
    }

    /// A length close to 65 536, which wraps in Zephyr's reassembly, takes no more memory than what has come.
    @Test func aLengthIsCheckedBeforeMemoryIsTaken() throws {
        var limits = Limits()
        limits.maximumMessageSize = 1000
        var session = SMPFraming().makeSession(limits: limits)
        let error = #expect(throws: FerryError.self) { try session.receive(hex: "08 00 FF FF 00 00 00 00") }
        #expect(error?.code == .messageTooLarge)
        #expect(error?.message.contains("65543") == true)
    }

    @Test func silenceWithinAHeaderIsNoticed() throws {
        var session = SMPFraming().makeSession(limits: Limits())
        try session.receive(hex: "08 00")
        let deadline = try #require(session.deadline)
        let error = #expect(throws: FerryError.self) { try session.wake(at: deadline) }
        #expect(error?.code == .truncatedMessage)
        #expect(error?.message.contains("2 of 8 bytes") == true)
    }

    /// Bytes of any kind, cut anywhere: an error or messages, and never more kept than the limit.
    @Test func mutatedInputs() throws {
        var random = SplitMix64(seed: 39)
        var limits = Limits()
        limits.maximumMessageSize = 2000
        let valid = (0..<20).flatMap { Self.message($0 * 13) }
        for _ in 0..<Effort.of(5_000, full: 100_000) {
            var session = SMPFraming().makeSession(limits: limits)
            var stream = Array(valid.prefix(Int.random(in: 1...valid.count, using: &random)))
            for _ in 0..<Int.random(in: 0...3, using: &random) {
                stream[Int.random(in: 0..<stream.count, using: &random)] = .random(in: 0...255, using: &random)
            }
            var rest = stream[...]
            do throws(FerryError) {
                while !rest.isEmpty {
                    let count = Int.random(in: 1...300, using: &random)
                    try session.receive(Array(rest.prefix(count)).span.bytes, at: .zero)
                    rest = rest.dropFirst(count)
                    for message in session.receivedMessages() {
                        #expect(message.count <= 2000 && SMPHeader(message) != nil)
                    }
                }
            } catch {
                #expect(error.code == .malformedStream || error.code == .messageTooLarge)
            }
        }
    }

    @Test func theLayoutIsZephyrs() {
        let layout = GATTConfiguration.smp
        #expect(layout.service.uuidString == "8D53DC1D-1DB7-4CD3-868B-8A527460AA84")
        #expect(layout.characteristic.uuidString == "DA2E7828-FBCE-4E01-AE9E-261174997C48")
        #expect(layout.writeCharacteristic == nil && layout.writeType == .withoutResponse)
    }
}
