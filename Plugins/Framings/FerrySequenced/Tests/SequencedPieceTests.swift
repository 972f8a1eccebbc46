import Ferry
import TestSupport
import Testing

@testable import FerrySequenced

/// Chunks that go in pieces, because the link has become too small for them.
@Suite(.tags(.framing, .sequenced)) struct SequencedPieceTests {
    @Test func aChunkInPiecesBeginsAnewOnANewLink() throws {
        var session = try SequencedFraming.Session.met()
        try session.enqueue(Array(1...60), as: MessageID(rawValue: 0), at: .zero)
        #expect(try session.drain(atMost: 100).count == 1)
        var now = try #require(try session.wakeNext())
        // The link has become smaller: two of the four pieces leave.
        for _ in 0..<2 { #expect(try session.transmit(atMost: 20, at: now) { _ in true } == .accepted) }
        session.linkDidClose(at: now)
        session.linkDidOpen(at: now)
        try session.take(resuming(0), at: now)
        let whole = try session.drain(atMost: 100, at: now).filter { $0[0] < 0xE0 }
        #expect(whole.count == 1)
        // Lost again: what goes is the whole chunk, not the rest of what was begun long ago.
        now = try #require(try session.wakeNext())
        #expect(try session.drain(atMost: 100, at: now) == whole)
    }

    @Test func piecesBegunAreFinishedInPiecesAndEndWithAnAcknowledgement() throws {
        var session = try SequencedFraming.Session.met()
        try session.enqueue(Array(1...60), as: MessageID(rawValue: 0), at: .zero)
        let whole = try session.drain(atMost: 100)
        var now = try #require(try session.wakeNext())
        var pieces: [[UInt8]] = []
        func piece(atMost size: Int) throws -> Bool {
            try session.transmit(atMost: size, at: now) { chunk in
                pieces.append(chunk.withUnsafeBytes { Array($0) })
                return true
            } == .accepted
        }
        #expect(try piece(atMost: 20))
        #expect(try piece(atMost: 100))
        #expect(try !piece(atMost: 100))
        #expect(pieces.map { Array($0.prefix(3)) } == [[0xE4, 0, 0], [0xE4, 0x80, 17]])
        #expect(pieces.flatMap { $0.dropFirst(3) } == whole[0])
        // Half of it goes again; then the peer says that it has it after all.
        now = try #require(try session.wakeNext())
        pieces = []
        #expect(try piece(atMost: 20))
        #expect(pieces.map { Array($0.prefix(3)) } == [[0xE4, 0, 0]])
        try session.take(Acknowledgement.chunk(1), at: now)
        #expect(try !piece(atMost: 20))
        #expect(session.sentPiece == nil)
    }

    @Test func piecesComeTogether() throws {
        let whole = wholeMessage(0, Array(1...30))
        func pieces(_ cuts: [Int], sequence: UInt8 = 0) -> [[UInt8]] {
            var pieces: [[UInt8]] = []
            var offset = 0
            for cut in cuts + [whole.count] {
                let flags: UInt8 = cut == whole.count ? 0x80 : 0
                pieces.append([0xE4, sequence | flags, UInt8(offset)] + whole[offset..<cut])
                offset = cut
            }
            return pieces
        }
        var session = try SequencedFraming.Session.met()
        for piece in pieces([10, 11, 25]) { try session.take(piece) }
        #expect(session.eventDescriptions() == ["received 30"])
        #expect(session.receivedPiece.bytes.isEmpty)
        // One is missing: nothing comes of it, until it begins again.
        session = try SequencedFraming.Session.met()
        let parts = pieces([10, 20])
        try session.take(parts[0])
        try session.take(parts[2])
        #expect(session.eventDescriptions() == [])
        try session.take(parts[1])
        try session.take(parts[2])
        #expect(session.eventDescriptions() == ["received 30"])
        // One of another chunk takes its place.
        session = try SequencedFraming.Session.met()
        try session.take(parts[0])
        try session.take(pieces([10, 20], sequence: 1)[1])
        try session.take(parts[1])
        try session.take(parts[2])
        #expect(session.eventDescriptions() == [])
        for piece in parts { try session.take(piece) }
        #expect(session.eventDescriptions() == ["received 30"])
        // And a link that ends takes them with it.
        session = try SequencedFraming.Session.met()
        try session.take(parts[0])
        session.linkDidClose(at: .zero)
        session.linkDidOpen(at: .zero)
        try session.take(resuming(0))
        try session.take(parts[1])
        try session.take(parts[2])
        #expect(session.eventDescriptions() == [])
    }

    @Test func piecesAreBounded() throws {
        var session = try SequencedFraming.Session.met()
        let part = [UInt8](repeating: 0, count: 1 << 14)
        func piece(_ offset: Int, _ bytes: ArraySlice<UInt8>) -> [UInt8] {
            var chunk: [UInt8] = [0xE4, 0]
            Varint.append(UInt64(offset), to: &chunk)
            return chunk + bytes
        }
        try session.take(piece(0, part[...]))
        try session.take(piece(1 << 14, part[...]))
        #expect(session.receivedPiece.bytes.count == 1 << 15)
        try session.take(piece(1 << 15, part[..<1]))
        #expect(session.receivedPiece.bytes.count == 1 << 15)
    }
}
