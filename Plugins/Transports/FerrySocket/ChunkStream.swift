/// Chunks in a stream of bytes: each after its length, 2 bytes, the more significant first (`Documentation/Formats.md`).
///
/// A value without I/O over a buffer that it owns the use of: the shell reads into ``room``, says how much came, and takes
/// the chunks that are whole.
struct ChunkStream {
    /// Bytes before each chunk.
    static let lengthBytes = 2
    /// Room for the longest chunk, and as much again, so that few reads end within one.
    static let capacity = 2 * (lengthBytes + SocketConfiguration.largestChunk)

    /// The next item in the buffered bytes.
    enum Next: Equatable {
        /// The chunk at these offsets of the buffer.
        case chunk(Range<Int>)
        /// The rest has not come yet.
        case incomplete
        /// A chunk without bytes, which there is not: the stream is out of step, or of something else.
        case empty
    }

    private var start = 0
    private var end = 0

    /// Where to read to. Never empty after ``next(_:)`` has said `incomplete` and ``compact(_:)`` was called.
    var room: Range<Int> { end..<Self.capacity }

    /// Notes `count` bytes that were read into ``room``.
    mutating func didRead(_ count: Int) { end += count }

    /// The next whole chunk, which counts as taken.
    mutating func next(_ buffer: UnsafeRawBufferPointer) -> Next {
        guard end - start >= Self.lengthBytes else { return .incomplete }
        let count = Int(buffer[start]) << 8 | Int(buffer[start + 1])
        guard count > 0 else { return .empty }
        let first = start + Self.lengthBytes
        guard end - first >= count else { return .incomplete }
        start = first + count
        return .chunk(first..<start)
    }

    /// Moves the unread bytes to the beginning, where that makes room for the largest chunk.
    mutating func compact(_ buffer: UnsafeMutableRawBufferPointer) {
        if start == end {
            start = 0
            end = 0
        } else if start > Self.capacity / 2 {
            let left = UnsafeRawBufferPointer(rebasing: buffer[start..<end])
            buffer.copyMemory(from: left)
            end -= start
            start = 0
        }
    }

    /// The header of a chunk of `count` bytes.
    static func length(_ count: Int) -> (UInt8, UInt8) {
        (UInt8(truncatingIfNeeded: count >> 8), UInt8(truncatingIfNeeded: count))
    }
}
