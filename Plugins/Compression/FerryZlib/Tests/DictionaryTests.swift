import Ferry
import FerryZlib
import TestSupport
import Testing

/// Which part of a dictionary is used, and what a budget means, to the byte.
@Suite(.tags(.compression)) struct DictionaryTests {
    /// Text that nothing else resembles.
    private static func text(_ seed: UInt64, _ count: Int) -> [UInt8] {
        var state = seed
        return (0..<count).map { _ in
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return UInt8(truncatingIfNeeded: state >> 33)
        }
    }

    private func compressed(_ plain: [UInt8], _ compression: ZlibCompression, budget: Int = .max) throws -> [UInt8]? {
        var output: [UInt8] = [7]
        guard try compression.compress(plain.span.bytes, into: &output, budget: budget) else {
            #expect(output == [7])
            return nil
        }
        #expect(output.first == 7)
        return Array(output.dropFirst())
    }

    @Test func theEndOfALongDictionaryHelpsAndItsBeginningDoesNot() throws {
        let (head, tail) = (Self.text(1, 400), Self.text(2, 400))
        let compression = ZlibCompression(dictionary: head + Self.text(3, 40_000) + tail)
        let known = try #require(try compressed(tail, compression))
        let forgotten = try #require(try compressed(head, compression))
        #expect(known.count < 40)
        #expect(forgotten.count > 380)
        #expect(try compression.decompress(known.span.bytes, plainCount: 400) == tail)
        #expect(try compression.decompress(forgotten.span.bytes, plainCount: 400) == head)
    }

    @Test func theLast32KiBAreKept() {
        for count in [32_767, 32_768, 32_769, 50_000] {
            let long = Self.text(4, count)
            #expect(ZlibCompression(dictionary: long).dictionary == Array(long.suffix(32_768)))
            // So the number that tells dictionaries apart is that of what is used.
            let kept = ZlibCompression(dictionary: Array(long.suffix(32_768)))
            #expect(ZlibCompression(dictionary: long).identifier == kept.identifier)
        }
    }

    @Test func aBudgetMayBeUsedUpAndNotExceeded() throws {
        for plain in [[UInt8](repeating: 5, count: 1000), Self.text(6, 300), Self.text(7, 40_000)] {
            let whole = try #require(try compressed(plain, ZlibCompression()))
            #expect(try compressed(plain, ZlibCompression(), budget: whole.count) == whole)
            #expect(try compressed(plain, ZlibCompression(), budget: whole.count - 1) == nil)
            #expect(try compressed(plain, ZlibCompression(), budget: 0) == nil)
            #expect(try compressed(plain, ZlibCompression(), budget: -1) == nil)
        }
    }

    /// 1032 to 1 is what deflate can do; a claim of a byte more is refused without trying.
    @Test func aClaimMayBeAsLargeAsDeflateAllows() throws {
        for (claim, words) in [(3 * 1032, "is "), (3 * 1032 + 1, "cannot become 3097")] {
            let error = try #require(throws: FerryError.self) {
                _ = try ZlibCompression().decompress(([1, 2, 3] as [UInt8]).span.bytes, plainCount: claim)
            }
            #expect(error.code == .corruptCompression)
            #expect(error.message.contains(words), "\(error.message)")
            #expect(error.message.contains("cannot become") == (claim > 3 * 1032))
        }
    }

    @Test func levelsGoFrom0To9() throws {
        for level in 0...9 { #expect(try ZlibCompression.Level(level).rawValue == level) }
        #expect([ZlibCompression.Level.fastest, .balanced, .smallest].map(\.rawValue) == [1, 6, 9])
        #expect(ZlibCompression().level == .balanced)
    }
}
