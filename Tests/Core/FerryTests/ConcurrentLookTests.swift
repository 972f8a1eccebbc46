import Ferry
import FerryTesting
import Foundation
import Synchronization
import TestSupport
import Testing

/// Whoever finds the channel's lock taken leaves its share to the thread that has it, also when that one only looks.
@Suite(.tags(.core, .channel), .timeLimit(.minutes(5))) struct ConcurrentLookTests {
    @Test func whatIsAskedForDuringALookIsDone() async {
        let limits = Limits()
        let core = ChannelCore(
            link: MemoryLink.makePair(maximumChunkSize: 20).0,
            session: LengthPrefixFraming().makeSession(limits: limits), chunkSize: .max,
            limits: limits, time: VirtualTime())
        core.open()
        // It has ended, so that no other event does what was left.
        core.finish(FerryError(.closed, "The test ends it."))
        let rounds = Effort.of(10_000, full: 1_000_000)
        let counters = Counters()
        let looker = Thread {
            for round in 1...rounds {
                while counters.begun.load(ordering: .acquiring) < round { sched_yield() }
                // The last look is one that had begun before something was asked for.
                repeat {
                    _ = core.status
                    counters.looking.store(round, ordering: .releasing)
                } while counters.asked.load(ordering: .acquiring) < round
                counters.looked.store(round, ordering: .releasing)
            }
        }
        looker.start()
        // Not on a thread that other tests run on: it waits in every round.
        let unanswered: Int? = await withCheckedContinuation { continuation in
            Thread.detachNewThread {
                var unanswered: Int?
                for round in 1...rounds {
                    counters.begun.store(round, ordering: .releasing)
                    while counters.looking.load(ordering: .acquiring) < round { sched_yield() }
                    counters.asked.store(round, ordering: .releasing)
                    core.submit([1], as: core.makeID()) { _ in counters.answered.add(1, ordering: .relaxed) }
                    while counters.looked.load(ordering: .acquiring) < round { sched_yield() }
                    if unanswered == nil, counters.answered.load(ordering: .relaxed) < round { unanswered = round }
                }
                continuation.resume(returning: unanswered)
            }
        }
        #expect(unanswered == nil, "nobody has done what was asked for in this round")
    }

    private final class Counters: Sendable {
        let begun = Atomic(0)
        let looking = Atomic(0)
        let asked = Atomic(0)
        let looked = Atomic(0)
        let answered = Atomic(0)
    }
}
