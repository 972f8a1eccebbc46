import Dispatch
import Foundation
import Synchronization
import TestSupport
import Testing

@testable import FerryTransports

@Suite("Ctrl-C and SIGTERM", .tags(.program), .timeLimit(.minutes(1))) struct InterruptionTests {
    @Test("The process ends though the work cannot be ended and the terminal not tidied")
    func everythingHangs() async throws {
        let left = Mutex<[Int32]>([])
        let never = DispatchSemaphore(value: 0)
        let interruption = Interruption(
            grace: 0.01, beforeExit: { never.wait() }, leave: { status in left.withLock { $0.append(status) } })
        interruption.ends { never.wait() }
        interruption.take(SIGTERM)
        try await until { left.withLock { $0 } == [143] }
        for _ in 0..<2 { never.signal() }
        #expect(interruption.signal == SIGTERM)
    }

    @Test("A second signal does not wait for what the first one began")
    func second() async {
        let left = Mutex<[Int32]>([])
        let never = DispatchSemaphore(value: 0)
        let tidied = Mutex(0)
        let interruption = Interruption(
            grace: 3600, beforeExit: { tidied.withLock { $0 += 1 } },
            leave: { status in left.withLock { $0.append(status) } })
        interruption.ends { never.wait() }
        interruption.take(SIGTERM)
        interruption.take(SIGINT)
        #expect(left.withLock { $0 } == [130])
        #expect(tidied.withLock { $0 } == 1)
        #expect(interruption.signal == SIGTERM)
        never.signal()
    }

    @Test("What comes before the work has begun ends it") func early() {
        let ended = Mutex(0)
        let interruption = Interruption(grace: 3600, leave: { _ in })
        interruption.take(SIGINT)
        interruption.ends { ended.withLock { $0 += 1 } }
        #expect(ended.withLock { $0 } == 1)
    }
}
