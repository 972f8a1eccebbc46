/// A physical layer of Bluetooth LE.
public enum PHY: String, Sendable, Hashable, CaseIterable {
    /// LE 1M, uncoded, 1 Mbit/s.
    case le1M = "1M"
    /// LE 2M, uncoded, 2 Mbit/s.
    case le2M = "2M"
    /// LE Coded with S=2, 500 kbit/s.
    case codedS2 = "coded-S2"
    /// LE Coded with S=8, 125 kbit/s.
    case codedS8 = "coded-S8"

    /// The inter-frame space T_IFS in nanoseconds: 150 us (Core Specification 5.4, Vol 6, Part B, 4.1.1).
    public static let interFrameSpace: Int64 = 150_000

    /// The time in nanoseconds that a data packet with `payload` bytes takes on the air.
    ///
    /// Uncoded (Core Specification 5.4, Vol 6, Part B, 2.1): preamble 1 byte (2 on LE 2M), access address 4, header 2,
    /// payload, MIC 4 when encrypted and the payload is not empty, CRC 3. Coded (2.2): preamble 80 us, access address
    /// 256 us, CI 16 us and TERM1 24 us at S=8, then header, payload, MIC, CRC and the 3 bits of TERM2 at S.
    public func airTime(payload: Int, isEncrypted: Bool) -> Int64 {
        let body = Int64(2 + payload + (isEncrypted && payload > 0 ? 4 : 0) + 3)
        return switch self {
        case .le1M: (1 + 4 + body) * 8_000
        case .le2M: (2 + 4 + body) * 4_000
        case .codedS2: 376_000 + body * 16_000 + 6_000
        case .codedS8: 376_000 + body * 64_000 + 24_000
        }
    }

    /// The time in nanoseconds from the start of one exchange to the earliest start of the next, when one end sends
    /// `payload` bytes and the other an empty packet.
    public func exchangeTime(payload: Int, isEncrypted: Bool) -> Int64 {
        airTime(payload: payload, isEncrypted: isEncrypted) + airTime(payload: 0, isEncrypted: isEncrypted)
            + 2 * Self.interFrameSpace
    }
}
