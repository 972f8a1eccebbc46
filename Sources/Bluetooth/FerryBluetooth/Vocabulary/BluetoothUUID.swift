/// A UUID as Bluetooth uses it: 128 bits, of which the 16- and 32-bit forms are short names for values on the Bluetooth
/// base UUID (Core Specification 5.4, Vol 3, Part B, 2.5.1).
///
/// Two UUIDs are equal when their 128-bit values are, in whichever form they were made.
public struct BluetoothUUID: Sendable, Hashable {
    /// All 128 bits, the first hexadecimal digit in the most significant place.
    public let value: UInt128

    /// The Bluetooth base UUID, 00000000-0000-1000-8000-00805F9B34FB.
    public static let base = BluetoothUUID(0x0000_0000_0000_1000_8000_0080_5F9B_34FB as UInt128)

    /// Makes a UUID of 128 bits.
    public init(_ value: UInt128) { self.value = value }

    /// Makes a 16-bit UUID, such as 0x180F for the Battery service.
    public init(_ value: UInt16) { self.init(UInt32(value)) }

    /// Makes a 32-bit UUID.
    public init(_ value: UInt32) { self.value = Self.base.value | UInt128(value) << 96 }

    /// How many bits the shortest form needs: 16, 32 or 128.
    public var bitWidth: Int {
        let mask = UInt128(UInt32.max) << 96
        guard value & ~mask == Self.base.value else { return 128 }
        return value >> 96 <= UInt16.max ? 16 : 32
    }

    /// The 8-4-4-4-12 form of all 128 bits, in capitals.
    public var uuidString: String {
        var text = String(value, radix: 16, uppercase: true)
        text = String(repeating: "0", count: 32 - text.count) + text
        for offset in [20, 16, 12, 8] {
            text.insert("-", at: text.index(text.startIndex, offsetBy: offset))
        }
        return text
    }
}
