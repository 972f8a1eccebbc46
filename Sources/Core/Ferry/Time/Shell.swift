import Synchronization

/// The shell round a state machine: its value behind a lock, a clock, and one task that does what the value answers.
///
/// The task asks the value for its next steps and its deadline, carries the steps out with the lock free, and waits
/// (``wait(until:)``). All others ``change(_:)`` the value, which wakes the task after the lock is released: resuming a task may
/// run code that wants the same lock. The lock is not recursive.
package final class Shell<Value>: Sendable {
    package let time: any TimeSource
    private let value: Mutex<Value>
    private let bell = Bell()

    package init(_ value: consuming sending Value, time: any TimeSource) {
        self.value = Mutex(value)
        self.time = time
    }

    /// Reads the value, or changes a part of it that gives the task nothing to do.
    package func withLock<Answer: ~Copyable, Failure: Error>(
        _ body: (inout sending Value) throws(Failure) -> sending Answer
    ) throws(Failure) -> sending Answer {
        try value.withLock(body)
    }

    /// Changes the value, at the present time, and wakes the task.
    package func change<Answer: ~Copyable, Failure: Error>(
        _ body: (inout sending Value, _ now: Timestamp) throws(Failure) -> sending Answer
    ) throws(Failure) -> sending Answer {
        defer { bell.ring() }
        // The time is read under the lock, so that it never goes back from one change to the next.
        return try value.withLock { value throws(Failure) in try body(&value, time.now) }
    }

    /// Wakes the task without a change of the value.
    package func wake() { bell.ring() }

    /// Waits until the value changes, the deadline comes or the task is cancelled. A change before the wait counts; several count
    /// as one. Nil and `distantFuture` are no deadline.
    package func wait(until deadline: Timestamp?) async { await bell.wait(until: deadline, by: time) }
}
