public import Ferry

private let messageSize = 16 << 10
private let messageCount = 16

/// The framings' decoders, each with the stream of 16 messages of 16 KiB in its format.
public func decoders(_ chunkSize: Int) throws -> [Workload] {
    let endOfMessage = EndOfMessageFraming.unlimited
    let varint = LengthPrefixFraming()
    let fixed = LengthPrefixFraming(prefix: .uint32(.big))
    return [
        .decode("decode length, varint", varint, try bigStream(varint, chunkSize)),
        .decode("decode length, 4 bytes", fixed, try bigStream(fixed, chunkSize)),
        .decode("decode eom", endOfMessage, try bigStream(endOfMessage, chunkSize)),
    ]
}

/// The framings' encoders for the same messages.
public func encoders(_ chunkSize: Int) throws -> [Workload] {
    let endOfMessage = EndOfMessageFraming.unlimited
    return [
        .encode("encode length, varint", LengthPrefixFraming(), try bigStream(LengthPrefixFraming(), chunkSize)),
        .encode("encode eom", endOfMessage, try bigStream(endOfMessage, chunkSize)),
    ]
}

/// 16 messages of 16 KiB.
public func bigStream(_ framing: some Framing, _ chunkSize: Int, _ content: StreamContent = .bytes) throws
    -> ChunkStream
{
    try ChunkStream(
        framing, messageSize: messageSize, messageCount: messageCount, chunkSize: chunkSize, content: content)
}

extension EndOfMessageFraming {
    /// Chunks as large as the link takes.
    public static var unlimited: EndOfMessageFraming {
        guard let framing = try? EndOfMessageFraming(chunkSize: nil) else { fatalError("refused") }
        return framing
    }
}
