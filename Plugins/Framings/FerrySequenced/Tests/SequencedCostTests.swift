import Ferry
import FerrySequenced
import FerryTesting
import TestSupport
import Testing

/// An LE connection without gaps: in each exchange either side sends one value, and its air time passes
/// (Core Specification 5.4, Vol 6, Part B, 2.1: preamble, access address, header and CRC are 10 bytes on LE 1M; 150 us
/// between packets).
struct LEExchanges<Sender: FramingSession, Receiver: FramingSession> {
    var sender: Sender
    var receiver: Receiver
    let chunkSize: Int
    /// The most bytes of a link-layer packet.
    let packetSize: Int
    var loss = 0
    var random = SplitMix64(seed: 11)
    var now = Timestamp.zero
    var queues: [[[UInt8]]] = [[], []]
    var chunkCounts = [0, 0]
    var delivered = 0
    var deliveredBytes = 0
    private let depth = 8

    init(_ sender: Sender, _ receiver: Receiver, chunkSize: Int, packetSize: Int, loss: Int = 0) {
        self.sender = sender
        self.receiver = receiver
        self.chunkSize = chunkSize
        self.packetSize = packetSize
        self.loss = loss
    }

    private func airTime(_ chunk: [UInt8]?) -> Int {
        // 3 bytes of ATT and 4 of L2CAP before the value.
        guard let chunk else { return 80 }
        var left = chunk.count + 7
        var time = 0
        while left > 0 {
            time += (10 + min(left, packetSize)) * 8
            left -= packetSize
            if left > 0 { time += 150 + 80 + 150 }
        }
        return time
    }

    private static func fill(
        _ session: inout some FramingSession, _ queue: inout [[UInt8]], _ count: inout Int, _ size: Int, _ depth: Int,
        at now: Timestamp
    ) throws {
        var outcome = Transmission.idle
        repeat {
            outcome = try session.transmit(atMost: size, at: now) { chunk in
                guard queue.count < depth else { return false }
                queue.append(chunk.withUnsafeBytes { Array($0) })
                count += 1
                return true
            }
        } while outcome == .accepted
    }

    /// Sends messages one way; returns bytes of payload for each second.
    mutating func run(messages: Int, of count: Int) throws -> Double {
        sender.linkDidOpen(at: now)
        receiver.linkDidOpen(at: now)
        for number in 0..<messages {
            let payload = [UInt8](repeating: UInt8(truncatingIfNeeded: number), count: count)
            try sender.enqueue(payload, as: MessageID(rawValue: UInt64(number)), at: now)
        }
        while delivered < messages {
            try Self.fill(&sender, &queues[0], &chunkCounts[0], chunkSize, depth, at: now)
            try Self.fill(&receiver, &queues[1], &chunkCounts[1], chunkSize, depth, at: now)
            let out = queues[0].isEmpty ? nil : queues[0].removeFirst()
            let back = queues[1].isEmpty ? nil : queues[1].removeFirst()
            now = now + .microseconds(airTime(out) + 150 + airTime(back) + 150)
            if let out, random.below(1000) >= loss { try receiver.receive(out.span.bytes, at: now) }
            if let back, random.below(1000) >= loss { try sender.receive(back.span.bytes, at: now) }
            if let deadline = sender.deadline, deadline <= now { try sender.wake(at: now) }
            if let deadline = receiver.deadline, deadline <= now { try receiver.wake(at: now) }
            while sender.nextEvent() != nil {}
            while let event = receiver.nextEvent() {
                guard case .received(let payload) = event else { continue }
                delivered += 1
                deliveredBytes += payload.count
                receiver.consume(payload.count, at: now)
            }
        }
        return Double(deliveredBytes) / (Double(now.nanoseconds) / 1e9)
    }
}

@Suite(.tags(.core, .framing, .sequenced)) struct SequencedCostTests {
    private func goodput(
        _ framing: some Framing, chunkSize: Int, packetSize: Int, loss: Int = 0, of count: Int
    ) throws -> (Double, chunks: [Int]) {
        var exchanges = LEExchanges(
            framing.makeSession(limits: Limits()), framing.makeSession(limits: Limits()), chunkSize: chunkSize,
            packetSize: packetSize, loss: loss)
        let result = try exchanges.run(messages: max(4, (200 << 10) / count), of: count)
        return (result, exchanges.chunkCounts)
    }

    @Test(arguments: [1 << 10, 4 << 10, 64 << 10])
    func goodputBesideTheLengthPrefix(count: Int) throws {
        for (chunkSize, packetSize, share) in [(244, 251, 0.97), (20, 27, 0.9)] {
            let (plain, _) = try goodput(
                LengthPrefixFraming(), chunkSize: chunkSize, packetSize: packetSize, of: count)
            let (sequenced, chunks) = try goodput(
                SequencedFraming(), chunkSize: chunkSize, packetSize: packetSize, of: count)
            let (lossy, _) = try goodput(
                SequencedFraming(), chunkSize: chunkSize, packetSize: packetSize, loss: 10, of: count)
            print(
                "\(count)-byte messages in chunks of \(chunkSize): length \(Int(plain)) B/s, sequenced "
                    + "\(Int(sequenced)) B/s (\(Int(sequenced / plain * 1000)) in 1000), with 1 % lost \(Int(lossy)) B/s "
                    + "(\(Int(lossy / sequenced * 1000)) in 1000); \(chunks[0]) chunks out, \(chunks[1]) back")
            #expect(sequenced >= share * plain)
            #expect(lossy >= 0.9 * sequenced)
            #expect(chunks[1] * 8 <= chunks[0] + 16)
        }
    }
}

/// The three framings under the same faults.
@Suite(.tags(.core, .framing, .sequenced)) struct FramingComparisonTests {
    struct Outcome: Equatable {
        var delivered = 0
        var damaged = 0
        var doubled = 0
        var lost = 0
        /// Links that ended because the receiver waited in the middle of a message for what never came.
        var stalled = 0
        /// Links that ended because the receiver found the sides out of step.
        var ended = 0
    }

    /// Links for each framing and fault, with ten messages each.
    private static let links = Effort.of(60, full: 200)

    /// One message after the other over a link with faults; a link whose session ends is replaced, as an app would.
    private func run(
        _ framing: some Framing, loss: Int, doubling: Int, reordering: Int, cutting: Int
    ) throws -> Outcome {
        var outcome = Outcome()
        for seed in 0..<Self.links {
            var random = SplitMix64(seed: UInt64(seed))
            var sender = framing.makeSession(limits: Limits())
            var receiver = framing.makeSession(limits: Limits())
            sender.linkDidOpen(at: .zero)
            receiver.linkDidOpen(at: .zero)
            var wires: [[[UInt8]]] = [[], []]
            var arrived = [Int](repeating: 0, count: 10)
            let payloads = (0..<10).map { number in
                (0..<100).map { UInt8(truncatingIfNeeded: number * 31 + $0 * 7) }
            }
            for (number, payload) in payloads.enumerated() {
                try sender.enqueue(payload, as: MessageID(rawValue: UInt64(number)), at: .zero)
            }
            var now = Timestamp.zero
            do {
                for _ in 0..<4000 {
                    for side in 0...1 {
                        while wires[side].count < 4 {
                            var chunk: [UInt8]?
                            let offer: (RawSpan) -> Bool = {
                                chunk = $0.withUnsafeBytes { Array($0) }
                                return true
                            }
                            _ =
                                side == 0
                                ? try sender.transmit(atMost: 20, at: now, offer)
                                : try receiver.transmit(atMost: 20, at: now, offer)
                            guard let chunk else { break }
                            wires[side].append(chunk)
                        }
                    }
                    var isBusy = false
                    for side in 0...1 where !wires[side].isEmpty {
                        isBusy = true
                        let index = random.below(1000) < reordering ? min(1, wires[side].count - 1) : 0
                        var chunk = wires[side].remove(at: index)
                        if random.below(1000) < loss { continue }
                        if random.below(1000) < cutting { chunk = Array(chunk.prefix(1 + random.below(chunk.count))) }
                        for _ in 0..<(random.below(1000) < doubling ? 2 : 1) {
                            if side == 0 {
                                try receiver.receive(chunk.span.bytes, at: now)
                            } else {
                                try sender.receive(chunk.span.bytes, at: now)
                            }
                        }
                    }
                    now = now + .milliseconds(1)
                    if !isBusy {
                        guard let next = [sender.deadline, receiver.deadline].compactMap({ $0 }).min() else { break }
                        now = max(now, next)
                    }
                    if let deadline = sender.deadline, deadline <= now { try sender.wake(at: now) }
                    if let deadline = receiver.deadline, deadline <= now { try receiver.wake(at: now) }
                    while sender.nextEvent() != nil {}
                    while let event = receiver.nextEvent() {
                        guard case .received(let payload) = event else { continue }
                        receiver.consume(payload.count, at: now)
                        guard let number = payloads.firstIndex(of: payload) else {
                            outcome.damaged += 1
                            continue
                        }
                        arrived[number] += 1
                    }
                }
            } catch  where error.code == .truncatedMessage {
                outcome.stalled += 1
            } catch {
                outcome.ended += 1
            }
            outcome.delivered += arrived.count { $0 >= 1 }
            outcome.doubled += arrived.count { $0 > 1 }
            outcome.lost += arrived.count { $0 == 0 }
        }
        return outcome
    }

    @Test func theThreeSideBySide() throws {
        let faults: [(name: String, loss: Int, doubling: Int, reordering: Int, cutting: Int)] = [
            ("none", 0, 0, 0, 0), ("2 % lost", 20, 0, 0, 0), ("2 % doubled", 0, 20, 0, 0),
            ("2 % overtaken", 0, 0, 20, 0), ("2 % cut", 0, 0, 0, 20), ("2 % of each", 20, 20, 20, 20),
        ]
        let messages = 10 * Self.links
        print(
            "of \(messages) messages: faults, framing, delivered, lost, damaged, doubled, links stalled, ended of \(Self.links)"
        )
        for fault in faults {
            func row(_ framing: some Framing) throws -> Outcome {
                let outcome = try run(
                    framing, loss: fault.loss, doubling: fault.doubling, reordering: fault.reordering,
                    cutting: fault.cutting)
                print(
                    "\(fault.name), \(framing.name): \(outcome.delivered), \(outcome.lost), \(outcome.damaged), "
                        + "\(outcome.doubled), \(outcome.stalled), \(outcome.ended)")
                return outcome
            }
            let marker = try row(EndOfMessageFraming())
            let length = try row(LengthPrefixFraming())
            let sequenced = try row(SequencedFraming())
            #expect(sequenced == Outcome(delivered: messages))
            if fault.name != "none" {
                #expect(marker.delivered < messages || marker.damaged > 0)
                #expect(length.delivered < messages || length.damaged > 0)
            }
        }
    }
}
