public import Ferry

extension CodecConformance {
    /// Checks the codec with generated messages, most of which a codec need not accept: what `encode` accepts, `decode` must
    /// return equal.
    ///
    /// A codec that throws for all of them would pass, so the samples are required to be accepted first.
    ///
    /// - Parameters:
    ///   - count: how many messages are generated.
    ///   - generate: makes a message, by the random numbers that it is given; a failure names the seed and the message.
    /// - Throws: ``ConformanceFailure`` for the first requirement that is not met.
    public func checkGenerated(
        _ count: Int, by generate: (inout SplitMix64) -> C.Message
    ) throws(ConformanceFailure) {
        for (index, sample) in samples.enumerated() { _ = try checkRoundTrip(sample, index) }
        var random = SplitMix64(seed: seed)
        for index in 0..<count {
            try checkAcceptedSurvives(generate(&random), "generated message \(index), seed \(seed)")
        }
    }

    /// An accepted message arrives equal. A codec may refuse it instead.
    func checkAcceptedSurvives(_ message: C.Message, _ name: String) throws(ConformanceFailure) {
        guard let payload = try? codec.encode(message) else { return }
        let decoded: C.Message
        do { decoded = try codec.decode(payload) } catch {
            throw ConformanceFailure(
                "An encoded message can be decoded", "\(name), \("\(message)".prefix(500)): \(error)")
        }
        guard decoded == message else {
            throw ConformanceFailure(
                "A message survives the round trip",
                "\(name), \("\(message)".prefix(500)), became \("\(decoded)".prefix(500))")
        }
    }
}

extension CodecConformance where C.Message == GeneratedMessage {
    /// Checks the codec with ``GeneratedMessage/edges``, and with random messages.
    ///
    /// - Parameter count: how many random messages there are.
    /// - Throws: ``ConformanceFailure`` for the first requirement that is not met; it names the message, and the seed of a
    ///   random one.
    public func checkGenerated(_ count: Int = 1000) throws(ConformanceFailure) {
        do { _ = try codec.encode(.ordinary()) } catch {
            throw ConformanceFailure("Ordinary values can be encoded", "\(error)")
        }
        for (index, edge) in GeneratedMessage.edges.enumerated() {
            try checkAcceptedSurvives(edge, "GeneratedMessage.edges[\(index)]")
        }
        try checkGenerated(count) { GeneratedMessage.random(using: &$0) }
    }
}
