/// Puts the bytes of one received message after the other together, each in an array of its own.
///
/// Memory follows the bytes that have arrived, never a claim alone: at most ``firstCapacity`` is taken before the first
/// byte. Beyond it capacity grows fourfold at a time, so that little is copied twice and no more than an eighth of the
/// message exists twice; pages that are not written to cost no memory.
struct MessageAssembler: Sendable {
    /// The most that is taken on a claim, and the most that is kept between messages. 64 KiB.
    static let firstCapacity = 64 << 10

    private var buffer: [UInt8] = []
    /// The number of bytes the message can have at most: what was announced, or the limit.
    private var bound: Int
    /// The size of the message before, the best guess for the next one when nothing is announced.
    private var previousCount = 0

    init(bound: Int) { self.bound = bound }

    /// The number of bytes put together so far.
    var count: Int { buffer.count }

    /// Begins a message of `count` bytes, no more and no fewer.
    mutating func begin(expecting count: Int) {
        bound = count
        buffer.reserveCapacity(min(count, Self.firstCapacity))
    }

    /// Adds bytes. The caller keeps the total within the bound.
    @inline(__always)
    mutating func append(_ bytes: RawSpan) {
        let needed = buffer.count &+ bytes.byteCount
        if needed > buffer.capacity { grow(toHold: needed) }
        buffer.append(addingCapacity: bytes.byteCount) { free in
            free.withUnsafeMutableBufferPointer { target, initializedCount in
                bytes.withUnsafeBytes { UnsafeMutableRawBufferPointer(target).copyMemory(from: $0) }
                initializedCount = bytes.byteCount
            }
        }
    }

    /// Hands over the message, which has the announced number of bytes.
    mutating func takeExpected() -> [UInt8] {
        defer { buffer = [] }
        return buffer
    }

    /// Hands over the message, whose number of bytes was not known before.
    ///
    /// An array much larger than its message is kept for the next one and the message copied out, so that many small
    /// messages waiting to be read take the memory of small messages.
    mutating func takeUnannounced() -> [UInt8] {
        previousCount = min(buffer.count, Self.firstCapacity)
        guard buffer.count <= Self.firstCapacity, buffer.capacity / 2 > buffer.count else { return takeExpected() }
        let message = buffer.withUnsafeBytes { [UInt8]($0) }
        buffer.removeAll(keepingCapacity: true)
        return message
    }

    @inline(never)
    private mutating func grow(toHold needed: Int) {
        let (fourfold, overflow) = buffer.capacity.multipliedReportingOverflow(by: 4)
        let next =
            if buffer.isEmpty {
                max(previousCount, 256)
            } else if buffer.capacity < Self.firstCapacity {
                min(fourfold, Self.firstCapacity)
            } else {
                overflow ? bound : fourfold
            }
        buffer.reserveCapacity(max(needed, min(next, bound)))
    }
}

/// Notices silence in the middle of a message.
struct StallDetector: Sendable {
    private let timeout: Int64
    private var lastArrival = Timestamp.zero

    init(timeout: Duration) { self.timeout = timeout.wholeNanoseconds }

    mutating func chunkArrived(at now: Timestamp) { lastArrival = now }

    /// When the silence has lasted too long, held at ``Timestamp/distantFuture``.
    var deadline: Timestamp {
        let (sum, overflow) = lastArrival.nanoseconds.addingReportingOverflow(timeout)
        return overflow ? .distantFuture : Timestamp(nanoseconds: sum)
    }
}
