public import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Messages as JSON (RFC 8259), by Foundation's coders.
///
/// The same value always becomes the same bytes: keys are sorted. A received message must be UTF-8 (RFC 8259, 8.1), must
/// not nest deeper than `maximumDepth` nor hold more values than `maximumValues`, and its objects must have each name once.
/// Its syntax is checked before Foundation sees it, because outside Apple's platforms Foundation does not say where
/// malformed JSON is malformed.
///
/// What `encode` accepts, an equal codec decodes to an equal value. So these are refused when encoding: a number that is
/// infinite or not a number, as JSON has no such values; a message above `maximumDepth` or `maximumValues`; a date outside
/// Foundation's calendars (4713 BCE to 506 713 CE), or one that its `DateFormat` cannot say.
public struct JSONCodec<Message: Codable & Sendable>: Codec {
    /// How dates are written and read.
    public enum DateFormat: Sendable, Hashable {
        /// Seconds since 2001-01-01T00:00:00Z as a number: Foundation's own default.
        case secondsSinceReferenceDate
        /// Seconds since 1970-01-01T00:00:00Z as a number, with all digits of the fraction.
        case secondsSince1970
        /// Text as in RFC 3339, `2026-11-21T09:30:00Z`. Only whole seconds of the years 1 to 9999 can be encoded: round
        /// dates first. A received text may have a fraction and an offset; a day or time that does not exist, leap seconds
        /// too, is refused.
        case iso8601
    }

    /// 3.
    public var identifier: UInt8 { 3 }

    /// Line breaks and indentation for people to read. They cost bytes on the link and mean nothing to the receiver.
    public let isIndented: Bool

    /// How dates are written and read; both sides must agree.
    public let dates: DateFormat

    /// The deepest nesting of arrays and objects that is read and written. Deeper messages are refused, so that a peer
    /// cannot exhaust the stack.
    public let maximumDepth: Int

    /// The most values that are read and written in one message: scalars, arrays and objects, however deep. More are refused
    /// before anything is made of them, for in memory a value of two bytes, such as `1,`, becomes dozens: a small compressed
    /// message could take hundreds of megabytes otherwise.
    public let maximumValues: Int

    /// Makes the codec.
    ///
    /// - Parameters:
    ///   - type: the app's message type; usually inferred.
    ///   - isIndented: whether to write line breaks and indentation.
    ///   - dates: how dates are written and read.
    ///   - maximumDepth: the deepest nesting that is read and written, held to 1...256.
    ///   - maximumValues: the most values that are read and written in one message, at least 1. Default 1 048 576.
    public init(
        _ type: Message.Type = Message.self, isIndented: Bool = false,
        dates: DateFormat = .secondsSinceReferenceDate, maximumDepth: Int = 64, maximumValues: Int = 1 << 20
    ) {
        self.isIndented = isIndented
        self.dates = dates
        self.maximumDepth = min(max(maximumDepth, 1), 256)
        self.maximumValues = max(maximumValues, 1)
    }

    /// The message as JSON in UTF-8, keys sorted, slashes as they are.
    ///
    /// - Throws: `FerryError` with `encodingFailed`: for a value that JSON cannot say the coding path, with the coder's error
    ///   as its cause; for a message above a limit the limit and the place in the JSON.
    public func encode(_ message: Message) throws(FerryError) -> [UInt8] {
        let encoder = JSONEncoder()
        encoder.outputFormatting = [.sortedKeys, .withoutEscapingSlashes]
        if isIndented { encoder.outputFormatting.insert(.prettyPrinted) }
        switch dates {
        case .secondsSinceReferenceDate:
            encoder.dateEncodingStrategy = .custom(JSONDates.writeSecondsSinceReferenceDate)
        case .secondsSince1970: encoder.dateEncodingStrategy = .custom(JSONDates.writeSecondsSince1970)
        case .iso8601: encoder.dateEncodingStrategy = .custom(JSONDates.writeText)
        }
        let payload: [UInt8]
        do {
            payload = Array(try encoder.encode(message))
        } catch {
            throw .encodingFailed(error, format: "JSON", type: Message.self)
        }
        // Each level takes two bytes, each value one and a comma: a short message is within the limits.
        guard payload.count / 2 > min(maximumDepth, maximumValues - 1),
            !JSONSyntaxCheck.isWithin(maximumDepth: maximumDepth, maximumValues: maximumValues, payload)
        else { return payload }
        // The check names the exceeded limit, and the place.
        var check = JSONSyntaxCheck(
            payload, origin: .coder("\(Message.self)"), maximumDepth: maximumDepth, maximumValues: maximumValues)
        try check.run()
        return payload
    }

    /// The message in `payload`.
    ///
    /// - Throws: `FerryError` with `decodingFailed`: for malformed JSON, and for a name that occurs twice in an object, the
    ///   line, column and byte; for JSON of another shape the coding path, with the coder's error as its cause.
    public func decode(_ payload: [UInt8]) throws(FerryError) -> Message {
        var check = JSONSyntaxCheck(payload, maximumDepth: maximumDepth, maximumValues: maximumValues)
        try check.run()
        let decoder = JSONDecoder()
        switch dates {
        case .secondsSinceReferenceDate:
            decoder.dateDecodingStrategy = .custom(JSONDates.readSecondsSinceReferenceDate)
        case .secondsSince1970: decoder.dateDecodingStrategy = .custom(JSONDates.readSecondsSince1970)
        case .iso8601: decoder.dateDecodingStrategy = .custom(JSONDates.readText)
        }
        do {
            return try decoder.decode(Message.self, from: Data(payload))
        } catch DecodingError.dataCorrupted(let context)
            where context.codingPath.isEmpty && !(context.underlyingError is DateRefusal)
        {
            // Foundation calls a number outside its type's range malformed JSON, and does not say where it is.
            throw FerryError(
                .decodingFailed,
                "The received JSON is well formed but not a \(Message.self): a value does not fit its type, most likely "
                    + "a number outside the type's range. Both sides must use the same message type.",
                cause: DecodingError.dataCorrupted(context))
        } catch {
            throw .decodingFailed(error, format: "JSON", type: Message.self)
        }
    }
}
