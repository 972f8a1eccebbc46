/// A clock with timers: the only way time enters Ferry. ``SystemTime`` is the real one, ``VirtualTime`` a test's.
public protocol TimeSource: Sendable {
    /// The present. It never runs backwards.
    var now: Timestamp { get }

    /// Calls `action` once, at or soon after `deadline`, from any thread, unless the timer is cancelled first.
    ///
    /// A deadline in the past means as soon as possible, but never from within this call.
    @discardableResult
    func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer
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

/// The system's monotonic clock, which goes on while the machine sleeps.
public struct SystemTime: TimeSource {
    private static let origin = ContinuousClock.now

    /// Makes the system's time source; all share one origin.
    public init() {}

    /// Time since the first use in this process.
    public var now: Timestamp { .zero + Self.origin.duration(to: .now) }

    /// Runs `action` on the default executor.
    @discardableResult
    public func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        let isDue = deadline <= now
        let task = Task.detached {
            if !isDue {
                let instant = Self.origin.advanced(by: deadline - .zero)
                do { try await Task.sleep(until: instant, clock: .continuous) } catch { return }
            }
            if !Task.isCancelled { action() }
        }
        return ScheduledTimer { task.cancel() }
    }
}
