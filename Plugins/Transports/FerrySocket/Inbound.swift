import Ferry

/// Bytes that were read from a socket and not yet delivered, as chunks. Used on the connection's queue alone, which is what makes it
/// safe to send.
final class Inbound: @unchecked Sendable {
    enum Next {
        case chunk(UnsafeRawBufferPointer)
        case nothing
        case malformed(FerryError)
    }

    private let kind: Descriptor.Kind
    private let buffer: UnsafeMutableRawBufferPointer
    private var stream = ChunkStream()
    /// The length of the packet in the buffer.
    private var packet = 0
    private var hasNotedReset = false

    init(_ kind: Descriptor.Kind) {
        self.kind = kind
        let capacity = kind == .packets ? SocketConfiguration.largestChunk : ChunkStream.capacity
        buffer = .allocate(byteCount: capacity, alignment: 16)
    }

    deinit { buffer.deallocate() }

    /// Where to read to.
    var room: UnsafeMutableRawBufferPointer {
        guard kind == .stream else { return buffer }
        stream.compact(buffer)
        return UnsafeMutableRawBufferPointer(rebasing: buffer[stream.room])
    }

    /// So much was read. Returns why that cannot be, if it cannot.
    func didRead(_ count: Int) -> FerryError? {
        if kind == .stream {
            stream.didRead(count)
            return nil
        }
        guard count <= buffer.count else {
            return FerryError(
                .malformedStream,
                "A packet of \(count) bytes came; a chunk has at most \(buffer.count). The peer does not speak this format."
            )
        }
        packet = count
        return nil
    }

    func next() -> Next {
        guard kind == .stream else {
            defer { packet = 0 }
            return packet > 0 ? .chunk(UnsafeRawBufferPointer(rebasing: buffer[..<packet])) : .nothing
        }
        switch stream.next(UnsafeRawBufferPointer(buffer)) {
        case .chunk(let range): return .chunk(UnsafeRawBufferPointer(rebasing: buffer[range]))
        case .incomplete: return .nothing
        case .empty:
            return .malformed(
                FerryError(
                    .malformedStream,
                    "A chunk of length 0 came, which there is not. The peer does not speak this format."))
        }
    }

    /// Discards the undelivered bytes.
    func discard() {
        stream = ChunkStream()
        packet = 0
    }

    /// Whether this is the first time that an abrupt end is told.
    func notesReset() -> Bool {
        defer { hasNotedReset = true }
        return !hasNotedReset
    }
}
