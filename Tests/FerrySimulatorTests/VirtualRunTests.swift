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

    private final class Ended: Sendable {
        private let number = Atomic(0)
        func count() { number.add(1, ordering: .relaxed) }
        var value: Int { number.load(ordering: .relaxed) }
    }
}
