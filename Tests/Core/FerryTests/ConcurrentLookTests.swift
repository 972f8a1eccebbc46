import Dispatch
import Ferry
import FerryTesting
import Foundation
import Synchronization
import TestSupport
import Testing

/// Whoever finds the channel's lock taken leaves its share to the thread that has it, also when that one only looks.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct ConcurrentLookTests {
    @Test func whatIsAskedForDuringALookIsDone() async {
        let core = endedCore()
        // Without the look's part in it, between 71 and 7 719 rounds passed before one was not answered.
        let rounds = 100_000
        let race = Race()
        // Threads of their own, not those that other tests run on: both wait in every round. They wait asleep, for a thread that
        // spins has the processor until its time is over where others want it too.
        Thread.detachNewThread {
            for round in 1...rounds {
                race.begins.wait()
                _ = core.status
                race.looks.signal()
                // The last look is one that had begun before something was asked for.
                repeat { _ = core.status } while race.asked.load(ordering: .acquiring) < round
                race.hasLooked.signal()
            }
        }
        let unanswered: Int? = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var unanswered: Int?
                for round in 1...rounds {
                    race.begins.signal()
                    race.looks.wait()
                    race.asked.store(round, ordering: .releasing)
                    core.submit([1], as: core.makeID()) { _ in race.answered.add(1, ordering: .relaxed) }
                    race.hasLooked.wait()
                    if unanswered == nil, race.answered.load(ordering: .relaxed) < round { unanswered = round }
                }
                continuation.resume(returning: unanswered)
            }
        }
        #expect(unanswered == nil, "what was asked for in this round was not done")
    }

    /// An ended channel, so that no other event does what a look has left.
    private func endedCore() -> ChannelCore {
        let limits = Limits()
        let core = ChannelCore(
            link: MemoryLink.makePair(maximumChunkSize: 20).0,
            session: LengthPrefixFraming().makeSession(limits: limits), chunkSize: .max,
            limits: limits, time: VirtualTime())
        core.open()
        core.finish(FerryError(.closed, "The test ends it."))
        return core
    }

    private final class Race: Sendable {
        let begins = DispatchSemaphore(value: 0)
        let looks = DispatchSemaphore(value: 0)
        let hasLooked = DispatchSemaphore(value: 0)
        let asked = Atomic(0)
        let answered = Atomic(0)
    }
}
