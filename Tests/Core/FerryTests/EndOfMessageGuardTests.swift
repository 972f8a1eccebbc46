import Ferry
import FerryTesting
import TestSupport
import Testing

/// No data chunk equals the marker, so the plainest receiver gets every message.
@Suite(.tags(.core, .framing)) struct EndOfMessageGuardTests {
    /// The receiver of Apple's sample: it appends chunks until one equals the marker.
    private struct PlainReceiver {
        let marker: [UInt8]
        var data: [UInt8] = []
        var messages: [[UInt8]] = []

        mutating func receive(_ chunk: [UInt8]) {
            if chunk == marker {
                messages.append(data)
                data = []
            } else {
                data += chunk
            }
        }
    }

    /// The receiver of the sample's newer version: it drops what is no text, and compares strings.
    private struct TextReceiver {
        let marker: String
        var data = ""
        var messages: [String] = []

        mutating func receive(_ chunk: [UInt8]) {
            guard let text = String(validating: chunk, as: UTF8.self) else { return }
            if text == marker {
                messages.append(data)
                data = ""
            } else {
                data += text
            }
        }
    }

    private func send(
        _ message: [UInt8], _ framing: EndOfMessageFraming, sizes: [Int], refusing: Bool = false
    ) throws -> [[UInt8]] {
        var session = framing.makeSession(limits: Limits())
        try session.enqueue(message, as: MessageID(rawValue: 0), at: .zero)
        var chunks: [[UInt8]] = []
        var step = 0
        repeat {
            if refusing {
                _ = try session.sendOne(atMost: sizes[(step + 1) % sizes.count], to: &chunks, accepting: false)
            }
            step += 1
        } while try session.sendOne(atMost: sizes[step % sizes.count], to: &chunks) == .accepted
        return chunks
    }

    private func check(
        _ message: [UInt8], _ framing: EndOfMessageFraming, sizes: [Int], refusing: Bool = false
    ) throws {
        let chunks = try send(message, framing, sizes: sizes, refusing: refusing)
        var receiver = PlainReceiver(marker: framing.marker)
        for chunk in chunks { receiver.receive(chunk) }
        let isRight = receiver.messages == [message] && receiver.data.isEmpty && chunks.allSatisfy { !$0.isEmpty }
        if !isRight { Issue.record("\(hex(message)) at \(sizes): \(chunks.map(hex))") }
    }

    /// The marker at every offset at once: the message repeats it, beginning with each of its bytes.
    @Test(arguments: ["EOM", "\r\n", "AA", "ABAB", "END-OF-THE-MESSAGE"])
    func everyLengthAtEveryChunkSize(_ text: String) throws {
        let marker = [UInt8](text.utf8)
        let framing = try EndOfMessageFraming(marker: marker, chunkSize: nil)
        for shift in marker.indices {
            for length in 0...100 {
                let message = (0..<length).map { marker[($0 + shift) % marker.count] }
                for size in max(4, marker.count)...40 { try check(message, framing, sizes: [size]) }
            }
        }
    }

    @Test func oneMarkerAtEveryOffset() throws {
        let framing = try EndOfMessageFraming(chunkSize: nil)
        for length in 3...30 {
            for offset in 0...(length - 3) {
                var message = [UInt8](repeating: 0x20, count: length)
                message.replaceSubrange(offset..<offset + 3, with: framing.marker)
                for size in 3...24 { try check(message, framing, sizes: [size]) }
            }
        }
    }

    /// The size may change after a refusal, so that the cut before it was made for another.
    @Test func chunkSizesThatChangeBetweenRefusalAndRetry() throws {
        let framing = try EndOfMessageFraming(chunkSize: nil)
        for length in 0...40 {
            for shift in 0..<3 {
                let message = (0..<length).map { framing.marker[($0 + shift) % 3] }
                for sizes in [[3, 4], [4, 3, 5], [20, 3], [3, 100], [7, 8, 9, 3]] {
                    try check(message, framing, sizes: sizes, refusing: true)
                }
            }
        }
    }

    @Test(arguments: ["EOM", "OK", ";`"])
    func textReceiversGetEveryMessage(_ marker: String) throws {
        let framing = try EndOfMessageFraming(marker: [UInt8](marker.utf8), chunkSize: nil, content: .text)
        // The marker's characters, others that are canonically equivalent to them, and scalars of every length.
        let alphabet = marker.unicodeScalars + ["\u{212A}", "\u{37E}", "\u{1FEF}", "\u{301}", "é", "€", "😀"]
        var generator = SplitMix64(seed: 0xE0F)
        for number in 0..<4000 {
            var message = String.UnicodeScalarView()
            for _ in 0..<(number % 40) { message.append(alphabet.randomElement(using: &generator) ?? "a") }
            let size = Int.random(in: 4...40, using: &generator)
            var receiver = TextReceiver(marker: marker)
            let chunks = try send([UInt8](String(message).utf8), framing, sizes: [size])
            for chunk in chunks { receiver.receive(chunk) }
            let isRight = receiver.messages.map { [UInt8]($0.utf8) } == [[UInt8](String(message).utf8)]
            if !isRight { Issue.record("case \(number) at \(size): \(chunks.map(hex))") }
        }
    }
}
