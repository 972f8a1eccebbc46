/// What a person hands over.
public struct ContactCard: Sendable, Hashable, Codable {
    /// The first name.
    public var givenName: String
    /// The last name.
    public var familyName: String
    /// The company or club.
    public var organization: String
    /// A telephone number.
    public var phone: String
    /// An e-mail address.
    public var email: String

    /// The most bytes of a field, in UTF-8.
    public static let maximumFieldLength = 256

    /// A card; every field may be empty.
    public init(
        givenName: String = "", familyName: String = "", organization: String = "", phone: String = "",
        email: String = ""
    ) {
        self.givenName = givenName
        self.familyName = familyName
        self.organization = organization
        self.phone = phone
        self.email = email
    }

    private var fields: [String] { [givenName, familyName, organization, phone, email] }

    /// The name to show.
    public var displayName: String {
        let name = [givenName, familyName].filter { !$0.isEmpty }.joined(separator: " ")
        return name.isEmpty ? organization : name
    }

    /// Whether a peer may send it: something to show, short fields, and no control characters.
    public var isAcceptable: Bool { !displayName.isEmpty && fields.allSatisfy(Self.isAcceptable) }

    static func isAcceptable(_ field: String) -> Bool {
        field.utf8.count <= maximumFieldLength
            && field.unicodeScalars.allSatisfy { $0.properties.generalCategory != .control }
    }

    /// The card as a vCard 3.0 (RFC 2426), which Contacts reads.
    public var vCard: String {
        var lines = [
            "BEGIN:VCARD", "VERSION:3.0", "N:\(Self.escape(familyName));\(Self.escape(givenName));;;",
            "FN:\(Self.escape(displayName))",
        ]
        for (name, value) in [("ORG", organization), ("TEL", phone), ("EMAIL", email)] where !value.isEmpty {
            lines.append("\(name):\(Self.escape(value))")
        }
        return (lines + ["END:VCARD", ""]).joined(separator: "\r\n")
    }

    private static func escape(_ text: String) -> String {
        var escaped = ""
        for character in text {
            if ["\\", ";", ","].contains(character) { escaped.append("\\") }
            escaped.append(character.isNewline ? " " : character)
        }
        return escaped
    }
}
