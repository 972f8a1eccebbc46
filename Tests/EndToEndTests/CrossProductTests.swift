import Ferry
import FerryJSON
import FerryPropertyList
import FerryTesting
import FerryZlib
import TestSupport
import Testing

/// Every framing with every codec, with and without compression, at every chunk size: what is decoded is what was sent.
@Suite(.tags(.channel, .codec, .compression, .slow)) struct CrossProductTests {
    /// How a case turns a seeded value into bytes and checks that the same value comes back.
    private struct Coding: Sendable {
        let name: String
        let isText: Bool
        let roundTrip: @Sendable (inout SplitMix64, (([UInt8]) throws -> [UInt8])) throws -> Bool
    }

    private struct Record: Codable, Sendable, Equatable {
        var id: Int
        var name: String
        var values: [Double]
        var tags: [String: String]
        var note: String?
    }

    private static func coding<C: Codec>(
        _ name: String, _ codec: C, isText: Bool, _ make: @escaping @Sendable (inout SplitMix64) -> C.Message
    ) -> Coding where C.Message: Equatable {
        Coding(name: name, isText: isText) { random, carry in
            let message = make(&random)
            return try codec.decode(carry(codec.encode(message))) == message
        }
    }

    private static let codings: [Coding] = [
        coding("bytes", BytesCodec(), isText: false, randomBytes),
        coding("text", TextCodec(), isText: true, randomText),
        coding("json", JSONCodec<Record>(), isText: true, randomRecord),
        coding("plist", PropertyListCodec<Record>(format: .binary), isText: false, randomRecord),
        coding("xml", PropertyListCodec<Record>(format: .xml), isText: true, randomRecord),
        coding("dictionary", PropertyListCodec<[String: String]>(format: .binary), isText: false) { random in
            randomRecord(&random).tags
        },
    ]

    private static let sizes = [0, 1, 2, 3, 4, 19, 20, 21, 60, 182, 400, 1024]

    /// Bytes in which the marker stands at every kind of place.
    @Sendable private static func randomBytes(_ random: inout SplitMix64) -> [UInt8] {
        let count = Int.random(in: 0...(sizes.randomElement(using: &random) ?? 0), using: &random)
        var bytes = random.bytes(count)
        for _ in 0..<Int.random(in: 0...4, using: &random) where count >= 3 {
            let at = Int.random(in: 0...count - 3, using: &random)
            bytes.replaceSubrange(at..<at + 3, with: "EOM".utf8)
        }
        return bytes
    }

    @Sendable private static func randomText(_ random: inout SplitMix64) -> String {
        let alphabet: [Character] = ["a", "E", "O", "M", "é", "\u{4E2D}", "\u{1F6A2}", "e\u{301}", "\n"]
        let count = Int.random(in: 0...(sizes.randomElement(using: &random) ?? 0), using: &random)
        return String((0..<count).map { _ in alphabet.randomElement(using: &random) ?? "x" })
    }

    @Sendable private static func randomRecord(_ random: inout SplitMix64) -> Record {
        Record(
            id: Int.random(in: -1_000_000...1_000_000, using: &random),
            name: String(randomText(&random).prefix(20)),
            values: (0..<Int.random(in: 0...5, using: &random)).map { _ in
                Double(Int.random(in: -1000...1000, using: &random)) / 8
            },
            tags: Dictionary(
                (0..<Int.random(in: 0...4, using: &random)).map { ("key\($0)", "EOM \($0)") }, uniquingKeysWith: { $1 }),
            note: Bool.random(using: &random) ? "EOM" : nil)
    }

    private enum AnyFraming: CaseIterable {
        case endOfMessage, endOfMessageText, varint, uint16Big, uint16Little, uint32Big, uint32Little

        var isTextOnly: Bool { self == .endOfMessageText }
        var minimumChunkSize: Int { self == .endOfMessage || self == .endOfMessageText ? 4 : 1 }

        func makeSession() throws -> any FramingSession {
            let limits = Limits()
            switch self {
            case .endOfMessage: return try EndOfMessageFraming(chunkSize: nil).makeSession(limits: limits)
            case .endOfMessageText:
                return try EndOfMessageFraming(chunkSize: nil, content: .text).makeSession(limits: limits)
            case .varint: return LengthPrefixFraming().makeSession(limits: limits)
            case .uint16Big: return LengthPrefixFraming(prefix: .uint16(.big)).makeSession(limits: limits)
            case .uint16Little: return LengthPrefixFraming(prefix: .uint16(.little)).makeSession(limits: limits)
            case .uint32Big: return LengthPrefixFraming(prefix: .uint32(.big)).makeSession(limits: limits)
            case .uint32Little: return LengthPrefixFraming(prefix: .uint32(.little)).makeSession(limits: limits)
            }
        }
    }

    /// Carries one payload through a sender's and a receiver's session, a chunk at a time.
    private static func carry(
        _ payload: [UInt8], from sender: inout any FramingSession, to receiver: inout any FramingSession,
        chunkSize: Int
    ) throws -> [UInt8] {
        try sender.enqueue(payload, as: MessageID(rawValue: 0), at: .zero)
        var outcome: Transmission
        repeat {
            outcome = try sender.transmit(atMost: chunkSize, at: .zero) { chunk throws(FerryError) in
                #expect(chunk.byteCount <= chunkSize)
                try receiver.receive(chunk, at: .zero)
                return true
            }
        } while outcome == .accepted
        while sender.nextEvent() != nil {}
        var received: [[UInt8]] = []
        while let event = receiver.nextEvent() {
            if case .received(let message) = event { received.append(message) }
        }
        try #require(received.count == 1)
        return received[0]
    }

    /// 7 framings x 6 codecs x 2 x 512 chunk sizes, less what text-only refuses, is 38 000 combinations. With `FERRY_FULL` each
    /// is tried three times, with a seed of its own; without, each framing meets each chunk size once at least.
    @Test(arguments: Array(AnyFraming.allCases.indices))
    func everyCombinationReturnsWhatWasSent(_ framingIndex: Int) throws {
        let framing = AnyFraming.allCases[framingIndex]
        let envelope = CompressionEnvelope(compression: ZlibCompression(level: .fastest), limits: Limits())
        var sender = try framing.makeSession()
        var receiver = try framing.makeSession()
        var cases = 0
        var turn = 0
        for (codingIndex, coding) in Self.codings.enumerated() {
            for isCompressed in [false, true] where !(framing.isTextOnly && (isCompressed || !coding.isText)) {
                let combination = (framingIndex * 8 + codingIndex) * 2 + (isCompressed ? 1 : 0)
                for round in 0..<Effort.of(1, full: 3) {
                    for chunkSize in framing.minimumChunkSize...512
                    where Effort.isFull || chunkSize <= 32 || chunkSize % 3 == turn % 3 {
                        let seed = UInt64((round * 128 + combination) * 1024 + chunkSize)
                        var random = SplitMix64(seed: seed)
                        let isSame = try coding.roundTrip(&random) { encoded in
                            let payload = isCompressed ? try envelope.wrap(encoded) : encoded
                            let carried = try Self.carry(payload, from: &sender, to: &receiver, chunkSize: chunkSize)
                            return isCompressed ? try envelope.unwrap(carried) : carried
                        }
                        #expect(isSame, "\(framing) \(coding.name) compressed: \(isCompressed) seed \(seed)")
                        cases += 1
                    }
                }
                turn += 1
            }
        }
        // Together more than 100 000 with `FERRY_FULL`, and 13 000 without.
        let least = framing.isTextOnly ? 4500 : 18_000
        #expect(cases >= Effort.of(least / 8, full: least))
    }

    @Test func textOnlyFramingRefusesCompressedPayloads() throws {
        var session = try AnyFraming.endOfMessageText.makeSession()
        let envelope = CompressionEnvelope(compression: ZlibCompression(), limits: Limits())
        let payload = try envelope.wrap([UInt8](repeating: 0x61, count: 1000))
        #expect { try session.enqueue(payload, as: MessageID(rawValue: 0), at: .zero) } throws: {
            ($0 as? FerryError)?.code == .notText
        }
    }

    @Test(arguments: [1 << 16, (1 << 20) - 1, 1 << 20])
    func largeMessagesSurviveEveryFraming(_ count: Int) throws {
        var random = SplitMix64(seed: UInt64(count))
        let compressible = Array(
            repeatElement(Array("Ferry ferries EOM ".utf8), count: count / 18 + 1).joined().prefix(count))
        let envelope = CompressionEnvelope(compression: ZlibCompression(), limits: Limits())
        let chunkSizes = count > 1 << 16 ? Effort.of([512], full: [20, 182, 512]) : [20, 182, 512]
        for plain in [random.bytes(count), compressible] {
            let payload = try envelope.wrap(plain)
            for framing in AnyFraming.allCases where !framing.isTextOnly {
                for chunkSize in chunkSizes {
                    var sender = try framing.makeSession()
                    var receiver = try framing.makeSession()
                    if payload.count > 65_535, framing == .uint16Big || framing == .uint16Little { continue }
                    let carried = try Self.carry(payload, from: &sender, to: &receiver, chunkSize: chunkSize)
                    let isSame = try envelope.unwrap(carried) == plain
                    #expect(isSame)
                }
            }
        }
    }
}
