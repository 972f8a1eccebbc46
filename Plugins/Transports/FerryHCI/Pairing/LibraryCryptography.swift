#if HCI
    import BluetoothHost
    import Crypto
    import CryptoExtras

    /// Pairing's cryptography by swift-crypto, and chance by the system.
    struct LibraryCryptography: PairingCryptography {
        func aes128(key: [UInt8], block: [UInt8]) -> [UInt8] {
            var block = block
            // Throws for wrong lengths only; an empty result matches nothing, so that pairing fails.
            do { try AES.permute(&block, key: SymmetricKey(data: key)) } catch { return [] }
            return block
        }

        func aesCMAC(key: [UInt8], message: [UInt8]) -> [UInt8] {
            guard var code = try? AES.CMAC(key: SymmetricKey(data: key)) else { return [] }
            message.withUnsafeBytes { code.update(bufferPointer: $0) }
            return Array(code.finalize())
        }

        func random(_ count: Int) -> [UInt8] {
            var generator = SystemRandomNumberGenerator()
            return (0..<count).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
        }

        func makeKeyPair() -> PairingKeyPair {
            let key = P256.KeyAgreement.PrivateKey()
            let point = Array(key.publicKey.rawRepresentation)
            return PairingKeyPair(
                secret: Array(key.rawRepresentation), x: Array(point.prefix(32)), y: Array(point.suffix(32)))
        }

        func sharedSecret(_ keys: PairingKeyPair, x: [UInt8], y: [UInt8]) -> [UInt8]? {
            // Refuses points that are not on the curve.
            guard let own = try? P256.KeyAgreement.PrivateKey(rawRepresentation: keys.secret),
                let peer = try? P256.KeyAgreement.PublicKey(rawRepresentation: x + y),
                let secret = try? own.sharedSecretFromKeyAgreement(with: peer)
            else { return nil }
            return secret.withUnsafeBytes { Array($0) }
        }
    }
#endif
