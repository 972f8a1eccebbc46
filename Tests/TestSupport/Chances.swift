package import FerryTesting

extension SplitMix64 {
    /// A number below `bound`.
    package mutating func below(_ bound: Int) -> Int { Int(next() >> 33) % max(1, bound) }

    /// True in `percent` of 100 cases.
    package mutating func chance(_ percent: Int) -> Bool { below(100) < percent }
}
