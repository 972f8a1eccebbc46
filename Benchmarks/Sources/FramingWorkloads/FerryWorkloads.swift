public import Ferry

extension Workload {
    /// The length-prefix framing's session receives every chunk.
    public static func decode(_ name: String, _ framing: LengthPrefixFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    /// The end-of-message framing's session receives every chunk.
    public static func decode(_ name: String, _ framing: EndOfMessageFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    /// After each chunk the session is asked for events, as a channel asks.
    @inline(__always)
    private static func ferryDecode(_ name: String, _ framing: some Framing, _ stream: ChunkStream) -> Workload {
        Workload(name, chunksPerPass: stream.chunkCount, bytesPerPass: stream.payloadBytes) { passes in
            var session = framing.makeSession(limits: .wide)
            return try measure(passes) {
                var delivered = 0
                var start = 0
                let bytes = stream.bytes.span.bytes
                let ends = stream.ends.span
                for index in ends.indices {
                    let end = ends[index]
                    try session.receive(bytes.extracting(start..<end), at: .zero)
                    start = end
                    while let event = session.nextEvent() {
                        if case .received(let message) = event { delivered += message.count }
                    }
                }
                return delivered
            }
        }
    }

    /// The length-prefix framing's session sends messages.
    public static func encode(
        _ name: String, _ framing: LengthPrefixFraming, messageSize: Int, messageCount: Int, chunkSize: Int
    ) throws(FerryError) -> Workload {
        try ferryEncode(name, framing, messageSize: messageSize, messageCount: messageCount, chunkSize: chunkSize)
    }

    /// The end-of-message framing's session sends messages.
    public static func encode(
        _ name: String, _ framing: EndOfMessageFraming, messageSize: Int, messageCount: Int, chunkSize: Int
    ) throws(FerryError) -> Workload {
        try ferryEncode(name, framing, messageSize: messageSize, messageCount: messageCount, chunkSize: chunkSize)
    }

    /// The link copies each chunk, as a link must.
    @inline(__always)
    private static func ferryEncode(
        _ name: String, _ framing: some Framing, messageSize: Int, messageCount: Int, chunkSize: Int
    ) throws(FerryError) -> Workload {
        let stream = try ChunkStream(
            framing, messageSize: messageSize, messageCount: messageCount, chunkSize: chunkSize)
        let messages = (0..<messageCount).map { ChunkStream.message($0, messageSize) }
        return Workload(name, chunksPerPass: stream.chunkCount, bytesPerPass: stream.bytes.count) { passes in
            var session = framing.makeSession(limits: .wide)
            let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: chunkSize, alignment: 16)
            defer { slot.deallocate() }
            return try measure(passes) {
                var accepted = 0
                for (index, message) in messages.enumerated() {
                    try session.enqueue(message, as: MessageID(rawValue: UInt64(index)), at: .zero)
                }
                while try session.transmit(
                    atMost: chunkSize, at: .zero,
                    { (chunk) throws(FerryError) in
                        chunk.withUnsafeBytes { slot.copyMemory(from: $0) }
                        accepted += chunk.byteCount
                        return true
                    }) == .accepted
                {
                    while session.nextEvent() != nil {}
                }
                return accepted
            }
        }
    }

    /// The floor: each chunk of the stream copied behind the one before, into one buffer that is used again.
    public static func copy(_ name: String, _ stream: ChunkStream) -> Workload {
        Workload(name, chunksPerPass: stream.chunkCount, bytesPerPass: stream.bytes.count) { passes in
            let capacity = stream.messageSize + 2 * stream.chunkSize
            let target = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
            defer { target.deallocate() }
            return measure(passes) {
                stream.bytes.withUnsafeBytes { bytes in
                    var start = 0
                    var filled = 0
                    for end in stream.ends {
                        if filled + (end - start) > stream.messageSize { filled = 0 }
                        let chunk = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                        copyChunk(UnsafeMutableRawBufferPointer(rebasing: target[filled...]), chunk)
                        filled += end - start
                        start = end
                    }
                }
                return stream.bytes.count
            }
        }
    }
}

/// Kept out of line, so that the copy is made for chunks of any size and cannot be left out.
@inline(never)
private func copyChunk(_ target: UnsafeMutableRawBufferPointer, _ source: UnsafeRawBufferPointer) {
    target.copyMemory(from: source)
}
