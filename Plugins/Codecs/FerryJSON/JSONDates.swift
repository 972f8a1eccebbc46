import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// How dates are written and read. Foundation's own strategies write other dates for some, and read `2026-02-30T25:00:00Z!`
/// as a date.
enum JSONDates {
    /// 2001-01-01T00:00:00Z in seconds since 1970-01-01T00:00:00Z.
    private static let referenceDate: Decimal = 978_307_200

    // MARK: Writing

    static func writeSecondsSinceReferenceDate(_ date: Date, _ encoder: any Encoder) throws {
        try refuse(date, CodedDate.obstacle(date.timeIntervalSinceReferenceDate), encoder)
        var container = encoder.singleValueContainer()
        try container.encode(date.timeIntervalSinceReferenceDate)
    }

    /// As a decimal number: as a `Double`, the sum would lose the last bits of the fraction.
    static func writeSecondsSince1970(_ date: Date, _ encoder: any Encoder) throws {
        let seconds = date.timeIntervalSinceReferenceDate
        try refuse(date, CodedDate.obstacle(seconds), encoder)
        if seconds == seconds.rounded() {
            var container = encoder.singleValueContainer()
            return try container.encode(Int64(seconds) + 978_307_200)
        }
        guard let exact = Decimal(string: "\(seconds)").map({ $0 + referenceDate }), self.date(exact) == date else {
            let reason = "The date is \(seconds) seconds from 2001-01-01T00:00:00Z, which seconds since 1970 cannot say"
            return try refuse(date, reason, encoder)
        }
        var container = encoder.singleValueContainer()
        try container.encode(exact)
    }

    static func writeText(_ date: Date, _ encoder: any Encoder) throws {
        try refuse(date, CodedDate.obstacleAsText(date.timeIntervalSinceReferenceDate), encoder)
        var container = encoder.singleValueContainer()
        try container.encode(date.formatted(Date.ISO8601FormatStyle()))
    }

    private static func refuse(_ date: Date, _ reason: String?, _ encoder: any Encoder) throws {
        guard let reason else { return }
        // Not the date itself: printing one that is not a number ends the process.
        let seconds = date.timeIntervalSinceReferenceDate
        throw EncodingError.invalidValue(seconds, .init(codingPath: encoder.codingPath, debugDescription: reason))
    }

    // MARK: Reading

    static func readSecondsSinceReferenceDate(_ decoder: any Decoder) throws -> Date {
        let seconds = try decoder.singleValueContainer().decode(Double.self)
        return try accept(Date(timeIntervalSinceReferenceDate: seconds), decoder)
    }

    static func readSecondsSince1970(_ decoder: any Decoder) throws -> Date {
        let container = try decoder.singleValueContainer()
        guard let exact = try? container.decode(Decimal.self), let date = date(exact) else {
            return try accept(Date(timeIntervalSince1970: container.decode(Double.self)), decoder)
        }
        return try accept(date, decoder)
    }

    static func readText(_ decoder: any Decoder) throws -> Date {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard CodedDate.isText(Array(text.utf8)[...], isInternet: true),
            let date = try? Date.ISO8601FormatStyle().parse(text)
        else {
            throw refusal("\(text.debugDescription) is no date as in RFC 3339, \"2026-11-21T09:30:00Z\"", decoder)
        }
        return date
    }

    private static func accept(_ date: Date, _ decoder: any Decoder) throws -> Date {
        guard let obstacle = CodedDate.obstacle(date.timeIntervalSinceReferenceDate) else { return date }
        throw refusal(obstacle, decoder)
    }

    private static func refusal(_ reason: String, _ decoder: any Decoder) -> DecodingError {
        .dataCorrupted(
            .init(
                codingPath: decoder.codingPath, debugDescription: "The date cannot be read",
                underlyingError: DateRefusal(description: reason)))
    }

    /// The date at `secondsSince1970`, by the nearest `Double`: a conversion of `Decimal` itself is not exact.
    private static func date(_ secondsSince1970: Decimal) -> Date? {
        Double((secondsSince1970 - referenceDate).description).map(Date.init(timeIntervalSinceReferenceDate:))
    }
}

/// Why a date was not read.
struct DateRefusal: Error, CustomStringConvertible {
    let description: String
}
