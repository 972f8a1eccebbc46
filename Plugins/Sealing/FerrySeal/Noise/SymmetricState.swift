#if Seal
    import Crypto
    import Ferry
    import Foundation

    /// Noise's SymmetricState (revision 34, 5.2), with SHA-256.
    struct SymmetricState: Sendable {
        private var cipher = CipherState()
        private var chainingKey: SymmetricKey
        private(set) var hash: [UInt8]

        /// - Parameter name: the protocol's name; of more than 32 bytes its hash takes its place.
        init(name: String) {
            let bytes = [UInt8](name.utf8)
            hash =
                bytes.count <= SHA256.byteCount
                ? bytes + [UInt8](repeating: 0, count: SHA256.byteCount - bytes.count) : Array(SHA256.hash(data: bytes))
            chainingKey = SymmetricKey(data: hash)
        }

        var hasKey: Bool { cipher.hasKey }

        mutating func mixHash(_ bytes: some Sequence<UInt8>) {
            hash = Array(SHA256.hash(data: hash + bytes))
        }

        mutating func mixKey(_ material: SymmetricKey) {
            let derived = derive(material, count: 2)
            chainingKey = derived[0]
            cipher = CipherState(derived[1])
        }

        /// For a pre-shared key (revision 34, 9.2).
        mutating func mixKeyAndHash(_ material: SymmetricKey) {
            let derived = derive(material, count: 3)
            chainingKey = derived[0]
            derived[1].withUnsafeBytes { mixHash($0) }
            cipher = CipherState(derived[2])
        }

        mutating func encryptAndHash(_ plain: [UInt8]) throws(FerryError) -> [UInt8] {
            let sealed = try cipher.encrypt(plain, data: hash)
            mixHash(sealed)
            return sealed
        }

        mutating func decryptAndHash(_ sealed: ArraySlice<UInt8>) throws(FerryError) -> [UInt8] {
            let plain = try cipher.decrypt(sealed, data: hash)
            mixHash(sealed)
            return plain
        }

        /// The keys of the two directions, the initiator's first.
        func split() -> (CipherState, CipherState) {
            let keys = derive(SymmetricKey(data: [UInt8]()), count: 2)
            return (CipherState(keys[0]), CipherState(keys[1]))
        }

        /// Noise's HKDF, which is RFC 5869 with the chaining key as salt and no info.
        private func derive(_ material: SymmetricKey, count: Int) -> [SymmetricKey] {
            let derived = chainingKey.withUnsafeBytes { salt in
                HKDF<SHA256>.deriveKey(
                    inputKeyMaterial: material, salt: salt, outputByteCount: count * SHA256.byteCount)
            }
            return derived.withUnsafeBytes { bytes in
                (0..<count).map { index in
                    let start = index * SHA256.byteCount
                    return SymmetricKey(
                        data: UnsafeRawBufferPointer(rebasing: bytes[start..<start + SHA256.byteCount]))
                }
            }
        }
    }
#endif
