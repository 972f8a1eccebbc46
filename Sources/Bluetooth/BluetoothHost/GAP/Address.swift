/// A Bluetooth device address and its type (Core Specification 5.4, Vol 6, Part B, 1.3).
public struct Address: Sendable, Hashable, Codable, CustomStringConvertible {
    /// Whether the address was assigned by the IEEE or made up.
    public enum Kind: UInt8, Sendable, Codable {
        /// Assigned.
        case `public` = 0
        /// Made up.
        case random = 1
    }

    /// The 48 bits; the first pair of digits as printed is the most significant.
    public let value: UInt64
    /// Public or random.
    public let kind: Kind

    /// Makes an address of the low 48 bits of `value`.
    public init(_ value: UInt64, _ kind: Kind) {
        self.value = value & 0xFFFF_FFFF_FFFF
        self.kind = kind
    }

    /// Makes a static random address of 48 random bits (Core Specification 5.4, Vol 6, Part B, 1.3.2.1): the two most
    /// significant bits are set, and the others are neither all 0 nor all 1.
    public static func staticRandom(_ bits: UInt64) -> Address {
        let random = bits & 0x3FFF_FFFF_FFFF
        let usable = random == 0 || random == 0x3FFF_FFFF_FFFF ? 0x2A_5A5A_5A5A : random
        return Address(usable | 0xC000_0000_0000, .random)
    }

    /// Reads the type octet of events, in which 2 and 3 are identity addresses.
    init(_ reader: inout ByteReader) throws(MalformedPacket) {
        let type = try reader.u8()
        try self.init(&reader, kind: type & 1 == 0 ? .public : .random)
    }

    init(_ reader: inout ByteReader, kind: Kind) throws(MalformedPacket) {
        var value: UInt64 = 0
        for place in 0..<6 { value |= UInt64(try reader.u8()) << (8 * UInt64(place)) }
        self.init(value, kind)
    }

    /// Least significant octet first, as sent.
    var bytes: [UInt8] { (0..<6).map { UInt8(truncatingIfNeeded: value >> (8 * UInt64($0))) } }

    /// The six pairs of digits, most significant first, and the type.
    public var description: String {
        let digits = bytes.reversed().map { ($0 < 16 ? "0" : "") + String($0, radix: 16, uppercase: true) }
        return digits.joined(separator: ":") + (kind == .random ? " (random)" : " (public)")
    }
}
