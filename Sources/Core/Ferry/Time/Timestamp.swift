/// A point in time on a ``TimeSource``: nanoseconds since that source's origin.
///
/// Protocol logic takes timestamps as parameters and never reads a clock.
public struct Timestamp: Sendable, Hashable, Comparable {
    /// Nanoseconds since the time source's origin. 64 bits hold 292 years.
    public var nanoseconds: Int64

    /// Makes a timestamp from nanoseconds since the source's origin.
    public init(nanoseconds: Int64) { self.nanoseconds = nanoseconds }

    /// The time source's origin.
    public static let zero = Timestamp(nanoseconds: 0)
    /// Later than anything that is ever scheduled.
    public static let distantFuture = Timestamp(nanoseconds: .max)

    /// Orders timestamps of one time source.
    public static func < (a: Timestamp, b: Timestamp) -> Bool { a.nanoseconds < b.nanoseconds }

    /// The timestamp `duration` later, held at ``distantFuture`` rather than overflowing.
    public static func + (time: Timestamp, duration: Duration) -> Timestamp {
        let (sum, overflow) = time.nanoseconds.addingReportingOverflow(duration.wholeNanoseconds)
        guard overflow else { return Timestamp(nanoseconds: sum) }
        return duration < .zero ? Timestamp(nanoseconds: .min) : distantFuture
    }

    /// The time from `b` to `a`.
    public static func - (a: Timestamp, b: Timestamp) -> Duration {
        .nanoseconds(a.nanoseconds.subtractingReportingOverflow(b.nanoseconds).partialValue)
    }
}

extension Duration {
    /// This duration in nanoseconds, rounded towards zero and held within 64 bits.
    public var wholeNanoseconds: Int64 {
        // In steps of 64 bits: libgcc divides no 128 bits on RV32.
        let (high, low) = (
            UInt64(truncatingIfNeeded: attoseconds.magnitude >> 64), UInt64(truncatingIfNeeded: attoseconds.magnitude)
        )
        guard high < 1_000_000_000 else { return attoseconds < 0 ? .min : .max }
        let (upper, rest) = (high << 32 | low >> 32).quotientAndRemainder(dividingBy: 1_000_000_000)
        let lower = (rest << 32 | low & 0xFFFF_FFFF) / 1_000_000_000
        let whole = upper << 32 | lower
        return attoseconds < 0 ? Int64(clamping: 0 - Int128(whole)) : Int64(clamping: whole)
    }
}
