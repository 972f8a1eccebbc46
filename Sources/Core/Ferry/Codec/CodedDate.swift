/// Which dates codecs carry, so that a date arrives as it was. Foundation's coders accept every `Double` and write another
/// date for some: 1168 CE for 1169 BCE, 4712 BCE for one that is not a number.
package enum CodedDate {
    /// The dates of Foundation's calendars (`Date.validCalendarRange`), in seconds since 2001-01-01T00:00:00Z: 4713 BCE to
    /// 506 713 CE.
    package static let calendar: ClosedRange<Double> = -211_845_067_200...15_927_175_497_600

    /// The dates that text with four digits of a year says: the years 1 to 9999.
    private static let text: Range<Double> = -63_114_076_800..<252_423_993_600

    /// Why no codec carries the date at `seconds` since 2001-01-01T00:00:00Z; nil for one that codecs carry.
    package static func obstacle(_ seconds: Double) -> String? {
        guard !seconds.isNaN else { return "The date is not a number" }
        guard !calendar.contains(seconds) else { return nil }
        return "The date is \(seconds) seconds from 2001-01-01T00:00:00Z, outside Foundation's calendars "
            + "(\(calendar.lowerBound) to \(calendar.upperBound) seconds)"
    }

    /// Why text as in `2026-11-21T09:30:00Z` does not say the date at `seconds`; nil for one that it says.
    package static func obstacleAsText(_ seconds: Double) -> String? {
        if let obstacle = obstacle(seconds) { return obstacle }
        guard text.contains(seconds) else { return "The date is outside the years 1 to 9999" }
        guard seconds != seconds.rounded(.down) else { return nil }
        return "The date has a fraction of a second, and this format says whole seconds. Round the date"
    }

    /// Whether `text` is a day that there is and a time of it, `2026-11-21T09:30:00Z`.
    ///
    /// Foundation's calendars have Julian days until 4 October 1582, and so has this. There are no leap seconds.
    ///
    /// - Parameters:
    ///   - text: the text in UTF-8.
    ///   - isInternet: whether it may have a fraction, and an offset such as `+02:00` in place of `Z` (RFC 3339, 5.6).
    package static func isText(_ text: ArraySlice<UInt8>, isInternet: Bool) -> Bool {
        var rest = text
        guard let year = number(&rest, digits: 4), year > 0, take("-", &rest), let month = number(&rest, digits: 2),
            take("-", &rest), let day = number(&rest, digits: 2), isDay(year, month, day), take("T", &rest),
            let hour = number(&rest, digits: 2), hour < 24, take(":", &rest), let minute = number(&rest, digits: 2),
            minute < 60, take(":", &rest), let second = number(&rest, digits: 2), second < 60
        else { return false }
        if isInternet, take(".", &rest) {
            guard number(&rest, digits: 1) != nil else { return false }
            while number(&rest, digits: 1) != nil {}
        }
        if take("Z", &rest) { return rest.isEmpty }
        guard isInternet, take("+", &rest) || take("-", &rest), let hours = number(&rest, digits: 2), hours < 24,
            take(":", &rest), let minutes = number(&rest, digits: 2), minutes < 60
        else { return false }
        return rest.isEmpty
    }

    private static func isDay(_ year: Int, _ month: Int, _ day: Int) -> Bool {
        guard (1...12).contains(month) else { return false }
        // The day after 4 October 1582 is 15 October.
        if year == 1582, month == 10, (5...14).contains(day) { return false }
        let isLeap = year % 4 == 0 && (year < 1583 || year % 100 != 0 || year % 400 == 0)
        let days = [31, isLeap ? 29 : 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31]
        return (1...days[month - 1]).contains(day)
    }

    private static func number(_ rest: inout ArraySlice<UInt8>, digits: Int) -> Int? {
        let start = rest
        var value = 0
        for _ in 0..<digits {
            guard let byte = rest.popFirst(), (0x30...0x39).contains(byte) else {
                rest = start
                return nil
            }
            value = value * 10 + Int(byte - 0x30)
        }
        return value
    }

    private static func take(_ sign: Unicode.Scalar, _ rest: inout ArraySlice<UInt8>) -> Bool {
        guard rest.first == UInt8(ascii: sign) else { return false }
        rest.removeFirst()
        return true
    }
}
