#if Seal
    import Crypto
    import Ferry
    import Foundation

    /// Secret or public bytes as text with a checksum: a prefix, then base 32 of the bytes and of a checksum that fills up the last
    /// digits.
    ///
    /// The checksum is the first bits of SHA-256 over the prefix, a zero byte and the bytes: a slip of the hand in typing is found.
    struct CheckedText {
        let prefix: String
        let byteCount: Int
        let checksumBits: Int
        /// What it is, in words, for errors.
        let what: String

        /// A public key: `ferry1` and 54 digits, 14 bits of checksum.
        static let publicKey = CheckedText(prefix: "ferry1", byteCount: 32, checksumBits: 14, what: "a public key")
        /// A secret key: `ferry-secret-1` and 54 digits, in capitals, 14 bits of checksum.
        static let secretKey = CheckedText(
            prefix: "ferry-secret-1", byteCount: 32, checksumBits: 14, what: "a secret key")
        /// An invitation: 30 digits, 22 bits of checksum.
        static let invitation = CheckedText(prefix: "", byteCount: 16, checksumBits: 22, what: "an invitation")

        private var digitCount: Int { (byteCount * 8 + checksumBits) / 5 }

        private func checksum(_ bytes: [UInt8]) -> [UInt8] {
            Array(SHA256.hash(data: [UInt8]("Ferry \(what) 1".utf8) + [0] + bytes))
        }

        func encode(_ bytes: [UInt8]) -> String {
            prefix + Base32.encode(bytes + checksum(bytes), bitCount: byteCount * 8 + checksumBits)
        }

        /// - Throws: `seal.malformedKey` with the problem, without the text itself.
        func decode(_ text: some StringProtocol) throws(FerryError) -> [UInt8] {
            // ASCII only, so that nothing changes its length in lower case.
            guard text.utf8.allSatisfy({ $0 < 0x80 }) else { throw failure("holds a character that is not ASCII") }
            let lower = text.lowercased()
            guard lower.hasPrefix(prefix) else { throw failure("does not begin with \(prefix)") }
            let digits = lower.dropFirst(prefix.count)
            guard digits.utf8.count == digitCount else {
                throw failure("has \(digits.utf8.count) characters after its beginning; \(digitCount) are needed")
            }
            guard let decoded = Base32.decode(digits) else {
                throw failure("holds a character that is no digit of base 32")
            }
            let bytes = Array(decoded.prefix(byteCount))
            // The rest of the digits must be what encoding writes: the comparison takes the checksum and the filling in.
            guard let again = Base32.decode(encode(bytes).dropFirst(prefix.count)), equalInConstantTime(again, decoded)
            else {
                throw failure("has a wrong checksum: a character is mistyped")
            }
            return bytes
        }

        private func failure(_ why: String) -> FerryError {
            FerryError(.sealMalformedKey, "The text is not \(what): it \(why). Copy it again, whole.")
        }
    }
#endif
