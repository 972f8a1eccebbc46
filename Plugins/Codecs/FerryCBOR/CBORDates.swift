import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How dates are written and read.
enum CBORDates {
    /// 2001-01-01T00:00:00Z in seconds since 1970-01-01T00:00:00Z.
    private static let referenceDate: Double = 978_307_200

    // MARK: Reading

    static func read(_ value: CBORValue) throws(CBORMismatch) -> Date {
        let parsed = value.message.parsed
        let seconds: Double
        switch parsed.items[value.item].kind {
        case .text: return try text(value.string())
        case .map where parsed.innerTag(Int(value.index)) == 1001: seconds = try extended(value)
        default: seconds = try sinceReferenceDate(value)
        }
        if let obstacle = CodedDate.obstacle(seconds) { throw .value(obstacle) }
        return Date(timeIntervalSinceReferenceDate: seconds)
    }

    /// A number of seconds since 1970.
    private static func sinceReferenceDate(_ value: CBORValue) throws(CBORMismatch) -> Double {
        switch value.message.parsed.items[value.item].kind {
        case .unsigned, .negative:
            // Beyond these bounds is no date; within them the difference is exact.
            let seconds = try value.integer(Int64.self)
            return Double(seconds.subtractingReportingOverflow(Int64(referenceDate)).partialValue)
        case .real: return try value.real(Double.self) - referenceDate
        default: throw .type(expected: "a date as a number or text")
        }
    }

    private static func text(_ text: String) throws(CBORMismatch) -> Date {
        guard CodedDate.isText(Array(text.utf8)[...], isInternet: true),
            let date = try? Date.ISO8601FormatStyle().parse(text)
        else {
            throw .value("\(text.debugDescription) is no date as in RFC 3339, \"2026-11-21T09:30:00Z\"")
        }
        return date
    }

    /// Extended time (RFC 9581, 3): a map with the seconds since 1970 at key 1 as a number, or at key 5 as a binary
    /// fraction.
    private static func extended(_ value: CBORValue) throws(CBORMismatch) -> Double {
        let map = CBORMap<CBORKey>(value)
        guard case .index(let key)? = map.allKeys.first, map.allKeys.count == 1, key == 1 || key == 5,
            let inner = try? map.decodeTime(key)
        else {
            throw .value("An extended time must have seconds at key 1 or a binary fraction at key 5, and nothing else")
        }
        return inner
    }

    // MARK: Writing

    /// Items that say a date: how they are tagged, and their bytes.
    struct Written {
        /// The arrays, maps and tags in it, one in another.
        var depth = 1
        var values = 1
        var bytes: [UInt8] = []
    }

    /// The date as `format` says it.
    ///
    /// - Throws: `CBORMismatch.value` with the reason why it cannot be said.
    static func write(_ date: Date, as format: CBORDateFormat) throws(CBORMismatch) -> Written {
        let seconds = date.timeIntervalSinceReferenceDate
        switch format {
        case .secondsSince1970:
            if let obstacle = CodedDate.obstacle(seconds) { throw .value(obstacle) }
            return try writeNumber(seconds)
        case .text:
            if let obstacle = CodedDate.obstacleAsText(seconds) { throw .value(obstacle) }
            var written = Written()
            let text = date.formatted(Date.ISO8601FormatStyle())
            CBORNumber.append(6, 0, to: &written.bytes)
            CBORNumber.append(3, UInt64(text.utf8.count), to: &written.bytes)
            written.bytes += text.utf8
            return written
        }
    }

    private static func writeNumber(_ seconds: Double) throws(CBORMismatch) -> Written {
        var written = Written()
        if seconds == seconds.rounded() {
            CBORNumber.append(6, 1, to: &written.bytes)
            CBORNumber.append(Int64(seconds) + Int64(referenceDate), to: &written.bytes)
            return written
        }
        let sum = seconds + referenceDate
        if sum - referenceDate == seconds {
            CBORNumber.append(6, 1, to: &written.bytes)
            CBORNumber.append(sum, to: &written.bytes)
            return written
        }
        // The sum loses the last bits of the fraction: a binary fraction of integers does not. Seconds that are not
        // whole are below 2^52, so that only a finer fraction than 2^-32 s, next to 2001, needs more than 64 bits.
        let exponent = seconds.exponent - Double.Exponent(seconds.significandWidth)
        guard exponent >= -32 else {
            throw .value(
                "The date is \(seconds) seconds from 2001-01-01T00:00:00Z, which has a fraction finer than 2^-32 s")
        }
        let scale = Double(sign: .plus, exponent: -exponent, significand: 1)
        let mantissa = Int64(seconds * scale) + Int64(referenceDate * scale)
        CBORNumber.append(6, 1001, to: &written.bytes)
        CBORNumber.append(5, 1, to: &written.bytes)
        CBORNumber.append(0, 5, to: &written.bytes)
        CBORNumber.append(4, 2, to: &written.bytes)
        CBORNumber.append(Int64(exponent), to: &written.bytes)
        CBORNumber.append(mantissa, to: &written.bytes)
        written.depth = 3
        written.values = 4
        return written
    }
}

extension CBORMap where Key == CBORKey {
    /// Seconds since 2001 that an extended time says.
    fileprivate func decodeTime(_ key: Int) throws -> Double {
        let reference: Int64 = 978_307_200
        if key == 1 {
            if let whole = try? decode(Int64.self, forKey: .index(1)) {
                return Double(whole.subtractingReportingOverflow(reference).partialValue)
            }
            return try decode(Double.self, forKey: .index(1)) - Double(reference)
        }
        var fraction = try nestedUnkeyedContainer(forKey: .index(5))
        let exponent = try fraction.decode(Int.self)
        let mantissa = try fraction.decode(Int64.self)
        guard fraction.isAtEnd, (-62...0).contains(exponent) else { return .nan }
        // The whole seconds and the rest are taken apart, so that no bit is lost.
        let whole = mantissa >> Int64(-exponent)
        let rest = mantissa - whole << Int64(-exponent)
        let seconds = Double(whole.subtractingReportingOverflow(reference).partialValue)
        return seconds + Double(rest) * Double(sign: .plus, exponent: exponent, significand: 1)
    }
}
