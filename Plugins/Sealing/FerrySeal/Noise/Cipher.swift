#if Seal
    import Crypto
    package import Ferry
    import Foundation

    /// ChaCha20-Poly1305 with Noise's nonces, from arrays to arrays.
    enum Cipher {
        /// The bytes that authentication adds.
        static let tagCount = 16

        /// Noise's nonce for ChaChaPoly: 32 bits of zeros and the number, little-endian (revision 34, 12.3).
        private static func nonce(_ number: UInt64) -> ChaChaPoly.Nonce {
            var bytes: (UInt32, UInt64) = (0, 0)
            return withUnsafeTemporaryAllocation(byteCount: 12, alignment: 8) { buffer in
                bytes.1 = number.littleEndian
                buffer.storeBytes(of: bytes.0, as: UInt32.self)
                withUnsafeBytes(of: bytes.1) { buffer[4...].copyBytes(from: $0) }
                // Throws for wrong lengths only.
                guard let nonce = try? ChaChaPoly.Nonce(data: UnsafeRawBufferPointer(buffer)) else {
                    preconditionFailure("A nonce of 12 bytes is one.")
                }
                return nonce
            }
        }

        /// Appends `plain`, sealed, to `output`: as many bytes and the tag.
        ///
        /// - Throws: what the library throws for keys of a wrong length, which none here has.
        static func seal(
            _ plain: some DataProtocol, _ key: SymmetricKey, number: UInt64, data: [UInt8] = [],
            into output: inout [UInt8]
        ) throws(FerryError) {
            do {
                let box =
                    data.isEmpty
                    ? try ChaChaPoly.seal(plain, using: key, nonce: nonce(number))
                    : try ChaChaPoly.seal(plain, using: key, nonce: nonce(number), authenticating: data)
                box.combined.withUnsafeBytes { output.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[12...])) }
            } catch {
                throw FerryError(.sealExhausted, "The library cannot seal \(plain.count) bytes.", cause: error)
            }
        }

        /// The plain bytes of `sealed`; nil when it does not authenticate. `sealed` has at least ``tagCount`` bytes.
        static func open(
            _ sealed: ArraySlice<UInt8>, _ key: SymmetricKey, number: UInt64, data: [UInt8] = []
        ) -> [UInt8]? {
            guard sealed.count >= tagCount else { return nil }
            do {
                // The library's form, with the nonce in front: put together here, as its own way to do so takes several times as long.
                var combined = Data(capacity: 12 + sealed.count)
                withUnsafeBytes(of: (UInt32(0))) { combined.append(contentsOf: $0) }
                withUnsafeBytes(of: number.littleEndian) { combined.append(contentsOf: $0) }
                sealed.withUnsafeBytes { combined.append(contentsOf: $0) }
                let box = try ChaChaPoly.SealedBox(combined: combined)
                let plain =
                    data.isEmpty
                    ? try ChaChaPoly.open(box, using: key)
                    : try ChaChaPoly.open(box, using: key, authenticating: data)
                return [UInt8](unsafeUninitializedCapacity: plain.count) { buffer, count in
                    count = plain.copyBytes(to: UnsafeMutableRawBufferPointer(buffer))
                }
            } catch {
                return nil
            }
        }

        /// Noise's REKEY: the first 32 bytes of zeros sealed with the last nonce (revision 34, 4.2).
        static func rekeyed(_ key: SymmetricKey) throws(FerryError) -> SymmetricKey {
            var sealed: [UInt8] = []
            sealed.reserveCapacity(32 + tagCount)
            try seal([UInt8](repeating: 0, count: 32), key, number: .max, into: &sealed)
            defer { wipe(&sealed) }
            return sealed.withUnsafeBytes { SymmetricKey(data: UnsafeRawBufferPointer(rebasing: $0[..<32])) }
        }
    }

    /// Overwrites bytes in place, as far as the language lets one: copies that were made before stay.
    func wipe(_ bytes: inout [UInt8]) {
        bytes.withUnsafeMutableBytes { buffer in
            for index in buffer.indices { buffer[index] = 0 }
        }
        // Read afterwards, so that the stores are not dropped as dead.
        withExtendedLifetime(bytes) {}
    }

    /// Whether two arrays are equal, in a time that depends on their lengths only.
    package func equalInConstantTime(_ a: [UInt8], _ b: [UInt8]) -> Bool {
        guard a.count == b.count else { return false }
        var difference: UInt8 = 0
        for index in a.indices { difference |= a[index] ^ b[index] }
        return difference == 0
    }

    /// Noise's CipherState (revision 34, 5.1).
    package struct CipherState: Sendable {
        /// The key; nil before there is one.
        private(set) var key: SymmetricKey?
        /// The number of the next message.
        package private(set) var number: UInt64 = 0

        init(_ key: SymmetricKey? = nil) { self.key = key }

        var hasKey: Bool { key != nil }

        /// Seals with the next number; without a key the bytes as they are.
        package mutating func encrypt(_ plain: [UInt8], data: [UInt8] = []) throws(FerryError) -> [UInt8] {
            guard let key else { return plain }
            guard number < .max else { throw Self.exhausted }
            var output: [UInt8] = []
            output.reserveCapacity(plain.count + Cipher.tagCount)
            try Cipher.seal(plain, key, number: number, data: data, into: &output)
            number += 1
            return output
        }

        /// Opens with the next number; without a key the bytes as they are. After a failure nothing has changed.
        package mutating func decrypt(_ sealed: ArraySlice<UInt8>, data: [UInt8] = []) throws(FerryError) -> [UInt8] {
            guard let key else { return Array(sealed) }
            guard number < .max else { throw Self.exhausted }
            guard sealed.count >= Cipher.tagCount else {
                throw FerryError(
                    .sealTruncated, "A sealed part has \(sealed.count) bytes; at least \(Cipher.tagCount) are needed.")
            }
            guard let plain = Cipher.open(sealed, key, number: number, data: data) else {
                throw FerryError(
                    .sealRefused,
                    "A sealed part of \(sealed.count) bytes does not authenticate: it was altered, or the other side has another key."
                )
            }
            number += 1
            return plain
        }

        /// Replaces the key by one that does not lead back to it.
        package mutating func rekey() throws(FerryError) {
            key = try key.map { key throws(FerryError) in try Cipher.rekeyed(key) }
        }

        private static var exhausted: FerryError {
            FerryError(.sealExhausted, "2^64 - 1 messages have been sealed with one key. Open a new channel.")
        }
    }
#endif
