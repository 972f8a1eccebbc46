import DequeModule
import Synchronization

/// Runs tasks on the thread that asks for it, one after the other, so that a run under virtual time is repeatable.
final class ManualExecutor: TaskExecutor {
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
