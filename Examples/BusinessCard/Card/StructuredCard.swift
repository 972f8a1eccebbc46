import Foundation

// JSON and property lists: the decoders are Foundation's; here is what they do not tell, which is where a file is wrong.

extension CardFormat {
    static func readJSON(_ bytes: [UInt8]) throws(CardError) -> Card {
        try requireText(bytes)
        let data = Data(bytes)
        do {
            // JSONDecoder does not say where it stumbled; the older parser does.
            _ = try JSONSerialization.jsonObject(with: data, options: .fragmentsAllowed)
        } catch {
            throw CardError("this is not valid JSON: \(JSONPlace(error, in: bytes))")
        }
        return try decode { try JSONDecoder().decode(StrictCard.self, from: data) }
    }

    static func readPropertyList(_ bytes: [UInt8]) throws(CardError) -> Card {
        if !bytes.starts(with: "bplist".utf8) {
            try requireText(bytes)
            try PropertyListOutline.check(bytes)
        }
        return try decode { try PropertyListDecoder().decode(StrictCard.self, from: Data(bytes)) }
    }

    private static func requireText(_ bytes: [UInt8]) throws(CardError) {
        do { _ = try UTF8Span(validating: bytes.span) } catch {
            let place = error.byteOffsets.lowerBound
            throw CardError("line \(bytes.lineNumber(at: place)): byte \(place) is not UTF-8 text")
        }
    }

    private static func decode(_ decode: () throws -> StrictCard) throws(CardError) -> Card {
        do {
            return try decode().card
        } catch let error as CardError {
            throw error
        } catch let error as DecodingError {
            throw CardError(Self.explain(error))
        } catch {
            throw CardError("\(error)")
        }
    }

    private static func explain(_ error: DecodingError) -> String {
        switch error {
        case .typeMismatch(_, let context):
            guard let field = context.codingPath.first?.stringValue else {
                return "the file holds something else than a dictionary of fields"
            }
            return "\(field) is not text"
        case .dataCorrupted(let context):
            let cause = context.underlyingError as NSError?
            // The parser's "on line 1" is there whatever the line.
            let detail = (cause?.userInfo["NSDebugDescription"] as? String)?
                .replacing(/\ (on|at) line \d+/, with: "")
            return "this is not a valid property list: \(detail ?? context.debugDescription)"
        default:
            return "\(error)"
        }
    }
}

/// A card in a file that a person wrote: a field that a card does not have is a slip of the pen.
private struct StrictCard: Decodable {
    let card: Card

    private struct Name: CodingKey {
        let stringValue: String
        var intValue: Int? { nil }
        init(stringValue: String) { self.stringValue = stringValue }
        init?(intValue: Int) { nil }
    }

    init(from decoder: any Decoder) throws {
        let names = try decoder.container(keyedBy: Name.self).allKeys.map(\.stringValue).sorted()
        if let unknown = names.first(where: { Card.Field(rawValue: $0) == nil }) {
            throw CardError("a card has no field \"\(unknown.printable)\"")
        }
        card = try Card(from: decoder)
    }
}

/// Where and why the JSON parser stumbled, in words.
private struct JSONPlace: CustomStringConvertible {
    let description: String

    init(_ error: any Error, in bytes: [UInt8]) {
        let detail = (error as NSError).userInfo["NSDebugDescription"] as? String ?? "\(error)"
        guard let match = detail.firstMatch(of: /,? ?(?:around|starting from) character (\d+)\.?$/),
            let place = Int(match.1)
        else {
            description = detail.hasSuffix(".") ? String(detail.dropLast()) : detail
            return
        }
        let what = detail[..<match.range.lowerBound]
        let at = min(place, bytes.count)
        let lineStart = bytes[..<at].lastIndex(of: 0x0A).map { $0 + 1 } ?? 0
        description = "\(what) in line \(bytes.lineNumber(at: at)), byte \(at - lineStart + 1)"
    }
}

extension [UInt8] {
    /// The line, counted from 1, that the byte at `offset` is in.
    func lineNumber(at offset: Int) -> Int { 1 + self[..<Swift.min(offset, count)].count { $0 == 0x0A } }
}
