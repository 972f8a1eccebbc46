import Ferry
import FerryLab
import FoundationEssentials

/// What the two processes of `ferry bench --serve` and `--connect` say to one another: a byte for the kind, and then what
/// belongs to it.
enum PairMessage: Equatable, Sendable {
    /// From the connecting side: measure this next.
    case run(Run)
    /// Filler, of which the receiver counts the bytes.
    case data(count: Int)
    /// From the sender: that was all. From the connecting side in place of a run: end the connection.
    case end
    /// From the receiver: the arrivals.
    case result(Result)
    /// Comes back as it is.
    case ping

    /// One measurement.
    struct Run: Codable, Equatable, Sendable {
        /// Who sends: `notify` is the serving side.
        var direction: DirectionChoice
        /// Bytes of a message, 1 to 1 MiB.
        var messageSize: Int
        /// For how long, 0.1 to 3600.
        var seconds: Double

        static let sizes = 1...(1 << 20)
        static let times = 0.1...3600.0
    }

    /// What a receiver has counted.
    struct Result: Codable, Equatable, Sendable {
        var messages: Int
        var bytes: Int
        /// From the moment before the first message could come to the last one's arrival.
        var seconds: Double

        /// In kbit/s of 1000 bits.
        var goodput: Double { seconds > 0 ? Double(bytes) * 8 / seconds / 1000 : 0 }
    }

    /// Whether it asks for a measurement.
    var isRun: Bool { if case .run = self { true } else { false } }

    private static let maximumBody = 1024

    /// - Throws: `malformedMessage`.
    init(_ bytes: [UInt8]) throws(FerryError) {
        switch bytes.first {
        case 0:
            let run: Run = try Self.body(bytes)
            guard Run.sizes.contains(run.messageSize), Run.times.contains(run.seconds) else { throw Self.malformed }
            self = .run(run)
        case 1: self = .data(count: bytes.count)
        case 2 where bytes.count == 1: self = .end
        case 3:
            let result: Result = try Self.body(bytes)
            guard result.messages >= 0, result.bytes >= 0, result.seconds >= 0, result.seconds.isFinite else {
                throw Self.malformed
            }
            self = .result(result)
        case 4 where bytes.count == 1: self = .ping
        default: throw Self.malformed
        }
    }

    private static func body<Value: Decodable>(_ bytes: [UInt8]) throws(FerryError) -> Value {
        guard bytes.count <= maximumBody else { throw malformed }
        do { return try JSONDecoder().decode(Value.self, from: Data(bytes.dropFirst())) } catch { throw malformed }
    }

    private static let malformed = FerryError(
        .decodingFailed,
        "What the other side says is none of ferry bench's messages. Run the same version on both sides, with the same "
            + "--framing, one with --serve and the other with --connect.")

    /// The message's bytes; of data all of them are filler but the first.
    func encoded(filler: [UInt8] = []) -> [UInt8] {
        switch self {
        case .run(let run): Self.message(0, run)
        case .data(let count): [1] + filler.prefix(max(0, count - 1))
        case .end: [2]
        case .result(let result): Self.message(3, result)
        case .ping: [4]
        }
    }

    private static func message<Value: Encodable>(_ kind: UInt8, _ value: Value) -> [UInt8] {
        // Numbers that are not finite are kept out by the ranges above.
        [kind] + ((try? JSONEncoder().encode(value)) ?? Data())
    }
}

extension PairMeter {
    var result: PairMessage.Result { PairMessage.Result(messages: messages, bytes: bytes, seconds: seconds) }
}
