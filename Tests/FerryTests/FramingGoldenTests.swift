import Ferry
import TestSupport
import Testing

/// Messages and the chunks they make, both in hexadecimal.
struct GoldenVector: Sendable, CustomTestStringConvertible {
    var name: String
    var chunkSize: Int
    var messages: [String]
    var chunks: [String]

    init(_ name: String, atMost chunkSize: Int, _ messages: [String], _ chunks: [String]) {
        self.name = name
        self.chunkSize = chunkSize
        self.messages = messages
        self.chunks = chunks
    }

    var testDescription: String { name }
}

/// The bytes on the wire, written out: a round trip alone would not notice a wrong encoding.
@Suite(.tags(.core, .framing)) struct FramingGoldenTests {
    static let endOfMessageVectors: [GoldenVector] = [
        GoldenVector("empty", atMost: 20, [""], ["45 4F 4D"]),
        GoldenVector("one byte", atMost: 20, ["00"], ["00", "45 4F 4D"]),
        GoldenVector("the marker", atMost: 20, ["45 4F 4D"], ["45 4F", "4D", "45 4F 4D"]),
        GoldenVector(
            "the marker at the end", atMost: 4, ["01 02 03 04 45 4F 4D"], ["01 02 03 04", "45 4F", "4D", "45 4F 4D"]),
        GoldenVector("the marker inside", atMost: 4, ["01 45 4F 4D 02"], ["01 45 4F 4D", "02", "45 4F 4D"]),
        GoldenVector(
            "chunks of the marker's size", atMost: 3, ["45 4F 4D 45 4F 4D"], ["45 4F", "4D 45 4F", "4D", "45 4F 4D"]),
        GoldenVector(
            "20 bytes at a time, however much the link takes", atMost: 512,
            ["00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 10 11 12 13 14"],
            ["00 01 02 03 04 05 06 07 08 09 0A 0B 0C 0D 0E 0F 10 11 12 13", "14", "45 4F 4D"]),
        GoldenVector("two messages", atMost: 20, ["01", "02"], ["01", "45 4F 4D", "02", "45 4F 4D"]),
    ]

    @Test(arguments: endOfMessageVectors)
    func endOfMessage(_ vector: GoldenVector) throws { try check(vector, EndOfMessageFraming()) }

    @Test(arguments: [
        GoldenVector("two bytes", atMost: 2, ["0D 0A"], ["0D", "0A", "0D 0A"]),
        GoldenVector("more than a chunk", atMost: 4, ["01 02 03 04 05"], ["01 02 03 04", "05", "0D 0A"]),
    ])
    func otherMarker(_ vector: GoldenVector) throws {
        try check(vector, EndOfMessageFraming(marker: [0x0D, 0x0A], chunkSize: nil))
    }

    @Test(arguments: [
        GoldenVector("two-byte scalars", atMost: 5, ["C3 A9 C3 A9 C3 A9"], ["C3 A9 C3 A9", "C3 A9", "45 4F 4D"]),
        GoldenVector("a scalar that just fits", atMost: 4, ["F0 9F 98 80 41"], ["F0 9F 98 80", "41", "45 4F 4D"]),
        GoldenVector("a scalar that does not fit", atMost: 4, ["41 F0 9F 98 80"], ["41", "F0 9F 98 80", "45 4F 4D"]),
        GoldenVector("the marker", atMost: 4, ["45 4F 4D"], ["45 4F", "4D", "45 4F 4D"]),
    ])
    func text(_ vector: GoldenVector) throws { try check(vector, EndOfMessageFraming(content: .text)) }

    /// In text, a receiver that compares strings must not see the marker either: U+212A KELVIN SIGN equals K there.
    @Test func textMarkerByCanonicalEquivalence() throws {
        let framing = try EndOfMessageFraming(marker: [UInt8]("OK".utf8), content: .text)
        try check(GoldenVector("kelvin", atMost: 20, ["4F E2 84 AA"], ["4F", "E2 84 AA", "4F 4B"]), framing)
    }

    @Test(arguments: [
        GoldenVector("empty", atMost: 20, [""], ["00"]),
        GoldenVector("a byte", atMost: 20, ["AA"], ["01 AA"]),
        GoldenVector("a byte, a byte at a time", atMost: 1, ["AA"], ["01", "AA"]),
        GoldenVector("127", atMost: 200, [zeros(127)], ["7F " + zeros(127)]),
        GoldenVector("128", atMost: 200, [zeros(128)], ["80 01 " + zeros(128)]),
        GoldenVector(
            "128, cut within the length", atMost: 1, [zeros(128)], ["80", "01"] + Array(repeating: "00", count: 128)),
        GoldenVector("300", atMost: 200, [zeros(300)], ["AC 02 " + zeros(198), zeros(102)]),
        GoldenVector("several in a chunk", atMost: 6, ["0A", "", "0B 0C", "0D"], ["01 0A 00 02 0B 0C", "01 0D"]),
        GoldenVector(
            "a tail and a head", atMost: 4, ["01 02 03 04", "05 06 07"], ["04 01 02 03", "04 03 05 06", "07"]),
    ])
    func varint(_ vector: GoldenVector) throws { try check(vector, LengthPrefixFraming()) }

    @Test(arguments: [
        (LengthPrefixFraming.Prefix.uint16(.big), "01 02"), (.uint16(.little), "02 01"),
        (.uint32(.big), "00 00 01 02"), (.uint32(.little), "02 01 00 00"),
    ])
    func fixedPrefix(_ prefix: LengthPrefixFraming.Prefix, _ length: String) throws {
        let vector = GoldenVector("258", atMost: 512, [zeros(258)], [length + " " + zeros(258)])
        try check(vector, LengthPrefixFraming(prefix: prefix))
        let cut = length.split(separator: " ").map(String.init) + Array(repeating: "00", count: 258)
        try check(GoldenVector("258", atMost: 1, [zeros(258)], cut), LengthPrefixFraming(prefix: prefix))
    }

    private func check(_ vector: GoldenVector, _ framing: some Framing) throws {
        var sender = framing.makeSession(limits: Limits())
        for (index, message) in vector.messages.enumerated() {
            try sender.enqueue(bytes(message), as: MessageID(rawValue: UInt64(index)), at: .zero)
        }
        var chunks: [[UInt8]] = []
        while try sender.sendOne(atMost: vector.chunkSize, to: &chunks) == .accepted {}
        #expect(chunks.map(hex) == vector.chunks)

        var receiver = framing.makeSession(limits: Limits())
        for chunk in chunks { try receiver.receive(chunk.span.bytes, at: .zero) }
        try receiver.linkDidClose(at: .zero)
        #expect(receiver.receivedMessages().map(hex) == vector.messages)
    }
}

private func zeros(_ count: Int) -> String { Array(repeating: "00", count: count).joined(separator: " ") }
