import Ferry
import TestSupport
import Testing

@testable import FerryCommand

/// The messages of a transfer, held by golden bytes (`Documentation/Formats.md`).
@Suite(.tags(.program)) struct TransferMessageTests {
    private static let photo = TransferItem(
        kind: .file, mode: 0o644, modified: 1_700_000_000, size: 300, name: "a/b.jpg")

    static let golden: [(message: TransferMessage, bytes: [UInt8])] = [
        (.hello(version: 1), [0x01, 0x01]), (.hello(version: 1, proves: true), [0x01, 0x01, 0x01]),
        (.item(photo), [0x02, 0x00, 0x01, 0xA4, 0x80, 0xE2, 0xCF, 0xAA, 0x06, 0xAD, 0x02] + "a/b.jpg".utf8),
        (.item(TransferItem(kind: .folder, name: "é")), [0x02, 0x01, 0x00, 0x00, 0x00, 0x00, 0xC3, 0xA9]),
        (
            .item(TransferItem(kind: .file, mode: 0, size: 2, name: "n")),
            [0x02, 0x00, 0x80, 0x00, 0x00, 0x03, 0x6E]
        ),
        (
            .item(TransferItem(kind: .lines, size: 0, name: "l")), [0x02, 0x03, 0x00, 0x00, 0x00, 0x01, 0x6C]
        ),
        (.data([0xAA, 0xBB]), [0x03, 0xAA, 0xBB]), (.data([]), [0x03]),
        (.end(TransferContent(count: 9, checksum: 0xE306_9283)), [0x04, 0x09, 0xE3, 0x06, 0x92, 0x83]),
        (.goodbye, [0x05]), (.go(offset: 300), [0x06, 0xAC, 0x02]), (.giveUp("no"), [0x07, 0x6E, 0x6F]),
        (.welcome(version: 1), [0x11, 0x01]),
        (.have(TransferContent(count: 1, checksum: 2), isWhole: true), [0x12, 0x01, 0x01, 0, 0, 0, 2]),
        (.have(TransferContent(), isWhole: false), [0x12, 0x00, 0x00, 0, 0, 0, 0]),
        (.prove(count: 300), [0x15, 0xAC, 0x02]), (.done, [0x13]), (.refused("no"), [0x14, 0x6E, 0x6F]),
    ]

    @Test(arguments: golden.indices) func goldenBytes(_ index: Int) throws {
        let (message, bytes) = Self.golden[index]
        #expect(message.encoded == bytes)
        #expect(try TransferMessage(bytes) == message)
    }

    /// The check value of CRC-32C (RFC 3720, B.4): of "123456789".
    @Test func theChecksumIsTheStandards() {
        var content = TransferContent()
        content.add(Array("1234".utf8)[...])
        content.add(Array("56789".utf8)[...])
        #expect(content == TransferContent(count: 9, checksum: 0xE306_9283))
    }

    /// Every message that is cut short anywhere is refused, or another message; nothing traps.
    @Test func cutMessagesAreRefused() {
        for (message, bytes) in Self.golden {
            for count in 0..<bytes.count {
                let cut = Array(bytes.prefix(count))
                guard let read = try? TransferMessage(cut) else { continue }
                #expect(read != message && read.encoded == cut, "\(cut)")
            }
        }
    }

    @Test(
        arguments: [
            [], [0x00], [0x08], [0x10], [0x15], [0xFF], [0x05, 0], [0x13, 0], [0x04, 0x80],
            [0x04, 0x80, 0x00, 0, 0, 0, 0],
            [0x12, 2, 0, 0, 0, 0, 0], [0x02, 4, 0, 0, 0, 0, 65], [0x02, 0, 0, 0, 0, 0, 0xFF],
            [0x06, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0x02], [0x06, 1, 1],
            [0x02, 0, 0, 0, 0, 0] + [UInt8](repeating: 65, count: 4097),
        ] as [[UInt8]])
    func whatIsNoMessageIsRefused(_ bytes: [UInt8]) {
        let error = #expect(throws: FerryError.self) { try TransferMessage(bytes) }
        #expect(error?.code == .malformedStream)
    }

    @Test func randomBytesDoNoHarm() {
        var generator = SystemRandomNumberGenerator()
        for _ in 0..<20_000 {
            let bytes = (0..<Int.random(in: 0...20, using: &generator)).map { _ in UInt8.random(in: 0...0x20) }
            guard let message = try? TransferMessage(bytes) else { continue }
            // Later versions may say more in a greeting, and permissions have nine bits.
            if bytes[0] == 0x01 || bytes[0] == 0x11 || bytes[0] == 0x02 { continue }
            #expect(message.encoded == bytes)
        }
    }

    @Test(arguments: [
        ("a", ["a"]), ("a/b/c", ["a", "b", "c"]), (".hidden", [".hidden"]), ("a b", ["a b"]), ("...", ["..."]),
    ])
    func safeNamesHaveParts(_ name: String, _ parts: [String]) { #expect(TransferName.parts(name) == parts) }

    @Test(arguments: [
        "", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/..", "./a", "a\0b", "a\\b", "..\\a",
        ".a.ferry-part",
        String(repeating: "a", count: 241), Array(repeating: "a", count: 65).joined(separator: "/"),
    ])
    func namesThatLeadElsewhereHaveNone(_ name: String) { #expect(TransferName.parts(name) == nil) }

    @Test func whatComesFromAPeerCannotTakeOverTheTerminal() {
        #expect("a\u{1B}[2Jb\n\u{202E}".forTerminal == "a\u{FFFD}[2Jb\u{FFFD}\u{FFFD}")
        #expect("a\u{9B}2J\n\u{202E}\u{7F}b".harmless == "a\u{FFFD}2J\n\u{FFFD}\u{FFFD}b")
        #expect("{\"a\":\"é\u{9B}2J\u{7F}\u{E0001}\"}\n".harmlessJSON == #"{"a":"é\u009b2J\u007f\udb40\udc01"}"# + "\n")
    }
}
