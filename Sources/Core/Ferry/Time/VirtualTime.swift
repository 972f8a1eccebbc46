import Synchronization

/// Time that passes only when it is told to, for tests and simulation.
///
/// Timers run on the thread that advances the time, in order of deadline and, for equal deadlines, of scheduling. A run
/// is therefore repeatable on any machine, at any load.
public final class VirtualTime: TimeSource {
    private struct State {
        var now: Timestamp
        var queue = TimerQueue()
        /// Where tasks run within a run; nil outside.
        var executor: (any TaskExecutor)?
    }

    private let state: Mutex<State>

    /// Starts at `start`.
    public init(start: Timestamp = .zero) { state = Mutex(State(now: start)) }

    /// The virtual present.
    public var now: Timestamp { state.withLock { $0.now } }

    /// When the next timer is due, or nil when none is set.
    public var nextDeadline: Timestamp? { state.withLock { $0.queue.nextDeadline() } }

    /// How many timers are set.
    public var timerCount: Int { state.withLock { $0.queue.count } }

    /// Sets a timer; it runs within a later ``advance(by:)``, ``advance(to:)`` or ``runNext()``.
    @discardableResult
    public func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        let number = state.withLock { state in state.queue.set(max(deadline, state.now), action) }
        return ScheduledTimer { [self] in
            // Until the lock is free, as for the system's timers.
            withExtendedLifetime(state.withLock { $0.queue.cancel(number) }) {}
        }
    }

    /// Starts a task, which belongs to the run that is under way, if any.
    @discardableResult
    public func startTask(_ operation: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        Task(executorPreference: state.withLock { $0.executor }) { await operation() }
    }

    /// Has ``startTask(_:)`` start tasks there; nil for the system's.
    package func startTasks(on executor: (any TaskExecutor)?) { state.withLock { $0.executor = executor } }

    /// Jumps to the next timer and runs it. Returns false when none is set.
    @discardableResult
    public func runNext() -> Bool { runNext(notAfter: .distantFuture) }

    /// Lets `duration` pass, running every timer that falls due on the way.
    public func advance(by duration: Duration) { advance(to: now + duration) }

    /// Lets time pass until `deadline`, running every timer that falls due on the way.
    public func advance(to deadline: Timestamp) {
        while runNext(notAfter: deadline) {}
        state.withLock { $0.now = max($0.now, deadline) }
    }

    private func runNext(notAfter limit: Timestamp) -> Bool {
        let action: (@Sendable () -> Void)? = state.withLock { state in
            guard let next = state.queue.popDue(at: limit) else { return nil }
            state.now = max(state.now, next.deadline)
            return next.action
        }
        guard let action else { return false }
        action()
        return true
    }
}
