// The Security Manager (Core Specification 5.4, Vol 3, Part H). There is no pairing yet: links stay unencrypted, and
// attributes that need encryption answer with "insufficient authentication".

extension LEHost {
    private static let pairingRequest: UInt8 = 0x01
    private static let pairingFailed: UInt8 = 0x05
    private static let securityRequest: UInt8 = 0x0B
    private static let pairingNotSupported: UInt8 = 0x05

    /// Refuses to pair, so that a peer that asks learns it at once rather than after its 30 s.
    mutating func receiveSecurityManager(_ index: Int, _ pdu: RawSpan, at now: Int64) {
        guard pdu.byteCount >= 1 else { return }
        switch pdu.u8(0) {
        case Self.pairingFailed: break
        case Self.pairingRequest, Self.securityRequest:
            send([Self.pairingFailed, Self.pairingNotSupported], on: ChannelID.securityManager, to: index, at: now)
        default: break
        }
    }
}
