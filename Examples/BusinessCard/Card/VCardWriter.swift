/// Writes a card as a vCard 4.0 (RFC 6350) that ``VCardReader`` reads back as it was.
///
/// The location goes into the locality of ADR. The contact is an EMAIL, TEL or URL by its look, and a NOTE otherwise.
enum VCardWriter {
    /// Longest line in bytes, its end not counted (RFC 6350, 3.2).
    static let maximumLineLength = 75

    /// The file's content. The card has no control characters but tabs and line feeds.
    static func write(_ card: Card) -> [UInt8] {
        var lines = [
            "BEGIN:VCARD", "VERSION:4.0",
            "FN:\(escape(card.displayName))",
            "N:\(escape(card.lastName));\(escape(card.firstName));;;",
        ]
        if !card.organization.isEmpty { lines.append("ORG:\(escape(card.organization))") }
        if !card.location.isEmpty { lines.append("ADR:;;;\(escape(card.location));;;") }
        switch ContactKind(card.contact) {
        case .none: break
        case .email: lines.append("EMAIL:\(escape(card.contact))")
        case .telephone: lines.append("TEL:\(escape(card.contact))")
        case .web: lines.append("URL:\(card.contact)")  // a URI, which is not escaped (RFC 6350, 6.7.8)
        case .words: lines.append("NOTE:\(escape(card.contact))")
        }
        lines.append("END:VCARD")
        return lines.flatMap(fold)
    }

    /// What a contact looks like.
    private enum ContactKind {
        case none, email, telephone, web, words

        init(_ text: String) {
            let isOneWord = !text.contains(where: \.isWhitespace)
            if text.isEmpty {
                self = .none
            } else if isOneWord, text.hasPrefix("http://") || text.hasPrefix("https://") {
                self = .web
            } else if isOneWord, text.contains("@"), !text.contains("://") {
                self = .email
            } else if text.contains(where: \.isWholeNumber), text.allSatisfy({ "0123456789+-()./ ".contains($0) }) {
                self = .telephone
            } else {
                self = .words
            }
        }
    }

    private static func escape(_ text: String) -> String {
        var escaped = String.UnicodeScalarView()
        for scalar in text.unicodeScalars {
            switch scalar {
            case "\n": escaped.append(contentsOf: ["\\", "n"])
            case "\\", ";", ",": escaped.append(contentsOf: ["\\", scalar])
            default: escaped.append(scalar)
            }
        }
        return String(escaped)
    }

    /// The line with its end, folded between characters.
    private static func fold(_ line: String) -> [UInt8] {
        var folded: [UInt8] = []
        var room = maximumLineLength
        for scalar in line.unicodeScalars {
            let bytes = UTF8.encode(scalar).map(Array.init) ?? []
            if bytes.count > room {
                folded += [0x0D, 0x0A, 0x20]
                room = maximumLineLength - 1
            }
            folded += bytes
            room -= bytes.count
        }
        return folded + [0x0D, 0x0A]
    }
}
