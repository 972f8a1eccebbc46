#if Seal
    /// Crockford's base 32, in lower case: no letter that is taken for a digit. Reading takes either case, `o` for 0, `i` and `l` for 1.
    enum Base32 {
        private static let digits = [UInt8]("0123456789abcdefghjkmnpqrstvwxyz".utf8)

        /// The text of `bitCount` bits, the first bit of `bytes` first; the last digit is filled up with zeros.
        static func encode(_ bytes: [UInt8], bitCount: Int) -> String {
            let count = (bitCount + 4) / 5
            let text = (0..<count).map { digit in
                let value = (0..<5).reduce(0) { value, bit in
                    let at = digit * 5 + bit
                    let isSet = at < bitCount && bytes[at / 8] & (0x80 >> UInt8(at % 8)) != 0
                    return value << 1 | (isSet ? 1 : 0)
                }
                return digits[value]
            }
            return String(decoding: text, as: UTF8.self)
        }

        /// The bits of a text, in whole bytes, filled up with zeros; nil where a character is no digit.
        static func decode(_ text: some StringProtocol) -> [UInt8]? {
            var bytes = [UInt8](repeating: 0, count: (text.utf8.count * 5 + 7) / 8)
            for (index, character) in text.utf8.enumerated() {
                guard let value = value(character) else { return nil }
                for bit in 0..<5 where value & (0x10 >> UInt8(bit)) != 0 {
                    let at = index * 5 + bit
                    bytes[at / 8] |= 0x80 >> UInt8(at % 8)
                }
            }
            return bytes
        }

        private static func value(_ character: UInt8) -> UInt8? {
            let lower = (UInt8(ascii: "A")...UInt8(ascii: "Z")).contains(character) ? character | 0x20 : character
            switch lower {
            case UInt8(ascii: "o"): return 0
            case UInt8(ascii: "i"), UInt8(ascii: "l"): return 1
            default: return digits.firstIndex(of: lower).map { UInt8($0) }
            }
        }
    }
#endif
