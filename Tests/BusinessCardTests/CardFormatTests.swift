import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import BusinessCard

@Suite(.tags(.program)) struct CardFormatTests {
    static let full = Card(
        firstName: "Ada", lastName: "Lovelace", organization: "Analytical Engine Society",
        location: "London, England", contact: "ada@example.org")

    // MARK: Golden files

    @Test func writesJSON() throws {
        let expected = """
            {
              "contact" : "ada@example.org",
              "firstName" : "Ada",
              "lastName" : "Lovelace",
              "location" : "London, England",
              "organization" : "Analytical Engine Society"
            }

            """
        #expect(String(decoding: try CardFormat.json.write(Self.full), as: UTF8.self) == expected)
    }

    @Test func writesAnXMLPropertyList() throws {
        let text = String(decoding: try CardFormat.propertyList.write(Self.full), as: UTF8.self)
        #expect(text.hasPrefix("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC"))
        #expect(text.contains("\t<key>location</key>\n\t<string>London, England</string>\n"))
    }

    @Test func writesAVCard() throws {
        let expected =
            "BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ada Lovelace\r\nN:Lovelace;Ada;;;\r\n"
            + "ORG:Analytical Engine Society\r\nADR:;;;London\\, England;;;\r\nEMAIL:ada@example.org\r\n"
            + "END:VCARD\r\n"
        #expect(String(decoding: try CardFormat.vCard.write(Self.full), as: UTF8.self) == expected)
    }

    @Test(arguments: [
        "{\"firstName\":\"Ada\",\"lastName\":\"Lovelace\",\"organization\":\"Analytical Engine Society\","
            + "\"location\":\"London, England\",\"contact\":\"ada@example.org\"}",
        "\u{FEFF}\n {\"lastName\":\"Lovelace\",\"firstName\":\"\\u0041da\",\"organization\":\"Analytical Engine Society\","
            + "\"location\":\"London, England\",\"contact\":\"ada@example.org\"}",
        "<plist version=\"1.0\"><!-- <dict> --><dict><key>firstName</key><string>Ada</string><key>lastName</key>"
            + "<string>Lovelace</string><key>organization</key><string>Analytical Engine Society</string>"
            + "<key>location</key><string>London, England</string><key>contact</key><string>ada@example.org</string>"
            + "</dict></plist>",
        "begin:vcard\nversion:4.0\nN:Lovelace;Ada;;;\nORG:Analytical Engine Society\nADR:;;;London\\, England;;;\n"
            + "EMAIL:ada@example.org\nend:vcard\n",
        // As other programs write it: groups, parameters, folding, several contacts, properties without a field.
        "BEGIN:VCARD\r\nVERSION:4.0\r\nPRODID:-//Some//Program//EN\r\nFN:Countess Lovelace\r\nitem1.N;SORT-AS=\"x:y\":"
            + "Lovelace;Ada;;;\r\nORG:Analytical Eng\r\n ine Society\r\nADR;TYPE=home;LABEL=\"12, St James: London\":;;12 "
            + "St James's Square;London;;SW1;England\r\nTEL;VALUE=uri;PREF=1:tel:+44-20\r\nEMAIL;PREF=7:a@example.org"
            + "\r\nEMAIL;TYPE=work;PREF=2:ada@example.org\r\nPHOTO:data:image/png;base64,iVBORw0KGgo=\r\n"
            + "X-EVIL:\u{1B}[2J\r\nEND:VCARD\r\n\r\n",
        "BEGIN:VCARD\r\nN:Lovelace;Ada\r\nVERSION:3.0\r\nORG:Analytical Engine Society\r\nADR:;;;London;England\r\n"
            + "EMAIL;TYPE=INTERNET:x@example.org\r\nEMAIL;TYPE=INTERNET,pref:ada@example.org\r\nEND:VCARD",
        "BEGIN:VCARD\r\nVERSION:4.0\r\nFN:Ada Lovelace\r\nORG:Analytical Engine Society\r\nADR:;;;London;;;England\r\n"
            + "EMAIL:ada@example.org\r\nEND:VCARD\r\n",
    ])
    func readsWhatPeopleWrite(_ text: String) throws {
        #expect(try CardFormat.read(Array(text.utf8), fileExtension: "") == Self.full)
    }

    @Test func readsABinaryPropertyList() throws {
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let bytes = Array(try encoder.encode(["firstName": "Ada", "contact": "+44 20"]))
        #expect(try CardFormat.read(bytes, fileExtension: "txt") == Card(firstName: "Ada", contact: "+44 20"))
    }

    // MARK: Round trips

    /// Fields made of what each format treats specially, from a fixed seed.
    @Test(arguments: CardFormat.allCases)
    func returnsEveryCardAsItWas(_ format: CardFormat) throws {
        let pieces = [
            "Ada", "é", "e\u{301}", "\u{301}", "李", "👩‍💻", "🇬🇧", " ", "  ", ",", ";", ":", "\\", "\\n", "\n", "\t", "\"",
            "'",
            "<", ">", "&", "]]>", "&amp;", "{", "}", "tel:", "http://example.org/a,b;c", "a@b.c", "+44 (0)20", "/", "=",
            "BEGIN:VCARD", "\n END:VCARD", "EOM", "\u{FEFF}", "\u{2028}", "\u{85}",
            String(repeating: "long ", count: 40), String(repeating: "長", count: 60),
        ]
        var random = SplitMix64(seed: 2026)
        for _ in 0..<2000 {
            var card = Card()
            for field in Card.Field.allCases {
                card[field] = (0..<Int.random(in: 0...4, using: &random))
                    .map { _ in pieces.randomElement(using: &random) ?? "" }.joined()
            }
            guard !card.isBlank else { continue }
            let bytes = try format.write(card)
            #expect(CardFormat(content: bytes) == format)
            let back = try CardFormat.read(bytes, fileExtension: "")
            // Swift compares text by canonical equivalence; a file must keep the very scalars.
            for field in Card.Field.allCases {
                try #require(Array(back[field].utf8) == Array(card[field].utf8), "seed 2026, \(field), \(card)")
            }
        }
    }

    @Test(arguments: ["bare", "ada@example.org", "+44 20 7946 0000", "https://example.org/a?b=1,2;3", "call me: now"])
    func keepsEveryKindOfContactInAVCard(_ contact: String) throws {
        let card = Card(firstName: "Ada", contact: contact)
        #expect(try CardFormat.read(try CardFormat.vCard.write(card), fileExtension: "vcf") == card)
    }

    @Test func foldsAVCardBetweenCharactersAtSeventyFiveBytes() throws {
        let card = Card(
            firstName: String(repeating: "長い名前", count: 30), organization: String(repeating: "x", count: 300))
        let bytes = try CardFormat.vCard.write(card)
        let lines = String(decoding: bytes, as: UTF8.self).components(separatedBy: "\r\n")
        #expect(lines.count > 10)
        #expect(lines.allSatisfy { $0.utf8.count <= 75 && !$0.contains("\u{FFFD}") })
        #expect(lines.contains { $0.utf8.count == 75 })
        #expect(try CardFormat.read(bytes, fileExtension: "") == card)
    }

    @Test func unfoldsInTheMiddleOfACharacter() throws {
        var bytes = Array("BEGIN:VCARD\r\nVERSION:4.0\r\nN:Zo".utf8)
        bytes += [0xC3] + Array("\r\n ".utf8) + [0xAB] + Array(";;;;\r\nEND:VCARD\r\n".utf8)
        #expect(try CardFormat.read(bytes, fileExtension: "").lastName == "Zoë")
    }

    @Test(arguments: [(CardFormat.propertyList, "\u{7}"), (.propertyList, "\r"), (.vCard, "\u{0}"), (.vCard, "\u{1B}")])
    func refusesACharacterThatTheFormatCannotHold(_ format: CardFormat, _ character: String) {
        let error = #expect(throws: CardError.self) { try format.write(Card(organization: "a\(character)b")) }
        #expect(error?.description.contains("in organization; save as .json instead") == true)
        #expect(throws: Never.self) { try CardFormat.json.write(Card(organization: "a\(character)b")) }
    }
}
