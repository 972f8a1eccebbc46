import DequeModule
public import Ferry
import Synchronization

/// Runs asynchronous code under virtual time, on the calling thread, so that it is the same on every run.
///
/// Time stands still while any task can run; when all wait, it jumps to the next timer. Child tasks belong to the run, and so do
/// tasks that are started by ``/Ferry/TimeSource/startTask(_:)``. Code that starts other unstructured tasks leaves it, and loses the
/// promise of repeatability.
public enum VirtualRun {
    /// Runs `body` to its end.
    ///
    /// - Parameters:
    ///   - time: the clock that `body` waits by.
    ///   - body: what to run.
    /// - Throws: what `body` throws; ``/Ferry/FerryError`` with `timedOut` when nothing is due and `body` still waits;
    ///   `CancellationError` soon after the task that runs it was cancelled, as `body`'s then is.
    public static func run<Value: Sendable>(
        under time: VirtualTime, _ body: @escaping @Sendable () async throws -> Value
    ) throws -> Value {
        let executor = ManualExecutor()
        time.startTasks(on: executor)
        defer { time.startTasks(on: nil) }
        let holder = Holder<Value>()
        let task = Task(executorPreference: executor) {
            do { holder.set(.success(try await body())) } catch { holder.set(.failure(error)) }
        }
        while true {
            executor.drain()
            if let result = holder.result { return try result.get() }
            if Task.isCancelled {
                // What the body waits for ends, so that none of its tasks is left behind.
                task.cancel()
                executor.drain()
                throw CancellationError()
            }
            guard time.runNext() else {
                throw FerryError(.timedOut, "The run has come to a halt: nothing is due and a task still waits.")
            }
        }
    }

    private final class Holder<Value: Sendable>: Sendable {
        private let value = Mutex<Result<Value, any Error>?>(nil)
        var result: Result<Value, any Error>? { value.withLock { $0 } }
        func set(_ result: Result<Value, any Error>) { value.withLock { $0 = result } }
    }

    /// Runs jobs on the thread that asks for it, one after the other.
    private final class ManualExecutor: TaskExecutor {
        private let jobs = Mutex(Deque<UnownedJob>())

        func enqueue(_ job: consuming ExecutorJob) {
            let job = UnownedJob(job)
            jobs.withLock { $0.append(job) }
        }

        /// Runs jobs until none is left.
        func drain() {
            while let job = jobs.withLock({ $0.popFirst() }) {
                job.runSynchronously(on: asUnownedTaskExecutor())
            }
        }
    }
}
