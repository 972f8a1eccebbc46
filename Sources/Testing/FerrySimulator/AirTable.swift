/// Air times and error odds by payload length, worked out once per set of parameters.
struct AirTable: Sendable {
    /// Nanoseconds on the air.
    let airTimes: [Int64]
    /// A packet is damaged when a random 64-bit number is below this.
    let damageThresholds: [UInt64]
    let isLossless: Bool

    init(_ parameters: LinkParameters) {
        let lengths = 0...LinkParameters.dataLengths.upperBound
        airTimes = lengths.map { parameters.phy.airTime(payload: $0, isEncrypted: parameters.isEncrypted) }
        damageThresholds = lengths.map { length in
            switch parameters.loss {
            case .none: return 0
            case .packetErrorRate(let rate): return Self.threshold(rate)
            case .bitErrorRate(let rate):
                let mic = parameters.isEncrypted && length > 0 ? 4 : 0
                return Self.threshold(1 - Self.power(1 - rate, 8 * (4 + 2 + length + mic + 3)))
            }
        }
        isLossless = damageThresholds.allSatisfy { $0 == 0 }
    }

    private static func threshold(_ probability: Double) -> UInt64 {
        probability >= 1 ? .max : UInt64(max(0, probability) * 0x1p64)
    }

    private static func power(_ base: Double, _ exponent: Int) -> Double {
        var (result, square, rest) = (1.0, base, exponent)
        while rest > 0 {
            if rest & 1 == 1 { result *= square }
            square *= square
            rest >>= 1
        }
        return result
    }
}
