import Ferry
import Synchronization
import TestSupport
import Testing

@Suite(.tags(.core), .timeLimit(.minutes(5))) struct ShellTests {
    @Test func aChangeWakesTheTask() async {
        let shell = Shell(0, time: VirtualTime())
        let task = Task {
            while shell.withLock({ $0 }) < 3 { await shell.wait(until: nil) }
            return shell.withLock { $0 }
        }
        for value in 1...3 {
            shell.change { current, _ in current = value }
            await Task.yield()
        }
        #expect(await task.value == 3)
    }

    @Test func aChangeBeforeTheWaitCounts() async {
        let shell = Shell(0, time: VirtualTime())
        shell.change { value, _ in value = 1 }
        await shell.wait(until: .distantFuture)
        #expect(shell.withLock { $0 } == 1)
    }

    @Test func aLookDoesNotWakeTheTask() async throws {
        let time = VirtualTime()
        let shell = Shell(0, time: time)
        shell.withLock { $0 = 1 }
        let task = Task { await shell.wait(until: .zero + .seconds(5)) }
        try await until { time.runNext() }
        await task.value
        #expect(time.now == .zero + .seconds(5))
    }

    @Test func wakingNeedsNoChange() async {
        let shell = Shell(0, time: VirtualTime())
        shell.wake()
        await shell.wait(until: nil)
    }

    /// The task runs on the thread that wakes it, and takes the lock: held still, that would wait for ever.
    @Test func theLockIsFreeWhenTheTaskWakes() async {
        let shell = Shell(0, time: VirtualTime())
        let seen = Mutex(0)
        let task = Task(executorPreference: InlineExecutor()) {
            await shell.wait(until: nil)
            seen.withLock { $0 = shell.withLock { $0 } }
        }
        shell.change { value, _ in value = 1 }
        await task.value
        #expect(seen.withLock { $0 } == 1)
    }

    @Test func aFailedChangeWakesTheTaskToo() async {
        let shell = Shell(0, time: VirtualTime())
        #expect(throws: FerryError.self) {
            try shell.change { value, _ throws(FerryError) in
                value = 1
                throw FerryError(.closed, "")
            }
        }
        await shell.wait(until: nil)
    }

    @Test func theValueNeverSeesTimeGoBack() async {
        struct Value { var last = Timestamp.zero, isInOrder = true }
        let shell = Shell(Value(), time: CountingTime())
        await withTaskGroup { group in
            for _ in 0..<4 {
                group.addTask {
                    for _ in 0..<5_000 {
                        shell.change { value, now in
                            if now < value.last { value.isInOrder = false }
                            value.last = now
                        }
                    }
                }
            }
        }
        #expect(shell.withLock(\.isInOrder))
    }
}

/// Runs each job on the thread that makes it ready.
private final class InlineExecutor: TaskExecutor {
    func enqueue(_ job: consuming ExecutorJob) {
        UnownedJob(job).runSynchronously(on: asUnownedTaskExecutor())
    }
}

/// A nanosecond later at each look.
private final class CountingTime: TimeSource {
    private let looks = Atomic<Int64>(0)

    var now: Timestamp { .zero + .nanoseconds(looks.wrappingAdd(1, ordering: .sequentiallyConsistent).newValue) }

    func schedule(at deadline: Timestamp, _ action: @escaping @Sendable () -> Void) -> ScheduledTimer {
        ScheduledTimer {}
    }
}
