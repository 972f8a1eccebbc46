import Ferry
import TestSupport
import Testing

@testable import FerryCommand

/// The messages of a transfer, held by golden bytes (`Documentation/Formats.md`).
@Suite(.tags(.program)) struct TransferMessageTests {
    private static let vectors = (try? vectorCases("transfer")) ?? []
    static let golden: [(message: TransferMessage, bytes: [UInt8])] = vectors.compactMap { vector in
        guard let message = message(vector.lines[0]), let bytes = vector.bytes(of: "bytes") else { return nil }
        return (message, bytes)
    }

    /// The message that a line means; `nil` for that of an error.
    private static func message(_ words: [String]) -> TransferMessage? {
        let kinds: [String: TransferItem.Kind] = ["file": .file, "folder": .folder, "stream": .stream, "lines": .lines]
        func number(_ index: Int) -> UInt64 { UInt64(words[index]) ?? .max }
        func content(_ index: Int) -> TransferContent {
            TransferContent(count: number(index), checksum: UInt32(words[index + 1], radix: 16) ?? .max)
        }
        func text() -> String { String(decoding: vectorBytes(words[words.count - 1]), as: UTF8.self) }
        switch words[0] {
        case "hello": return .hello(version: UInt8(number(1)), proves: words[2] == "1")
        case "item":
            guard let kind = kinds[words[1]] else { return nil }
            return .item(
                TransferItem(
                    kind: kind, mode: number(2) == 0 ? nil : UInt16(number(2) & 0o777), modified: number(3),
                    size: number(4) == 0 ? nil : number(4) - 1, name: text()))
        case "data": return .data(vectorBytes(words[1])[...])
        case "end": return .end(content(1))
        case "goodbye": return .goodbye
        case "go": return .go(offset: number(1))
        case "give-up": return .giveUp(text())
        case "welcome": return .welcome(version: UInt8(number(1)))
        case "have": return .have(content(2), isWhole: words[1] == "1")
        case "done": return .done
        case "refused": return .refused(text())
        case "prove": return .prove(count: number(1))
        default: return nil
        }
    }

    @Test func eachVectorIsAMessageOrAnError() {
        #expect(Self.golden.count >= 18)
        #expect(Self.vectors.count == Self.golden.count + Self.vectors.count { $0.words(of: "error") != nil })
    }

    @Test(arguments: vectors.filter { $0.words(of: "error") != nil }) func errors(_ vector: VectorCase) throws {
        let bytes = try #require(vector.bytes(of: "bytes"))
        let error = #expect(throws: FerryError.self) { try TransferMessage(bytes) }
        #expect(error?.code.description == vector.words(of: "error")?.first)
    }

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

    /// Too long for a file.
    @Test func aNameOf4097BytesIsRefused() {
        let error = #expect(throws: FerryError.self) {
            try TransferMessage([0x02, 0, 0, 0, 0, 0] + [UInt8](repeating: 65, count: 4097))
        }
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
