@testable import Ferry
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// Timers fire once, in order, and leave nothing behind when they are cancelled.
@Suite(.tags(.core), .timeLimit(.minutes(5))) struct TimerTests {
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
    @Test func systemTimersFireInOrder() async throws {
        // A machine that stands still for a while lets two of them fire at the same time, so one run of some is enough for the order.
        try await until("timers fire in order") { await fired(after: [90, 30, 60, 0, 120]) == [0, 30, 60, 90, 120] }
    }

    /// The deadlines in milliseconds of timers that are set in this order, in the order in which they fired.
    private func fired(after deadlines: [Int]) async -> [Int] {
        let time = SystemTime()
        let start = time.now
        let (firings, firing) = AsyncStream<(milliseconds: Int, isEarly: Bool)>.makeStream()
        for milliseconds in deadlines {
            let deadline = start + .milliseconds(milliseconds)
            time.schedule(at: deadline) { firing.yield((milliseconds, SystemTime().now < deadline)) }
        }
        var fired: [Int] = []
        for await (milliseconds, isEarly) in firings {
            #expect(!isEarly)
            fired.append(milliseconds)
            if fired.count == deadlines.count { break }
        }
        return fired
    }

    @Test func aCancelledSystemTimerDoesNotFire() async throws {
        let time = SystemTime()
        try await until("a timer is cancelled before it is due") {
            let hasFired = Mutex(false)
            let deadline = time.now + .milliseconds(20)
            time.schedule(at: deadline) { hasFired.withLock { $0 = true } }.cancel()
            let isInTime = time.now < deadline
            try await time.sleep(until: deadline + .milliseconds(20))
            if isInTime { #expect(!hasFired.withLock { $0 }) }
            return isInTime
        }
    }

    /// A timer of more than a second, a longer one and a later, shorter one: none holds up another.
    @Test func aLongTimerDoesNotHoldUpAShortOne() async {
        let time = SystemTime()
        let start = time.now
        let (ends, end) = AsyncStream<(milliseconds: Int, passed: Duration)>.makeStream()
        let longest = time.schedule(at: start + .unreached) { end.finish() }
        defer { longest.cancel() }
        for milliseconds in [1300, 20] {
            time.schedule(at: start + .milliseconds(milliseconds)) {
                end.yield((milliseconds, SystemTime().now - start))
            }
        }
        var fired: Set<Int> = []
        for await (milliseconds, passed) in ends {
            #expect(passed >= .milliseconds(milliseconds))
            fired.insert(milliseconds)
            if fired.count == 2 { break }
        }
        #expect(fired == [20, 1300])
    }
}
