import Ferry

/// SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", 2014): the same numbers for the
/// same seed on every machine. Print the seed when a test fails, and the case can be run again.
public struct SplitMix64: RandomNumberGenerator, Sendable {
    private var generator: SeededGenerator

    /// Starts from `seed`; every seed is as good as another.
    public init(seed: UInt64) { generator = SeededGenerator(seed: seed) }

    /// The next 64 bits.
    public mutating func next() -> UInt64 { generator.next() }

    /// So many random bytes.
    public mutating func bytes(_ count: Int) -> [UInt8] {
        [UInt8](unsafeUninitializedCapacity: count) { buffer, initializedCount in
            var bits: UInt64 = 0
            for index in 0..<count {
                if index % 8 == 0 { bits = next() }
                buffer[index] = UInt8(truncatingIfNeeded: bits)
                bits >>= 8
            }
            initializedCount = count
        }
    }
}
