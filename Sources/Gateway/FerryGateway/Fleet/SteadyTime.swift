#if NATS && Records
    import Ferry

    /// A clock that goes on while the machine sleeps (`CLOCK_BOOTTIME`), as a lease does. Its timers are late by as much as the
    /// machine slept: who must not be late looks at ``now``.
    struct SteadyTime: TimeSource {
        private static let origin = ContinuousClock.now
        private let timers = SystemTime()

        var now: Timestamp { .zero + Self.origin.duration(to: .now) }

        @discardableResult
        func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
            timers.schedule(at: timers.now + max(.zero, deadline - now), action)
        }
    }
#endif
