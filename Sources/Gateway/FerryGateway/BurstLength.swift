#if NATS && Records
    /// How many messages of one lane go at once, each naming the one before it: a value without I/O, clock and randomness.
    ///
    /// A burst holds as long as nothing comes between its messages in the stream. Where others write there too, or a server compares
    /// names before it knows those of messages that it has just taken, its end is refused and goes again. Then bursts are halved,
    /// down to single messages, and tried again ever more seldom.
    struct BurstLength: Sendable {
        private let most: Int
        /// 1 and more.
        private(set) var now: Int
        /// How many single messages there must be before the next burst.
        private var rest = 0
        private var nextRest = Self.shortestRest

        private static var shortestRest: Int { 16 }
        private static var longestRest: Int { 4096 }

        init(most: Int) {
            self.most = most
            now = min(2, most)
        }

        /// The stream has all messages of a burst, or a single one.
        mutating func held(_ count: Int) {
            if rest > 0 {
                rest -= min(count, rest)
                if rest == 0 { now = min(2, most) }
            } else if count >= now {
                now = min(now * 2, most)
                if now == most { nextRest = Self.shortestRest }
            }
        }

        /// The end of a burst was refused because of what it names.
        mutating func broke() {
            now = max(now / 2, 1)
            guard now == 1, rest == 0 else { return }
            rest = nextRest
            nextRest = min(nextRest * 2, Self.longestRest)
        }
    }
#endif
