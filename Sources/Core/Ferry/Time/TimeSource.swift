import Synchronization

/// A clock with timers: the only way time enters Ferry. ``SystemTime`` is the real one, ``VirtualTime`` a test's.
public protocol TimeSource: Sendable {
    /// The present. It never runs backwards.
    var now: Timestamp { get }

    /// Calls `action` once, at or soon after `deadline`, from any thread, unless the timer is cancelled first.
    ///
    /// A deadline in the past means as soon as possible, but never from within this call.
    @discardableResult
    func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer

    /// Starts a separate task for work that no caller waits for. By default the system runs it; within a run in virtual time it
    /// belongs to the run, which does not let time pass while the task can go on.
    @discardableResult
    func startTask(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never>
}

/// A timer that can be called off.
public struct ScheduledTimer: Sendable {
    private let onCancel: @Sendable () -> Void

    /// Wraps what calls the timer off.
    public init(onCancel: @escaping @Sendable () -> Void) { self.onCancel = onCancel }

    /// Calls the timer off. An action that has already begun is not interrupted.
    public func cancel() { onCancel() }
}

extension TimeSource {
    /// Starts a task of the system's.
    @discardableResult
    public func startTask(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task { await operation() }
    }

    /// Suspends until `deadline`; returns early, throwing `CancellationError`, when the task is cancelled.
    public func sleep(until deadline: Timestamp) async throws {
        let (wakeUps, wakeUp) = AsyncStream<Void>.makeStream()
        let timer = schedule(at: deadline) { wakeUp.finish() }
        defer { timer.cancel() }
        for await _ in wakeUps {}
        try Task.checkCancellation()
    }

    /// Suspends for `duration`; returns early, throwing `CancellationError`, when the task is cancelled.
    public func sleep(for duration: Duration) async throws {
        try await sleep(until: now + duration)
    }
}

/// The system's clock as it runs while the machine is awake (`SuspendingClock`), so that a machine's sleep is not taken
/// for a peer's silence.
public struct SystemTime: TimeSource {
    private static let origin = SuspendingClock.now
    private static let timers = SystemTimers()

    /// Makes the system's time source; all share one origin and one queue of timers.
    public init() {}

    /// Time awake since the first use in this process.
    public var now: Timestamp { .zero + Self.origin.duration(to: .now) }

    /// Runs `action` on the default executor. It must not block: other timers may wait for it. A timer that is cancelled
    /// costs nothing from then on.
    @discardableResult
    public func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        Self.timers.set(deadline, action)
    }

    fileprivate static func sleep(until deadline: Timestamp) async {
        try? await Task.sleep(until: origin.advanced(by: deadline - .zero), clock: .suspending)
    }
}

/// The timers of ``SystemTime``. A sleeping task cannot be called off without leaving its place in the system's queue
/// until it would have woken, so timers share few sleepers: one only looks whether a timer is due.
private final class SystemTimers: Sendable {
    private struct State {
        var queue = TimerQueue()
        /// When sleepers will wake, the earliest last.
        var wakeUps: [Timestamp] = []
    }

    private let state = Mutex(State())

    func set(_ deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        let (number, wakeUp) = state.withLock { state in
            let number = state.queue.set(deadline, action)
            return (number, Self.wakeUpNeeded(&state))
        }
        if let wakeUp { sleep(until: wakeUp) }
        return ScheduledTimer { [self] in
            // Keep them alive until the lock is released: optimised code releases unused references early.
            withExtendedLifetime(state.withLock { $0.queue.cancel(number) }) {}
        }
    }

    /// When another sleeper is to wake, if those there are wake too late.
    private static func wakeUpNeeded(_ state: inout State) -> Timestamp? {
        guard let deadline = state.queue.nextDeadline() else { return nil }
        let now = SystemTime().now
        var wakeUp = deadline
        // Within a second exactly, beyond it after the largest power of two of seconds: at most one sleeper for each power
        // is ever needed, however often deadlines come and go.
        let wait = deadline - now
        if wait > .seconds(1) {
            let seconds = UInt64(wait.components.seconds)
            wakeUp = now + .seconds(1 << UInt64(63 - seconds.leadingZeroBitCount))
        }
        if let earliest = state.wakeUps.last, earliest <= wakeUp { return nil }
        state.wakeUps.append(wakeUp)
        return wakeUp
    }

    private func sleep(until wakeUp: Timestamp) {
        Task.detached { [self] in
            if wakeUp > SystemTime().now { await SystemTime.sleep(until: wakeUp) }
            wake(wakeUp)
        }
    }

    private func wake(_ wakeUp: Timestamp) {
        while let due = state.withLock({ $0.queue.popDue(at: SystemTime().now) }) { due.action() }
        let next = state.withLock { state in
            state.wakeUps.removeAll { $0 == wakeUp }
            return Self.wakeUpNeeded(&state)
        }
        if let next { sleep(until: next) }
    }
}
