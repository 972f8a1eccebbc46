import Ferry
import FerryZlib
import TestSupport
import Testing

#if os(Linux)
    /// What decompressing takes at most, as the kernel counts it. Each runs in a process of its own, where nothing else takes
    /// memory.
    @Suite(
        .tags(.compression),
        .disabled(if: ProcessMemory.isSanitized, "sanitizers keep books on memory, in memory"))
    struct MemoryTests {
        @Test func decompressingTakesTheResultAndAConstant() async {
            await #expect(processExitsWith: .success) {
                let size = 96 << 20
                let compressed = try compressedBlocks(size)
                let compression = ZlibCompression()
                let taken = try peakMemory {
                    let plain = try compression.decompress(compressed.span.bytes, plainCount: size)
                    #expect(plain.count == size)
                }
                #expect(taken > size / 2)  // or nothing was measured
                #expect(taken < size + (32 << 20))
            }
        }

        /// A claim that is false reserves address space and no memory: only pages that are written to are taken.
        @Test func aFalseClaimTakesNoMemory() async {
            await #expect(processExitsWith: .success) {
                let stream = [UInt8](repeating: 0xFF, count: 1 << 20)  // not deflate
                let taken = try peakMemory {
                    #expect(throws: FerryError.self) {
                        _ = try ZlibCompression().decompress(stream.span.bytes, plainCount: 1 << 30)
                    }
                }
                #expect(taken < 32 << 20)
            }
        }

        /// 1 KiB that states it is 1 GiB, under limits raised far enough to let the claim reach libz's door.
        @Test func aBombTakesNoMemory() async {
            await #expect(processExitsWith: .success) {
                let bomb = [UInt8]([0x01, 0x80, 0x80, 0x80, 0x80, 0x04]) + (try compressedBlocks(1 << 20, of: [0]))
                var limits = Limits()
                limits.maximumDecompressedSize = 2 << 30
                limits.maximumCompressionRatio = .max
                let envelope = CompressionEnvelope(compression: ZlibCompression(), limits: limits)
                let taken = try peakMemory {
                    #expect(throws: FerryError.self) { _ = try envelope.unwrap(bomb) }
                }
                #expect(taken < 32 << 20)
            }
        }
    }

    private func compressedBlocks(
        _ size: Int, of block: [UInt8] = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }
    ) throws -> [UInt8] {
        var plain: [UInt8] = []
        plain.reserveCapacity(size)
        while plain.count < size { plain += block }
        var compressed: [UInt8] = []
        #expect(try ZlibCompression().compress(plain.span.bytes, into: &compressed, budget: size))
        return compressed
    }

    /// The most memory that `body` held beyond what the process held before, in bytes.
    private func peakMemory(during body: () throws -> Void) throws -> Int {
        try ProcessMemory.forgetPeak()
        let before = try ProcessMemory.resident
        try body()
        return try ProcessMemory.peak - before
    }
#endif
