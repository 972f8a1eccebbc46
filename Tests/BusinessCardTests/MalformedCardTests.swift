import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import BusinessCard

/// What is wrong, and in which line.
@Suite(.tags(.program)) struct MalformedCardTests {
    @Test(arguments: [
        ("", "", "the file is empty"),
        ("\u{FEFF}", "", "the file is empty"),
        ("hello", "", "this is neither JSON, nor a property list, nor a vCard"),
        ("hello", "json", "this is not JSON that can be read: 'h' where a value was expected, at line 1, column 1"),
        ("{\n\"firstName\": \"A\",\n \"lastName\": x}", "", "line 3"),
        ("{\"firstName\": \"A\"", "", "its end where ',' or '}' was expected"),
        ("{\"firstName\": \"A\"} trailing", "", "at line 1, column 20"),
        ("{\"firstName\": 3}", "", "firstName is not text"),
        ("[\"Ada\"]", "", "the file holds something else than a dictionary of fields"),
        ("{\"firstname\": \"Ada\"}", "", "a card has no field \"firstname\""),
        ("{\"\u{1B}[2J\": \"Ada\"}", "", "the control character 0x1B inside a string"),
        ("{\"\\u001b[2J\": \"Ada\"}", "", "a card has no field \"\\u{1B}[2J\""),
        ("{}", "", "the card is blank; fill in at least one of firstName, lastName"),
        ("{\"firstName\": \" \", \"contact\": null}", "", "the card is blank"),
        (
            "<plist>\n<dict>\n<key>firstName</key><string>A</dict></plist>", "",
            "'<' where '</string>' was expected, at line 3"
        ),
        ("<plist>\n<dict>\n<foo/></dict></plist>", "", "at line 3, column 2"),
        ("<plist><dict><key>firstName</key><string>A", "", "its end where '</string>' was expected"),
        ("<plist>\n</dict>", "", "a closing tag that matches no open element, at line 2"),
        ("<plist>\n<!-- never", "", "a comment that does not end, at line 2"),
        ("<plist><dict><key>firstName</key><string>&bogus;</string></dict></plist>", "", "at line 1"),
        ("<plist><dict><key>firstName</key></dict></plist>", "", "this is not a property list that can be read"),
        ("<plist><dict><key>firstName</key><integer>3</integer></dict></plist>", "", "firstName is not text"),
        ("<plist><array><string>Ada</string></array></plist>", "", "something else than a dictionary of fields"),
        ("<plist><dict><key>name</key><string>A</string></dict></plist>", "", "a card has no field \"name\""),
        ("bplist00", "", "this is not a property list that can be read: 8 bytes, fewer than header and trailer"),
        ("bplist00\u{1}\u{2}" + String(repeating: "a", count: 40), "", "can be read: states integers of 97"),
        ("BEGIN:VCARD\r\nVERSION:4.0\r\nFN:A\r\n", "", "line 3: END:VCARD is missing after this"),
        ("BEGIN:VCARD\nFN:A\nEND:VCARD", "", "line 3: the card ends without VERSION:4.0"),
        ("BEGIN:VCARD\nVERSION:2.1\nFN:A\nEND:VCARD", "", "line 2: version 2.1 is not read here"),
        ("BEGIN:VCARD\nVERSION:4.0\nVERSION:4.0\nEND:VCARD", "", "line 3: VERSION is given twice"),
        ("BEGIN:VCARD\nVERSION:4.0\nnonsense\nEND:VCARD", "", "line 3: a colon is missing"),
        ("BEGIN:VCARD\nVERSION:4.0\nN;X=\"a:b\nEND:VCARD", "", "line 3: a colon is missing"),
        ("BEGIN:VCARD\nVERSION:4.0\nN\u{1B}[:A\nEND:VCARD", "", "line 3: \"N\\u{1B}[\" is not a property's name"),
        ("BEGIN:VCARD\nVERSION:4.0\nBEGIN:VCARD\n", "", "line 3: BEGIN stands inside a card"),
        ("BEGIN:VCALENDAR\nEND:VCALENDAR", "", "line 1: BEGIN:VCARD is expected here"),
        ("FN:A\nBEGIN:VCARD", "vcf", "line 1: BEGIN:VCARD is expected here"),
        ("BEGIN:VCARD\nVERSION:4.0\nFN:A\nEND:VEVENT", "", "line 4: END:VCARD is expected here"),
        (
            "BEGIN:VCARD\nVERSION:4.0\nFN:A\nEND:VCARD\nBEGIN:VCARD\nVERSION:4.0\nFN:B\nEND:VCARD", "",
            "line 5: a second card begins here"
        ),
        ("BEGIN:VCARD\nVERSION:4.0\nFN:A\nEND:VCARD\nFN:B", "", "line 5: something follows END:VCARD"),
        ("BEGIN:VCARD\nVERSION:4.0\nFN:\nEND:VCARD", "", "the card is blank"),
    ])
    func saysWhatIsWrongAndWhere(_ content: String, _ fileExtension: String, _ expected: String) {
        let error = #expect(throws: CardError.self) {
            try CardFormat.read(Array(content.utf8), fileExtension: fileExtension)
        }
        #expect(error?.description.contains(expected) == true, "\(error?.description ?? "no error")")
    }

    @Test func refusesWhatIsNestedWithoutEnd() {
        for deep in [String(repeating: "[", count: 300_000), "<plist>" + String(repeating: "<array>", count: 100_000)] {
            let error = #expect(throws: CardError.self) { try CardFormat.read(Array(deep.utf8), fileExtension: "") }
            #expect(error?.description.contains("nesting deeper than") == true)
        }
    }

    @Test(arguments: ["{\n\"firstName\": \"\u{0}\"}", "<plist>\n<dict>\u{0}", "BEGIN:VCARD\nVERSION:4.0\u{0}"])
    func refusesTextThatIsNotUTF8(_ content: String) {
        let bytes = content.utf8.map { $0 == 0 ? 0xFF : $0 }
        let error = #expect(throws: CardError.self) { try CardFormat.read(bytes, fileExtension: "") }
        #expect(error?.description.contains("line 2") == true, "\(error?.description ?? "no error")")
    }

    /// Damaged files end in an error or in a card, never in a trap.
    @Test(arguments: ["json", "xml", "binary", "vcf"])
    func survivesDamage(_ kind: String) throws {
        let card = CardFormatTests.full
        let encoder = PropertyListEncoder()
        encoder.outputFormat = .binary
        let whole =
            switch kind {
            case "json": try CardFormat.json.write(card)
            case "xml": try CardFormat.propertyList.write(card)
            case "vcf": try CardFormat.vCard.write(card)
            default: Array(try encoder.encode(card))
            }
        var random = SplitMix64(seed: 7)
        for round in 0..<3000 {
            var bytes = whole
            if round < whole.count { bytes.removeLast(round) }
            for _ in 0..<Int.random(in: 1...4, using: &random) where !bytes.isEmpty {
                let place = Int.random(in: 0..<bytes.count, using: &random)
                switch Int.random(in: 0..<3, using: &random) {
                case 0: bytes[place] = UInt8.random(in: 0...255, using: &random)
                case 1: bytes.remove(at: place)
                default: bytes.insert(bytes[Int.random(in: 0..<bytes.count, using: &random)], at: place)
                }
            }
            do { #expect(try !CardFormat.read(bytes, fileExtension: kind).isBlank) } catch {
                #expect(!error.description.isEmpty)
            }
        }
    }
}

/// Files on disk.
@Suite(.tags(.program)) struct CardFileTests {
    @Test(arguments: ["card.json", "card.plist", "card.vcf", "CARD.VCF"])
    func savesAndLoads(_ name: String) async throws {
        try await withFolder { folder in
            let path = folder + "/" + name
            try Data("what was there before".utf8).write(to: URL(fileURLWithPath: path))
            try CardFile.checkDestination(path)
            try CardFile.save(CardFormatTests.full, to: path)
            #expect(try CardFile.load(path) == CardFormatTests.full)
            #expect(try FileManager.default.contentsOfDirectory(atPath: folder) == [name])
        }
    }

    @Test func aFailedSaveLeavesTheOldFile() async throws {
        try await withFolder { folder in
            let path = folder + "/card.vcf"
            try CardFile.save(CardFormatTests.full, to: path)
            #expect(throws: CardError.self) { try CardFile.save(Card(firstName: "\u{7}"), to: path) }
            #expect(try CardFile.load(path) == CardFormatTests.full)
        }
    }

    @Test func namesTheFileAndTheReason() async throws {
        try await withFolder { folder in
            expectError("\(folder)/none.json cannot be read: No such file or directory") {
                _ = try CardFile.load(folder + "/none.json")
            }
            expectError("\(folder) cannot be read: it is a folder") { _ = try CardFile.load(folder) }
            expectError("/dev/zero cannot be read: it is not a regular file") { _ = try CardFile.load("/dev/zero") }
            let big = folder + "/big.json"
            try Data(count: CardFile.maximumSize + 1).write(to: URL(fileURLWithPath: big))
            expectError("\(big) cannot be read: it is larger than 1048576 bytes") { _ = try CardFile.load(big) }
            let bad = folder + "/bad.vcf"
            try Data("BEGIN:VCARD\nVERSION:4.0\n".utf8).write(to: URL(fileURLWithPath: bad))
            expectError("\(bad): line 2: END:VCARD is missing") { _ = try CardFile.load(bad) }
        }
    }

    @Test func findsOutBeforehandWhatCannotBeSaved() async throws {
        try await withFolder { folder in
            expectError("card.txt has the extension .txt. A card is saved as .json") {
                try CardFile.checkDestination("card.txt")
            }
            expectError("card has no extension") { try CardFile.checkDestination("card") }
            expectError("there is no folder \(folder)/none. Make it") {
                try CardFile.checkDestination(folder + "/none/card.json")
            }
            try FileManager.default.createDirectory(atPath: folder + "/x.json", withIntermediateDirectories: false)
            expectError("it is a folder") { try CardFile.checkDestination(folder + "/x.json") }
            expectError("\(folder)/none/card.json cannot be written: No such file or directory") {
                try CardFile.save(CardFormatTests.full, to: folder + "/none/card.json")
            }
        }
    }

    private func expectError(_ text: String, _ body: () throws -> Void) {
        let error = #expect(throws: CardError.self) { try body() }
        #expect(error?.description.contains(text) == true, "\(error?.description ?? "no error")")
    }
}

/// Runs `body` with a folder of its own.
func withFolder(_ body: (String) async throws -> Void) async throws {
    let folder = FileManager.default.temporaryDirectory.appendingPathComponent("business-card-\(UUID().uuidString)")
    try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    defer { try? FileManager.default.removeItem(at: folder) }
    try await body(folder.path)
}
