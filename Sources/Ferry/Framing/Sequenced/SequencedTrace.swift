/// Reads a captured stream of chunks of the sequenced framing and says what each chunk is: messages, acknowledgements,
/// repetitions and gaps.
///
/// Give it the chunks of both sides in the order of the capture. It keeps nothing but counters, and never fails: what
/// cannot be read is named as such.
public struct SequencedTrace: Sendable {
    /// Who sent a chunk.
    public enum Side: Int, Sendable {
        /// The side named first, printed as `>`.
        case first
        /// The other, printed as `<`.
        case second
    }

    private struct Stream {
        /// The number of the first chunk that has not been seen, and those after it that have, as in an acknowledgement.
        var next: UInt64 = 0
        var seen: UInt64 = 0
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
            if !hello.hasMet { streams[1 - side].next = UInt64(known.receivedCount) }
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
        return text + ", credit for \(Int(clamping: block.credit) * Acknowledgement.creditUnit) bytes"
    }

    private mutating func describe(_ header: DataHeader, _ body: UnsafeRawBufferPointer, from side: Int) -> String {
        var parts = ["chunk \(header.sequence)"]
        switch note(header.sequence, side) {
        case .again: parts.append("again")
        case .gap(let count): parts.append("after a gap of \(count)")
        case .due: parts += describe(body, header, side)
        }
        if header.flags.contains(.push) { parts.append("nothing more to come") }
        if let block = header.acknowledgement { parts.append(Self.describe(block)) }
        return parts.joined(separator: "; ")
    }

    private enum Place { case due, again, gap(Int) }

    private mutating func note(_ sequence: UInt8, _ side: Int) -> Place {
        let distance = (UInt64(sequence) &- streams[side].next) & (SequencedChunk.sequenceCount - 1)
        guard distance > 0 else {
            streams[side].next += 1
            while streams[side].seen & 1 == 1 {
                streams[side].seen >>= 1
                streams[side].next += 1
            }
            streams[side].seen >>= 1
            return .due
        }
        guard distance < UInt64(SequencedChunk.maximumWindow) else { return .again }
        let bit: UInt64 = 1 << (distance - 1)
        defer { streams[side].seen |= bit }
        return streams[side].seen & bit == 0 ? .gap(Int(distance)) : .again
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
                streams[side].left[Int(slot)] = Int(clamping: count) &+ OutboundMessage.trailerCount
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
