#if BlueZ
    /// How many values may be on their way, when nobody says which have arrived: after half of the window a barrier is
    /// sent behind them, something that the peer answers, and its answer says that all before it have passed.
    struct FlowWindow: Sendable {
        /// The most values on their way.
        let capacity: Int
        private var sent: UInt64 = 0
        private var passed: UInt64 = 0
        private var mark: UInt64?
        /// The bytes on their way, and those of them that the barrier is behind.
        private(set) var bytes = 0
        private(set) var markedBytes = 0

        init(capacity: Int) { self.capacity = max(1, capacity) }

        var inFlight: Int { Int(sent - passed) }
        var hasSpace: Bool { inFlight < capacity }
        var hasBarrier: Bool { mark != nil }

        /// One more value is on its way.
        mutating func take(_ count: Int) {
            sent += 1
            bytes += count
        }

        /// Begins a barrier behind what is on its way, when one is due and none is under way.
        ///
        /// - Parameter isLast: whether one is due for any value.
        mutating func beginBarrier(isLast: Bool = false) -> Bool {
            guard mark == nil, inFlight > 0, isLast || inFlight >= (capacity + 1) / 2 else { return false }
            mark = sent
            markedBytes = bytes
            return true
        }

        /// The barrier was answered.
        mutating func barrierPassed() {
            guard let mark else { return }
            passed = mark
            self.mark = nil
            bytes -= markedBytes
            markedBytes = 0
        }
    }
#endif
