import DequeModule
import Ferry

/// Reads a captured stream of chunks of the sequenced framing and says what each chunk is: messages, acknowledgements,
/// repetitions and gaps.
///
/// Give it the chunks of both sides in the order of the capture. It keeps counters, at most 63 chunks of each side that
/// came before their turn, and the numbers of at most 1024 messages that wait for their acknowledgement. It never fails: what
/// cannot be read is named as such.
public struct SequencedTrace: Sendable {
    /// Who sent a chunk.
    public enum Side: Int, Sendable {
        /// The side named first, printed as `>`.
        case first
        /// The other, printed as `<`.
        case second
    }

    /// An event of a message that a chunk causes. Each side's messages are numbered from 1.
    public enum Event: Sendable, Hashable {
        /// A message of the chunk's sender begins.
        case begins(message: Int, byteCount: UInt64)
        /// The chunk has bytes of a message of its sender.
        case carries(message: Int)
        /// The last bytes of a message are there, and all before them.
        case ends(message: Int)
        /// The sender gives a message up.
        case cancels(message: Int)
        /// The chunk was there before.
        case repeats
        /// The chunk arrived early: this many are missing before it.
        case gap(missing: UInt64)
        /// The chunk's sender has the whole of a message of the other side.
        case acknowledges(message: Int)
    }

    /// The meaning of one chunk.
    public struct Finding: Sendable {
        /// The line that ``SequencedTrace/describe(_:from:)`` answers, without the side and the count of bytes.
        public let text: String
        /// Whether the chunk is one of this framing's, and whole.
        public let isUnderstood: Bool
        /// The events that the chunk causes, in order.
        public let events: [Event]

        /// Tells of a chunk; for other framings too.
        public init(text: String, isUnderstood: Bool, events: [Event]) {
            self.text = text
            self.isUnderstood = isUnderstood
            self.events = events
        }
    }

    private struct Stream {
        /// Whose chunks these are, once it has said so.
        var session: UInt32?
        /// Messages that are whole and not acknowledged, with the number of their last chunk; 1024 at most.
        var unacknowledged: Deque<(message: Int, chunk: UInt64)> = []
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
    private var events: [Event] = []
    private var isUnderstood = true

    /// Begins at a link's first chunk.
    public init() {}

    /// One line on a chunk.
    public mutating func describe(_ chunk: RawSpan, from side: Side) -> String {
        "\(side == .first ? ">" : "<") \(chunk.byteCount) bytes: \(read(chunk, from: side).text)"
    }

    /// Reads a chunk. Returns its meaning and the events it causes.
    public mutating func read(_ chunk: RawSpan, from side: Side) -> Finding {
        events = []
        isUnderstood = true
        return chunk.withUnsafeBytes { bytes in
            do throws(FerryError) {
                guard let chunk = try SequencedChunk.parse(bytes) else {
                    return Finding(text: "cut short", isUnderstood: false, events: [])
                }
                let text = describe(chunk, bytes, from: side.rawValue)
                return Finding(text: text, isUnderstood: isUnderstood, events: events)
            } catch {
                return Finding(text: "not understood (\(error.message))", isUnderstood: false, events: [])
            }
        }
    }

    private mutating func describe(
        _ chunk: SequencedChunk, _ bytes: UnsafeRawBufferPointer, from side: Int
    ) -> String {
        switch chunk {
        case .hello(let hello): return describe(hello, from: side)
        case .foreignHello(let version): return "hello of version \(version)"
        case .refusal(let refusal): return "refusal, reason \(refusal.reason), value \(refusal.value)"
        case .probe: return "probe: is there credit?"
        case .acknowledgement(let block): return describe(block, from: side)
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
        // Another session begins anew; its messages are counted on.
        if let session = streams[side].session, session != hello.session {
            let begun = streams[side].begun
            streams[side] = Stream()
            streams[side].begun = begun
        }
        streams[side].session = hello.session
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

    private mutating func describe(_ block: Acknowledgement, from side: Int) -> String {
        var text = "has all before \(block.next)"
        acknowledge(block, of: 1 - side)
        if block.bitmap != 0 {
            let later = (0..<64).filter { block.bitmap & (1 << UInt64($0)) != 0 }
                .map { String((UInt64(block.next) + 1 + UInt64($0)) & (SequencedChunk.sequenceCount - 1)) }
            text += " and \(later.joined(separator: ", "))"
        }
        // Anybody's numbers may stand here.
        let (bytes, overflow) = block.credit.multipliedReportingOverflow(by: UInt64(Acknowledgement.creditUnit))
        return text + (overflow ? ", credit beyond all bounds" : ", credit for \(bytes) bytes")
    }

    /// Notes which messages of a side are acknowledged. Numbers beyond those seen belong to chunks that the capture
    /// lacks.
    private mutating func acknowledge(_ block: Acknowledgement, of side: Int) {
        let next = streams[side].next
        let behind = (next &- UInt64(block.next)) & (SequencedChunk.sequenceCount - 1)
        let received = behind <= UInt64(SequencedChunk.maximumWindow) && behind <= next ? next - behind : next
        while let first = streams[side].unacknowledged.first, first.chunk < received {
            events.append(.acknowledges(message: first.message))
            streams[side].unacknowledged.removeFirst()
        }
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
            events.append(.repeats)
        } else {
            streams[side].early[next + distance] = (header, Array(body))
            events.append(.gap(missing: distance))
            parts.append("after a gap of \(distance)")
        }
        if header.flags.contains(.push) { parts.append("asks for an acknowledgement") }
        if let block = header.acknowledgement { parts.append(describe(block, from: side)) }
        while let held = streams[side].early.removeValue(forKey: streams[side].next) {
            streams[side].next += 1
            parts.append("with it chunk \(held.header.sequence)")
            parts += held.body.withUnsafeBytes { describe($0, held.header, side) }
        }
        return parts.joined(separator: "; ")
    }

    /// Describes a body, as far as the capture shows the message it belongs to.
    private mutating func describe(
        _ body: UnsafeRawBufferPointer, _ header: DataHeader, _ side: Int
    ) -> [String] {
        var parts: [String] = []
        var reader = ChunkReader(body)
        if let slot = header.slot { streams[side].current = Int(slot) }
        if !header.flags.contains(.record) { parts.append(goOn(&reader, side)) }
        while let byte = reader.byte() {
            guard let (record, slot) = try? Record.parse(byte) else {
                isUnderstood = false
                return parts + ["unknown record \(byte)"]
            }
            streams[side].current = Int(slot)
            switch record {
            case .begin:
                guard let count = try? reader.varint("message length") else {
                    isUnderstood = false
                    return parts + ["record cut short"]
                }
                streams[side].begun += 1
                streams[side].slotNames[Int(slot)] = streams[side].begun
                streams[side].left[Int(slot)] =
                    Int(clamping: min(count, UInt64(Int.max / 2))) + OutboundMessage.trailerCount
                events.append(.begins(message: streams[side].begun, byteCount: count))
                parts.append("message \(streams[side].begun) of \(count) bytes begins in slot \(slot)")
            case .resume: break
            case .cancel:
                events.append(.cancels(message: streams[side].slotNames[Int(slot)]))
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
        let message = streams[side].slotNames[slot]
        if count > 0 { events.append(.carries(message: message)) }
        guard count == left else { return "\(count) bytes of message \(message)" }
        streams[side].current = nil
        events.append(.ends(message: message))
        if streams[side].unacknowledged.count == 1024 { streams[side].unacknowledged.removeFirst() }
        streams[side].unacknowledged.append((message, streams[side].next - 1))
        return "\(count) bytes of message \(message), which ends"
    }
}
