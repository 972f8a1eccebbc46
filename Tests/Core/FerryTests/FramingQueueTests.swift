import Ferry
import FerryTesting
import TestSupport
import Testing

/// What waits in the simple framings, beside a list that is searched from end to end: what leaves, in which order, what can be
/// taken back, and what is known of it.
@Suite(.tags(.core, .framing)) struct FramingQueueTests {
    /// A message in the list.
    private struct Waiting {
        let id: MessageID
        let payload: [UInt8]
        /// Its bytes on the link, and how many of them have been accepted.
        let size: Int
        var accepted = 0
    }

    /// - Parameter sizeOnLink: a message's bytes on the link.
    /// - Parameter fillsChunks: whether a chunk takes the beginnings of the messages behind.
    private func check(
        _ framing: some Framing, seed: UInt64, fillsChunks: Bool, sizeOnLink: (Int) -> Int
    ) throws {
        var random = SplitMix64(seed: seed)
        var session = framing.makeSession(limits: Limits())
        var receiver = framing.makeSession(limits: Limits())
        var list: [Waiting] = []
        var nextID: UInt64 = 0
        var expected: [[UInt8]] = []
        let comment: Comment = "\(framing.name), seed \(seed)"

        func enqueue(_ id: UInt64) throws {
            let payload = [UInt8](repeating: UInt8(0x61 + id % 26), count: Int.random(in: 0...30, using: &random))
            try session.enqueue(payload, as: MessageID(rawValue: id), at: .zero)
            list.append(Waiting(id: MessageID(rawValue: id), payload: payload, size: sizeOnLink(payload.count)))
        }

        func transmit() throws {
            let size = Int.random(in: 3...40, using: &random)
            var chunks: [[UInt8]] = []
            let outcome = try session.sendOne(atMost: size, to: &chunks)
            #expect(outcome == (list.isEmpty ? .idle : .accepted), comment)
            guard let chunk = chunks.first else { return }
            if fillsChunks { #expect(chunk.count == min(size, list.reduce(0) { $0 + $1.size - $1.accepted }), comment) }
            try receiver.receive(chunk.span.bytes, at: .zero)
            var sent: [MessageID] = []
            var rest = chunk.count
            while rest > 0, let first = list.first {
                let step = min(rest, first.size - first.accepted)
                rest -= step
                list[0].accepted += step
                if list[0].accepted == first.size {
                    sent.append(first.id)
                    expected.append(list.removeFirst().payload)
                }
            }
            var told: [MessageID] = []
            while let event = session.nextEvent() { if case .sent(let id) = event { told.append(id) } }
            #expect(told == sent, comment)
        }

        for _ in 0..<600 {
            switch Int.random(in: 0..<100, using: &random) {
            case 0..<45:
                // Two that are sent at the same time may come the other way round.
                let swaps = Int.random(in: 0..<5, using: &random) == 0
                for id in swaps ? [nextID + 1, nextID] : [nextID] { try enqueue(id) }
                nextID += swaps ? 2 : 1
            case 45..<85:
                let id = MessageID(rawValue: UInt64.random(in: 0...nextID, using: &random))
                let index = list.firstIndex { $0.id == id }
                let hasBegun = index.map { list[$0].accepted > 0 } ?? false
                let fate: MessageFate = index == nil ? .mayHaveArrived : hasBegun ? .takenBack : .nothingSent
                #expect(session.fate(of: id) == fate, comment)
                guard Bool.random(using: &random) else { continue }
                #expect(session.cancel(id, at: .zero) == (index != nil && !hasBegun), comment)
                if let index, !hasBegun { list.remove(at: index) }
            default: try transmit()
            }
        }
        while !list.isEmpty { try transmit() }
        #expect(receiver.receivedMessages() == expected, comment)
    }

    @Test(arguments: 0..<20 as Range<UInt64>) func whatWaitsLeavesInOrderUnlessTakenBack(seed: UInt64) throws {
        try check(try EndOfMessageFraming(chunkSize: nil), seed: seed, fillsChunks: false) { $0 + 3 }
        try check(LengthPrefixFraming(), seed: seed, fillsChunks: true) { $0 + 1 }
        try check(LengthPrefixFraming(prefix: .uint16(.big)), seed: seed, fillsChunks: true) { $0 + 2 }
    }
}
