#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// Tasks that run when a test says so, all on its thread, in an order that the test chooses: with ``/Ferry/VirtualTime``, a
/// run that is the same each time although it is full of tasks.
///
/// While ``run(_:)`` is under way, jobs that its thread hands to the global executor wait here. Those of other threads, of other
/// tests, go where they always go. The hook is the one that the runtime keeps for other executors
/// (`swift_task_enqueueGlobal_hook`).
package final class SteppedTasks {
    private var waiting: [UnownedJob] = []
    private let runner = Runner()

    package init() {}

    /// Calls `body`; tasks that it and its jobs begin wait for ``step(_:)``.
    package func run<Value>(_ body: () throws -> Value) rethrows -> Value {
        precondition(hookIsInstalled, "the runtime has no swift_task_enqueueGlobal_hook")
        let former = pthread_getspecific(present)
        pthread_setspecific(present, Unmanaged.passUnretained(self).toOpaque())
        defer { pthread_setspecific(present, former) }
        return try body()
    }

    /// How many jobs can run now.
    package var count: Int { waiting.count }

    /// Runs one of the jobs that can run: the one that `choose` names, of so many. Returns false when there is none.
    package func step(_ choose: (Int) -> Int = { _ in 0 }) -> Bool {
        guard !waiting.isEmpty else { return false }
        let job = waiting.remove(at: waiting.count == 1 ? 0 : choose(waiting.count))
        job.runSynchronously(on: runner.asUnownedTaskExecutor())
        return true
    }

    fileprivate func add(_ job: UnownedJob) { waiting.append(job) }

    /// Only its name is needed: jobs are run in its.
    private final class Runner: TaskExecutor {
        func enqueue(_ job: consuming ExecutorJob) { enqueueHere(UnownedJob(job)) }
    }
}

/// Where the thread's ``SteppedTasks`` are noted.
private let present: pthread_key_t = {
    var key = pthread_key_t()
    pthread_key_create(&key, nil)
    return key
}()

@discardableResult private func enqueueHere(_ job: UnownedJob) -> Bool {
    guard let tasks = pthread_getspecific(present) else { return false }
    Unmanaged<SteppedTasks>.fromOpaque(tasks).takeUnretainedValue().add(job)
    return true
}

private typealias Enqueue = @convention(thin) (UnownedJob) -> Void
private typealias Hook = @convention(thin) (UnownedJob, Enqueue) -> Void

private let hookIsInstalled: Bool = {
    guard let place = dlsym(nil, "swift_task_enqueueGlobal_hook") else { return false }
    place.assumingMemoryBound(to: Hook?.self).pointee = { job, enqueue in
        if !enqueueHere(job) { enqueue(job) }
    }
    return true
}()
