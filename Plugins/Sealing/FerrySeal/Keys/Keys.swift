#if Seal
    import Crypto
    public import Ferry
    import Foundation

    /// A secret X25519 key: this side's identity, or one handshake's ephemeral key.
    ///
    /// Its description and its mirror show the public key's fingerprint. The bytes are wiped with the last copy, by swift-crypto.
    public struct SecretKey: Sendable {
        private let key: Curve25519.KeyAgreement.PrivateKey
        /// The public half.
        public let publicKey: PublicKey

        /// A new key, from the system's generator.
        public init() { self.init(Curve25519.KeyAgreement.PrivateKey()) }

        private init(_ key: Curve25519.KeyAgreement.PrivateKey) {
            self.key = key
            publicKey = PublicKey(rawBytes: Array(key.publicKey.rawRepresentation))
        }

        /// A key of 32 bytes.
        ///
        /// - Throws: `seal.malformedKey` for another length.
        public init(bytes: [UInt8]) throws(FerryError) {
            do { self.init(try Curve25519.KeyAgreement.PrivateKey(rawRepresentation: bytes)) } catch {
                throw FerryError(.sealMalformedKey, "A secret key has \(bytes.count) bytes; 32 are needed.")
            }
        }

        /// Reads what ``secretText`` is.
        ///
        /// - Throws: `seal.malformedKey`, with nothing of the text in it.
        public init(secretText: some StringProtocol) throws(FerryError) {
            var bytes = try CheckedText.secretKey.decode(secretText)
            defer { wipe(&bytes) }
            try self.init(bytes: bytes)
        }

        /// The key itself as text, for its file: `FERRY-SECRET-1` and 54 digits. Never show it.
        public var secretText: String {
            var bytes = Array(key.rawRepresentation)
            defer { wipe(&bytes) }
            return CheckedText.secretKey.encode(bytes).uppercased()
        }

        /// The shared secret with a peer's key.
        ///
        /// - Throws: `seal.weakKey` when it is all zero (RFC 7748, 6.1).
        func agree(with peer: PublicKey) throws(FerryError) -> SymmetricKey {
            do {
                let theirs = try Curve25519.KeyAgreement.PublicKey(rawRepresentation: peer.bytes)
                let secret = try key.sharedSecretFromKeyAgreement(with: theirs)
                let shared = secret.withUnsafeBytes { SymmetricKey(data: $0) }
                if shared.withUnsafeBytes({ $0.reduce(0) { $0 | $1 } }) != 0 { return shared }
            } catch {
                // BoringSSL refuses an all-zero secret itself; other lengths than 32 cannot come here.
            }
            throw FerryError(
                .sealWeakKey,
                "The shared secret with the key \(peer.fingerprint) is all zero, as only a crafted key makes it. Do not trust that peer."
            )
        }

        /// The library's key, for HPKE.
        var library: Curve25519.KeyAgreement.PrivateKey { key }
    }

    extension SecretKey: Equatable {
        /// Compares the public halves, which are equal exactly when the keys do the same.
        public static func == (a: SecretKey, b: SecretKey) -> Bool { a.publicKey == b.publicKey }
    }

    extension SecretKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        /// The public key's fingerprint, and that it is a secret key's.
        public var description: String { "secret key of \(publicKey.fingerprint)" }
        /// As ``description``.
        public var debugDescription: String { description }
        /// Without children, so that `dump` shows nothing.
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// A public X25519 key: who a peer is.
    public struct PublicKey: Sendable, Hashable {
        /// The key's 32 bytes.
        public let bytes: [UInt8]

        /// A key of 32 bytes.
        ///
        /// - Throws: `seal.malformedKey` for another length.
        public init(bytes: [UInt8]) throws(FerryError) {
            guard bytes.count == 32 else {
                throw FerryError(.sealMalformedKey, "A public key has \(bytes.count) bytes; 32 are needed.")
            }
            self.bytes = bytes
        }

        /// Of 32 bytes that are counted already.
        init(rawBytes: [UInt8]) { bytes = rawBytes }

        /// Reads what ``description`` writes.
        ///
        /// - Throws: `seal.malformedKey` with the problem.
        public init(text: some StringProtocol) throws(FerryError) {
            self.init(rawBytes: try CheckedText.publicKey.decode(text))
        }

        /// The key's short name.
        public var fingerprint: Fingerprint { Fingerprint(of: self) }

        /// Compares in constant time: how long it takes does not tell how much of a key was guessed.
        public static func == (a: PublicKey, b: PublicKey) -> Bool { equalInConstantTime(a.bytes, b.bytes) }
    }

    extension PublicKey: CustomStringConvertible {
        /// `ferry1` and 54 digits of base 32 with a checksum, to be copied whole.
        public var description: String { CheckedText.publicKey.encode(bytes) }
    }

    /// The short name of a public key: 160 bits of its SHA-256, as 32 digits of base 32.
    ///
    /// It is a word of lower-case letters and digits, so it fits a subject, a file's name and a label.
    public struct Fingerprint: Sendable, Hashable {
        private let bits: [UInt8]

        /// The fingerprint of a key.
        public init(of key: PublicKey) {
            bits = Array(SHA256.hash(data: [UInt8]("Ferry fingerprint 1".utf8) + [0] + key.bytes).prefix(20))
        }

        /// Reads ``description`` or ``grouped``, in either case; nil for anything else.
        public init?(_ text: some StringProtocol) {
            let digits = String(text.filter { $0 != "-" })
            guard digits.utf8.count == 32, let bits = Base32.decode(digits) else { return nil }
            self.bits = bits
        }

        /// In eight groups of four, to be read aloud and compared.
        public var grouped: String {
            let digits = Array(description)
            return stride(from: 0, to: digits.count, by: 4).map { String(digits[$0..<$0 + 4]) }.joined(separator: "-")
        }
    }

    extension Fingerprint: CustomStringConvertible {
        /// 32 digits.
        public var description: String { Base32.encode(bits, bitCount: 160) }
    }

    /// A key of 32 bytes that both sides have from elsewhere, and that is mixed into a handshake.
    public struct PresharedKey: Sendable {
        let key: SymmetricKey

        init(_ key: SymmetricKey) { self.key = key }

        /// A key of 32 bytes with full entropy; a passphrase is none.
        ///
        /// - Throws: `seal.malformedKey` for another length.
        public init(bytes: [UInt8]) throws(FerryError) {
            guard bytes.count == 32 else {
                throw FerryError(.sealMalformedKey, "A pre-shared key has \(bytes.count) bytes; 32 are needed.")
            }
            key = SymmetricKey(data: bytes)
        }
    }

    extension PresharedKey: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        /// Nothing of the key.
        public var description: String { "pre-shared key" }
        /// Nothing of the key.
        public var debugDescription: String { description }
        /// Without children.
        public var customMirror: Mirror { Mirror(self, children: []) }
    }

    /// A one-time code that two people pass on by another way: 128 random bits as text.
    ///
    /// Both sides derive the same pre-shared key from it, so that a handshake succeeds between them only. It says nothing of either
    /// key. Delete it after its first use: a code that is used twice lets a second peer in.
    public struct Invitation: Sendable {
        /// 16 bytes, wiped with the last copy.
        private let secret: SymmetricKey

        /// A new one, from the system's generator.
        public init() {
            var generator = SystemRandomNumberGenerator()
            self.init(using: &generator)
        }

        /// A new one. Give it the system's generator; tests have others.
        public init(using generator: inout some RandomNumberGenerator) {
            var bytes = (0..<16).map { _ in UInt8.random(in: .min ... .max, using: &generator) }
            defer { wipe(&bytes) }
            secret = SymmetricKey(data: bytes)
        }

        /// Reads ``code``: in either case, with dashes and spaces anywhere.
        ///
        /// - Throws: `seal.malformedKey`, with nothing of the text in it.
        public init(code: some StringProtocol) throws(FerryError) {
            var bytes = try CheckedText.invitation.decode(String(code.filter { $0 != "-" && $0 != " " }))
            defer { wipe(&bytes) }
            secret = SymmetricKey(data: bytes)
        }

        /// The code as text: six groups of five digits. Show it to the person who is invited only.
        public var code: String {
            let digits = Array(CheckedText.invitation.encode(secret.withUnsafeBytes { Array($0) }))
            return stride(from: 0, to: digits.count, by: 5).map { String(digits[$0..<$0 + 5]) }.joined(separator: "-")
        }

        /// The key that both sides mix into their handshake: HKDF-SHA256 of the 128 bits.
        public var presharedKey: PresharedKey {
            PresharedKey(
                HKDF<SHA256>.deriveKey(
                    inputKeyMaterial: secret, info: [UInt8]("Ferry invitation 1".utf8),
                    outputByteCount: 32))
        }
    }

    extension Invitation: CustomStringConvertible, CustomDebugStringConvertible, CustomReflectable {
        /// Nothing of the code.
        public var description: String { "invitation" }
        /// Nothing of the code.
        public var debugDescription: String { description }
        /// Without children.
        public var customMirror: Mirror { Mirror(self, children: []) }
    }
#endif
