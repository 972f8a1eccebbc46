import Ferry
import FerrySimulator
import Synchronization
import TestSupport
import Testing

@Suite("Runs in virtual time", .tags(.simulator), .timeLimit(.minutes(1))) struct VirtualRunTests {
    @Test("A run whose task is cancelled ends soon, and so does what runs in it") func cancelled() async throws {
        let ended = Ended()
        let task = Task {
            let time = VirtualTime()
            try VirtualRun.run(under: time) {
                defer { ended.count() }
                // For ever, in as little real time as it takes.
                while true { try await time.sleep(for: .seconds(1)) }
            }
        }
        task.cancel()
        await #expect(throws: CancellationError.self) { try await task.value }
        #expect(ended.value == 1)
    }

    @Test("Time waits for a task that the clock started, and for no other run's after it") func startedTasks() throws {
        let time = VirtualTime()
        let ended = Ended()
        let passed = try VirtualRun.run(under: time) {
            let (results, result) = AsyncStream<Timestamp>.makeStream()
            // A timer that is due much later must not come before the task's many turns.
            let late = time.schedule(at: time.now + .seconds(60)) { result.finish() }
            time.schedule(at: time.now + .seconds(1)) {
                time.startTask {
                    for _ in 0..<1_000 { await Task.yield() }
                    try? await time.sleep(for: .seconds(2))
                    ended.count()
                    result.yield(time.now)
                    result.finish()
                }
            }
            defer { late.cancel() }
            return await results.first { _ in true }
        }
        #expect(passed == .zero + .seconds(3))
        #expect(ended.value == 1)
    }

    private final class Ended: Sendable {
        private let number = Atomic(0)
        func count() { number.add(1, ordering: .relaxed) }
        var value: Int { number.load(ordering: .relaxed) }
    }
}
