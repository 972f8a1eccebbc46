/// Heads of data items and floating-point numbers, each as short as can be (RFC 8949, 4.2.1 and 4.2.2).
enum CBORNumber {
    /// Appends an initial byte and its argument.
    ///
    /// - Parameters:
    ///   - major: the major type, 0...7.
    ///   - argument: a count, a length, a tag's number or an integer.
    static func append(_ major: UInt8, _ argument: UInt64, to bytes: inout [UInt8]) {
        let type = major << 5
        switch argument {
        case 0..<24: bytes.append(type | UInt8(argument))
        case 24...0xFF:
            bytes.append(type | 24)
            bytes.append(UInt8(argument))
        case 0x100...0xFFFF: append(type | 25, argument, width: 2, to: &bytes)
        case 0x1_0000...0xFFFF_FFFF: append(type | 26, argument, width: 4, to: &bytes)
        default: append(type | 27, argument, width: 8, to: &bytes)
        }
    }

    private static func append(_ initial: UInt8, _ number: UInt64, width: Int, to bytes: inout [UInt8]) {
        bytes.append(initial)
        for octet in (0..<width).reversed() { bytes.append(UInt8(truncatingIfNeeded: number >> (8 * UInt64(octet)))) }
    }

    static func append(_ integer: Int64, to bytes: inout [UInt8]) {
        // -1 - n has the bits of n, all of them inverted.
        if integer < 0 {
            append(1, UInt64(bitPattern: ~integer), to: &bytes)
        } else {
            append(0, UInt64(integer), to: &bytes)
        }
    }

    static func append(_ text: String, to bytes: inout [UInt8]) {
        append(3, UInt64(text.utf8.count), to: &bytes)
        bytes += text.utf8
    }

    /// Appends a floating-point number in the fewest bytes that keep its value. All that are not a number become one.
    static func append(_ number: Double, to bytes: inout [UInt8]) {
        guard !number.isNaN else { return append(0xF9, 0x7E00, width: 2, to: &bytes) }
        let single = Float(number)
        guard Double(single) == number else { return append(0xFB, number.bitPattern, width: 8, to: &bytes) }
        if let half = half(single) { return append(0xF9, UInt64(half), width: 2, to: &bytes) }
        append(0xFA, UInt64(single.bitPattern), width: 4, to: &bytes)
    }

    /// The bits of the number of IEEE 754's binary16 that has the value; nil if none has. The standard library's
    /// `Float16` is not there on every platform.
    private static func half(_ number: Float) -> UInt16? {
        let bits = number.bitPattern
        let sign = UInt16(truncatingIfNeeded: bits >> 16 & 0x8000)
        let exponent = Int(bits >> 23 & 0xFF) - 127
        let fraction = bits & 0x7F_FFFF
        switch exponent {
        case -127: return fraction == 0 ? sign : nil
        case 128: return sign | 0x7C00
        case -14...15:
            guard fraction & 0x1FFF == 0 else { return nil }
            return sign | UInt16(exponent + 15) << 10 | UInt16(fraction >> 13)
        case -24 ..< -14:
            // A subnormal number: the leading 1 is written, further to the right.
            let shift = UInt32(-1 - exponent)
            let whole = fraction | 0x80_0000
            guard whole & ((1 << shift) - 1) == 0 else { return nil }
            return sign | UInt16(whole >> shift)
        default: return nil
        }
    }

    /// The value of a number of IEEE 754's binary16.
    static func double(half bits: UInt16) -> Double {
        let exponent = Int(bits >> 10 & 0x1F)
        let fraction = Double(bits & 0x3FF)
        let magnitude: Double =
            switch exponent {
            case 0: fraction * 0x1p-24
            case 31: fraction == 0 ? .infinity : .nan
            default: (fraction + 1024) * Double(sign: .plus, exponent: exponent - 25, significand: 1)
            }
        return bits & 0x8000 == 0 ? magnitude : -magnitude
    }
}
