import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

@Suite(.tags(.core, .framing, .sequenced)) struct SequencedSessionTests {
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

    /// The messages that arrive at side 1, by their sizes, in order.
    private func arrivals(_ pair: inout SequencedPair, rounds: Int) -> [Int] {
        var sizes: [Int] = []
        for _ in 0..<rounds {
            pair.pump(0)
            while !pair.wires[0].isEmpty { pair.deliver(from: 0) }
            sizes += pair.unread[1]
            pair.consume(1)
            pair.pump(1)
            while !pair.wires[1].isEmpty { pair.deliver(from: 1) }
        }
        return sizes
    }

    @Test func anUrgentMessagePassesALargeOneAtTheNextChunk() {
        var pair = pair()
        pair.send(from: 0, count: 5000)
        _ = arrivals(&pair, rounds: 3)
        pair.space = [3, nil]
        pair.pump(0)
        pair.wires = [[], []]
        pair.send(from: 0, count: 5, options: SendOptions(priority: .urgent))
        pair.space = [1, nil]
        pair.pump(0)
        // The next chunk holds the whole urgent message: record, length, payload.
        let next = pair.wires[0].first ?? []
        let urgent = SequencedPair.payload(0, 1, count: 5)
        #expect(next.indices.contains { next[$0...].starts(with: urgent) })
        #expect(next.first ?? 0 >= 0x80)
        pair.settle()
        #expect(pair.violation == nil)
    }

    @Test func equalsShareByWeight() {
        var pair = pair()
        pair.send(from: 0, count: 20_000, options: SendOptions(weight: 3))
        pair.send(from: 0, count: 20_000, options: SendOptions(weight: 1))
        var received = [0, 0]
        for _ in 0..<12 {
            pair.pump(0)
            while !pair.wires[0].isEmpty { pair.deliver(from: 0) }
            pair.pump(1)
            while !pair.wires[1].isEmpty { pair.deliver(from: 1) }
        }
        for message in pair.sessions[0].progressOfMessages { received[Int(message.id.rawValue)] = message.acknowledged }
        #expect(received[1] > 1000)
        let share = Double(received[0]) / Double(received[1])
        #expect(share > 2.4 && share < 3.6, "\(received)")
    }

    @Test func aSlowReaderStopsTheSender() {
        var pair = pair { $0.creditWindow = 4096 }
        for _ in 0..<100 { pair.send(from: 0, count: 500) }
        for _ in 0..<50 {
            pair.exchange()
            if let deadline = pair.nextDeadline { pair.now = max(pair.now, deadline) }
            pair.wake(0)
            pair.wake(1)
        }
        #expect(pair.ended == nil)
        let held = pair.unread[1].reduce(0, +)
        #expect(held > 2000 && held <= 4096, "\(held) bytes")
        pair.settle()
        #expect(pair.violation == nil)
        let isAllSent = pair.fates[0].allSatisfy { $0.isSent }
        #expect(isAllSent)
    }

    /// Credit that runs out is asked for, so a small window costs round trips and no timeout.
    @Test(arguments: [20, 64, 182, 244, 512]) func aSmallCreditWindowWaitsForNoTimer(size: Int) {
        var pair = pair { $0.creditWindow = 1024 }
        pair.chunkSize = [size, size]
        pair.send(from: 0, count: 50_000)
        for count in [0, 1, 700, 900, 2000] { pair.send(from: 0, count: count) }
        for _ in 0..<100 {
            pair.exchange()
            pair.consume(1)
        }
        #expect(pair.now == .zero)
        #expect(pair.violation == nil)
        let isAllSent = pair.fates[0].allSatisfy { $0.isSent }
        #expect(isAllSent)
    }

    @Test func theCreditWindowIsHalfOfWhatMayWaitAtMost() {
        var limits = Limits()
        limits.maximumMessageSize = 64 << 20
        #expect(SequencedFraming().makeSession(limits: limits).inbox.window == 256 << 10)
        limits.maximumInboundBytes = 100_000
        #expect(SequencedFraming().makeSession(limits: limits).inbox.window == 50_000)
        limits.maximumInboundMessages = 1000
        #expect(SequencedFraming().makeSession(limits: limits).inbox.window == 8000)
        limits.maximumInboundBytes = 0
        limits.maximumInboundMessages = .max
        #expect(SequencedFraming().makeSession(limits: limits).inbox.window == 1024)
    }

    @Test func cancellingInTheMiddleTellsThePeer() {
        var pair = pair()
        pair.send(from: 0, count: 50_000)
        _ = arrivals(&pair, rounds: 3)
        pair.cancel(from: 0, 0)
        #expect(pair.fates[0][0].isCancelled)
        pair.send(from: 0, count: 10)
        pair.settle()
        #expect(pair.violation == nil)
        #expect(pair.receiveFailures == [0, 1])
        #expect(pair.fates[0][0].deliveries == 0)
        #expect(pair.fates[0][1].isSent)
    }

    @Test func aReceiptMayBeTheLinks() {
        var pair = pair { $0.receipt = .handedOver }
        _ = arrivals(&pair, rounds: 2)
        pair.send(from: 0, count: 100)
        pair.pump(0)
        #expect(pair.fates[0][0].isSent)
        pair.settle(steps: 100)
    }

    @Test func chunksThatHaveBecomeTooLargeGoInPieces() {
        var pair = pair()
        pair.chunkSize = [244, 244]
        _ = arrivals(&pair, rounds: 2)
        pair.send(from: 0, count: 2000)
        pair.pump(0)
        let count = pair.wires[0].count
        pair.wires = [[], []]
        pair.chunkSize = [20, 20]
        pair.settle()
        #expect(count > 5)
        #expect(pair.violation == nil)
        #expect(pair.ended == nil)
        #expect(pair.fates[0][0].isSent)
    }

    /// The loss of a link in the middle of a chunk's pieces is not reported before the next link opens.
    @Test func aNewLinkEndsTheOneBefore() {
        var pair = pair()
        pair.chunkSize = [244, 244]
        _ = arrivals(&pair, rounds: 2)
        pair.send(from: 0, count: 2000)
        pair.pump(0)
        // Those chunks are lost. They are sent again in pieces, of which the first few arrive.
        pair.wires = [[], []]
        pair.chunkSize = [20, 20]
        pair.now = pair.nextDeadline ?? pair.now
        pair.wake(0)
        pair.space = [3, nil]
        pair.pump(0)
        while !pair.wires[0].isEmpty { pair.deliver(from: 0) }
        pair.space = [nil, nil]
        pair.open()
        pair.settle()
        #expect(pair.violation == nil)
        #expect(pair.ended == nil)
        #expect(pair.fates[0][0].isSent)
    }

    @Test func aLinkThatIsTooSmallIsNamed() {
        var pair = pair()
        pair.chunkSize = [19, 19]
        pair.pump(0)
        #expect(pair.ended?.code == .chunkSizeTooSmall)
    }
}

extension SequencedFraming.Session {
    fileprivate var progressOfMessages: [(id: MessageID, acknowledged: Int)] {
        outbox.messages.map { ($0.id, $0.acknowledged) }
    }
}
