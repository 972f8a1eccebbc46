import Ferry

/// What a characteristic that a peer has declared carries, by its UUID.
enum DeclaredValue: Hashable {
    case chunks(TraceFraming)
    /// Chunks that are read one after the other, until the value is empty.
    case queue(TraceFraming)
    /// Bytes of the Nordic UART service, with lines, SLIP or COBS on them.
    case serial
    /// A value beside the chunks that tells something by itself.
    case note(Note)

    /// What such values tell.
    enum Note: Hashable {
        /// mdoc's State: 1 begins, 2 ends.
        case mdocState
        case improvState, improvError
        /// How often a radio has rung.
        case meshtasticBell

        var format: TraceFraming {
            switch self {
            case .mdocState: .mdoc
            case .improvState, .improvError: .improv
            case .meshtasticBell: .meshtastic
            }
        }

        func text(of bytes: [UInt8]) -> String {
            "\(word) \(bytes.prefix(4).hexadecimal(separator: " ")): \(meaning(of: bytes))"
        }

        private var word: String {
            switch self {
            case .mdocState, .improvState: "state"
            case .improvError: "error"
            case .meshtasticBell: "bell"
            }
        }

        private func meaning(of bytes: [UInt8]) -> String {
            switch (self, bytes) {
            case (.mdocState, [1]): "begins"
            case (.mdocState, [2]): "ends"
            case (.improvState, [1]): "wants to be authorized"
            case (.improvState, [2]): "takes settings"
            case (.improvState, [3]): "connects to the network"
            case (.improvState, [4]): "is in the network"
            case (.improvError, [0]): "none"
            case (.improvError, [1]): "a wrong packet"
            case (.improvError, [2]): "an unknown command"
            case (.improvError, [3]): "the network cannot be reached"
            case (.improvError, [4]): "not authorized"
            case (.improvError, [5]): "a wrong host name"
            case (.meshtasticBell, _) where bytes.count == 4: "messages wait to be read"
            default: "has no meaning"
            }
        }
    }

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
        0x0000_0001_A123_48CE_896B_4C76_9733_73E6: .note(.mdocState),
        0x0000_0005_A123_48CE_896B_4C76_9733_73E6: .note(.mdocState),
        0x0000_0002_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x0000_0003_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x0000_0006_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x0000_0007_A123_48CE_896B_4C76_9733_73E6: .chunks(.mdoc),
        0x18EE_2EF5_263D_4559_959F_4F9C_429F_9D11: .chunks(.btp),
        0x18EE_2EF5_263D_4559_959F_4F9C_429F_9D12: .chunks(.btp),
        0xFB00_5C51_02E7_F387_1CAD_8ACD_2D8D_F0C8: .chunks(.pftp),
        0xFB00_5C52_02E7_F387_1CAD_8ACD_2D8D_F0C8: .chunks(.pftp),
        0xFB00_5C53_02E7_F387_1CAD_8ACD_2D8D_F0C8: .chunks(.pftp),
        0x0046_7768_6228_2272_4663_2774_7826_8001: .note(.improvState),
        0x0046_7768_6228_2272_4663_2774_7826_8002: .note(.improvError),
        0x0046_7768_6228_2272_4663_2774_7826_8003: .chunks(.improv),
        0x0046_7768_6228_2272_4663_2774_7826_8004: .chunks(.improv),
        0xF75C_76D2_129E_4DAD_A1DD_7866_1244_01E7: .chunks(.meshtastic),
        0x2C55_E69E_4993_11ED_B878_0242_AC12_0002: .queue(.meshtastic),
        0xED9D_A18C_A800_4F66_A670_AA75_47E3_4453: .note(.meshtasticBell),
        0xABBA_FF01_E56A_484C_B832_8B17_CF6C_BFE8: .chunks(.gattlink),
        0xABBA_FF02_E56A_484C_B832_8B17_CF6C_BFE8: .chunks(.gattlink),
        0xA1B2_C3D4_E5F6_4A5B_8C9D_0E1F_2A3B_4C5D: .chunks(.bitchat),
    ]

    /// The framing of a serial line, by its first bytes: COBS has zeros, SLIP ends with 0xC0, text has neither.
    static func serialFraming(_ bytes: [UInt8]) -> TraceFraming {
        if bytes.contains(0xC0) { return .slip }
        return bytes.contains(0) ? .cobs : .lines
    }
}
