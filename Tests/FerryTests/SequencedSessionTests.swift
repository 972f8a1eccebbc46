import Ferry
import Testing

@Suite struct SequencedSessionTests {
    private func pair(_ change: (inout SequencedFraming.Configuration) -> Void = { _ in }) -> SequencedPair {
        var configuration = SequencedFraming.Configuration()
        change(&configuration)
        var pair = SequencedPair([configuration, configuration])
        pair.open()
        return pair
    }

    @Test(arguments: [0, 1, 11, 12, 13, 20, 100, 1000, 70_000])
    func oneMessageArrives(count: Int) {
        var pair = pair()
        pair.send(from: 0, count: count)
        pair.settle()
        #expect(pair.violation == nil)
        #expect(pair.ended == nil)
        #expect(pair.fates[0][0].isSent)
    }

    @Test(arguments: [20, 21, 64, 65, 66, 67, 100, 128, 182, 244, 509, 512, 8200, 20_000])
    func everySizeOfChunkWorks(size: Int) {
        var pair = pair()
        pair.chunkSize = [size, size]
        for count in [0, 1, size - 10, size - 9, size - 8, size - 7, size - 6, size - 5, size, 3 * size, 5000] {
            pair.send(from: 0, count: count)
            pair.send(from: 1, count: count)
        }
        pair.settle()
        #expect(pair.violation == nil)
        #expect(pair.ended == nil)
    }

    @Test(arguments: 1...64)
    func sequenceNumbersWrapAtEveryWindow(window: Int) {
        var pair = pair { $0.window = window }
        pair.send(from: 0, count: 19 * 300)
        pair.send(from: 1, count: 19 * 300)
        pair.settle()
        #expect(pair.violation == nil)
        #expect(pair.ended == nil)
    }
}
