import Ferry

/// Reads a captured stream of chunks of the sequenced framing and says what each chunk is: messages, acknowledgements,
/// repetitions and gaps.
///
/// Give it the chunks of both sides in the order of the capture. It keeps counters and at most 63 chunks of each side that
/// came before their turn, and never fails: what cannot be read is named as such.
public struct SequencedTrace: Sendable {
    /// Who sent a chunk.
    public enum Side: Int, Sendable {
        /// The side named first, printed as `>`.
        case first
        /// The other, printed as `<`.
        case second
    }

    private struct Stream {
        /// The number of the first chunk that has not been seen, and those after it that have.
        var next: UInt64 = 0
        var early: [UInt64: (header: DataHeader, body: [UInt8])] = [:]
        /// Bytes left of the message in each slot; nil when it is not known.
        var left = [Int?](repeating: nil, count: SequencedChunk.slotCount)
        var current: Int?
        var begun = 0
        var slotNames = [Int](repeating: 0, count: SequencedChunk.slotCount)
    }

    private var streams = [Stream(), Stream()]

    /// Begins at a link's first chunk.
    public init() {}

    /// One line on a chunk.
    public mutating func describe(_ chunk: RawSpan, from side: Side) -> String {
        let text = chunk.withUnsafeBytes { describe($0, from: side.rawValue) }
        return "\(side == .first ? ">" : "<") \(chunk.byteCount) bytes: \(text)"
    }

    private mutating func describe(_ bytes: UnsafeRawBufferPointer, from side: Int) -> String {
        let chunk: SequencedChunk?
        do { chunk = try SequencedChunk.parse(bytes) } catch { return "not understood (\(error.message))" }
        switch chunk {
        case nil: return "cut short"
        case .hello(let hello): return describe(hello, from: side)
        case .foreignHello(let version): return "hello of version \(version)"
        case .refusal(let refusal): return "refusal, reason \(refusal.reason), value \(refusal.value)"
        case .probe: return "probe: is there credit?"
        case .acknowledgement(let block): return Self.describe(block)
        case .piece(let piece):
            return "piece of chunk \(piece.sequence) from byte \(piece.offset)\(piece.isLast ? ", the last" : "")"
        case .data(let header):
            return describe(header, UnsafeRawBufferPointer(rebasing: bytes[header.bodyOffset...]), from: side)
        }
    }

    private mutating func describe(_ hello: SequencedHello, from side: Int) -> String {
        var text =
            "hello of session \(hello.session), window \(hello.window), messages to "
            + "\(hello.maximumMessageSize.bytes), credit \(hello.credit.bytes), codec \(hello.codec), compression "
            + "\(hello.compression)"
        if let known = hello.known {
            text += ", has \(known.receivedCount) chunks of session \(known.session)"
            // The other side goes on from there.
            if !hello.hasMet {
                streams[1 - side].next = UInt64(known.receivedCount)
                streams[1 - side].early = [:]
            }
        }
        return text + (hello.hasMet ? ", has met" : "")
    }

    private static func describe(_ block: Acknowledgement) -> String {
        var text = "has all before \(block.next)"
        if block.bitmap != 0 {
            let later = (0..<64).filter { block.bitmap & (1 << UInt64($0)) != 0 }
                .map { String((UInt64(block.next) + 1 + UInt64($0)) & (SequencedChunk.sequenceCount - 1)) }
            text += " and \(later.joined(separator: ", "))"
        }
        // Anybody's numbers may stand here.
        let (bytes, overflow) = block.credit.multipliedReportingOverflow(by: UInt64(Acknowledgement.creditUnit))
        return text + (overflow ? ", credit beyond all bounds" : ", credit for \(bytes) bytes")
    }

    private mutating func describe(_ header: DataHeader, _ body: UnsafeRawBufferPointer, from side: Int) -> String {
        var parts = ["chunk \(header.sequence)"]
        let next = streams[side].next
        let distance = (UInt64(header.sequence) &- next) & (SequencedChunk.sequenceCount - 1)
        if distance == 0 {
            streams[side].next += 1
            parts += describe(body, header, side)
        } else if distance >= UInt64(SequencedChunk.maximumWindow) || streams[side].early[next + distance] != nil {
            parts.append("again")
        } else {
            streams[side].early[next + distance] = (header, Array(body))
            parts.append("after a gap of \(distance)")
        }
        if header.flags.contains(.push) { parts.append("asks for an acknowledgement") }
        if let block = header.acknowledgement { parts.append(Self.describe(block)) }
        while let held = streams[side].early.removeValue(forKey: streams[side].next) {
            streams[side].next += 1
            parts.append("with it chunk \(held.header.sequence)")
            parts += held.body.withUnsafeBytes { describe($0, held.header, side) }
        }
        return parts.joined(separator: "; ")
    }

    /// What a body holds, as far as the capture has told what goes on.
    private mutating func describe(
        _ body: UnsafeRawBufferPointer, _ header: DataHeader, _ side: Int
    ) -> [String] {
        var parts: [String] = []
        var reader = ChunkReader(body)
        if let slot = header.slot { streams[side].current = Int(slot) }
        if !header.flags.contains(.record) { parts.append(goOn(&reader, side)) }
        while let byte = reader.byte() {
            guard let (record, slot) = try? Record.parse(byte) else { return parts + ["unknown record \(byte)"] }
            streams[side].current = Int(slot)
            switch record {
            case .begin:
                guard let count = try? reader.varint("message length") else { return parts + ["record cut short"] }
                streams[side].begun += 1
                streams[side].slotNames[Int(slot)] = streams[side].begun
                streams[side].left[Int(slot)] = Int(clamping: min(count, 1 << 62)) + OutboundMessage.trailerCount
                parts.append("message \(streams[side].begun) of \(count) bytes begins in slot \(slot)")
            case .resume: break
            case .cancel:
                parts.append("message \(streams[side].slotNames[Int(slot)]) is cancelled")
                streams[side].current = nil
                continue
            }
            parts.append(goOn(&reader, side))
        }
        return parts
    }

    private mutating func goOn(_ reader: inout ChunkReader, _ side: Int) -> String {
        guard let slot = streams[side].current, let left = streams[side].left[slot] else {
            let count = reader.remaining
            _ = reader.take(count)
            return "\(count) bytes of a message that began before the capture"
        }
        let count = min(left, reader.remaining)
        _ = reader.take(count)
        streams[side].left[slot] = left - count
        guard count == left else { return "\(count) bytes of message \(streams[side].slotNames[slot])" }
        streams[side].current = nil
        return "\(count) bytes of message \(streams[side].slotNames[slot]), which ends"
    }
}
