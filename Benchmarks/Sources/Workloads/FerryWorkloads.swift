public import Ferry

extension Workload {
    // One function per framing, so that each is compiled for its own session.

    /// The length-prefix framing's session receives every chunk.
    public static func decode(_ name: String, _ framing: LengthPrefixFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    /// The end-of-message framing's session receives every chunk.
    public static func decode(_ name: String, _ framing: EndOfMessageFraming, _ stream: ChunkStream) -> Workload {
        ferryDecode(name, framing, stream)
    }

    /// The length-prefix framing's session sends the stream's messages.
    public static func encode(_ name: String, _ framing: LengthPrefixFraming, _ stream: ChunkStream) -> Workload {
        ferryEncode(name, framing, stream)
    }

    /// The end-of-message framing's session sends the stream's messages.
    public static func encode(_ name: String, _ framing: EndOfMessageFraming, _ stream: ChunkStream) -> Workload {
        ferryEncode(name, framing, stream)
    }

    /// After each chunk the session is asked for events, as a channel asks.
    @inline(__always)
    static func ferryDecode(_ name: String, _ framing: some Framing, _ stream: ChunkStream) -> Workload {
        Workload(name, stream) { passes in
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

    /// The link copies each chunk, as a link must.
    @inline(__always)
    private static func ferryEncode(_ name: String, _ framing: some Framing, _ stream: ChunkStream) -> Workload {
        let messages = (0..<stream.messageCount).map { ChunkStream.message($0, stream.messageSize) }
        return Workload(name, stream) { passes in
            var session = framing.makeSession(limits: .wide)
            let slot = UnsafeMutableRawBufferPointer.allocate(byteCount: stream.chunkSize, alignment: 16)
            defer { slot.deallocate() }
            return try measure(passes) {
                var sent = 0
                for (index, message) in messages.enumerated() {
                    try session.enqueue(message, as: MessageID(rawValue: UInt64(index)), at: .zero)
                }
                while try session.transmit(
                    atMost: stream.chunkSize, at: .zero,
                    { (chunk) throws(FerryError) in
                        chunk.withUnsafeBytes { slot.copyMemory(from: $0) }
                        return true
                    }) == .accepted
                {
                    while let event = session.nextEvent() {
                        if case .sent = event { sent += stream.messageSize }
                    }
                }
                return sent
            }
        }
    }

    /// The floor: each chunk of the stream copied behind the one before, into one buffer that is used again.
    public static func copy(_ name: String, _ stream: ChunkStream) -> Workload {
        Workload(name, stream) { passes in
            let capacity = stream.messageSize + 2 * stream.chunkSize
            let target = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
            defer { target.deallocate() }
            return measure(passes) {
                copyChunks(stream, into: target)
                return stream.payloadBytes
            }
        }
    }

    /// The floor of messages that are bytes of their own: as ``copy(_:_:)``, into memory taken anew for each message.
    public static func copyIntoNewMemory(_ name: String, _ stream: ChunkStream) -> Workload {
        precondition(stream.messageCount == 1)
        return Workload(name, stream) { passes in
            measure(passes) {
                let capacity = stream.messageSize + 2 * stream.chunkSize
                let target = UnsafeMutableRawBufferPointer.allocate(byteCount: capacity, alignment: 16)
                defer { target.deallocate() }
                copyChunks(stream, into: target)
                return stream.payloadBytes
            }
        }
    }

    private static func copyChunks(_ stream: ChunkStream, into target: UnsafeMutableRawBufferPointer) {
        stream.bytes.withUnsafeBytes { bytes in
            var start = 0
            var filled = 0
            for end in stream.ends {
                if filled + (end - start) > stream.messageSize + stream.chunkSize { filled = 0 }
                let chunk = UnsafeRawBufferPointer(rebasing: bytes[start..<end])
                copyChunk(UnsafeMutableRawBufferPointer(rebasing: target[filled...]), chunk)
                filled += end - start
                start = end
            }
        }
    }
}

/// Kept out of line, so that the copy is made for chunks of any size and cannot be left out.
@inline(never)
private func copyChunk(_ target: UnsafeMutableRawBufferPointer, _ source: UnsafeRawBufferPointer) {
    target.copyMemory(from: source)
}
