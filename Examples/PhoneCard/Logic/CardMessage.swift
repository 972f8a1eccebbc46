/// What two phones say to each other, in this order: each a hello, each its person's consent, each a card, each a receipt.
public enum CardMessage: Sendable, Hashable, Codable {
    /// Who is there.
    case hello(Greeting)
    /// The person has compared the codes and wants to exchange cards.
    case consent
    /// The person does not.
    case decline
    /// The card, sent only after both have consented.
    case card(ContactCard)
    /// The card has arrived.
    case received
}

/// The beginning of a conversation.
public struct Greeting: Sendable, Hashable, Codable {
    /// The version of the conversation.
    public static let version = 1

    /// The version that the phone speaks.
    public var version: Int
    /// A number that the phone has drawn for this session.
    public var id: UInt64
    /// What to call the person before the card has come; at most ``ContactCard/maximumFieldLength`` bytes.
    public var name: String

    init(id: UInt64, name: String) {
        version = Self.version
        self.id = id
        self.name = name
    }

    /// The first half of the number, which a phone advertises as its local name, in 8 hexadecimal digits: room that iOS leaves
    /// beside a service of 128 bits.
    static func token(_ id: UInt64) -> UInt32 { UInt32(truncatingIfNeeded: id >> 32) }

    static func localName(_ id: UInt64) -> String {
        let digits = String(token(id), radix: 16)
        return String(repeating: "0", count: 8 - digits.count) + digits
    }

    static func token(localName: String?) -> UInt32? {
        guard let localName, localName.utf8.count == 8 else { return nil }
        return UInt32(localName, radix: 16)
    }

    /// The six digits that both phones show: the same for both, and different for other pairs. It tells people in one room apart;
    /// it is no proof against a device in between, which can draw numbers until they fit.
    static func code(_ one: UInt64, _ other: UInt64) -> String {
        var hash: UInt64 = 0xCBF2_9CE4_8422_2325
        for number in [min(one, other), max(one, other)] {
            // The finalizer of SplitMix64.
            hash = (hash ^ number) &+ 0x9E37_79B9_7F4A_7C15
            hash = (hash ^ (hash >> 30)) &* 0xBF58_476D_1CE4_E5B9
            hash = (hash ^ (hash >> 27)) &* 0x94D0_49BB_1331_11EB
            hash ^= hash >> 31
        }
        let digits = String(hash % 1_000_000)
        let padded = String(repeating: "0", count: 6 - digits.count) + digits
        return "\(padded.prefix(3)) \(padded.suffix(3))"
    }
}
