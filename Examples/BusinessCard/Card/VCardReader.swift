/// Reads one vCard, version 4.0 (RFC 6350) or 3.0 (RFC 2426): the properties that a business card has a field for.
///
/// | field | property |
/// |---|---|
/// | lastName, firstName | N; without it the last word of FN and the words before |
/// | organization | ORG, its units separated by commas |
/// | location | ADR: locality, region and country, as far as they are there |
/// | contact | the preferred EMAIL, else TEL, else URL, else NOTE |
///
/// It is tolerant: lines may end with LF alone, groups and parameters are taken as they come, and properties that a
/// card has no field for are passed over, as the RFC demands.
struct VCardReader {
    private var card = Card()
    private var hasName = false
    private var formattedName: String?
    private var version: String?
    private var contact: (rank: Int, text: String)?

    /// Reads a file's content.
    ///
    /// - Throws: ``CardError`` with the line that is wrong.
    static func read(_ bytes: [UInt8]) throws(CardError) -> Card {
        var reader = VCardReader()
        var state = State.before
        var lastLine = 1
        for line in try VCardLine.unfold(bytes) {
            lastLine = line.number
            switch (state, line.name) {
            case (.before, "BEGIN"), (.after, "BEGIN"):
                guard line.value.uppercased() == "VCARD" else { throw line.error("BEGIN:VCARD is expected here") }
                guard state == .before else {
                    throw line.error("a second card begins here; give a file with one card only")
                }
                state = .inside
            case (.before, _): throw line.error("BEGIN:VCARD is expected here")
            case (.after, _): throw line.error("something follows END:VCARD")
            case (.inside, "BEGIN"): throw line.error("BEGIN stands inside a card; the END:VCARD before it is missing")
            case (.inside, "END"):
                guard line.value.uppercased() == "VCARD" else { throw line.error("END:VCARD is expected here") }
                guard reader.version != nil else {
                    throw line.error("the card ends without VERSION:4.0, which must follow BEGIN:VCARD")
                }
                state = .after
            case (.inside, _): try reader.take(line)
            }
        }
        switch state {
        case .before: throw CardError("line 1: BEGIN:VCARD is expected here")
        case .inside: throw CardError("line \(lastLine): END:VCARD is missing after this; the file may be cut short")
        case .after: return reader.finished
        }
    }

    private enum State { case before, inside, after }

    private mutating func take(_ line: VCardLine) throws(CardError) {
        switch line.name {
        case "VERSION":
            guard version == nil else { throw line.error("VERSION is given twice") }
            guard ["4.0", "3.0"].contains(line.value) else {
                throw line.error("version \(line.value.printable) is not read here; export the card as vCard 4.0")
            }
            version = line.value
        case "N" where !hasName:
            let parts = line.components(separator: " ")
            card.lastName = parts.first ?? ""
            card.firstName = parts.dropFirst().first ?? ""
            hasName = true
        case "FN" where formattedName == nil: formattedName = line.text
        case "ORG" where card.organization.isEmpty:
            card.organization = line.components(separator: ", ").filter { !$0.isEmpty }.joined(separator: ", ")
        case "ADR" where card.location.isEmpty:
            // post office box; extended; street; locality; region; postal code; country (RFC 6350, 6.3.1)
            let parts = line.components(separator: ", ")
            let places = [3, 4, 6].compactMap { $0 < parts.count ? parts[$0] : nil }
            card.location = places.filter { !$0.isEmpty }.joined(separator: ", ")
        case "EMAIL": offer(line.text, rank: 0, of: line)
        case "TEL": offer(line.text.hasPrefix("tel:") ? String(line.text.dropFirst(4)) : line.text, rank: 1, of: line)
        case "URL": offer(line.value, rank: 2, of: line)
        case "NOTE": offer(line.text, rank: 3, of: line)
        default: break
        }
    }

    /// Keeps the contact that comes first by kind, then by preference, then in the file.
    private mutating func offer(_ text: String, rank: Int, of line: VCardLine) {
        let rank = rank * 1000 + line.preference
        if !text.isEmpty, rank < contact?.rank ?? .max { contact = (rank, text) }
    }

    private var finished: Card {
        var card = card
        card.contact = contact?.text ?? ""
        if !hasName, let words = formattedName?.split(separator: " ") {
            card.lastName = words.last.map(String.init) ?? ""
            card.firstName = words.dropLast().joined(separator: " ")
        }
        return card
    }
}
