/// Keys that the peer is to send, and those it has sent (Core Specification 5.4, Vol 3, Part H, 3.6.1): in their order,
/// each once.
struct KeyDistribution: Sendable {
    var longTermKey: [UInt8] = []
    var diversifier: UInt16 = 0
    var random: UInt64 = 0
    var resolvingKey: [UInt8]?
    var identity: Address?
    var bonds = false
    var hasKey = false
    /// Whether this side's identity is still to be sent.
    var owesIdentity = false
    private var expected: [UInt8] = []

    var isComplete: Bool { expected.isEmpty }

    mutating func expect(_ keys: UInt8) {
        expected = keys & PairingFeatures.encryptionKey != 0 ? [0x06, 0x07] : []
        if keys & PairingFeatures.identityKey != 0 { expected += [0x08, 0x09] }
    }

    /// Takes one; false when it is not the one to come.
    mutating func receive(_ pdu: PairingPDU) -> Bool {
        guard let next = expected.first, pdu.bytes.first == next else { return false }
        expected.removeFirst()
        switch pdu {
        case .encryptionInformation(let key): longTermKey = key
        case .centralIdentification(let diversifier, let random):
            (self.diversifier, self.random) = (diversifier, random)
            hasKey = true
        // All zero says that the peer has no private addresses.
        case .identityInformation(let key): resolvingKey = key.allSatisfy { $0 == 0 } ? nil : key
        case .identityAddress(let address): identity = address
        default: break
        }
        return true
    }
}
