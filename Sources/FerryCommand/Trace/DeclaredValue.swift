/// What a characteristic that a peer has declared carries, by its UUID.
enum DeclaredValue: Hashable {
    case chunks(TraceFraming)
    /// Bytes of the Nordic UART service, with lines, SLIP or COBS on them.
    case serial
    /// mdoc's State: 1 begins, 2 ends.
    case mdocState

    /// Characteristic declarations of 128-bit UUIDs in a Read By Type Response, by the handle of the value (Core Specification
    /// 5.4, Vol 3, Part F, 3.4.4.2 and Part G, 3.3.1).
    static func declared(in pdu: [UInt8]) -> [(handle: Int, value: DeclaredValue)] {
        let length = 21
        guard pdu.count >= 2 + length, pdu[0] == 0x09, pdu[1] == length else { return [] }
        return stride(from: 2, through: pdu.count - length, by: length).compactMap { start in
            let uuid = pdu[(start + 5)..<(start + length)].reversed().reduce(0 as UInt128) { $0 << 8 | UInt128($1) }
            return known[uuid].map { (Int(pdu[start + 3]) | Int(pdu[start + 4]) << 8, $0) }
        }
    }

    private static let known: [UInt128: DeclaredValue] = [
        0xDA2E_7828_FBCE_4E01_AE9E_2611_7499_7C48: .chunks(.smp),
        0x6E40_0002_B5A3_F393_E0A9_E50E_24DC_CA9E: .serial,
        0x6E40_0003_B5A3_F393_E0A9_E50E_24DC_CA9E: .serial,
        0x0000_0001_A123_48CE_896B_4C76_9733_73E6: .mdocState,
        0x0000_0005_A123_48CE_896B_4C76_9733_73E6: .mdocState,
        0x0000_0002_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x0000_0003_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x0000_0006_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x0000_0007_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x18EE_2EF5_263D_4559_959F_4F9C_429F_9D11: .chunks(.btp),
        0x18EE_2EF5_263D_4559_959F_4F9C_429F_9D12: .chunks(.btp),
        0xFB00_5C51_02E7_F387_1CAD_8ACD_2D8D_F0C8: .chunks(.pftp),
        0xFB00_5C52_02E7_F387_1CAD_8ACD_2D8D_F0C8: .chunks(.pftp),
        0xFB00_5C53_02E7_F387_1CAD_8ACD_2D8D_F0C8: .chunks(.pftp),
    ]

    /// The framing of a serial line, by its first bytes: COBS has zeros, SLIP ends with 0xC0, text has neither.
    static func serialFraming(_ bytes: [UInt8]) -> TraceFraming {
        if bytes.contains(0xC0) { return .slip }
        return bytes.contains(0) ? .cobs : .lines
    }
}
