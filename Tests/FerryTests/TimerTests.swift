@testable import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Timers fire once, in order, and leave nothing behind when they are cancelled.
@Suite(.tags(.core)) struct TimerTests {
    /// Random settings and cancellations against a plain sorted list.
    @Test(arguments: 0..<20) func theQueueAgreesWithASortedList(_ seed: Int) {
        var random = SplitMix64(seed: UInt64(seed))
        var queue = TimerQueue()
        var model: [(deadline: Int64, number: UInt64)] = []
        let fired = Mutex<[Int64]>([])
        for _ in 0..<500 {
            switch random.below(4) {
            case 0, 1:
                let deadline = Int64(random.below(50))
                let number = queue.set(Timestamp(nanoseconds: deadline)) { fired.withLock { $0.append(deadline) } }
                model.append((deadline, number))
            case 2 where !model.isEmpty:
                _ = queue.cancel(model.remove(at: random.below(model.count)).number)
            default:
                let limit = Timestamp(nanoseconds: Int64(random.below(50)))
                let next = model.min { ($0.deadline, $0.number) < ($1.deadline, $1.number) }
                #expect(queue.nextDeadline() == next.map { Timestamp(nanoseconds: $0.deadline) })
                let due = queue.popDue(at: limit)
                guard let next, next.deadline <= limit.nanoseconds else {
                    #expect(due == nil)
                    continue
                }
                #expect(due?.deadline.nanoseconds == next.deadline)
                model.removeAll { $0.number == next.number }
            }
            #expect(queue.count == model.count)
        }
    }

    /// A hundred thousand timers of an hour, each called off, keep no more places than a few dozen.
    @Test func cancelledTimersLeaveNoPlaces() {
        var queue = TimerQueue()
        for _ in 0..<100_000 {
            let number = queue.set(Timestamp(nanoseconds: 3_600_000_000_000)) {}
            _ = queue.cancel(number)
            _ = queue.cancel(number)
        }
        #expect(queue.count == 0)
        #expect(queue.placeCount < 100)
        #expect(queue.nextDeadline() == nil)
    }

    /// What an action holds may end when its timer is called off, and call off another then.
    @Test(arguments: [SystemTime() as any TimeSource, VirtualTime()]) func whatACancelledTimerHoldsMayCancelOthers(
        _ time: any TimeSource
    ) {
        final class Holder: Sendable {
            let other: ScheduledTimer
            let hasEnded: @Sendable () -> Void
            init(_ other: ScheduledTimer, _ hasEnded: @escaping @Sendable () -> Void) {
                (self.other, self.hasEnded) = (other, hasEnded)
            }
            deinit {
                other.cancel()
                hasEnded()
            }
        }
        let ends = Mutex(0)
        func set() -> ScheduledTimer {
            let other = time.schedule(at: time.now + .seconds(3600)) {}
            let holder = Holder(other) { ends.withLock { $0 += 1 } }
            return time.schedule(at: time.now + .seconds(3600)) { withExtendedLifetime(holder) {} }
        }
        set().cancel()
        #expect(ends.withLock { $0 } == 1)
    }

    /// The system's timers fire in order, not before their time, however they are set.
    @Test(.timeLimit(.minutes(5))) func systemTimersFireInOrder() async {
        let time = SystemTime()
        let fired = Mutex<[Int]>([])
        let start = time.now
        let (ends, end) = AsyncStream<Void>.makeStream()
        let early = Mutex(0)
        for (index, milliseconds) in [90, 30, 60, 0, 120].enumerated() {
            let deadline = start + .milliseconds(milliseconds)
            time.schedule(at: deadline) {
                if SystemTime().now < deadline { early.withLock { $0 += 1 } }
                fired.withLock { $0.append(index) }
                if milliseconds == 120 { end.finish() }
            }
        }
        let cancelled = time.schedule(at: start + .milliseconds(45)) { fired.withLock { $0.append(-1) } }
        cancelled.cancel()
        for await _ in ends {}
        #expect(fired.withLock { $0 } == [3, 1, 2, 0, 4])
        #expect(early.withLock { $0 } == 0)
    }

    /// Setting a timer of more than a second and a later, shorter one: both fire.
    @Test(.timeLimit(.minutes(5))) func aLongTimerDoesNotHoldUpAShortOne() async {
        let time = SystemTime()
        let start = time.now
        let (ends, end) = AsyncStream<Duration>.makeStream()
        time.schedule(at: start + .milliseconds(1300)) {
            end.yield(SystemTime().now - start)
            end.finish()
        }
        time.schedule(at: start + .milliseconds(20)) { end.yield(SystemTime().now - start) }
        var durations: [Duration] = []
        for await duration in ends { durations.append(duration) }
        #expect(durations.count == 2)
        #expect(durations[0] >= .milliseconds(20) && durations[0] < durations[1])
        #expect(durations[1] >= .milliseconds(1300))
    }
}
