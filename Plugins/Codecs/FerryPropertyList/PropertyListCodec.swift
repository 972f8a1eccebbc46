public import Ferry

#if canImport(FoundationEssentials)
    import FoundationEssentials
#else
    import Foundation
#endif

/// Messages as property lists, by Foundation's coders: binary (`bplist00`, CFBinaryPList.c) or XML
/// (PropertyList-1.0.dtd). `PropertyListCodec<[String: String]>` reads and writes the plain dictionaries of the classic
/// examples.
///
/// Either format is read, whichever is written. XML must be UTF-8, and the OpenStep format is not read. A received
/// message's structure is checked before Foundation sees it: Foundation's scanners can be brought down by deep nesting,
/// by impossible counts and by objects that contain themselves. They also make other values of some: data that is not
/// base64 with padding, days and times that do not exist, dates outside Foundation's calendars (4713 BCE to 506 713 CE),
/// numbers too large for a real, or for the type of 32 bits that reads them, references to no character and keys that occur
/// twice are refused instead.
///
/// What `encode` accepts, an equal codec decodes to an equal value. So these are refused when encoding:
///
/// - A message with neither a dictionary nor an array at its top, or above `maximumDepth` or `maximumExpandedSize`.
/// - The string and the key `$null`, for Foundation's coders use it for nil. In XML also strings and keys that begin with it,
///   and a dictionary with the key `CF$UID` alone.
/// - In XML, U+0000 in a string.
/// - A date outside Foundation's calendars; in XML also one outside the years 1 to 9999, or with a fraction of a second:
///   round dates first, or write the binary format.
public struct PropertyListCodec<Message: Codable & Sendable>: Codec {
    /// The two formats that are written.
    public enum Format: Sendable, Hashable {
        /// The compact one: usually two thirds of the XML.
        case binary
        /// Text for people, and for receivers that take text only.
        case xml
    }

    /// 4, whichever format is written, as both are read.
    public var identifier: UInt8 { 4 }

    /// The format that is written; both are read.
    public let format: Format

    /// The deepest nesting of arrays and dictionaries that is read and written. Deeper messages are refused, so that a peer
    /// cannot exhaust the stack.
    public let maximumDepth: Int

    /// The most that a binary property list may stand for, in bytes, each value counted once per reference and with 8
    /// bytes of overhead. Binary property lists may refer to one value many times, so that a small message could
    /// otherwise take any amount of memory.
    public let maximumExpandedSize: Int

    /// Makes the codec.
    ///
    /// - Parameters:
    ///   - type: the app's message type; usually inferred.
    ///   - format: the format that is written; both are read.
    ///   - maximumDepth: the deepest nesting that is read and written, held to 1...256.
    ///   - maximumExpandedSize: the most that a binary property list may stand for, in bytes, held to 0...Int.max / 2.
    public init(
        _ type: Message.Type = Message.self, format: Format = .binary, maximumDepth: Int = 64,
        maximumExpandedSize: Int = 64 << 20
    ) {
        self.format = format
        self.maximumDepth = min(max(maximumDepth, 1), 256)
        self.maximumExpandedSize = min(max(maximumExpandedSize, 0), Int.max / 2)
    }

    /// The message as a property list.
    ///
    /// - Throws: `FerryError` with `encodingFailed`: the coding path of the value, with the coder's error as its cause,
    ///   or the property list's defect and its place.
    public func encode(_ message: Message) throws(FerryError) -> [UInt8] {
        let encoder = PropertyListEncoder()
        switch format {
        case .binary: encoder.outputFormat = .binary
        case .xml: encoder.outputFormat = .xml
        }
        let payload: [UInt8]
        do { payload = Array(try encoder.encode(message)) } catch { throw refusal(error) }
        if try check(payload, .coder("\(Message.self)")).isAmbiguous {
            do { try ValueWalk(format: format == .xml ? .xml : .binary).visit(message) } catch { throw refusal(error) }
        }
        return payload
    }

    private func refusal(_ error: any Error) -> FerryError {
        .encodingFailed(error, format: "property list", type: Message.self)
    }

    /// Checks a property list in either format. Returns whether it has values that do not tell what they were made from, and
    /// how many infinities a message may have where some are too many.
    private func check(
        _ payload: [UInt8], _ origin: PropertyListOrigin
    ) throws(FerryError) -> (isAmbiguous: Bool, maximumInfinities: Int?) {
        if payload.starts(with: "bplist0".utf8) {
            var check = try BinaryPropertyListCheck(payload, origin: origin)
            try check.run(maximumDepth: maximumDepth, maximumExpandedSize: maximumExpandedSize)
            return (check.isAmbiguous, nil)
        }
        var check = XMLPropertyListCheck(payload, origin: origin, maximumDepth: maximumDepth)
        try check.run()
        return (check.isAmbiguous, check.hasLargeReal ? check.infinityCount : nil)
    }

    /// The message in `payload`, which is in either format.
    ///
    /// - Throws: `FerryError` with `decodingFailed`: for a malformed property list the defect and its place; for one of
    ///   another shape the coding path, with the coder's error as its cause.
    public func decode(_ payload: [UInt8]) throws(FerryError) -> Message {
        let maximumInfinities = try check(payload, .peer).maximumInfinities
        do {
            let message = try PropertyListDecoder().decode(Message.self, from: Data(payload))
            if let maximumInfinities { try refuseInfinities(in: message, above: maximumInfinities) }
            return message
        } catch {
            throw .decodingFailed(error, format: "property list", type: Message.self)
        }
    }

    /// Foundation reads `1e300` as an infinite `Float`.
    private func refuseInfinities(in message: Message, above count: Int) throws {
        do {
            try ValueWalk(format: .xml, infinities: .init(count)).visit(message)
        } catch EncodingError.invalidValue(_, let context) where context.debugDescription == ValueWalk.tooLarge {
            throw DecodingError.dataCorrupted(
                .init(codingPath: context.codingPath, debugDescription: context.debugDescription))
        } catch {
            // The walk says why a message cannot be sent on; it can be read.
        }
    }
}
