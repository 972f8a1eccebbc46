/// Unsigned LEB128: seven bits a byte, least significant first, the top bit set on all but the last byte.
///
/// Only the shortest form of a number is accepted, so that every number has one encoding (DWARF 5, 7.6 describes the
/// format; it permits padding, this does not). 64-bit numbers take 1 to 10 bytes.
public enum Varint {
    /// Why bytes are not a varint.
    public enum Failure: Error, Hashable, Sendable {
        /// The last byte adds nothing: a shorter encoding of the same number exists.
        case overlong
        /// The number does not fit 64 bits.
        case overflow
    }

    /// The number of bytes that `value` takes: 1 to 10.
    @inlinable public static func encodedCount(_ value: UInt64) -> Int {
        let significantBits = UInt64.bitWidth - (value | 1).leadingZeroBitCount
        return (significantBits + 6) / 7
    }

    /// Appends `value` in its shortest form.
    public static func append(_ value: UInt64, to bytes: inout [UInt8]) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(truncatingIfNeeded: rest))
    }

    /// Reads one varint, byte by byte, however the bytes are cut.
    public struct Decoder: Sendable {
        private var value: UInt64 = 0
        /// The number of bytes taken of a varint that is not complete: 0 to 9.
        public private(set) var byteCount = 0

        /// Expects the first byte.
        public init() {}

        /// Takes the next byte; returns the number when it is complete, and then expects the first byte of another.
        public mutating func push(_ byte: UInt8) throws(Failure) -> UInt64? {
            // The tenth byte holds bit 63 alone.
            if byteCount == 9 && byte > 1 { throw .overflow }
            if byte == 0 && byteCount > 0 { throw .overlong }
            value |= UInt64(byte & 0x7F) << UInt64(7 * byteCount)
            byteCount += 1
            guard byte < 0x80 else { return nil }
            defer { self = Decoder() }
            return value
        }
    }
}
