/// The packet indicator that H4 puts before each HCI packet (Core Specification 5.4, Vol 4, Part A, 2).
public enum H4PacketType: UInt8, Sendable {
    /// Host to controller.
    case command = 0x01
    /// Asynchronous data, both ways.
    case acl = 0x02
    /// Synchronous data, both ways.
    case synchronous = 0x03
    /// Controller to host.
    case event = 0x04
    /// Isochronous data, both ways.
    case isochronous = 0x05

    /// Bytes of the indicator and of the packet's header.
    var headerCount: Int {
        switch self {
        case .command, .synchronous: 4
        case .acl, .isochronous: 5
        case .event: 3
        }
    }
}

/// Why a byte stream cannot be H4, or not any more.
///
/// H4 has no marker to find the next packet by (Core Specification 5.4, Vol 4, Part A, 4): once out of step the only
/// remedy is to close the stream and to reset the controller.
public struct H4StreamError: Error, Sendable, Hashable, CustomStringConvertible {
    /// The defect, and its place.
    public let description: String
}

/// Cuts a byte stream into HCI packets.
///
/// A packet is held only while part of it is still to come, so at most 65 540 bytes are kept. Packets that arrive whole
/// are handed over without a copy.
public struct H4Splitter: Sendable {
    private var held: [UInt8] = []
    private var position: UInt64 = 0
    private var failure: H4StreamError?

    /// Starts at a packet boundary.
    public init() {}

    /// Bytes of a packet of which the rest has not arrived.
    public var heldCount: Int { held.count }

    /// Takes the next bytes of the stream and calls `body` for each packet that they complete, with the packet from its
    /// indicator on. The bytes are valid during the call only.
    ///
    /// - Throws: ``H4StreamError`` when the stream is out of step; it stays so.
    public mutating func feed(
        _ bytes: RawSpan, _ body: (H4PacketType, RawSpan) -> Void
    ) throws(H4StreamError) {
        if let failure { throw failure }
        if held.isEmpty {
            let consumed = try split(bytes, body)
            if consumed < bytes.byteCount {
                held.append(copying: bytes.extracting(consumed..<bytes.byteCount))
            }
        } else {
            var joined: [UInt8] = []
            swap(&joined, &held)
            joined.append(copying: bytes)
            let consumed = try split(joined.span.bytes, body)
            joined.removeFirst(consumed)
            held = joined
        }
    }

    private mutating func split(
        _ bytes: RawSpan, _ body: (H4PacketType, RawSpan) -> Void
    ) throws(H4StreamError) -> Int {
        var start = 0
        while start < bytes.byteCount {
            let indicator = bytes.u8(start)
            guard let type = H4PacketType(rawValue: indicator), type != .command else {
                let error = H4StreamError(
                    description: "Packet indicator 0x\(String(indicator, radix: 16)) at byte \(position) of the stream "
                        + "is none that a controller sends: the H4 stream is out of step. Close it, reopen it and "
                        + "reset the controller.")
                failure = error
                throw error
            }
            let available = bytes.byteCount - start
            guard available >= type.headerCount else { break }
            let payload: Int
            switch type {
            case .event: payload = Int(bytes.u8(start + 2))
            case .acl: payload = Int(bytes.u16(start + 3))
            case .isochronous: payload = Int(bytes.u16(start + 3) & 0x3FFF)
            case .synchronous, .command: payload = Int(bytes.u8(start + 3))
            }
            let count = type.headerCount + payload
            guard available >= count else { break }
            body(type, bytes.extracting(start..<start + count))
            start += count
            position += UInt64(count)
        }
        return start
    }
}
