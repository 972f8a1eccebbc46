import Ferry

/// A packet as it lies in a value. Numbers have 5 bits and wrap.
enum GattlinkPacket: Equatable, Sendable {
    /// `80`: its receiver begins anew.
    case resetRequest
    /// `81`, the least and the newest version, and how many packets the sender takes and sends without an acknowledgement.
    case resetComplete(versions: ClosedRange<UInt8>, takes: UInt8, sends: UInt8)
    /// `40 | number` acknowledges all up to that number. Then, if there is data, its number and the data, `length` bytes from `start` on.
    case data(acknowledged: UInt8?, number: UInt8?, start: Int)
    /// A control packet of a kind that is not known.
    case unknown
    /// A control packet that is cut.
    case malformed

    /// The numbers of packets, of which there are 32.
    static let numbers: UInt8 = 0x1F
    /// Bytes of a completed reset, the longest packet without data.
    static let longestControl = 5

    /// Reads a packet, which has a byte at least.
    init(_ chunk: RawSpan) {
        let first = chunk.unsafeLoad(as: UInt8.self)
        func byte(_ offset: Int) -> UInt8 { chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self) }
        switch first {
        case 0x80: self = .resetRequest
        case 0x81:
            guard chunk.byteCount >= Self.longestControl, byte(1) <= byte(2) else {
                self = .malformed
                return
            }
            self = .resetComplete(versions: byte(1)...byte(2), takes: byte(3), sends: byte(4))
        case 0x82...: self = .unknown
        default:
            let hasAcknowledgement = first & 0x40 != 0
            let place = hasAcknowledgement ? 1 : 0
            let number = chunk.byteCount > place ? byte(place) & Self.numbers : nil
            self = .data(
                acknowledged: hasAcknowledgement ? first & Self.numbers : nil, number: number, start: place + 1)
        }
    }
}
