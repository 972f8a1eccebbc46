import Ferry
import FerryTesting
import Foundation
import TestSupport
import Testing

@testable import FerrySequenced

/// The bytes on the wire, which do not change once released. `Documentation/Sequenced.md` quotes them.
@Suite(.tags(.core, .framing, .sequenced)) struct SequencedFormatTests {
    /// Both sides' chunks of one exchange, as hexadecimal digits, in the order of sending.
    static func exchange(
        _ configuration: SequencedFraming.Configuration = SequencedFraming.Configuration(), chunkSize: Int,
        _ messages: [(side: Int, payload: [UInt8])]
    ) throws -> [String] {
        var sessions = [
            SequencedFraming(configuration) { 0x0403_0201 }.makeSession(limits: Limits()),
            SequencedFraming(configuration) { 0x0807_0605 }.makeSession(limits: Limits()),
        ]
        for (number, message) in messages.enumerated() {
            try sessions[message.side].enqueue(message.payload, as: MessageID(rawValue: UInt64(number)), at: .zero)
        }
        var lines: [String] = []
        for side in 0...1 { sessions[side].linkDidOpen(at: .zero) }
        var isBusy = true
        while isBusy {
            isBusy = false
            for side in 0...1 {
                var chunks: [[UInt8]] = []
                while try sessions[side].transmit(
                    atMost: chunkSize, at: .zero,
                    { chunk in
                        chunks.append(chunk.withUnsafeBytes { Array($0) })
                        return true
                    }) == .accepted
                {}
                for chunk in chunks {
                    isBusy = true
                    lines.append((side == 0 ? "> " : "< ") + chunk.map { String(format: "%02x", $0) }.joined())
                    try sessions[1 - side].receive(chunk.span.bytes, at: .zero)
                    while sessions[1 - side].nextEvent() != nil {}
                }
            }
        }
        return lines
    }

    /// What the page shows under each name.
    private static let examples: [(name: String, chunkSize: Int, messages: [(side: Int, payload: [UInt8])])] = [
        ("hello", 20, []),
        ("small", 20, [(0, Array("hi".utf8))]),
        ("large", 20, [(0, Array(1...60))]),
        ("packed", 64, [(0, Array("one".utf8)), (0, Array("two".utf8)), (1, Array("three".utf8))]),
    ]

    @Test func thePageShowsTheBytes() throws {
        let page = try String(contentsOf: Self.page, encoding: .utf8)
        for example in Self.examples {
            var lines = try Self.exchange(chunkSize: example.chunkSize, example.messages)
            if example.name != "hello" { lines.removeAll { $0.dropFirst(2).hasPrefix("e1") } }
            let block = "```text\n\(lines.joined(separator: "\n"))\n```"
            #expect(page.contains(block), "Documentation/Sequenced.md lacks the bytes of \(example.name):\n\(block)")
        }
    }

    @Test func thePageShowsTheTableOfStates() throws {
        let page = try String(contentsOf: Self.page, encoding: .utf8)
        #expect(
            page.contains("```mermaid\n\(SessionPhase.diagram)\n```"),
            "Documentation/Sequenced.md shows another diagram than the code has:\n\(SessionPhase.diagram)")
    }

    private static let page = packageFolder.appending(path: "Documentation/Sequenced.md")

    @Test func theChecksumIsCRC32C() {
        // RFC 3720, B.4, and the check value of "123456789" in every catalogue.
        #expect(Self.checksum(Array("123456789".utf8)) == 0xE306_9283)
        #expect(Self.checksum([UInt8](repeating: 0, count: 32)) == 0x8A91_36AA)
        #expect(Self.checksum([UInt8](repeating: 0xFF, count: 32)) == 0x62A8_AB43)
        #expect(Self.checksum(Array(0..<32)) == 0x46DD_794E)
    }

    @Test func everyWayToTheChecksumIsTheSame() {
        var random = SplitMix64(seed: 3)
        for count in Array(0..<300) + [511, 512, 513, 1024, 1031, 4087, 4088, 4089, 4096, 4600, 8176, 9000] {
            let bytes = (0..<count).map { _ in UInt8(truncatingIfNeeded: random.next()) }
            // Bit by bit, as the definition has it.
            var expected: UInt32 = .max
            for byte in bytes {
                expected ^= UInt32(byte)
                for _ in 0..<8 { expected = expected & 1 == 1 ? expected >> 1 ^ 0x82F6_3B78 : expected >> 1 }
            }
            expected = ~expected
            #expect(Self.checksum(bytes) == expected)
            #expect(CRC32C.byTable(bytes) == expected)
            #expect(CRC32C.byNibbles(bytes) == expected)
            let cut = random.below(count + 1)
            var parts = CRC32C()
            let (head, tail) = (Array(bytes[..<cut]), Array(bytes[cut...]))
            parts.add(head.span.bytes)
            parts.add(tail.span.bytes)
            #expect(parts.value == expected)
        }
    }

    private static func checksum(_ bytes: [UInt8]) -> UInt32 {
        var checksum = CRC32C()
        checksum.add(bytes.span.bytes)
        return checksum.value
    }

    @Test func sizesInOneByte() {
        for encoded in UInt8.min ... .max {
            let size = RoundedSize(encoded: encoded)
            #expect(RoundedSize(roundingDown: size.bytes) == size)
            #expect(RoundedSize(roundingDown: size.bytes + 1).bytes <= size.bytes + 1)
        }
        #expect(RoundedSize(roundingDown: 16 << 20).bytes == 16 << 20)
        #expect(RoundedSize(roundingDown: 0).bytes == 8)
        #expect(RoundedSize(roundingDown: .max).encoded == .max)
    }
}
