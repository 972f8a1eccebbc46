public import Ferry

/// Checks a ``/Ferry/Codec`` against its contract, in any test library:
///
/// ```swift
/// @Test func conforms() throws {
///     try CodecConformance(JSONCodec<Card>(), samples: [.empty, .full]).check()
/// }
/// ```
///
/// ``checkGenerated(_:by:)`` adds messages that are made from a seed, and ``GeneratedMessage`` has values of all kinds for
/// Codable formats.
///
/// A trap or a hang cannot be caught and ends the test run; that is a failure too.
public struct CodecConformance<C: Codec> where C.Message: Equatable {
    let codec: C
    let samples: [C.Message]
    private let refusesForeignBytes: Bool
    private let isDeterministic: Bool
    let seed: UInt64

    /// Makes the kit.
    ///
    /// - Parameters:
    ///   - codec: the codec to be checked.
    ///   - samples: messages that it must carry; some small ones and some that use every feature.
    ///   - refusesForeignBytes: whether the codec can tell bytes that are not one of its messages: empty payloads and
    ///     payloads cut short must then be refused. Not so for raw bytes and text.
    ///   - isDeterministic: whether the same message must always become the same bytes.
    ///   - seed: of the damaged payloads; a failure names it.
    public init(
        _ codec: C, samples: [C.Message], refusesForeignBytes: Bool = true, isDeterministic: Bool = true,
        seed: UInt64 = 1
    ) {
        self.codec = codec
        self.samples = samples
        self.refusesForeignBytes = refusesForeignBytes
        self.isDeterministic = isDeterministic
        self.seed = seed
    }

    /// Runs all checks.
    ///
    /// - Throws: ``ConformanceFailure`` for the first requirement that is not met.
    public func check() throws(ConformanceFailure) {
        for (index, sample) in samples.enumerated() {
            let payload = try checkRoundTrip(sample, index)
            try checkTruncation(sample, payload, index)
            try checkExcess(sample, payload, index)
            try checkDamage(payload, index)
        }
        try checkForeignBytes()
    }

    func checkRoundTrip(_ sample: C.Message, _ index: Int) throws(ConformanceFailure) -> [UInt8] {
        let payload: [UInt8]
        do { payload = try codec.encode(sample) } catch {
            throw ConformanceFailure("Every sample can be encoded", "sample \(index): \(error)")
        }
        let decoded: C.Message
        do { decoded = try codec.decode(payload) } catch {
            throw ConformanceFailure("An encoded message can be decoded", "sample \(index): \(error)")
        }
        guard decoded == sample else {
            throw ConformanceFailure("A message survives the round trip", "sample \(index) became \(decoded)")
        }
        if isDeterministic {
            for message in [sample, decoded] where (try? codec.encode(message)) != payload {
                throw ConformanceFailure("The same message becomes the same bytes", "sample \(index) did not")
            }
        }
        return payload
    }

    /// A proper beginning of a payload is refused, unless the missing end means nothing (white space).
    private func checkTruncation(
        _ sample: C.Message, _ payload: [UInt8], _ index: Int
    ) throws(ConformanceFailure) {
        let step = max(1, payload.count / 512)
        for count in stride(from: 0, to: payload.count, by: step) {
            let decoded = try? codec.decode(Array(payload.prefix(count)))
            if refusesForeignBytes, let decoded, decoded != sample {
                throw ConformanceFailure(
                    "A payload cut short is refused",
                    "sample \(index), cut to \(count) of \(payload.count) bytes, became \(decoded)")
            }
        }
    }

    /// What follows a message in its payload is not passed over: two sides that disagree about it must notice.
    private func checkExcess(_ sample: C.Message, _ payload: [UInt8], _ index: Int) throws(ConformanceFailure) {
        for excess in [[0], [0x41], [0xFF], [0x5D, 0x7D], [0, 0, 0, 0], payload] where !excess.isEmpty {
            guard let decoded = try? codec.decode(payload + excess), decoded == sample else { continue }
            throw ConformanceFailure(
                "Bytes after the message are refused",
                "sample \(index) of \(payload.count) bytes, with \(excess.prefix(8)) after it, became the same message")
        }
    }

    /// Damaged payloads may be decoded to anything or refused; they must not trap, neither then nor when the message is
    /// printed. A message that they are decoded to can be sent on, or is refused.
    private func checkDamage(_ payload: [UInt8], _ index: Int) throws(ConformanceFailure) {
        guard !payload.isEmpty else { return }
        var random = SplitMix64(seed: seed &+ UInt64(index))
        for _ in 0..<500 {
            var damaged = payload
            for _ in 0..<Int.random(in: 1...3, using: &random) {
                damaged[Int.random(in: 0..<damaged.count, using: &random)] = UInt8(truncatingIfNeeded: random.next())
            }
            // A message with a number that is not a number does not equal itself.
            guard let message = try? codec.decode(damaged), message == message else { continue }
            _ = "\(message)"
            try checkAcceptedSurvives(message, "decoded from sample \(index) with damage, seed \(seed)")
        }
    }

    private func checkForeignBytes() throws(ConformanceFailure) {
        var random = SplitMix64(seed: ~seed)
        var foreign: [[UInt8]] = [[], [0], [0xFF], Array(repeating: 0, count: 64), Array(repeating: 0xFF, count: 64)]
        for count in [1, 2, 3, 7, 16, 41, 256, 4096] { foreign.append(random.bytes(count)) }
        for payload in foreign {
            guard let decoded = try? codec.decode(payload), refusesForeignBytes else { continue }
            throw ConformanceFailure(
                "Bytes that are not a message are refused",
                "\(payload.count) bytes (\(payload.prefix(8))..., seed \(seed)) became \(decoded)")
        }
    }
}
