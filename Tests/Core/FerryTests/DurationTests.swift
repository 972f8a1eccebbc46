import Ferry
import FerryTesting
import TestSupport
import Testing

@Suite(.tags(.core)) struct DurationTests {
    @Test func wholeNanosecondsAreAQuotientOfAttosecondsHeldWithin64Bits() {
        var random = SplitMix64(seed: 41)
        let edges: [Int128] = [
            0, 1, 999_999_999, 1_000_000_000, 1_000_000_001, Int128(Int64.max) * 1_000_000_000,
            Int128(Int64.max) * 1_000_000_000 + 999_999_999, (Int128(Int64.max) + 1) * 1_000_000_000,
            (Int128(UInt64.max) + 1) * 1_000_000_000, Int128.max,
        ]
        let numbers =
            edges
            + (0..<10_000).map { _ in
                Int128(truncatingIfNeeded: random.next()) << 64 | Int128(random.next()) >> (random.next() % 127)
            }
        for number in numbers.flatMap({ [$0, -$0] }) + [.min] {
            let duration = Duration(attoseconds: number)
            #expect(duration.wholeNanoseconds == Int64(clamping: number / 1_000_000_000))
        }
    }
}
