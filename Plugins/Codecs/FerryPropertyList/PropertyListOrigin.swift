import Ferry

/// Who made a property list that is checked.
enum PropertyListOrigin {
    case peer
    /// This side's coder, from a value of the type.
    case coder(String)

    /// The error for a property list that this side must not send.
    func failure(_ what: String) -> FerryError {
        var subject = "This message"
        if case .coder(let type) = self { subject = "This \(type)" }
        return FerryError(
            .encodingFailed,
            "\(subject) cannot be written as a property list that this codec reads: \(what). "
                + "Send less in one message or raise the limit on both sides; change such a string or key.")
    }
}

/// The keys of one dictionary. Foundation's decoder keeps one of two that are equal (canonically equivalent) without a word.
struct DictionaryKeys {
    private var first: String?
    private var others: Set<String> = []
    private var count = 0

    /// Returns whether the key is new.
    mutating func insert(_ key: String) -> Bool {
        count += 1
        guard let first else {
            first = key
            return true
        }
        return key != first && others.insert(key).inserted
    }

    /// Adds a key of a coder's dictionary, which is new.
    mutating func insertNew(_ key: @autoclosure () -> String) {
        count += 1
        if first == nil { first = key() }
    }

    /// Whether there is no other key.
    func isSole(_ key: String) -> Bool { first == key && count == 1 }
}

/// The text of an element of XML.
enum XMLText {
    /// The text with references and character data put in. The references were checked before; one that is unknown stays as
    /// it is, for Foundation refuses it.
    static func string(_ content: ArraySlice<UInt8>) -> String {
        guard content.contains(where: { $0 == UInt8(ascii: "&") || $0 == UInt8(ascii: "<") }) else {
            return String(decoding: content, as: UTF8.self)
        }
        var text: [UInt8] = []
        var rest = content
        while let byte = rest.first {
            if byte == UInt8(ascii: "<") {
                rest = rest.dropFirst("<![CDATA[".utf8.count)
                while !rest.isEmpty, !rest.starts(with: "]]>".utf8) { text.append(rest.removeFirst()) }
                rest = rest.dropFirst("]]>".utf8.count)
            } else if byte == UInt8(ascii: "&"), let end = rest.firstIndex(of: UInt8(ascii: ";")),
                let character = character(String(decoding: rest[(rest.startIndex + 1)..<end], as: UTF8.self))
            {
                text += Array(String(character).utf8)
                rest = rest[(end + 1)...]
            } else {
                text.append(rest.removeFirst())
            }
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func character(_ name: String) -> Unicode.Scalar? {
        switch name {
        case "lt": return "<"
        case "gt": return ">"
        case "amp": return "&"
        case "apos": return "'"
        case "quot": return "\""
        default:
            guard name.hasPrefix("#") else { return nil }
            let isHex = name.hasPrefix("#x") || name.hasPrefix("#X")
            return UInt32(name.dropFirst(isHex ? 2 : 1), radix: isHex ? 16 : 10).flatMap(Unicode.Scalar.init)
        }
    }
}
