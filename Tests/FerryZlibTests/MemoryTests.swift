import Ferry
import FerryZlib
import Testing

#if canImport(Glibc)
    import Glibc
#elseif canImport(Musl)
    import Musl
#elseif canImport(Darwin)
    import Darwin
#endif

/// The most memory this process has held so far, in bytes (getrusage(2): kibibytes, on Darwin bytes).
func peakMemory() -> Int {
    var usage = rusage()
    #if canImport(Darwin)
        _ = getrusage(RUSAGE_SELF, &usage)
        return usage.ru_maxrss
    #else
        _ = getrusage(__rusage_who_t(RUSAGE_SELF.rawValue), &usage)
        return usage.ru_maxrss * 1024
    #endif
}

struct MemoryTests {
    /// The process has already held plain text and stream; decompressing may add the result, but no second copy of it.
    /// Other tests of this process may hold some memory at the same time: hence the generous constant.
    @Test func decompressingTakesTheResultAndAConstant() throws {
        let size = 96 << 20
        var compressed: [UInt8] = []
        do {
            let block = (0..<4096).map { UInt8(truncatingIfNeeded: $0 &* $0 >> 3) }
            var plain: [UInt8] = []
            plain.reserveCapacity(size)
            while plain.count < size { plain += block }
            #expect(try ZlibCompression(level: .fastest).compress(plain.span.bytes, into: &compressed, budget: size))
        }
        let before = peakMemory()
        let plain = try ZlibCompression().decompress(compressed.span.bytes, plainCount: size)
        #expect(plain.count == size)
        #expect(peakMemory() - before < size / 2 + (16 << 20))
    }

    /// A claim that is false reserves address space and no memory: only pages that are written to are taken.
    @Test func aFalseClaimTakesNoMemory() throws {
        let stream = [UInt8](repeating: 0xFF, count: 1 << 20)  // not deflate
        let before = peakMemory()
        #expect(throws: FerryError.self) {
            _ = try ZlibCompression().decompress(stream.span.bytes, plainCount: 1 << 30)
        }
        #expect(peakMemory() - before < 256 << 20)
    }
}
