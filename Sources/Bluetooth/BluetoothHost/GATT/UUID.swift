/// A Bluetooth UUID: the type of an attribute or a service (Core Specification 5.4, Vol 3, Part B, 2.5.1).
public struct UUID: Sendable, Hashable {
    /// All 128 bits, the first digit as printed in the most significant place.
    public let value: UInt128

    /// Makes a UUID of 128 bits.
    public init(_ value: UInt128) { self.value = value }
    /// Makes a UUID of its 16-bit form.
    public init(short: UInt16) { value = Self.base | UInt128(short) << 96 }

    private static let base: UInt128 = 0x0000_0000_0000_1000_8000_0080_5F9B_34FB

    /// Reads the form of this length: 2, 4 or 16 bytes, least significant first.
    init?(bytes: some Collection<UInt8>) {
        guard [2, 4, 16].contains(bytes.count) else { return nil }
        var value: UInt128 = 0
        var shift: UInt128 = 0
        for byte in bytes {
            value |= UInt128(byte) << shift
            shift += 8
        }
        self.value = bytes.count == 16 ? value : Self.base | value << 96
    }

    /// Whether the 16-bit form exists.
    public var isShort: Bool { value & ~(0xFFFF << 96) == Self.base }

    /// The shortest form that ATT and advertising share: 2 or 16 bytes, least significant first. 32-bit UUIDs have no
    /// short form in ATT (Vol 3, Part F, 3.2.1).
    public var bytes: [UInt8] {
        if isShort { return [UInt8(truncatingIfNeeded: value >> 96), UInt8(truncatingIfNeeded: value >> 104)] }
        return (0..<16).map { UInt8(truncatingIfNeeded: value >> UInt128(8 * $0)) }
    }

    static let primaryService = UUID(short: 0x2800)
    static let secondaryService = UUID(short: 0x2801)
    static let include = UUID(short: 0x2802)
    static let characteristic = UUID(short: 0x2803)
    static let extendedProperties = UUID(short: 0x2900)
    static let clientConfiguration = UUID(short: 0x2902)
    static let genericAccess = UUID(short: 0x1800)
    static let genericAttribute = UUID(short: 0x1801)
    static let deviceName = UUID(short: 0x2A00)
    static let appearance = UUID(short: 0x2A01)
    static let preferredParameters = UUID(short: 0x2A04)
    static let serviceChanged = UUID(short: 0x2A05)
    static let clientSupportedFeatures = UUID(short: 0x2B29)
    static let databaseHash = UUID(short: 0x2B2A)
    static let serverSupportedFeatures = UUID(short: 0x2B3A)
}
