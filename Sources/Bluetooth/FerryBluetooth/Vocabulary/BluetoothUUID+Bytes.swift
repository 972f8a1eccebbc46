extension BluetoothUUID {
    /// The shortest form's 2, 4 or 16 bytes, least significant first: as in advertising packets (Core Specification
    /// Supplement, Part A, 1.1).
    public var littleEndianBytes: [UInt8] { bigEndianBytes.reversed() }

    /// The shortest form's 2, 4 or 16 bytes, most significant first: as `CBUUID.data` has them.
    public var bigEndianBytes: [UInt8] {
        // The short forms are the top 32 bits, of which the 16-bit form is the lower half.
        let bytes = bitWidth == 16 ? 2..<4 : 0..<bitWidth / 8
        return bytes.map { UInt8(truncatingIfNeeded: value >> (120 - 8 * $0)) }
    }

    /// The 2 or 16 bytes that ATT carries, least significant first: ATT has no 32-bit form (Core Specification 5.4,
    /// Vol 3, Part F, 3.2.1).
    public var attBytes: [UInt8] {
        guard bitWidth == 32 else { return littleEndianBytes }
        return (0..<16).map { UInt8(truncatingIfNeeded: value >> (8 * $0)) }
    }

    /// Reads 2, 4 or 16 bytes, least significant first, as they come over the air.
    ///
    /// - Throws: `invalidArgument` for any other number of bytes.
    public init(littleEndianBytes bytes: some BidirectionalCollection<UInt8>) throws(BluetoothError) {
        try self.init(bigEndianBytes: bytes.reversed())
    }

    /// Reads 2, 4 or 16 bytes, most significant first, as `CBUUID(data:)` does.
    ///
    /// - Throws: `invalidArgument` for any other number of bytes.
    public init(bigEndianBytes bytes: some Collection<UInt8>) throws(BluetoothError) {
        guard [2, 4, 16].contains(bytes.count) else {
            throw BluetoothError(
                .invalidArgument, "A Bluetooth UUID has 2, 4 or 16 bytes, and \(bytes.count) were given.")
        }
        let value = bytes.reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
        self = bytes.count == 16 ? BluetoothUUID(value) : BluetoothUUID(UInt32(truncatingIfNeeded: value))
    }
}
