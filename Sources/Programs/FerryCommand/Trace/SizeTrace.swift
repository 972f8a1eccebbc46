/// Finds where one side goes on with values of 20 bytes after a stall or a lost connection, as Ferry's GATT links do.
struct SizeTrace {
    private enum Phase {
        /// The longest chunk since the link began or stalled, in bytes.
        case usual(longest: Int)
        /// After a stall or a new link: the longest chunk of before and since, and how many came.
        case watched(before: Int, longest: Int, chunks: Int, full: Int)
        /// Told; the longest chunk before.
        case limited(before: Int)
    }

    private var phase = Phase.usual(longest: 0)
    private var last: Double?

    /// The size that every peer takes, in bytes.
    private static let smallest = 20
    /// A pause from here on may be a stall, in milliseconds.
    private static let stall = 5000.0
    /// Chunks that are looked at before it is told; half of them must be of the smallest size exactly.
    private static let window = 16

    /// A link begins, after another one or as the first.
    mutating func begin() {
        last = nil
        watch()
    }

    /// The clock was set.
    mutating func clockWasSet() { last = nil }

    /// The lines before this chunk; `nil` for none.
    mutating func chunk(_ byteCount: Int, at time: Double?) -> String? {
        if let time, let last, time - last >= Self.stall { watch() }
        last = time ?? last
        switch phase {
        case .usual(let longest): phase = .usual(longest: max(longest, byteCount))
        case .watched(let before, let longest, _, _) where byteCount > Self.smallest:
            phase = .usual(longest: max(before, longest, byteCount))
        case .watched(let before, let longest, let chunks, let full):
            let isFull = byteCount == Self.smallest
            guard chunks + 1 >= Self.window else {
                phase = .watched(
                    before: before, longest: max(longest, byteCount), chunks: chunks + 1, full: full + (isFull ? 1 : 0))
                break
            }
            guard full * 2 >= Self.window else {
                phase = .usual(longest: max(before, longest))
                break
            }
            phase = .limited(before: before)
            return "has sent at most \(Self.smallest) bytes a chunk since then, \(before) before: a peer stalled, or "
                + "was lost, with longer ones"
        case .limited(let before) where byteCount > Self.smallest:
            phase = .usual(longest: max(before, byteCount))
            return "sends longer chunks again"
        case .limited: break
        }
        return nil
    }

    private mutating func watch() {
        switch phase {
        case .usual(let longest), .watched(let longest, _, _, _):
            phase =
                longest > Self.smallest
                ? .watched(before: longest, longest: 0, chunks: 0, full: 0) : .usual(longest: longest)
        case .limited: break
        }
    }
}
