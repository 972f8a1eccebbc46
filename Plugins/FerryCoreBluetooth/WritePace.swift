/// When writes without response go out, whatever CoreBluetooth says of its queue.
///
/// It says no until the first write of a connection; in the background it says no for good, though writing works; and the
/// call that there is room may be lost (see the article "In an iPhone or Mac app"). So its word is taken for a while, and then
/// the peer's: it answers a request that goes the same way as the writes, and after them.
struct WritePace {
    /// What becomes of a write.
    enum Decision {
        case goes
        /// Somebody has to look again whether there is room, if nobody does.
        case waits(watch: Bool)
        /// The peer is to be asked, and ``proofDidEnd(allows:)`` called.
        case asks
    }

    private(set) var hasWritten = false
    /// When it was first refused; nil after there was room.
    private var refusedAt: ContinuousClock.Instant?
    private var isWatched = false
    /// Writes that may go before the peer is asked again; nil while CoreBluetooth's word is taken.
    private var left: Int?
    private var isAsking = false

    /// How long CoreBluetooth's word is taken for it.
    static let patience = Duration.milliseconds(500)
    /// Writes after each answer: a queue of 20, as old phones have, holds them.
    static let most = 8
    /// Where the peer cannot be asked: writes at a time, and the seconds between, which a slow connection carries too.
    static let mostUnasked = 3
    static let step = 0.02

    mutating func mayWrite(_ hasRoom: Bool, _ now: ContinuousClock.Instant) -> Decision {
        if hasRoom || !hasWritten {
            hasWritten = true
            refusedAt = nil
            left = nil
            return .goes
        }
        if let left {
            guard left == 0 else {
                self.left = left - 1
                return .goes
            }
            defer { isAsking = true }
            return isAsking ? .waits(watch: false) : .asks
        }
        if refusedAt == nil { refusedAt = now }
        defer { isWatched = true }
        return .waits(watch: !isWatched)
    }

    /// CoreBluetooth has said that there is room. Whether somebody waits for that.
    mutating func hasRoom() -> Bool {
        defer {
            refusedAt = nil
            left = nil
        }
        return refusedAt != nil || left != nil
    }

    /// Looks again: whether somebody is to be told, whether to look once more, and whether the peer is to be asked.
    mutating func look(_ hasRoom: Bool, _ now: ContinuousClock.Instant) -> (tell: Bool, again: Bool, asks: Bool) {
        isWatched = false
        guard let refused = refusedAt else { return (false, false, false) }
        if hasRoom {
            refusedAt = nil
            return (true, false, false)
        }
        guard now - refused >= Self.patience else {
            isWatched = true
            return (false, true, false)
        }
        refusedAt = nil
        left = 0
        defer { isAsking = true }
        return (false, false, !isAsking)
    }

    /// The peer has answered, or cannot be asked: so many writes may go. Whether somebody waits for that.
    mutating func proofDidEnd(allows count: Int) -> Bool {
        isAsking = false
        guard left != nil else { return false }
        left = count
        return true
    }
}
