import Foundation

/// The formats of card files.
enum CardFormat: String, CaseIterable, Sendable {
    case json, propertyList, vCard

    /// The format that a file name's extension stands for.
    init?(fileExtension: String) {
        switch fileExtension.lowercased() {
        case "json": self = .json
        case "plist": self = .propertyList
        case "vcf", "vcard": self = .vCard
        default: return nil
        }
    }

    /// The format that a file's first bytes show.
    init?(content: some Sequence<UInt8>) {
        let start = content.lazy.drop { [0x20, 0x09, 0x0A, 0x0D].contains($0) }.prefix(6).map { $0 }
        switch start.first {
        case UInt8(ascii: "{"), UInt8(ascii: "["): self = .json
        case UInt8(ascii: "<"): self = .propertyList
        default:
            switch String(decoding: start, as: UTF8.self).lowercased() {
            case "bplist": self = .propertyList
            case "begin:": self = .vCard
            default: return nil
            }
        }
    }

    /// Reads a card. The content decides on the format; the extension does where the content shows none.
    ///
    /// - Throws: ``CardError`` that says what is wrong and in which line, without the file's name.
    static func read(_ bytes: [UInt8], fileExtension: String) throws(CardError) -> Card {
        let content = bytes.starts(with: [0xEF, 0xBB, 0xBF]) ? Array(bytes.dropFirst(3)) : bytes
        guard !content.isEmpty else { throw CardError("the file is empty") }
        guard let format = CardFormat(content: content) ?? CardFormat(fileExtension: fileExtension) else {
            throw CardError("this is neither JSON, nor a property list, nor a vCard")
        }
        let card =
            switch format {
            case .json: try readJSON(content)
            case .propertyList: try readPropertyList(content)
            case .vCard: try VCardReader.read(content)
            }
        guard !card.isBlank else {
            throw CardError("the card is blank; fill in at least one of \(Card.Field.list)")
        }
        return card
    }

    /// A file's content for a card.
    ///
    /// - Throws: ``CardError`` when the format cannot hold a character of the card.
    func write(_ card: Card) throws(CardError) -> [UInt8] {
        switch self {
        case .json:
            let encoder = JSONEncoder()
            encoder.outputFormatting = [.prettyPrinted, .sortedKeys, .withoutEscapingSlashes]
            return try Self.encoded("JSON") { Array(try encoder.encode(card)) + [0x0A] }
        case .propertyList:
            try Self.refuse(in: card, "an XML property list") { scalar in
                // XML 1.0, 2.2 "Char". A lone carriage return would come back as a line feed (2.11).
                !["\t", "\n"].contains(scalar) && (scalar < " " || ["\u{FFFE}", "\u{FFFF}"].contains(scalar))
            }
            let encoder = PropertyListEncoder()
            encoder.outputFormat = .xml
            return try Self.encoded("property list") { Array(try encoder.encode(card)) }
        case .vCard:
            try Self.refuse(in: card, "a vCard") { scalar in
                // RFC 6350, 3.3: VALUE-CHAR has no controls but the tab; 4.1 writes line breaks as \n.
                !["\t", "\n"].contains(scalar) && (scalar < " " || scalar == "\u{7F}")
            }
            return VCardWriter.write(card)
        }
    }

    private static func encoded(_ name: String, _ encode: () throws -> [UInt8]) throws(CardError) -> [UInt8] {
        do { return try encode() } catch { throw CardError("the card cannot be written as \(name): \(error)") }
    }

    private static func refuse(
        in card: Card, _ format: String, _ isForbidden: (Unicode.Scalar) -> Bool
    ) throws(CardError) {
        for field in Card.Field.allCases {
            guard let scalar = card[field].unicodeScalars.first(where: isForbidden) else { continue }
            let code = String(scalar.value, radix: 16, uppercase: true)
            throw CardError(
                "\(format) cannot hold the character U+\(String(repeating: "0", count: 4 - min(4, code.count)))\(code) "
                    + "in \(field.rawValue); save as .json instead")
        }
    }
}
