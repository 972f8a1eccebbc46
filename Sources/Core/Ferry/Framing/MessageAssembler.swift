/// Assembles the bytes of received messages, one message after the other, each in its own array: for framings.
///
/// Say what a message has at most when it begins, with ``begin(expecting:)`` or once with ``init(bound:)``, after checking it
/// against ``Limits/maximumMessageSize``; then add what arrives and take the whole.
///
/// Memory follows the bytes that have arrived, never a claim alone. A message begins with at most 64 KiB, or with the
/// size of the message before, up to 1 MiB. Beyond it capacity grows twelvefold at a time: to 768 KiB, 9 MiB and 108
/// MiB, or to the bound if that is less. Pages that are not written to cost no memory, and little is copied twice. The
/// steps are so far apart because an allocator may keep the outgrown arrays: with these steps they add up to less than
/// 16 MiB for any message.
public struct MessageAssembler: Sendable {
    /// The most that is taken because a message is announced as large. 64 KiB.
    private static let firstCapacity = 64 << 10
    /// The most that is taken because the message before was as large. 1 MiB.
    private static let largestGuess = 1 << 20
    /// The largest message that is copied out of an array much larger. 8 MiB.
    private static let largestCopy = 8 << 20

    @usableFromInline var buffer: [UInt8] = []
    /// The largest size that the message can have, in bytes: the announced one, or the limit.
    private var bound: Int
    /// The size of the message before, the best guess for the next one when nothing is announced.
    private var previousCount = 0

    /// Expects a message of at most `bound` bytes, and others after it until ``begin(expecting:)`` says otherwise.
    public init(bound: Int) { self.bound = bound }

    /// The number of bytes put together so far.
    @inlinable public var count: Int { buffer.count }

    /// Lends the bytes assembled until now, for the time of the call.
    public func withBytes(_ body: (UnsafeRawBufferPointer) -> Void) { buffer.withUnsafeBytes(body) }

    /// Begins a message of `count` bytes, no more and no fewer.
    public mutating func begin(expecting count: Int) {
        bound = count
        buffer.reserveCapacity(min(count, Self.firstCapacity))
    }

    /// Adds bytes. The caller keeps the total within the bound.
    @inlinable @inline(__always)
    public mutating func append(_ bytes: RawSpan) {
        let needed = buffer.count &+ bytes.byteCount
        if needed > buffer.capacity { grow(toHold: needed) }
        buffer.append(addingCapacity: bytes.byteCount) { free in
            free.withUnsafeMutableBufferPointer { target, initializedCount in
                bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(target).copyMemory(from: $0) }
                initializedCount = bytes.byteCount
            }
        }
    }

    /// Adds what `body` writes, for formats whose bytes are not the message's. The caller keeps the total within the bound.
    ///
    /// - Parameters:
    ///   - count: the most that may be added.
    ///   - body: writes from the begin of the buffer, which has `count` bytes without a value, and returns how many.
    @inlinable @inline(__always)
    public mutating func append(atMost count: Int, writing body: (UnsafeMutableRawBufferPointer) -> Int) {
        let needed = buffer.count &+ count
        if needed > buffer.capacity { grow(toHold: needed) }
        buffer.append(addingCapacity: count) { free in
            free.withUnsafeMutableBufferPointer { target, initializedCount in
                initializedCount = body(
                    UnsafeMutableRawBufferPointer(rebasing: UnsafeMutableRawBufferPointer(target)[..<count]))
            }
        }
    }

    /// Hands over the message, which has the announced number of bytes.
    public mutating func takeExpected() -> [UInt8] {
        defer { buffer = [] }
        return buffer
    }

    /// Hands over the message, whose number of bytes was not known before.
    ///
    /// Out of an array more than twice its size a message is copied, so that messages waiting to be read take the memory
    /// that they are counted as. Only the largest are handed over as they are: copying would double the peak, and what
    /// their arrays have too much are pages that were never written to.
    public mutating func takeUnannounced() -> [UInt8] {
        previousCount = min(buffer.count, Self.largestGuess)
        guard buffer.count <= Self.largestCopy, buffer.capacity / 2 > buffer.count else { return takeExpected() }
        defer { buffer = [] }
        return buffer.withUnsafeBytes { [UInt8]($0) }
    }

    @usableFromInline @inline(never)
    mutating func grow(toHold needed: Int) {
        let next: Int
        if buffer.isEmpty {
            next = max(previousCount, 256)
        } else if buffer.capacity < Self.firstCapacity {
            next = min(2 * buffer.capacity, Self.firstCapacity)
        } else {
            let (twelvefold, overflow) = buffer.capacity.multipliedReportingOverflow(by: 12)
            next = overflow ? bound : twelvefold
        }
        buffer.reserveCapacity(max(needed, min(next, bound)))
    }
}
