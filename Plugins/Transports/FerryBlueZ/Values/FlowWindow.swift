#if BlueZ
    /// Bounds the values in flight where arrival is not reported: when the window is full, a barrier follows, a request
    /// that the peer answers, and its answer shows that all values before it have passed.
    ///
    /// Not sooner: bluetoothd sends a request when it has nothing else to send, so that an answer comes when everything
    /// has passed anyway, and nothing is sent until it is here. To make that pause matter little the window is large,
    /// but only where the link is quick. It grows to the number of values that pass in a second at the recent rate, the
    /// link's bandwidth-delay product (as in BBR, draft-cardwell-iccrg-bbr-congestion-control, 4.1.1), so that a value
    /// waits for about a second at most.
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
        /// When the window was full and the barrier began.
        private var full: UInt64?
        /// When the last answer came.
        private var answered: UInt64?
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

        /// Begins a barrier behind the values in flight, when the window is full and no barrier is pending.
        ///
        /// - Parameters:
        ///   - now: the time, in microseconds from anywhere.
        ///   - isLast: whether one is due although the window is not full.
        mutating func beginBarrier(at now: @autoclosure () -> UInt64, isLast: Bool = false) -> Bool {
            guard mark == nil, inFlight > 0, isLast || !hasSpace else { return false }
            mark = sent
            full = hasSpace ? nil : now()
            markedBytes = bytes
            return true
        }

        /// The barrier was answered.
        ///
        /// - Parameter now: the time, in microseconds from anywhere.
        mutating func barrierPassed(at now: UInt64) {
            guard let mark else { return }
            if let full { adapt(to: mark - passed, answered: answered, full: full, now: now) }
            answered = now
            passed = mark
            self.mark = nil
            bytes -= markedBytes
            markedBytes = 0
        }

        /// The link is at least as quick as the values passed since the last answer show, and at most as quick as those
        /// passed since the window was full show; between the two the sender may have had nothing to send, which tells
        /// nothing. Shrinks at once, and grows by doubling, so that one quick answer does not fill a slow link's queue.
        private mutating func adapt(to count: UInt64, answered: UInt64?, full: UInt64, now: UInt64) {
            func product(since time: UInt64) -> Int {
                let product = Double(count) * Double(Self.delay) / Double(now > time ? now - time : 1)
                return Int(min(product, Double(maximum)))
            }
            let most = product(since: full)
            if most < capacity {
                capacity = max(most, min(Self.minimum, maximum))
            } else if let answered {
                capacity = max(capacity, min(product(since: answered), capacity > maximum / 2 ? maximum : capacity * 2))
            }
        }
    }
#endif
