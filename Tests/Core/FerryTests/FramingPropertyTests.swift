import Ferry
import FerryTesting
import TestSupport
import Testing

/// Every option of both framings at every chunk size, with refusals, changing sizes and links that cut anew: each message
/// arrives byte for byte. 32 000 seeded cases, or 120 000 with `FERRY_FULL`; a failure prints the seed that repeats it alone.
@Suite(.tags(.core, .framing)) struct FramingPropertyTests {
    private static let casesPerShard = Effort.of(4_000, full: 15_000)

    @Test(arguments: 0..<8)
    func everyMessageArrives(_ shard: Int) throws {
        for number in 0..<Self.casesPerShard {
            try runCase(seed: UInt64(shard * Self.casesPerShard + number), largest: 80)
        }
    }

    /// The same with messages of up to 128 KiB, or 1 MiB with `FERRY_FULL`.
    @Test(arguments: 0..<2)
    func everyLargeMessageArrives(_ shard: Int) throws {
        for number in 0..<12 {
            try runCase(seed: UInt64(1 << 40 + shard * 12 + number), largest: Effort.of(1 << 17, full: 1 << 20))
        }
    }

    private func runCase(seed: UInt64, largest: Int) throws {
        var generator = SplitMix64(seed: seed)
        do {
            switch Int.random(in: 0..<10, using: &generator) {
            case let option where option < FramingVerifierTests.prefixes.count:
                let prefix = largest > Int(UInt16.max) ? .varint : FramingVerifierTests.prefixes[option]
                try carry(LengthPrefixFraming(prefix: prefix), smallestChunk: 1, isCutAnew: true, largest, &generator)
            case let option:
                let marker = ["EOM", "EOM", "\r\n", "ABAB"][option % 4]
                let framing = try EndOfMessageFraming(
                    marker: [UInt8](marker.utf8), chunkSize: option == 5 ? 20 : nil,
                    content: option == 9 ? .text : .binary)
                try carry(framing, smallestChunk: 4, isCutAnew: false, largest, &generator)
            }
        } catch {
            Issue.record("seed \(seed), largest \(largest): \(error)")
        }
    }

    private func carry<F: Framing>(
        _ framing: F, smallestChunk: Int, isCutAnew: Bool, _ largest: Int, _ generator: inout SplitMix64
    ) throws {
        let marker = (framing as? EndOfMessageFraming)?.marker ?? EndOfMessageFraming.defaultMarker
        let isText = (framing as? EndOfMessageFraming)?.content == .text
        let messages = (0..<Int.random(in: 1...3, using: &generator)).map { _ in
            isText ? text(largest, marker, &generator) : message(largest, marker, &generator)
        }
        let size = Int.random(in: (largest > 1000 ? 100 : smallestChunk)...512, using: &generator)
        let refuses = Bool.random(using: &generator)
        let changes = Bool.random(using: &generator)

        var sender = framing.makeSession(limits: Limits())
        var receiver = framing.makeSession(limits: Limits())
        for (index, message) in messages.enumerated() {
            try sender.enqueue(message, as: MessageID(rawValue: UInt64(index)), at: .zero)
        }
        var arrived: [[UInt8]] = []
        var sent = 0
        while true {
            let now = changes ? Int.random(in: smallestChunk...size, using: &generator) : size
            let isRefused = refuses && Int.random(in: 0..<4, using: &generator) == 0
            var chunk: [UInt8] = []
            let outcome = try sender.transmit(atMost: now, at: .zero) { (span) throws(FerryError) in
                if !isRefused { chunk = span.withUnsafeBytes { [UInt8]($0) } }
                return !isRefused
            }
            if outcome == .idle { break }
            guard outcome == .accepted else { continue }
            let cut = isCutAnew && chunk.count > 1 ? Int.random(in: 1...chunk.count, using: &generator) : chunk.count
            try receiver.receive(chunk.span.bytes.extracting(first: cut), at: .zero)
            if cut < chunk.count { try receiver.receive(chunk.span.bytes.extracting(droppingFirst: cut), at: .zero) }
            while let event = receiver.nextEvent() {
                if case .received(let message) = event { arrived.append(message) }
            }
            while let event = sender.nextEvent() {
                if case .sent = event { sent += 1 }
            }
        }
        try receiver.linkDidClose(at: .zero)
        guard arrived == messages, sent == messages.count else {
            throw ConformanceFailure(
                "every message arrives",
                "\(framing) at \(size): \(arrived.count) arrived and \(sent) were sent of \(messages)")
        }
    }

    /// Random bytes; or the marker over and over, from any of its bytes on; or one marker somewhere; or its bytes mixed.
    private func message(_ largest: Int, _ marker: [UInt8], _ generator: inout SplitMix64) -> [UInt8] {
        let count = Int.random(in: 0...largest, using: &generator)
        let shift = Int.random(in: marker.indices, using: &generator)
        switch Int.random(in: 0..<4, using: &generator) {
        case 0: return generator.bytes(count)
        case 1:
            let period = (0..<marker.count).map { marker[($0 + shift) % marker.count] }
            return [UInt8](repeatElement(period, count: count / marker.count).joined())
                + period.prefix(count % marker.count)
        case 2:
            guard count >= marker.count else { return Array(marker.prefix(count)) }
            var message = [UInt8](repeating: 0x2E, count: count)
            let offset = Int.random(in: 0...(count - marker.count), using: &generator)
            message.replaceSubrange(offset..<offset + marker.count, with: marker)
            return message
        default: return generator.bytes(count).map { marker[Int($0) % marker.count] }
        }
    }

    private func text(_ largest: Int, _ marker: [UInt8], _ generator: inout SplitMix64) -> [UInt8] {
        let pieces: [[UInt8]] = [marker] + ["E", "O", "M", "é", "€", "😀"].map { [UInt8]($0.utf8) }
        var text: [UInt8] = []
        let count = Int.random(in: 0...largest, using: &generator)
        while text.count < count { text += pieces[Int.random(in: pieces.indices, using: &generator)] }
        return text
    }
}
