/// A scale from values to places on the page, with ticks at round values.
struct Axis {
    enum Scale {
        case linear
        /// By the number of nines: 90, 99, 99.9 are equally far apart.
        case percentiles
        /// By powers of two.
        case logarithmic
    }

    var scale: Scale
    var range: ClosedRange<Double>
    var ticks: [Double]
    /// Places on the page, in its units.
    var start: Double
    var end: Double

    /// A linear axis from zero to a round value above `maximum`.
    static func fromZero(to maximum: Double, start: Double, end: Double) -> Axis {
        let step = roundStep(max(maximum, 1e-9) / 4)
        let top = (max(maximum, 1e-9) / step).rounded(.up) * step
        let ticks = stride(from: 0, through: top + step / 2, by: step).map { $0 }
        return Axis(scale: .linear, range: 0...top, ticks: ticks, start: start, end: end)
    }

    /// 1, 2 or 5 times a power of ten, at least `value`.
    private static func roundStep(_ value: Double) -> Double {
        var magnitude = 1.0
        while magnitude > value { magnitude /= 10 }
        while magnitude * 10 <= value { magnitude *= 10 }
        for factor in [1.0, 2, 5] where factor * magnitude >= value { return factor * magnitude }
        return 10 * magnitude
    }

    func place(_ value: Double) -> Double {
        let (low, high) = (position(range.lowerBound), position(range.upperBound))
        guard high > low else { return (start + end) / 2 }
        return start + (position(value) - low) / (high - low) * (end - start)
    }

    private func position(_ value: Double) -> Double {
        switch scale {
        case .linear: value
        case .logarithmic: Self.log2(max(value, 1e-9))
        case .percentiles: -Self.log2(max(1 - value / 100, 1e-5))
        }
    }

    /// The binary logarithm, close enough for a picture: exact powers plus a straight line between them.
    private static func log2(_ value: Double) -> Double {
        Double(value.exponent) + (value.significand - 1)
    }
}
