public import Ferry

extension Workload {
    /// A session receives every chunk; after each its owner asks for events and the deadline, as a channel does.
    public static func ferryDecode(_ name: String, _ framing: some Framing, _ stream: ChunkStream) -> Workload {
        Workload(name, chunksPerPass: stream.chunkCount, bytesPerPass: stream.payloadBytes) { passes in
            var session = framing.makeSession(limits: .wide)
            var deadlines = 0
            let outcome = try measure(passes) {
                var delivered = 0
                var start = 0
                let bytes = stream.bytes.span.bytes
                for end in stream.ends {
                    try session.receive(bytes.extracting(start..<end), at: .zero)
                    start = end
                    while let event = session.nextEvent() {
                        if case .received(let message) = event { delivered += message.count }
                    }
                    if session.deadline != nil { deadlines &+= 1 }
                }
                return delivered
            }
            precondition(deadlines >= 0)
            return outcome
        }
    }

    /// A session sends messages into a link that copies each chunk, as a link must.
    public static func ferryEncode(
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
