extension Duration {
    /// The duration for a report: `7.5 ms`, or `1.25 s` from one second on.
    var inMilliseconds: String {
        let (unit, scale) = self < .seconds(1) ? ("ms", 1e3) : ("s", 1.0)
        let (seconds, attoseconds) = components
        let value = ((Double(seconds) + Double(attoseconds) / 1e18) * scale * 100).rounded() / 100
        let isWhole = value == value.rounded() && value < 1e15
        return "\(isWhole ? String(Int64(value)) : String(value)) \(unit)"
    }
}
