import Synchronization

/// Time that passes only when it is told to, for tests and simulation.
///
/// Timers run on the thread that advances the time, in order of deadline and, for equal deadlines, of scheduling. A run
/// is therefore repeatable whatever the machine is doing.
public final class VirtualTime: TimeSource {
    private struct Entry {
        var deadline: Timestamp
        var sequence: UInt64
        var action: @Sendable () -> Void

        func precedes(_ other: Entry) -> Bool {
            (deadline, sequence) < (other.deadline, other.sequence)
        }
    }

    private struct State {
        var now: Timestamp
        var nextSequence: UInt64 = 0
        var pending: [Entry] = []  // sorted, latest first, so that the next one is removed from the end
    }

    private let state: Mutex<State>

    /// Starts at `start`.
    public init(start: Timestamp = .zero) { state = Mutex(State(now: start)) }

    /// The virtual present.
    public var now: Timestamp { state.withLock { $0.now } }

    /// When the next timer is due, or nil when none is set.
    public var nextDeadline: Timestamp? { state.withLock { $0.pending.last?.deadline } }

    /// Sets a timer; it runs within a later ``advance(by:)``, ``advance(to:)`` or ``runNext()``.
    @discardableResult
    public func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        let sequence = state.withLock { state in
            let entry = Entry(deadline: max(deadline, state.now), sequence: state.nextSequence, action: action)
            state.nextSequence += 1
            var low = 0
            var high = state.pending.count
            while low < high {
                let middle = (low + high) / 2
                if entry.precedes(state.pending[middle]) { low = middle + 1 } else { high = middle }
            }
            state.pending.insert(entry, at: low)
            return entry.sequence
        }
        return ScheduledTimer { [self] in
            state.withLock { $0.pending.removeAll { $0.sequence == sequence } }
        }
    }

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
            guard let next = state.pending.last, next.deadline <= limit else { return nil }
            state.pending.removeLast()
            state.now = max(state.now, next.deadline)
            return next.action
        }
        guard let action else { return false }
        action()
        return true
    }
}
