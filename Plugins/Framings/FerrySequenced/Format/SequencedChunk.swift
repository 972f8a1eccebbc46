import Ferry

/// One chunk of the sequenced framing, taken apart. `Documentation/Sequenced.md` describes every byte.
///
/// The first byte says what it is:
///
///     0sssssss   data that fills the chunk and goes on with the current message; s is its sequence number
///     10ffffff   data with flags; the next byte is the sequence number
///     110mmmmm   data that goes on with the message in slot m; the next byte is the sequence number
///     111ttttt   control
enum SequencedChunk {
    case data(DataHeader)
    case acknowledgement(Acknowledgement)
    case hello(SequencedHello)
    case refusal(SequencedRefusal)
    case probe
    case piece(Piece)

    /// A hello of a version that is not ours, with what we understand of it: nothing.
    case foreignHello(version: UInt8)

    /// Takes a chunk apart, or answers nil when it ends too soon, as a link that cuts values leaves it.
    ///
    /// - Throws: `malformedStream` for what no cut could have made: unknown types and flags.
    static func parse(_ bytes: UnsafeRawBufferPointer) throws(FerryError) -> SequencedChunk? {
        var reader = ChunkReader(bytes)
        guard let first = reader.byte() else { return nil }
        if first < 0xE0 { return try DataHeader.parse(first, &reader).map { .data($0) } }
        switch first {
        case Control.acknowledgement:
            guard let block = try Acknowledgement.parse(&reader) else { return nil }
            try reader.expectEnd()
            return .acknowledgement(block)
        case Control.hello:
            return try SequencedHello.parse(&reader)
        case Control.refusal:
            guard let refusal = SequencedRefusal.parse(&reader) else { return nil }
            try reader.expectEnd()
            return .refusal(refusal)
        case Control.probe:
            try reader.expectEnd()
            return .probe
        case Control.piece:
            return try Piece.parse(&reader).map { .piece($0) }
        default:
            throw FerryError(
                .malformedStream,
                "A sequenced chunk begins with \(first), an unknown type of control chunk. The peer is newer, or does "
                    + "not use the sequenced framing.")
        }
    }

    /// The first bytes of control chunks.
    enum Control {
        static let acknowledgement: UInt8 = 0xE0
        static let hello: UInt8 = 0xE1
        static let refusal: UInt8 = 0xE2
        static let probe: UInt8 = 0xE3
        static let piece: UInt8 = 0xE4
    }

    /// How many sequence numbers there are; a window is at most half of them.
    static let sequenceCount: UInt64 = 128
    /// The largest window, in chunks.
    static let maximumWindow = 64
    /// The smallest chunks the framing works with, in bytes: ATT_MTU 23 less the header of a notification.
    static let minimumChunkSize = 20
    /// How many messages may be open at once in one direction.
    static let slotCount = 32
}

extension ChunkReader {
    func expectEnd() throws(FerryError) {
        guard remaining > 0 else { return }
        throw FerryError(
            .malformedStream,
            "A sequenced control chunk has \(remaining) bytes too many. The peer is newer, or does not use the sequenced "
                + "framing.")
    }
}

/// The flags of a data chunk that begins with `10`.
struct DataFlags: OptionSet, Hashable {
    let rawValue: UInt8

    /// The body begins with a record rather than with bytes of the current message.
    static let record = DataFlags(rawValue: 0x20)
    /// An acknowledgement follows the sequence number.
    static let acknowledgement = DataFlags(rawValue: 0x10)
    /// The body's length follows, as it is neither a full chunk's nor plain from the message.
    static let length = DataFlags(rawValue: 0x08)
    /// The body ends where its first message ends.
    static let end = DataFlags(rawValue: 0x04)
    /// The sender would like an acknowledgement now.
    static let push = DataFlags(rawValue: 0x02)
    /// Reserved: zero.
    static let reserved = DataFlags(rawValue: 0x01)
}

/// What precedes a data chunk's body.
struct DataHeader: Hashable {
    var sequence: UInt8
    var flags: DataFlags
    /// The slot of a `110` chunk.
    var slot: UInt8?
    /// The body's length, and whether this chunk's size is the full one from here on.
    var bodyLength: Int?
    var setsFullSize = false
    var acknowledgement: Acknowledgement?
    /// Bytes of the acknowledgement, which do not count towards the chunk's size.
    var acknowledgementCount = 0
    /// Where the body begins.
    var bodyOffset: Int

    static func parse(_ first: UInt8, _ reader: inout ChunkReader) throws(FerryError) -> DataHeader? {
        if first < 0x80 { return DataHeader(sequence: first, flags: [], bodyOffset: 1) }
        guard let second = reader.byte() else { return nil }
        let sequence = second & 0x7F
        if first >= 0xC0 {
            let flags: DataFlags = second >= 0x80 ? .end : []
            return DataHeader(sequence: sequence, flags: flags, slot: first & 0x1F, bodyOffset: 2)
        }
        let flags = DataFlags(rawValue: first & 0x3F)
        guard !flags.contains(.reserved), second < 0x80, !flags.isSuperset(of: [.length, .end]) else {
            throw FerryError(
                .malformedStream,
                "A sequenced chunk has the flags \(first), \(second), which this version does not know. The peer is "
                    + "newer, or does not use the sequenced framing.")
        }
        var header = DataHeader(sequence: sequence, flags: flags, bodyOffset: 2)
        if flags.contains(.acknowledgement) {
            guard let block = try Acknowledgement.parse(&reader) else { return nil }
            header.acknowledgement = block
            header.acknowledgementCount = reader.offset - 2
        }
        if flags.contains(.length) {
            guard let field = try reader.varint("body length") else { return nil }
            header.setsFullSize = field & 1 == 1
            header.bodyLength = Int(truncatingIfNeeded: min(field >> 1, UInt64(Int32.max)))
        }
        header.bodyOffset = reader.offset
        return header
    }
}

/// What the receiver has: every chunk before `next`, those after it whose bit is set, and room for `credit` more.
struct Acknowledgement: Hashable {
    /// The sequence number of the first chunk that is missing.
    var next: UInt8
    /// How much may be sent beyond the chunks before `next`, in units of ``creditUnit`` bytes.
    var credit: UInt64
    /// Bit i says that the chunk i + 1 after `next` is there.
    var bitmap: UInt64 = 0

    static let creditUnit = 64

    private var bitmapCount: Int { (UInt64.bitWidth - bitmap.leadingZeroBitCount + 7) / 8 }

    /// The number of bytes in a chunk.
    var encodedCount: Int { 1 + Varint.encodedCount(credit) + (bitmap == 0 ? 0 : 1 + bitmapCount) }

    func write(to writer: inout ChunkWriter) {
        writer.byte(next | (bitmap == 0 ? 0 : 0x80))
        writer.varint(credit)
        guard bitmap != 0 else { return }
        writer.byte(UInt8(bitmapCount))
        for index in 0..<bitmapCount { writer.byte(UInt8(truncatingIfNeeded: bitmap >> UInt64(8 * index))) }
    }

    static func parse(_ reader: inout ChunkReader) throws(FerryError) -> Acknowledgement? {
        guard let first = reader.byte(), let credit = try reader.varint("credit") else { return nil }
        var block = Acknowledgement(next: first & 0x7F, credit: credit)
        guard first >= 0x80 else { return block }
        guard let count = reader.byte() else { return nil }
        guard count >= 1, count <= 8 else {
            throw FerryError(.malformedStream, "An acknowledgement's bitmap has \(count) bytes; 1 to 8 are possible.")
        }
        for index in 0..<UInt64(count) {
            guard let byte = reader.byte() else { return nil }
            block.bitmap |= UInt64(byte) << (8 * index)
        }
        return block
    }
}

/// Part of a data chunk that has become too large for the link since it was first sent.
struct Piece: Hashable {
    var sequence: UInt8
    let isLast: Bool
    /// Where in the chunk the bytes belong.
    var offset: Int
    var bodyOffset: Int

    static func write(sequence: UInt8, isLast: Bool, offset: Int, to writer: inout ChunkWriter) {
        writer.byte(SequencedChunk.Control.piece)
        writer.byte(sequence | (isLast ? 0x80 : 0))
        writer.varint(UInt64(offset))
    }

    static func parse(_ reader: inout ChunkReader) throws(FerryError) -> Piece? {
        guard let second = reader.byte(), let offset = try reader.varint("piece offset") else { return nil }
        return Piece(
            sequence: second & 0x7F, isLast: second >= 0x80,
            offset: Int(truncatingIfNeeded: min(offset, UInt64(Int32.max))), bodyOffset: reader.offset)
    }
}

/// What stands in a body where no message's bytes go on: `kkkmmmmm`, the kind and the slot.
enum Record: UInt8 {
    /// A message begins: its length follows as a varint, then its bytes.
    case begin = 0
    /// The message in the slot goes on.
    case resume = 1
    /// The message in the slot will not be finished.
    case cancel = 2

    func byte(slot: UInt8) -> UInt8 { rawValue << 5 | slot }

    static func parse(_ byte: UInt8) throws(FerryError) -> (Record, slot: UInt8) {
        guard let record = Record(rawValue: byte >> 5) else {
            throw FerryError(
                .malformedStream, "A sequenced chunk holds \(byte) where a record begins; its kind is unknown.")
        }
        return (record, byte & 0x1F)
    }
}
