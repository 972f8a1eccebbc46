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
/// by impossible counts and by objects that contain themselves.
///
/// A property list has a dictionary or an array at its top: other messages cannot be encoded. Foundation's coders use the
/// text `$null` for nil, so a message cannot have it as a string, nor, in XML, a string that begins with it.
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

    /// The deepest nesting of arrays and dictionaries that is read. Deeper messages are refused, so that a peer cannot
    /// exhaust the stack.
    public let maximumDepth: Int

    /// The most that a binary property list may stand for, in bytes, each value counted as often as it is referred to
    /// and with 8 bytes of its own. Binary property lists may refer to one value many times, so that a small message
    /// could otherwise take any amount of memory.
    public let maximumExpandedSize: Int

    /// Makes the codec.
    ///
    /// - Parameters:
    ///   - type: the app's message type; usually inferred.
    ///   - format: the format that is written; both are read.
    ///   - maximumDepth: the deepest nesting that is read, held to 1...256.
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
    /// - Throws: `FerryError` with `encodingFailed`, naming the coding path; the coder's error is its cause.
    public func encode(_ message: Message) throws(FerryError) -> [UInt8] {
        let encoder = PropertyListEncoder()
        switch format {
        case .binary: encoder.outputFormat = .binary
        case .xml: encoder.outputFormat = .xml
        }
        do {
            return Array(try encoder.encode(message))
        } catch {
            throw .encodingFailed(error, format: "property list", type: Message.self)
        }
    }

    /// The message in `payload`, which is in either format.
    ///
    /// - Throws: `FerryError` with `decodingFailed`: for a malformed property list what is wrong and where; for one of
    ///   another shape the coding path, with the coder's error as its cause.
    public func decode(_ payload: [UInt8]) throws(FerryError) -> Message {
        if payload.starts(with: "bplist0".utf8) {
            let check = try BinaryPropertyListCheck(payload)
            try check.run(maximumDepth: maximumDepth, maximumExpandedSize: maximumExpandedSize)
        } else {
            var check = XMLPropertyListCheck(payload, maximumDepth: maximumDepth)
            try check.run()
        }
        do {
            return try PropertyListDecoder().decode(Message.self, from: Data(payload))
        } catch {
            throw .decodingFailed(error, format: "property list", type: Message.self)
        }
    }
}
