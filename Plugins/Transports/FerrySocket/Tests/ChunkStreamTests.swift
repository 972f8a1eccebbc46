import TestSupport
import Testing

@testable import FerrySocket

/// The format of chunks in a stream, held by golden bytes (`Documentation/Formats.md`).
@Suite(.tags(.framing)) struct ChunkStreamTests {
    /// Reads `wire` in pieces that end at the cuts.
    private func read(_ wire: [UInt8], inPiecesOf size: Int) -> (chunks: [[UInt8]], isMalformed: Bool) {
        let buffer = UnsafeMutableRawBufferPointer.allocate(byteCount: ChunkStream.capacity, alignment: 16)
        defer { buffer.deallocate() }
        var stream = ChunkStream()
        var chunks: [[UInt8]] = []
        var rest = wire[...]
        while true {
            switch stream.next(UnsafeRawBufferPointer(buffer)) {
            case .chunk(let range):
                chunks.append(Array(buffer[range]))
                continue
            case .empty: return (chunks, true)
            case .incomplete: break
            }
            guard !rest.isEmpty else { return (chunks, false) }
            stream.compact(buffer)
            let room = stream.room
            #expect(!room.isEmpty)
            let piece = rest.prefix(min(size, room.count))
            UnsafeMutableRawBufferPointer(rebasing: buffer[room]).copyBytes(from: piece)
            stream.didRead(piece.count)
            rest = rest.dropFirst(piece.count)
        }
    }

    @Test(arguments: try vectorCases("socket")) func goldenBytes(_ vector: VectorCase) throws {
        let chunks = vector.lines.filter { $0[0] == "chunk" }.map { vectorBytes($0[1]) }
        let wire = try #require(vector.bytes(of: "bytes"))
        check(chunks, wire, isMalformed: vector.words(of: "error") != nil)
    }

    /// Too long for a file.
    @Test func theLargestChunk() {
        let chunk = [UInt8](repeating: 9, count: 65_535)
        check([chunk], [0xFF, 0xFF] + chunk, isMalformed: false)
    }

    private func check(_ chunks: [[UInt8]], _ wire: [UInt8], isMalformed: Bool) {
        let written = chunks.flatMap { chunk in
            let (first, second) = ChunkStream.length(chunk.count)
            return [first, second] + chunk
        }
        #expect(isMalformed || written == wire)
        for size in [1, 2, 3, 7, 1000, 65_536, wire.count] {
            let read = read(wire, inPiecesOf: size)
            #expect(read.chunks == chunks && read.isMalformed == isMalformed, "in pieces of \(size)")
        }
    }

    /// However a stream is cut, the same chunks come of it: sizes that make the buffer wrap at every place.
    @Test(arguments: [1, 5, 1021, 65_537, 131_074])
    func longStreams(_ piece: Int) {
        let sizes = piece < 100 ? [1, 2, 255, 256, 257, 4000] : [65_535, 1, 65_534, 40_000, 2, 65_535, 65_535, 30_000]
        let chunks = sizes.enumerated().map { index, size in
            (0..<size).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ index) }
        }
        let wire = chunks.flatMap { [UInt8($0.count >> 8), UInt8($0.count & 255)] + $0 }
        let (read, isMalformed) = read(wire, inPiecesOf: piece)
        #expect(read == chunks && !isMalformed)
    }

    @Test func aChunkWithoutBytesIsNone() {
        let (chunks, isMalformed) = read([0, 1, 5, 0, 0, 0, 1, 6], inPiecesOf: 8)
        #expect(chunks == [[5]] && isMalformed)
    }

    @Test(arguments: 0..<5)
    func whatIsCutShortIsNotDelivered(_ count: Int) {
        let (chunks, isMalformed) = read(Array([0, 3, 1, 2, 3].prefix(count)), inPiecesOf: 8)
        #expect(chunks.isEmpty && !isMalformed)
    }
}
