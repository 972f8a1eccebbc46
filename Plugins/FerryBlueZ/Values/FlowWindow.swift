#if BlueZ
    /// How many values may be on their way, when nobody says which have arrived: when there are as many, a barrier is sent
    /// behind them, something that the peer answers, and its answer says that all before it have passed.
    ///
    /// Not sooner: bluetoothd sends a request when it has nothing else to send, so that an answer comes when everything has
    /// passed anyway, and nothing is sent until it is here. To make little of that the window is large, but only where the
    /// link is quick. It becomes as large as what has passed lately would be in a second, the link's bandwidth-delay product
    /// (as in BBR, draft-cardwell-iccrg-bbr-congestion-control, 4.1.1), so that a value waits for about a second at most.
    struct FlowWindow: Sendable {
        /// How long values are to be on their way, in microseconds.
        static let delay: UInt64 = 1_000_000
        /// What it begins with and what it is at least, unless it may not be so large.
        static let beginning = 64
        static let minimum = 32

        /// The most that it may become.
        let maximum: Int
        /// The most values on their way now.
        private(set) var capacity: Int
        private var sent: UInt64 = 0
        private var passed: UInt64 = 0
        private var mark: UInt64?
        /// When the last answer came, where the sender waited for it.
        private var awaited: UInt64?
        /// The bytes on their way, and those of them that the barrier is behind.
        private(set) var bytes = 0
        private(set) var markedBytes = 0

        init(maximum: Int) {
            self.maximum = max(1, maximum)
            capacity = min(Self.beginning, self.maximum)
        }

        var inFlight: Int { Int(sent - passed) }
        var hasSpace: Bool { inFlight < capacity }
        var hasBarrier: Bool { mark != nil }

        /// One more value is on its way.
        mutating func take(_ count: Int) {
            sent += 1
            bytes += count
        }

        /// Begins a barrier behind what is on its way, when the window is full and none is under way.
        ///
        /// - Parameter isLast: whether one is due although the window is not full.
        mutating func beginBarrier(isLast: Bool = false) -> Bool {
            guard mark == nil, inFlight > 0, isLast || !hasSpace else { return false }
            mark = sent
            markedBytes = bytes
            return true
        }

        /// The barrier was answered.
        ///
        /// - Parameters:
        ///   - now: the time, in microseconds from anywhere.
        ///   - isAwaited: whether the sender waits for space. Only between two answers that it waited for the link was never
        ///     short of values, so that what has passed tells its speed.
        mutating func barrierPassed(at now: UInt64, isAwaited: Bool) {
            guard let mark else { return }
            if isAwaited, let awaited { adapt(to: mark - passed, in: now > awaited ? now - awaited : 0) }
            awaited = isAwaited ? now : nil
            passed = mark
            self.mark = nil
            bytes -= markedBytes
            markedBytes = 0
        }

        /// Becomes smaller at once, and larger by doubling, so that one quick answer does not fill a slow link's queue.
        private mutating func adapt(to count: UInt64, in time: UInt64) {
            let product = Double(count) * Double(Self.delay) / Double(max(1, time))
            let most = min(capacity * 2, maximum)
            capacity = product >= Double(most) ? most : max(Int(product), min(Self.minimum, maximum))
        }
    }
#endif
