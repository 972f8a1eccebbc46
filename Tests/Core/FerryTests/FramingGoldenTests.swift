import Ferry
import TestSupport
import Testing

/// The bytes on the wire, written out: a round trip alone would not notice a wrong encoding. `FerryCTests` has the cases with
/// errors.
@Suite(.tags(.core, .framing)) struct FramingGoldenTests {
    /// The cases of a file in which one side sends and the other receives, without an error.
    private static func exchanges(_ file: String) throws -> [VectorCase] {
        let lines: Set = ["send", "chunk", "idle", "message", "nothing", "close"]
        let cases = try vectorCases(file).filter { vector in
            vector.lines(without: "framing", "link").allSatisfy {
                lines.contains($0[1]) && (Int($0.last ?? "") ?? 0) >= 0
            }
        }
        return cases
    }

    @Test(arguments: try exchanges("framing-eom")) func endOfMessage(_ vector: VectorCase) throws {
        let words = try #require(vector.words(of: "framing"))
        try #require(words.count == 3 && words[0] == "eom")
        let size = try #require(Int(words[2]))
        try check(vector, EndOfMessageFraming(marker: vectorBytes(words[1]), chunkSize: size == 0 ? nil : size))
    }

    /// In text, a receiver that compares strings must not see the marker either: U+212A KELVIN SIGN equals K there.
    @Test(arguments: try exchanges("framing-eom-text")) func text(_ vector: VectorCase) throws {
        let words = try #require(vector.words(of: "framing"))
        try #require(words.count == 3 && words[0] == "eom-text")
        try check(
            vector, EndOfMessageFraming(marker: vectorBytes(words[1]), chunkSize: Int(words[2]), content: .text))
    }

    @Test(arguments: try exchanges("framing-length")) func lengthPrefix(_ vector: VectorCase) throws {
        let prefixes: [String: LengthPrefixFraming.Prefix] = [
            "varint": .varint, "16-big": .uint16(.big), "16-little": .uint16(.little), "32-big": .uint32(.big),
            "32-little": .uint32(.little),
        ]
        let words = try #require(vector.words(of: "framing"))
        let prefix = try #require(prefixes[words[1]])
        try check(vector, LengthPrefixFraming(prefix: prefix))
    }

    /// That the filter leaves something.
    @Test func thereAreExchanges() throws {
        #expect(try Self.exchanges("framing-eom").count >= 11)
        #expect(try Self.exchanges("framing-eom-text").count >= 5)
        #expect(try Self.exchanges("framing-length").count >= 17)
    }

    private func check(_ vector: VectorCase, _ framing: some Framing) throws {
        func words(_ verb: String) -> [String] { vector.lines.filter { $0.count > 2 && $0[1] == verb }.map { $0[2] } }
        let size = vector.words(of: "link").flatMap { Int($0[0]) } ?? 20
        var sender = framing.makeSession(limits: Limits())
        for (index, message) in words("send").enumerated() {
            try sender.enqueue(vectorBytes(message), as: MessageID(rawValue: UInt64(index)), at: .zero)
        }
        var chunks: [[UInt8]] = []
        while try sender.sendOne(atMost: size, to: &chunks) == .accepted {}
        #expect(chunks.map(vectorWord) == words("chunk"))

        var receiver = framing.makeSession(limits: Limits())
        for chunk in chunks { try receiver.receive(chunk.span.bytes, at: .zero) }
        try receiver.linkDidClose(at: .zero)
        #expect(receiver.receivedMessages().map(vectorWord) == words("message"))
    }
}
