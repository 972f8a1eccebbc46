import Ferry

/// When a sender tries again: after growing pauses, until nothing has gone through for `limit`. A value with neither a clock
/// nor chance.
struct RetryTimes: Sendable {
    /// How long to go on without progress.
    let limit: Duration
    /// The first failure since something has gone through, and the end of the last attempt; `nil` without one.
    private var failing: (since: Timestamp, reason: String)?
    /// The end of the last attempt, for people.
    var reason: String? { failing?.reason }
    private var pause = Self.firstPause

    static let firstPause = Duration.milliseconds(100)
    static let longestPause = Duration.seconds(10)

    init(limit: Duration) { self.limit = limit }

    /// Something has gone through.
    mutating func moved() { self = RetryTimes(limit: limit) }

    /// An attempt has failed, however long it has lasted: a link that is lost after a quiet night is worth the whole time.
    ///
    /// - Parameters:
    ///   - chance: 0 to 1; of many senders that were refused together, each comes at another moment.
    /// - Returns: how long to wait before the next; `nil` when the time is over.
    mutating func failed(_ reason: String, at now: Timestamp, chance: Double) -> Duration? {
        failing = (failing?.since ?? now, reason)
        let left = left(at: now)
        guard left > .zero else { return nil }
        defer { pause = min(pause * 2, Self.longestPause) }
        // The last attempt is at the end of the time.
        return min(pause * (0.5 + max(0, min(1, chance)) / 2), left)
    }

    /// How much of the time is left.
    func left(at now: Timestamp) -> Duration {
        guard let failing else { return limit }
        return limit - (now - failing.since)
    }
}
