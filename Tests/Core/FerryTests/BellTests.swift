import Ferry
import TestSupport
import Testing

/// A shell's task is woken as often as it must be, and not more often.
@Suite(.tags(.core), .timeLimit(.minutes(5))) struct BellTests {
    @Test func severalRingsBeforeTheWaitAreOne() async {
        let bell = Bell()
        bell.ring()
        bell.ring()
        #expect(await bell.wait())
        bell.silence()
        #expect(await !bell.wait())
    }

    @Test func aDeadlineRingsOnce() async throws {
        let (bell, time) = (Bell(), VirtualTime())
        let waiting = Task { await bell.wait(until: .zero + .seconds(5), by: time) }
        try await until { time.runNext() }
        #expect(await waiting.value)
        #expect(time.now == .zero + .seconds(5))
        bell.silence()
        #expect(await !bell.wait())
    }

    @Test func aRingCallsTheTimerOff() async {
        let (bell, time) = (Bell(), VirtualTime())
        bell.ring()
        #expect(await bell.wait(until: .zero + .seconds(5), by: time))
        #expect(!time.runNext())
    }

    @Test func aCancelledTaskWaitsNoMore() async {
        let bell = Bell()
        let waiting = Task { await bell.wait() }
        waiting.cancel()
        #expect(await !waiting.value)
    }
}
