import FerryTesting
import Synchronization

@testable import BluetoothHost

/// Stands in for cryptography where only the course of pairing is tested: both sides come to the same keys, and what
/// differs gives other results. It protects nothing. FerryHCI's tests have the real one.
final class ToyCryptography: PairingCryptography, Sendable {
    private let generator: Mutex<SplitMix64>

    init(seed: UInt64) { generator = Mutex(SplitMix64(seed: seed)) }

    private func digest(_ bytes: [UInt8]) -> [UInt8] {
        var state = SplitMix64(seed: bytes.reduce(UInt64(bytes.count)) { ($0 ^ UInt64($1)) &* 0x100_0000_01B3 })
        return state.bytes(16)
    }

    func aes128(key: [UInt8], block: [UInt8]) -> [UInt8] { digest(key + block) }
    func aesCMAC(key: [UInt8], message: [UInt8]) -> [UInt8] { digest(key + message) }
    func random(_ count: Int) -> [UInt8] { generator.withLock { $0.bytes(count) } }

    /// Diffie and Hellman's way with a small prime.
    private static let prime: UInt64 = 0xFFFF_FFFB

    private static func power(_ base: UInt64, _ exponent: UInt64) -> UInt64 {
        var (result, base, exponent) = (UInt64(1), base % prime, exponent)
        while exponent > 0 {
            if exponent & 1 == 1 { result = result * base % prime }
            base = base * base % prime
            exponent >>= 1
        }
        return result
    }

    private static func bytes(_ value: UInt64) -> [UInt8] {
        [UInt8](repeating: 0, count: 24) + (0..<8).reversed().map { UInt8(truncatingIfNeeded: value >> ($0 * 8)) }
    }

    private static func value(_ bytes: [UInt8]) -> UInt64 { bytes.suffix(8).reduce(0) { $0 << 8 | UInt64($1) } }

    func makeKeyPair() -> PairingKeyPair {
        let secret = UInt64(random(4).reduce(0) { $0 << 8 | UInt32($1) }) | 1
        return PairingKeyPair(secret: Self.bytes(secret), x: Self.bytes(Self.power(5, secret)), y: Self.bytes(1))
    }

    func sharedSecret(_ keys: PairingKeyPair, x: [UInt8], y: [UInt8]) -> [UInt8]? {
        guard y == Self.bytes(1) else { return nil }
        return Self.bytes(Self.power(Self.value(x), Self.value(keys.secret)))
    }
}
