/// The bytes of a packet end before the packet does, or say what cannot be.
struct MalformedPacket: Error {}

/// Reads little-endian fields in order; throws rather than reading past the end.
struct ByteReader {
    private let bytes: [UInt8]
    private(set) var offset: Int

    init(_ bytes: [UInt8], from offset: Int = 0) {
        self.bytes = bytes
        self.offset = min(offset, bytes.count)
    }

    var remaining: Int { bytes.count - offset }
    /// The byte that comes next, which is not taken.
    var peek: UInt8? { offset < bytes.count ? bytes[offset] : nil }

    mutating func u8() throws(MalformedPacket) -> UInt8 {
        guard offset < bytes.count else { throw MalformedPacket() }
        defer { offset += 1 }
        return bytes[offset]
    }

    mutating func i8() throws(MalformedPacket) -> Int8 { Int8(bitPattern: try u8()) }

    mutating func u16() throws(MalformedPacket) -> UInt16 {
        let low = try u8()
        return UInt16(low) | UInt16(try u8()) << 8
    }

    mutating func u64() throws(MalformedPacket) -> UInt64 {
        var value: UInt64 = 0
        for place in 0..<8 { value |= UInt64(try u8()) << (8 * UInt64(place)) }
        return value
    }

    mutating func bytes(_ count: Int) throws(MalformedPacket) -> [UInt8] {
        guard count >= 0, count <= remaining else { throw MalformedPacket() }
        defer { offset += count }
        return Array(bytes[offset..<offset + count])
    }

    mutating func rest() -> [UInt8] {
        defer { offset = bytes.count }
        return Array(bytes[offset...])
    }
}

extension [UInt8] {
    mutating func append(u16 value: UInt16) {
        append(UInt8(truncatingIfNeeded: value))
        append(UInt8(truncatingIfNeeded: value >> 8))
    }

    mutating func append(u64 value: UInt64) {
        for place in 0..<8 { append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(place)))) }
    }

    mutating func append(copying span: RawSpan) {
        span.withUnsafeBytes { append(contentsOf: $0) }
    }
}

extension Array where Element == UInt8 {
    init(copying span: RawSpan) { self = span.withUnsafeBytes { Array($0) } }
}

extension RawSpan {
    /// The byte at `offset`, which the caller has checked.
    func u8(_ offset: Int) -> UInt8 { unsafeLoad(fromByteOffset: offset, as: UInt8.self) }

    /// The little-endian field at `offset`, which the caller has checked.
    func u16(_ offset: Int) -> UInt16 {
        UInt16(littleEndian: unsafeLoadUnaligned(fromByteOffset: offset, as: UInt16.self))
    }
}
