import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerrySequenced

/// A peer that breaks the rules costs it the link, and us a bounded amount.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedHostileTests {
    typealias Session = SequencedFraming.Session

    @Test func acknowledgingWhatWasNeverSent() throws {
        var session = try Session.met()
        #expect(session.refusal(of: [0xE0, 5, 1]) == .malformedStream)
        session = try Session.met()
        #expect(session.refusal(of: [0xE0, 0x80, 1, 1, 1]) == .malformedStream)
    }

    @Test func creditThatOverflows() throws {
        var session = try Session.met()
        #expect(session.refusal(of: [0xE0, 0] + [UInt8](repeating: 0xFF, count: 9) + [1]) == .malformedStream)
        session = try Session.met()
        #expect(session.refusal(of: [0xE0, 0] + [UInt8](repeating: 0xFF, count: 11)) == .malformedStream)
    }

    @Test func moreThanThereIsCreditFor() throws {
        var session = try Session.met { $0.creditWindow = 1024 }
        var code: FerryError.Code?
        // Messages of 100 bytes, none of which is ever consumed.
        for number in 0..<20 where code == nil {
            let payload = [UInt8](repeating: 1, count: 100)
            code = session.refusal(of: wholeMessage(UInt8(number), payload))
        }
        #expect(code == .malformedStream)
    }

    @Test func endlessFirstChunks() throws {
        var session = try Session.met()
        var code: FerryError.Code?
        var count = 0
        while code == nil, count < 1_000_000 {
            // A message begins in the next slot: 16 MiB are announced, and one byte comes.
            code = session.refusal(of: [
                0xA8, UInt8(count & 0x7F), 6 << 1, UInt8(count & 0x1F), 0x80, 0x80, 0x80, 0x08, 1,
            ])
            count += 1
        }
        #expect(code == .malformedStream)
        #expect(count == 3)
    }

    @Test func tooLargeAMessage() throws {
        var session = try Session.met()
        #expect(session.refusal(of: [0xA8, 0, 6 << 1, 0, 0x81, 0x80, 0x80, 0x08, 1]) == .messageTooLarge)
    }

    @Test func aWrongChecksum() throws {
        var session = try Session.met()
        #expect(session.refusal(of: [0xA4, 0, 0, 1, 42, 1, 2, 3, 4]) == .malformedStream)
        #expect(session.nextEvent() == nil)
    }

    @Test(arguments: [0x81, 0x8C, 0xE5, 0xFF] as [UInt8])
    func unknownFlagsAndTypes(first: UInt8) throws {
        var session = try Session.met()
        #expect(session.refusal(of: [first, 0, 0, 0]) == .malformedStream)
    }

    @Test func anUnknownHelloFlag() throws {
        var chunk = SequencedHello.fromPeer()
        chunk[1] |= 0x04
        var session = Session.alone()
        session.linkDidOpen(at: .zero)
        #expect(session.refusal(of: chunk) == .malformedStream)
    }

    @Test func aForeignVersionIsRefusedByName() throws {
        var chunk = SequencedHello.fromPeer()
        chunk[1] = 0x20
        var session = Session.alone()
        session.linkDidOpen(at: .zero)
        try session.receive(chunk.span.bytes, at: .zero)
        var refusal: [UInt8] = []
        _ = try session.transmit(atMost: 20, at: .zero) { chunk in
            refusal = chunk.withUnsafeBytes { Array($0) }
            return true
        }
        #expect(refusal == [0xE2, 1, 1])
        let error = #expect(throws: FerryError.self) { try session.drain() }
        #expect(error?.code == .incompatiblePeer)
        // And the refused side learns why.
        var peer = Session.alone()
        peer.linkDidOpen(at: .zero)
        #expect(peer.refusal(of: [0xE2, 1, 1]) == .incompatiblePeer)
    }

    @Test(arguments: [(1, 0), (0, 1)] as [(UInt8, UInt8)])
    func anotherCodecOrCompressionIsRefused(codec: UInt8, compression: UInt8) throws {
        var session = Session.alone {
            $0.codec = codec
            $0.compression = compression
        }
        session.linkDidOpen(at: .zero)
        try session.receive(SequencedHello.fromPeer().span.bytes, at: .zero)
        var refusal: [UInt8] = []
        let outcome = try session.transmit(atMost: 20, at: .zero) { chunk in
            refusal = chunk.withUnsafeBytes { Array($0) }
            return true
        }
        #expect(outcome == .accepted)
        #expect(refusal == [0xE2, codec == 1 ? 2 : 3, 1])
        #expect(throws: FerryError.self) { try session.drain() }
    }

    @Test func aReplayedHelloChangesNothing() throws {
        var session = try Session.met()
        try session.enqueue([1, 2, 3], as: MessageID(rawValue: 0), at: .zero)
        let first = try session.drain()
        #expect(first.count == 1)
        for _ in 0..<1000 {
            try session.receive(SequencedHello.fromPeer().span.bytes, at: .zero)
            // One answer at most to each, and no data again.
            #expect(try session.drain().allSatisfy { $0[0] == 0xE1 })
        }
    }

    @Test func resumingAForeignSession() throws {
        var session = try Session.met()
        try session.enqueue([1, 2, 3], as: MessageID(rawValue: 0), at: .zero)
        try session.drain()
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        // The same peer claims to have what was never sent.
        let lie = SequencedHello.fromPeer { $0.known = .init(session: 7, receivedCount: 5) }
        #expect(session.refusal(of: lie) == .malformedStream)

        session = try Session.met()
        try session.enqueue([1, 2, 3], as: MessageID(rawValue: 0), at: .zero)
        try session.drain()
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        // Another peer claims to know a session of ours that never was.
        let foreign = SequencedHello.fromPeer {
            $0.session = 100
            $0.known = .init(session: 1234, receivedCount: 1)
        }
        try session.receive(foreign.span.bytes, at: .zero)
        guard case .failed(_, let error) = session.nextEvent() else {
            Issue.record("nothing was told")
            return
        }
        #expect(error.code == .peerLostState)
        #expect(try session.drain().allSatisfy { $0[0] == 0xE1 })
    }

    @Test func aMillionMessageIdentifiersAreBounded() throws {
        var session = try Session.met { $0.creditWindow = 64 << 10 }
        var code: FerryError.Code?
        var count = 0
        while code == nil, count < 1_000_000 {
            // An empty message: its checksum is 0.
            code = session.refusal(of: [0xA4, UInt8(count & 0x7F), 0, 0, 0, 0, 0, 0])
            count += 1
        }
        #expect(code == .malformedStream)
        #expect(count <= (64 << 10) / 16 + 1)
    }

    @Test func noiseNeverTraps() throws {
        var random = SplitMix64(seed: 1)
        let corpus = try captured()
        var trace = SequencedTrace()
        for _ in 0..<20_000 {
            var session = try Session.met()
            for _ in 0..<4 {
                var chunk = corpus[random.below(corpus.count)]
                for _ in 0..<random.below(4) where !chunk.isEmpty {
                    chunk[random.below(chunk.count)] = UInt8(truncatingIfNeeded: random.next())
                }
                if random.chance(20) { chunk = Array(chunk.prefix(random.below(chunk.count + 1))) }
                if random.chance(10) { chunk += chunk }
                _ = trace.describe(chunk.span.bytes, from: .first)
                if session.refusal(of: chunk) != nil { break }
                _ = try? session.drain()
            }
        }
    }

    /// The chunks of a busy exchange.
    private func captured() throws -> [[UInt8]] {
        var pair = SequencedPair([SequencedFraming.Configuration(), SequencedFraming.Configuration()])
        var chunks: [[UInt8]] = []
        pair.open()
        for count in [0, 5, 100, 400] { pair.send(from: 0, count: count) }
        pair.send(from: 1, count: 50)
        for round in 0..<40 {
            for side in 0...1 {
                pair.pump(side)
                chunks += pair.wires[side]
                if round == 2, !pair.wires[side].isEmpty { pair.wires[side].removeFirst() }
                while !pair.wires[side].isEmpty { pair.deliver(from: side) }
            }
            pair.now = pair.nextDeadline ?? pair.now
            pair.wake(0)
            pair.wake(1)
        }
        #expect(chunks.count > 30)
        return chunks
    }
}
