import Ferry
import FerryTesting
import TestSupport
import Testing

@testable import FerrySequenced

/// What the headers cost, read from the chunks themselves.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedOverheadTests {
    /// Sends messages one way at one size of chunk, and returns the data chunks.
    private func chunks(_ counts: [Int], size: Int, atOnce: Bool) -> [[UInt8]] {
        var pair = SequencedPair([SequencedFraming.Configuration(), SequencedFraming.Configuration()])
        pair.chunkSize = [size, size]
        pair.open()
        pair.exchange()
        var chunks: [[UInt8]] = []
        for count in counts {
            pair.send(from: 0, count: count)
            if atOnce { continue }
            chunks += drain(&pair)
        }
        chunks += drain(&pair)
        #expect(pair.ended == nil)
        #expect(pair.fates[0].allSatisfy { $0.isSent && $0.deliveries == 1 })
        return chunks
    }

    private func drain(_ pair: inout SequencedPair) -> [[UInt8]] {
        var chunks: [[UInt8]] = []
        repeat {
            pair.pump(0)
            chunks += pair.wires[0].filter { $0[0] < 0xE0 }
            while !pair.wires[0].isEmpty { pair.deliver(from: 0) }
            pair.consume(1)
            pair.pump(1)
            while !pair.wires[1].isEmpty { pair.deliver(from: 1) }
            pair.pump(0)
        } while !pair.wires[0].isEmpty
        return chunks
    }

    /// The bytes before the payload, and whether a message begins in the chunk.
    private func header(_ chunk: [UInt8]) throws -> (count: Int, begins: Bool, statesLength: Bool) {
        try chunk.withUnsafeBytes { bytes in
            guard case .data(let header)? = try SequencedChunk.parse(bytes) else {
                Issue.record("no data chunk: \(chunk)")
                return (0, false, false)
            }
            let statesLength = header.flags.contains(.length)
            guard header.flags.contains(.record) else { return (header.bodyOffset, false, statesLength) }
            let record = try Record.parse(chunk[header.bodyOffset]).0
            var count = header.bodyOffset + 1
            guard record == .begin else { return (count, false, statesLength) }
            repeat { count += 1 } while chunk[count - 1] >= 0x80
            return (count, true, statesLength)
        }
    }

    @Test(arguments: [20, 23, 64, 182, 244, 512])
    func oneMessageAfterTheOther(size: Int) throws {
        for count in [0, 1, 10, 11, 12, 13, 100, 1000, 5000] {
            let chunks = chunks([count, count], size: size, atOnce: false)
            for (place, chunk) in chunks.enumerated() {
                let (bytes, begins, _) = try header(chunk)
                let most = begins ? 5 + Varint.encodedCount(UInt64(count)) : 2
                #expect(bytes <= most, "chunk \(place) of two messages of \(count) bytes at \(size): \(chunk)")
            }
            #expect(chunks.count { $0.count == size } >= chunks.count - 2)
        }
    }

    /// With several messages at once a chunk that continues one has 2 bytes at most, or it holds the beginning of another
    /// behind the end of the first.
    @Test(arguments: [20, 64, 244]) func severalAtOnce(size: Int) throws {
        let chunks = chunks([700, 40, 1300, 5, 90, 2000], size: size, atOnce: true)
        var plain = 0
        for (place, chunk) in chunks.enumerated() {
            let (bytes, begins, statesLength) = try header(chunk)
            if !begins, !statesLength { #expect(bytes <= 2, "chunk \(place) at \(size): \(chunk)") }
            if statesLength { #expect(bytes <= 5 + 2, "chunk \(place) at \(size): \(chunk)") }
            if bytes == 1 { plain += 1 }
        }
        #expect(plain > 0)
    }

    @Test func aMessageThatFitsOneChunkIsOneChunk() {
        // 20 bytes less flags, sequence number, record, length and checksum.
        #expect(chunks([12], size: 20, atOnce: false).count == 1)
        #expect(chunks([13], size: 20, atOnce: false).count == 2)
        #expect(chunks([236], size: 244, atOnce: false).count == 2)
        #expect(chunks([235], size: 244, atOnce: false).count == 1)
    }
}
