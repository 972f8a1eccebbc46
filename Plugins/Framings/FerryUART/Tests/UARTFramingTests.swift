import Ferry
import FerryBluetooth
import FerryTesting
import FerryUART
import TestSupport
import Testing

/// Lines, SLIP and COBS byte by byte, and what becomes of damage.
@Suite(.tags(.framing, .hostility), .timeLimit(.minutes(5))) struct UARTFramingTests {
    private static let lines = UARTFraming(.lines(.lineFeed))
    private static let terminal = UARTFraming(.lines(.carriageReturnLineFeed))
    private static let slip = UARTFraming(.slip)
    private static let cobs = UARTFraming(.cobs)

    /// What one message is on the line.
    private static func line(_ message: [UInt8], _ framing: UARTFraming, atMost size: Int = 20) throws -> [[UInt8]] {
        var session = framing.makeSession(limits: Limits())
        try session.enqueue(message, as: MessageID(rawValue: 0), at: .zero)
        var chunks: [[UInt8]] = []
        while try session.sendOne(atMost: size, to: &chunks) == .accepted {}
        return chunks
    }

    private static func joined(_ message: [UInt8], _ framing: UARTFraming = cobs) throws -> [UInt8] {
        Array(try line(message, framing, atMost: 512).joined())
    }

    // RFC 1055, and the examples of Cheshire and Baker's paper as Wikipedia lists them.
    @Test(arguments: [
        (lines, "68 65 6C 6C 6F", "68 65 6C 6C 6F 0A"), (lines, "", "0A"), (terminal, "41 54", "41 54 0D 0A"),
        (slip, "01 C0 02", "01 DB DC 02 C0"), (slip, "DB", "DB DD C0"), (slip, "DB DC", "DB DD DC C0"),
        (UARTFraming(.slip, opensFrames: true), "01", "C0 01 C0"),
        (cobs, "", "01 00"), (cobs, "00", "01 01 00"), (cobs, "00 00", "01 01 01 00"),
        (cobs, "00 11 00", "01 02 11 01 00"),
        (cobs, "11 22 00 33", "03 11 22 02 33 00"), (cobs, "11 22 33 44", "05 11 22 33 44 00"),
        (cobs, "11 00 00 00", "02 11 01 01 01 00"), (UARTFraming(.cobs, opensFrames: true), "11", "00 02 11 00"),
    ])
    func goldenFrames(_ framing: UARTFraming, _ message: String, _ frame: String) throws {
        #expect(hex(Array(try Self.line(bytes(message), framing).joined())) == frame)
        var session = framing.makeSession(limits: Limits())
        try session.receive(hex: frame)
        #expect(session.receivedMessages() == [bytes(message)])
    }

    /// COBS at the size of a block: 254 bytes without a zero are a block that stands for none.
    @Test func blocksOfCOBS() throws {
        let most = (1...254).map { UInt8($0) }
        #expect(try Self.joined(most) == Array([[0xFF], most, [0]].joined()))
        #expect(try Self.joined([0] + most) == Array([[1, 0xFF], most, [0]].joined()))
        #expect(
            try Self.joined(most + [0xFF]) == Array([[0xFF], most, [2, 0xFF, 0]].joined()))
        let ending = Array(most.dropFirst()) + [0xFF, 0]
        #expect(
            try Self.joined(ending) == Array([[0xFF], ending.dropLast(), [1, 1, 0]].joined()))
        // An encoder may end a full block with an empty one.
        var session = Self.cobs.makeSession(limits: Limits())
        try session.receive(([0xFF] + most + [1, 0]).span.bytes, at: .zero)
        #expect(session.receivedMessages() == [most])
    }

    @Test(arguments: [lines, terminal, slip, cobs])
    func keepsTheContract(_ framing: UARTFraming) throws {
        let kit = FramingVerifier(framing, boundaries: .carryNoMeaning)
        let messages = [5, 1, 40, 254, 255, 3].map { count in
            pattern(count, seed: count).map { framing.name == "lines" && ($0 == 10 || $0 == 13) ? 1 : $0 }
        }
        try kit.verify(messages, chunkSizes: [1, 2, 20, 182, 244, 512])
        if framing.name != "slip" { try kit.verify([[], [1], []], chunkSizes: [1, 20]) }
        if framing.name != "lines" {
            try kit.verify([[0xC0, 0xDB, 0xDC, 0xDD, 0, 0], [0], [0, 0, 0xC0]], chunkSizes: [1, 3, 20])
        }
        try FramingVerifier(UARTFraming(framing.format, opensFrames: true), boundaries: .carryNoMeaning)
            .verifyExchange(messages, chunkSizes: [1, 20, 512])
    }

    /// However the line is cut, whole or damaged, the same comes out as from one byte at a time, where no run of bytes is copied at once.
    @Test(arguments: [slip, cobs]) func cutsMakeNoDifference(_ framing: UARTFraming) throws {
        var random = SplitMix64(seed: 0xC0DB)
        let special: [UInt8] = [0, 0xC0, 0xDB, 0xDC, 0xDD, 0xFF]
        for _ in 0..<1_000 {
            var line: [UInt8] = []
            for _ in 0..<1 + random.next() % 3 {
                // Every other one without a zero, of more than two blocks of COBS at times.
                let hasZeros = random.next() % 2 == 0
                let message = random.bytes(1 + Int(random.next() % 900)).map { byte in
                    guard hasZeros else { return max(byte, 1) }
                    return byte % 16 == 0 ? special[Int(byte) / 16 % special.count] : byte
                }
                line += try Self.joined(message, framing)
            }
            for _ in 0..<random.next() % 4 {
                line[Int(random.next() % UInt64(line.count))] = special[Int(random.next() % 6)]
            }
            let expected = try Self.heard(line, framing) { 1 }
            #expect(try Self.heard(line, framing) { 1 + Int(random.next() % 300) } == expected)
            #expect(try Self.heard(line, framing) { line.count } == expected)
        }
    }

    /// What a line brings when it comes in chunks of these sizes: messages, and errors in words.
    private static func heard(_ line: [UInt8], _ framing: UARTFraming, _ size: () -> Int) throws -> [String] {
        var session = framing.makeSession(limits: Limits())
        var (rest, heard): (ArraySlice<UInt8>, [String]) = (line[...], [])
        while !rest.isEmpty {
            let chunk = Array(rest.prefix(size()))
            rest = rest.dropFirst(chunk.count)
            try session.receive(chunk.span.bytes, at: .zero)
            while let event = session.nextEvent() {
                switch event {
                case .received(let message): heard.append(hex(message))
                case .receiveFailed(let error): heard.append(error.message)
                default: break
                }
            }
        }
        return heard
    }

    @Test func bothEndsOfLinesAreRead() throws {
        var session = Self.lines.makeSession(limits: Limits())
        try session.receive(hex: "61 0D")
        try session.receive(hex: "0A 62 0A 0D 0A 63 0D 64 0A")
        #expect(session.receivedMessages() == [[0x61], [0x62], [], [0x63, 0x0D, 0x64]])
    }

    @Test func whatCannotBeSaidIsRefused() throws {
        for (framing, message) in [
            (Self.lines, [0x61, 0x0A]), (Self.lines, [0x61, 0x0D]), (Self.terminal, [0x0A]), (Self.slip, []),
        ] as [(UARTFraming, [UInt8])] {
            let error = #expect(throws: FerryError.self) { try Self.line(message, framing) }
            #expect(error?.code == .unsendable)
        }
    }

    /// Damage, what is told of it, and the message behind it, which arrives.
    @Test(arguments: [
        (slip, "01 DB 07 02 C0 AA C0", "0x7 after a SLIP escape"), (slip, "DB C0 AA C0", "0xc0 after a SLIP escape"),
        (cobs, "05 11 22 00 02 AA 00", "2 bytes before"), (cobs, "FF 00 02 AA 00", "254 bytes before"),
    ])
    func damageEndsWithItsMessage(_ framing: UARTFraming, _ stream: String, _ told: String) throws {
        for size in [1, 2, 3, 20] {
            var session = framing.makeSession(limits: Limits())
            var rest = bytes(stream)[...]
            var errors: [FerryError] = []
            var messages: [[UInt8]] = []
            while !rest.isEmpty {
                try session.receive(Array(rest.prefix(size)).span.bytes, at: .zero)
                rest = rest.dropFirst(size)
                while let event = session.nextEvent() {
                    if case .receiveFailed(let error) = event { errors.append(error) }
                    if case .received(let message) = event { messages.append(message) }
                }
            }
            #expect(errors.count == 1 && errors[0].code == .malformedStream)
            #expect(errors.first?.message.contains(told) == true, "\(errors)")
            #expect(messages == [[0xAA]])
        }
    }

    /// Input without an end takes no more memory than the limit, is told once, and what follows its end arrives.
    @Test(arguments: [(lines, "0A 61 0A"), (slip, "C0 61 C0"), (cobs, "00 02 61 00")])
    func unterminatedInputIsBounded(_ framing: UARTFraming, _ end: String) throws {
        var limits = Limits()
        limits.maximumMessageSize = 1000
        var session = framing.makeSession(limits: limits)
        let chunk =
            framing.name == "cobs" ? [0x14] + [UInt8](repeating: 7, count: 19) : [UInt8](repeating: 7, count: 20)
        var told: [String] = []
        for _ in 0..<10_000 {
            try session.receive(chunk.span.bytes, at: .zero)
            told += session.eventDescriptions()
            #expect((session.arriving?.receivedBytes ?? 0) <= 1001)
        }
        #expect(told == ["receiveFailed messageTooLarge"] && session.deadline == nil)
        try session.receive(hex: end)
        #expect(session.receivedMessages() == [[0x61]])
    }

    /// A message that fell silent is given up with the rest of it; the channel goes on.
    @Test(arguments: [
        (lines, "61", "62 0A 63 0A"), (slip, "61 DB", "62 C0 63 C0"), (cobs, "04 61", "62 63 00 02 63 00"),
    ])
    func silenceGivesTheMessageUp(_ framing: UARTFraming, _ first: String, _ rest: String) throws {
        var session = framing.makeSession(limits: Limits())
        try session.receive(hex: first)
        let deadline = try #require(session.deadline)
        try session.wake(at: deadline)
        #expect(session.eventDescriptions() == ["receiveFailed truncatedMessage"])
        #expect(session.deadline == nil)
        try session.receive(hex: rest, at: deadline)
        #expect(session.receivedMessages() == [[0x63]])
        try session.linkDidClose(at: deadline)
    }

    /// Bytes of any kind, cut anywhere: messages within the limit, and the last one, behind an end, arrives.
    @Test(arguments: [(lines, [UInt8](arrayLiteral: 10)), (slip, [0xC0]), (cobs, [0])])
    func mutatedInputs(_ framing: UARTFraming, _ end: [UInt8]) throws {
        var random = SplitMix64(seed: 39)
        var limits = Limits()
        limits.maximumMessageSize = 300
        let last = Array(try Self.line([1, 2, 3], framing).joined())
        for _ in 0..<Effort.of(5_000, full: 300_000) {
            var session = framing.makeSession(limits: limits)
            let alphabet: [UInt8] = [
                0, 1, 2, 0x0A, 0x0D, 0xC0, 0xDB, 0xDC, 0xDD, 0xFF, .random(in: 0...255, using: &random),
            ]
            let stream = (0..<Int.random(in: 1...600, using: &random)).map { _ in
                alphabet.randomElement(using: &random)!
            }
            var rest = (stream + end + last)[...]
            var messages: [[UInt8]] = []
            while !rest.isEmpty {
                let count = Int.random(in: 1...100, using: &random)
                try session.receive(Array(rest.prefix(count)).span.bytes, at: .zero)
                rest = rest.dropFirst(count)
                messages += session.receivedMessages()
            }
            #expect(messages.allSatisfy { $0.count <= 300 } && messages.last == [1, 2, 3])
        }
    }

    /// The raw stream: bytes as they come, none added.
    @Test func rawBytes() throws {
        var session = UARTStream().makeSession(limits: Limits())
        for (number, message) in [pattern(45), [], [7]].enumerated() {
            try session.enqueue(message, as: MessageID(rawValue: UInt64(number)), at: .zero)
        }
        var chunks: [[UInt8]] = []
        while try session.sendOne(atMost: 20, to: &chunks) == .accepted {}
        #expect(chunks.map(\.count) == [20, 20, 5, 1])
        #expect(session.eventDescriptions().filter { $0.hasPrefix("sent") } == ["sent 0", "sent 1", "sent 2"])
        try session.receive(hex: "68 65 6C 6C 6F")
        #expect(session.receivedMessages() == [Array("hello".utf8)] && session.deadline == nil)
        try session.linkDidClose(at: .zero)
    }

    @Test func theLayoutIsNordics() {
        let layout = GATTConfiguration.nordicUART
        #expect(layout.service.uuidString == "6E400001-B5A3-F393-E0A9-E50E24DCCA9E")
        #expect(layout.characteristic.uuidString == "6E400003-B5A3-F393-E0A9-E50E24DCCA9E")
        #expect(layout.writeCharacteristic?.uuidString == "6E400002-B5A3-F393-E0A9-E50E24DCCA9E")
    }
}
