/// The cryptography and randomness that pairing needs. The host has neither, so that its logic is the same on every
/// run; the owner of a host passes one backed by a well-kept library.
///
/// All byte strings are most significant octet first, as in the specification's formulas.
public protocol PairingCryptography: Sendable {
    /// AES-128 of one block (FIPS 197): the security function e (Core Specification 5.4, Vol 3, Part H, 2.2.1).
    /// Key and block have 16 bytes each, and so has the result.
    func aes128(key: [UInt8], block: [UInt8]) -> [UInt8]
    /// AES-CMAC of a message (RFC 4493) under a key of 16 bytes: 16 bytes.
    func aesCMAC(key: [UInt8], message: [UInt8]) -> [UInt8]
    /// Unpredictable bytes.
    func random(_ count: Int) -> [UInt8]
    /// A new key pair on P-256 (FIPS 186-4).
    func makeKeyPair() -> PairingKeyPair
    /// The x coordinate, 32 bytes, that the private key and the peer's point make; nil when the point is not on the curve.
    func sharedSecret(_ keys: PairingKeyPair, x: [UInt8], y: [UInt8]) -> [UInt8]?
}

/// A key pair on P-256.
public struct PairingKeyPair: Sendable {
    /// The private key, 32 bytes.
    public let secret: [UInt8]
    /// The public key's coordinates, 32 bytes each.
    public let x: [UInt8]
    /// The other coordinate.
    public let y: [UInt8]

    /// Puts a pair together.
    public init(secret: [UInt8], x: [UInt8], y: [UInt8]) {
        self.secret = secret
        self.x = x
        self.y = y
    }
}

/// The functions that pairing is made of (Core Specification 5.4, Vol 3, Part H, 2.2). Most significant octet first.
struct PairingFunctions: Sendable {
    let cryptography: any PairingCryptography

    private func cmac(_ key: [UInt8], _ message: [UInt8]) -> [UInt8] {
        cryptography.aesCMAC(key: key, message: message)
    }

    private static func xor(_ a: [UInt8], _ b: [UInt8]) -> [UInt8] { zip(a, b).map { $0 ^ $1 } }

    /// Confirm value of legacy pairing (2.2.3): 7-octet request and response, addresses as type and 6 octets.
    func c1(
        _ key: [UInt8], random: [UInt8], request: [UInt8], response: [UInt8], initiator: Address, responder: Address
    ) -> [UInt8] {
        let p1 = response + request + [responder.kind.rawValue, initiator.kind.rawValue]
        let p2: [UInt8] = [0, 0, 0, 0] + initiator.bytes.reversed() + responder.bytes.reversed()
        let inner = cryptography.aes128(key: key, block: Self.xor(random, p1))
        return cryptography.aes128(key: key, block: Self.xor(inner, p2))
    }

    /// Short term key of legacy pairing (2.2.4), of the responder's random value and the initiator's.
    func s1(_ key: [UInt8], _ responder: [UInt8], _ initiator: [UInt8]) -> [UInt8] {
        cryptography.aes128(key: key, block: Array(responder.suffix(8) + initiator.suffix(8)))
    }

    /// Confirm value of Secure Connections (2.2.6).
    func f4(_ u: [UInt8], _ v: [UInt8], _ x: [UInt8], _ z: UInt8) -> [UInt8] { cmac(x, u + v + [z]) }

    /// MacKey and long term key (2.2.7).
    func f5(
        _ secret: [UInt8], _ n1: [UInt8], _ n2: [UInt8], _ a1: Address, _ a2: Address
    ) -> (mac: [UInt8], longTermKey: [UInt8]) {
        let salt: [UInt8] = [
            0x6C, 0x88, 0x83, 0x91, 0xAA, 0xF5, 0xA5, 0x38, 0x60, 0x37, 0x0B, 0xDB, 0x5A, 0x60, 0x83, 0xBE,
        ]
        let key = cmac(salt, secret)
        let rest: [UInt8] = [0x62, 0x74, 0x6C, 0x65] + n1 + n2 + Self.octets(a1) + Self.octets(a2) + [0x01, 0x00]
        return (cmac(key, [0] + rest), cmac(key, [1] + rest))
    }

    /// Check value of Secure Connections (2.2.8); `capabilities` are AuthReq, OOB flag and IO capability.
    func f6(
        _ key: [UInt8], _ n1: [UInt8], _ n2: [UInt8], _ r: [UInt8], _ capabilities: [UInt8], _ a1: Address,
        _ a2: Address
    ) -> [UInt8] {
        cmac(key, n1 + n2 + r + capabilities + Self.octets(a1) + Self.octets(a2))
    }

    /// The number that people compare (2.2.9), of six decimal digits.
    func g2(_ u: [UInt8], _ v: [UInt8], _ x: [UInt8], _ y: [UInt8]) -> UInt32 {
        cmac(x, u + v + y).suffix(4).reduce(0) { $0 << 8 | UInt32($1) } % 1_000_000
    }

    /// The hash of a resolvable private address (2.2.2): the low 24 bits.
    func ah(_ key: [UInt8], _ prand: UInt64) -> UInt64 {
        var block = [UInt8](repeating: 0, count: 13)
        for shift in [16, 8, 0] as [UInt64] { block.append(UInt8(truncatingIfNeeded: prand >> shift)) }
        return cryptography.aes128(key: key, block: block).suffix(3).reduce(0) { $0 << 8 | UInt64($1) }
    }

    /// Whether `address` was made of the identity resolving key (Vol 6, Part B, 1.3.2.3).
    func resolves(_ address: Address, by key: [UInt8]) -> Bool {
        guard address.isResolvable else { return false }
        return ah(key, address.value >> 24) == address.value & 0xFF_FFFF
    }

    /// Type and address, as f5 and f6 take them.
    private static func octets(_ address: Address) -> [UInt8] { [address.kind.rawValue] + address.bytes.reversed() }
}
