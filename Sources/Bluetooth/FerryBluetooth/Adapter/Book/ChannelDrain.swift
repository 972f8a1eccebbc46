package import Ferry

/// An L2CAP channel that is closed on this side once all that it has taken has left: how long that may last.
package struct ChannelDrain: Sendable {
    /// How long nothing may leave. It ends nothing that moves, however slow the link is.
    package static let pause = Duration.seconds(5)
    /// How long it may last in all, also with a peer that gives a credit now and then.
    package static let limit = Duration.seconds(60)

    private let end: Timestamp
    private var deadline: Timestamp
    private var waiting: Int

    /// - Parameters:
    ///   - waiting: the bytes that have not left.
    ///   - now: when the channel was closed.
    package init(_ waiting: Int, at now: Timestamp) {
        self.waiting = waiting
        end = now + Self.limit
        deadline = now + Self.pause
    }

    /// Whether there is time left for the bytes that have not left; false also when there are none.
    package mutating func hasTime(for waiting: Int, at now: Timestamp) -> Bool {
        if waiting < self.waiting { deadline = min(now + Self.pause, end) }
        self.waiting = waiting
        return waiting > 0 && now < deadline
    }
}
