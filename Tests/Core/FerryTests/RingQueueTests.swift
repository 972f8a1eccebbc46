import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core)) struct RingQueueTests {
    @Test func matchesAnArrayAfterEachOfManyRandomChanges() {
        for seed in UInt64(0)..<50 {
            var random = SplitMix64(seed: seed)
            var queue = RingQueue<Int>()
            var model: [Int] = []
            for step in 0..<400 {
                switch random.below(8) {
                case 0, 1, 2:
                    queue.append(step)
                    model.append(step)
                case 3:
                    queue.prepend(step)
                    model.insert(step, at: 0)
                case 4, 5: #expect(queue.popFirst() == (model.isEmpty ? nil : model.removeFirst()))
                case 6 where !model.isEmpty:
                    let place = random.below(model.count)
                    queue[place] += 1
                    model[place] += 1
                case 7 where random.chance(20):
                    let divisor = 2 + random.below(3)
                    queue.removeAll { $0 % divisor == 0 }
                    model.removeAll { $0 % divisor == 0 }
                default: break
                }
                #expect(Array(queue) == model, "seed \(seed), step \(step)")
                #expect(queue.first == model.first && queue.isEmpty == model.isEmpty)
            }
        }
    }

    @Test func copyDoesNotChangeWithTheOriginal() {
        var queue: RingQueue = [1, 2, 3]
        let copy = queue
        queue.removeFirst()
        queue.prepend(7)
        queue[2] = 9
        #expect(Array(copy) == [1, 2, 3])
        #expect(Array(queue) == [7, 2, 9])
    }

    private final class Owned {}

    @Test func elementIsReleasedWhenItLeaves() {
        var queue = RingQueue<Owned>()
        weak var first: Owned?
        weak var second: Owned?
        do {
            let (one, two) = (Owned(), Owned())
            (first, second) = (one, two)
            queue.append(one)
            queue.append(two)
        }
        _ = queue.popFirst()
        #expect(first == nil && second != nil)
        queue.removeAll { _ in true }
        #expect(second == nil)
    }
}
