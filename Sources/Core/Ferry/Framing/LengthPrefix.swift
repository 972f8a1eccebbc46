extension LengthPrefixFraming.Prefix {
    /// The longest message that the prefix can express.
    var maximumLength: Int {
        switch self {
        case .varint: .max
        case .uint16: Int(UInt16.max)
        case .uint32: Int(clamping: UInt32.max)
        }
    }

    /// The prefix's name in errors.
    var name: String {
        switch self {
        case .varint: "a varint"
        case .uint16: "2 bytes"
        case .uint32: "4 bytes"
        }
    }

    /// The number of bytes that the prefix takes for a message of `length` bytes.
    @inline(__always)
    func encodedCount(_ length: Int) -> Int {
        switch self {
        case .varint: Varint.encodedCount(UInt64(length))
        case .uint16: 2
        case .uint32: 4
        }
    }

    /// One byte of the prefix for a message of `length` bytes. `offset` is within ``encodedCount(_:)``.
    func byte(at offset: Int, of length: Int) -> UInt8 {
        switch self {
        case .varint:
            let isLast = offset == Varint.encodedCount(UInt64(length)) - 1
            return UInt8(truncatingIfNeeded: length >> (7 * offset)) & 0x7F | (isLast ? 0 : 0x80)
        case .uint16(.little), .uint32(.little): return UInt8(truncatingIfNeeded: length >> (8 * offset))
        case .uint16(.big): return UInt8(truncatingIfNeeded: length >> (8 * (1 - offset)))
        case .uint32(.big): return UInt8(truncatingIfNeeded: length >> (8 * (3 - offset)))
        }
    }
}

/// Reads one length after the other, byte by byte.
struct LengthDecoder: Sendable {
    private let prefix: LengthPrefixFraming.Prefix
    private var varint = Varint.Decoder()
    private var fixedValue: UInt64 = 0
    private var fixedCount = 0

    init(_ prefix: LengthPrefixFraming.Prefix) { self.prefix = prefix }

    /// The number of bytes taken of a length that is not complete.
    var byteCount: Int { varint.byteCount + fixedCount }

    /// Takes the next byte; returns the length when it is complete.
    mutating func push(_ byte: UInt8) throws(Varint.Failure) -> UInt64? {
        switch prefix {
        case .varint: return try varint.push(byte)
        case .uint16(let order): return push(byte, order, of: 2)
        case .uint32(let order): return push(byte, order, of: 4)
        }
    }

    private mutating func push(_ byte: UInt8, _ order: LengthPrefixFraming.ByteOrder, of size: Int) -> UInt64? {
        switch order {
        case .big: fixedValue = fixedValue << 8 | UInt64(byte)
        case .little: fixedValue |= UInt64(byte) << UInt64(8 * fixedCount)
        }
        fixedCount += 1
        guard fixedCount == size else { return nil }
        defer {
            fixedValue = 0
            fixedCount = 0
        }
        return fixedValue
    }
}
