import Ferry

/// The first chunk on every link: who speaks, what it can take, and what it already has of this peer.
///
/// 11 bytes, or 19 once the peer is known.
struct SequencedHello: Hashable, Sendable {
    static let version: UInt8 = 1

    /// The sender's session.
    var session: UInt32
    /// The largest number of chunks the sender holds out of order.
    var window: UInt8
    /// The largest message the sender takes.
    var maximumMessageSize: RoundedSize
    /// How much may be sent before the first acknowledgement.
    var credit: RoundedSize
    /// How messages become bytes; equal on both sides.
    var codec: UInt8
    /// How payloads become smaller; equal on both sides.
    var compression: UInt8
    /// Whether the sender has the receiver's hello of this link.
    var hasMet = false
    /// The session that the sender has met, on this link or an earlier one, and how many of its chunks it has, modulo 2^32.
    var known: Known?

    /// A peer, and how much of what it sent is here.
    struct Known: Hashable, Sendable {
        var session: UInt32
        var receivedCount: UInt32
    }

    func write(to writer: inout ChunkWriter) {
        writer.byte(SequencedChunk.Control.hello)
        writer.byte(Self.version << 4 | (known == nil ? 0 : 1) | (hasMet ? 2 : 0))
        writer.word(session)
        writer.byte(window)
        writer.byte(maximumMessageSize.encoded)
        writer.byte(credit.encoded)
        writer.byte(codec)
        writer.byte(compression)
        guard let known else { return }
        writer.word(known.session)
        writer.word(known.receivedCount)
    }

    static func parse(_ reader: inout ChunkReader) throws(FerryError) -> SequencedChunk? {
        guard let second = reader.byte() else { return nil }
        guard second >> 4 == version else { return .foreignHello(version: second >> 4) }
        guard second & 0x0C == 0 else {
            throw FerryError(.malformedStream, "A hello has the flags \(second & 0x0F), which version 1 does not know.")
        }
        guard let session = reader.word(), let window = reader.byte(), let maximum = reader.byte(),
            let credit = reader.byte(), let codec = reader.byte(), let compression = reader.byte()
        else { return nil }
        var hello = SequencedHello(
            session: session, window: window, maximumMessageSize: RoundedSize(encoded: maximum),
            credit: RoundedSize(encoded: credit), codec: codec, compression: compression,
            hasMet: second & 2 != 0)
        if second & 1 == 1 {
            guard let known = reader.word(), let count = reader.word() else { return nil }
            hello.known = Known(session: known, receivedCount: count)
        }
        try reader.expectEnd()
        guard window >= 1, window <= SequencedChunk.maximumWindow else {
            throw FerryError(.malformedStream, "A hello states a window of \(window) chunks; 1 to 64 are possible.")
        }
        return .hello(hello)
    }
}

/// A size in one byte, `eeeeemmm`: (8 + m) x 2^e, 8 bytes to 30 GiB.
struct RoundedSize: Hashable, Sendable {
    var encoded: UInt8

    init(encoded: UInt8) { self.encoded = encoded }

    /// The largest size that is no more than `size`, or 8.
    init(roundingDown size: Int) {
        guard size >= 8 else {
            encoded = 0
            return
        }
        let exponent = min(31, Int.bitWidth - 1 - size.leadingZeroBitCount - 3)
        encoded = UInt8(exponent << 3 | (min(15, size >> exponent) - 8))
    }

    /// The smallest size that is no less than `size`.
    init(roundingUp size: Int) {
        self.init(roundingDown: size)
        if bytes < size, encoded < .max { encoded += 1 }
    }

    /// The size in bytes; the largest are more than an `Int` of 32 bits holds, which then has its largest value.
    var bytes: Int { Int(clamping: UInt64(8 + (encoded & 7)) << UInt64(encoded >> 3)) }
}

/// Why a session will not talk to the peer. Sent once, before the link is closed.
struct SequencedRefusal: Hashable, Sendable {
    /// The kinds of refusal, with their numbers on the wire.
    enum Reason: UInt8, Sendable, CaseIterable {
        /// Another version; the value is the highest one this side speaks.
        case version = 1
        /// Another codec; the value is this side's.
        case codec = 2
        /// Another compression; the value is this side's.
        case compression = 3
    }

    var reason: UInt8
    var value: UInt8

    init(_ reason: Reason, value: UInt8) {
        self.reason = reason.rawValue
        self.value = value
    }

    func write(to writer: inout ChunkWriter) {
        writer.byte(SequencedChunk.Control.refusal)
        writer.byte(reason)
        writer.byte(value)
    }

    static func parse(_ reader: inout ChunkReader) -> SequencedRefusal? {
        guard let reason = reader.byte(), let value = reader.byte() else { return nil }
        var refusal = SequencedRefusal(.version, value: value)
        refusal.reason = reason
        return refusal
    }

    /// The error to throw: the defect and the remedy, with `subject` as the side that refused.
    func error(refusedBy subject: ErrorText) -> FerryError {
        let what: ErrorText =
            switch Reason(rawValue: reason) {
            case .version: "speaks version \(value) of the sequenced framing at most. Update the older side"
            case .codec: "uses the codec with identifier \(value). Use the same codec on both sides"
            case .compression where (128...254).contains(value):
                "compresses with the dictionary of number \(value), which 'ferry dictionary show' prints. Give both sides "
                    + "the same dictionary"
            case .compression: "uses the compression with identifier \(value). Use the same compression on both sides"
            case nil: "gave the unknown reason \(reason) with value \(value). Update the older side"
            }
        return FerryError(.incompatiblePeer, "\(subject) refused the session: it \(what).")
    }
}
