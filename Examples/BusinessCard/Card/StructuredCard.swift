import Ferry
import FerryJSON
import FerryPropertyList

// JSON and property lists are read by the same codecs that read messages: they say where a file is wrong, and bound how
// deep and how large it can make itself.

extension CardFormat {
    static func readJSON(_ bytes: [UInt8]) throws(CardError) -> Card {
        try read(bytes, "JSON", with: JSONCodec<StrictCard>())
    }

    static func readPropertyList(_ bytes: [UInt8]) throws(CardError) -> Card {
        try read(bytes, "a property list", with: PropertyListCodec<StrictCard>(maximumExpandedSize: 16 << 20))
    }

    private static func read(
        _ bytes: [UInt8], _ format: String, with codec: some Codec<StrictCard>
    ) throws(CardError) -> Card {
        do {
            return try codec.decode(bytes).card
        } catch let error as FerryError {
            switch error.cause {
            case let error as CardError: throw error
            case DecodingError.typeMismatch(_, let context)?:
                guard let field = context.codingPath.first?.stringValue else {
                    throw CardError("the file holds something else than a dictionary of fields")
                }
                throw CardError("\(field) is not text")
            default: throw CardError("this is not \(format) that can be read: \(detail(of: error.message))")
            }
        } catch {
            throw CardError("\(error)")
        }
    }

    /// The codecs speak of a message and a peer, "The received ... it has X at line 3. Check that ...": of a file, X says
    /// it all.
    private static func detail(of message: String) -> String {
        let leads = ["it has ", "The received binary property list "]
        let start = leads.lazy.compactMap { message.firstRange(of: $0)?.upperBound }.first ?? message.startIndex
        let end = message.firstRange(of: ". Check that ")?.lowerBound ?? message.endIndex
        return start < end ? String(message[start..<end]) : message
    }
}

/// A card in a file that a person wrote: a field that a card does not have is a slip of the pen.
private struct StrictCard: Codable, Sendable {
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

    func encode(to encoder: any Encoder) throws { try card.encode(to: encoder) }
}
