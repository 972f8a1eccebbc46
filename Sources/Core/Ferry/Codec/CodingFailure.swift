extension FerryError {
    /// What a Codable decoder threw, with the place in the message spelt out.
    ///
    /// - Parameters:
    ///   - error: what the decoder threw.
    ///   - format: the format's name as people know it: "JSON", "property list".
    ///   - type: the type that was being decoded.
    public static func decodingFailed(_ error: any Error, format: String, type: Any.Type) -> FerryError {
        let detail: String
        switch error as? DecodingError {
        case .typeMismatch(_, let context)?, .valueNotFound(_, let context)?:
            detail = "\(place(context.codingPath)): \(sentence(context.debugDescription))"
        case .keyNotFound(let key, let context)?:
            detail = "\(place(context.codingPath)): the key \"\(key.stringValue)\" is missing."
        case .dataCorrupted(let context)?:
            // Foundation keeps what it knows of a malformed message (the line, the unfitting number) one level down.
            let reason = context.underlyingError.map { " \($0)." } ?? ""
            detail = "\(place(context.codingPath)): \(sentence(context.debugDescription))\(reason)"
        default:
            detail = "\(error)."
        }
        return FerryError(
            .decodingFailed,
            "The received \(format) is not a \(type): \(detail) Both sides must use the same codec and message type.",
            cause: error)
    }

    /// What a Codable encoder threw, with the place in the message spelt out.
    ///
    /// - Parameters:
    ///   - error: what the encoder threw.
    ///   - format: the format's name as people know it: "JSON", "property list".
    ///   - type: the type that was being encoded.
    public static func encodingFailed(_ error: any Error, format: String, type: Any.Type) -> FerryError {
        let detail: String
        if case .invalidValue(_, let context)? = error as? EncodingError {
            detail = "\(place(context.codingPath)): \(sentence(context.debugDescription))"
        } else {
            detail = "\(error)."
        }
        return FerryError(.encodingFailed, "This \(type) cannot be written as \(format): \(detail)", cause: error)
    }

    private static func place(_ path: [any CodingKey]) -> String {
        guard !path.isEmpty else { return "at the top" }
        var text = ""
        for key in path {
            if let index = key.intValue {
                text += "[\(index)]"
            } else {
                text += text.isEmpty ? key.stringValue : ".\(key.stringValue)"
            }
        }
        return "at \(text)"
    }

    private static func sentence(_ text: String) -> String { text.hasSuffix(".") ? text : text + "." }
}

/// A place in a message that is text: for codecs that check what a peer has sent, and say what stands where.
public struct TextPlace: Sendable, CustomStringConvertible {
    private let text: [UInt8]
    private let position: Int

    /// The byte at `position`, counted from 0, or the end where there is none.
    public init(_ position: Int, in text: [UInt8]) {
        self.text = text
        self.position = position
    }

    /// What stands there, as people read it: `'x'`, `the byte 0x07`, `its end`.
    public var found: String {
        guard position < text.count else { return "its end" }
        let byte = text[position]
        return (0x21..<0x7F).contains(byte) ? "'\(Character(UnicodeScalar(byte)))'" : "the byte \(Self.hex(byte))"
    }

    /// Where it is, for the middle of a sentence: `at line 2, column 1 (byte 17 of 90)`.
    public var description: String {
        let before = text.prefix(position)
        let line = before.count { $0 == 0x0A } + 1
        let column = position - (before.lastIndex(of: 0x0A).map { $0 + 1 } ?? 0) + 1
        return "at line \(line), column \(column) (byte \(position) of \(text.count))"
    }

    /// A byte as `0x07`.
    public static func hex(_ byte: UInt8) -> String {
        let digits = String(byte, radix: 16, uppercase: true)
        return digits.utf8.count < 2 ? "0x0\(digits)" : "0x\(digits)"
    }
}
