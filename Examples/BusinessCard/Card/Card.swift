/// A business card: what crosses the link, and what card files hold.
///
/// Every field is text and may be empty, but a card says something: see ``isBlank``. On the wire it is a dictionary of
/// five strings, so that a peer that sends a plain dictionary is understood as well.
struct Card: Sendable, Hashable {
    var firstName = ""
    var lastName = ""
    var organization = ""
    var location = ""
    /// How to get in touch: an e-mail address, a telephone number, an address on the web, or plain words.
    var contact = ""

    /// The card that is sent unless a file is given: long enough that its 20-byte chunks do not fit a transmit queue of
    /// 8, even if the radio takes a few out of it meanwhile.
    static let example = Card(
        firstName: "Ada", lastName: "Lovelace", organization: "Society for the Promotion of the Analytical Engine",
        location: "12 St James's Square, London SW1Y 4JH, United Kingdom",
        contact: "ada.lovelace@analytical-engine.example")

    /// Whether no field holds anything but white space.
    var isBlank: Bool {
        Field.allCases.allSatisfy { field in self[field].allSatisfy(\.isWhitespace) }
    }

    /// The names together, or the organization when there are none.
    var displayName: String {
        let name = [firstName, lastName].filter { !$0.isEmpty }.joined(separator: " ")
        return name.isEmpty ? organization : name
    }
}

extension Card {
    /// The fields by their names in files and on the wire.
    enum Field: String, CaseIterable, CodingKey {
        case firstName, lastName, organization, location, contact

        /// All names, for messages.
        static let list = allCases.map(\.rawValue).joined(separator: ", ")
    }

    subscript(field: Field) -> String {
        get {
            switch field {
            case .firstName: firstName
            case .lastName: lastName
            case .organization: organization
            case .location: location
            case .contact: contact
            }
        }
        set {
            switch field {
            case .firstName: firstName = newValue
            case .lastName: lastName = newValue
            case .organization: organization = newValue
            case .location: location = newValue
            case .contact: contact = newValue
            }
        }
    }
}

extension Card: Codable {
    /// Reads the fields that are there; missing ones are empty and unknown ones are left alone, as peers may be newer.
    init(from decoder: any Decoder) throws {
        let container = try decoder.container(keyedBy: Field.self)
        for field in Field.allCases {
            self[field] = try container.decodeIfPresent(String.self, forKey: field) ?? ""
        }
    }

    /// Writes all five fields.
    func encode(to encoder: any Encoder) throws {
        var container = encoder.container(keyedBy: Field.self)
        for field in Field.allCases { try container.encode(self[field], forKey: field) }
    }
}

/// What is wrong with a card file or an exchange: what was met, where, and what to do, in one sentence or two.
struct CardError: Error, Hashable, CustomStringConvertible {
    let description: String

    init(_ description: String) { self.description = description }
}
