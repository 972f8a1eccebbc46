/// When writes without response go out: CoreBluetooth's word on its queue cannot be trusted.
///
/// It says no until the first write of a connection; in the background it says no for good, though writing works; and the
/// call that there is room may be lost (see the article "In an iPhone or Mac app"). So its word is taken for a while, and then
/// the peer's: it answers a request that goes the same way as the writes, and after them.
struct WritePace {
    /// What becomes of a write.
    enum Decision {
        case goes
        /// With `watch` the caller has to look again whether there is room; otherwise a look is due already.
        case waits(watch: Bool)
        /// The peer is to be asked, and ``proofDidEnd(allows:)`` called.
        case asks
    }

    /// Whose word is taken.
    private enum Gate {
        /// Not asked for: the first write of a connection goes.
        case unused
        /// CoreBluetooth's, which has room.
        case open
        /// CoreBluetooth's, which has refused first at this time.
        case refused(at: ContinuousClock.Instant)
        /// The peer's: the writes that may go before it is asked again.
        case paced(left: Int)
    }

    private var gate = Gate.unused
    /// Whether a look is due. It comes also where there was room meanwhile.
    private var isWatched = false
    /// Whether the peer has not answered. It does also where there was room meanwhile.
    private var isAsking = false

    /// How long CoreBluetooth's word is taken for it.
    static let patience = Duration.milliseconds(500)
    /// Writes after each answer: a queue of 20, as old phones have, holds them.
    static let most = 8
    /// Where the peer cannot be asked: writes at a time, and the seconds between, which a slow connection carries too.
    static let mostUnasked = 3
    static let step = 0.02

    var hasWritten: Bool { if case .unused = gate { false } else { true } }

    mutating func mayWrite(_ hasRoom: Bool, _ now: ContinuousClock.Instant) -> Decision {
        if hasRoom || !hasWritten {
            gate = .open
            return .goes
        }
        switch gate {
        case .paced(left: 0):
            defer { isAsking = true }
            return isAsking ? .waits(watch: false) : .asks
        case .paced(let left):
            gate = .paced(left: left - 1)
            return .goes
        case .unused, .open:
            gate = .refused(at: now)
        case .refused: break
        }
        defer { isWatched = true }
        return .waits(watch: !isWatched)
    }

    /// CoreBluetooth has said that there is room. Returns whether the owner waits for that.
    mutating func hasRoom() -> Bool {
        switch gate {
        case .unused, .open: return false
        case .refused, .paced:
            gate = .open
            return true
        }
    }

    /// Looks again: whether the owner is to be told, whether to look once more, and whether the peer is to be asked.
    mutating func look(_ hasRoom: Bool, _ now: ContinuousClock.Instant) -> (tell: Bool, again: Bool, asks: Bool) {
        isWatched = false
        guard case .refused(let refusal) = gate else { return (false, false, false) }
        if hasRoom {
            gate = .open
            return (true, false, false)
        }
        guard now - refusal >= Self.patience else {
            isWatched = true
            return (false, true, false)
        }
        gate = .paced(left: 0)
        defer { isAsking = true }
        return (false, false, !isAsking)
    }

    /// The peer has answered, or cannot be asked: `count` writes may go. Returns whether the owner waits for that.
    mutating func proofDidEnd(allows count: Int) -> Bool {
        isAsking = false
        guard case .paced = gate else { return false }
        gate = .paced(left: count)
        return true
    }
}
