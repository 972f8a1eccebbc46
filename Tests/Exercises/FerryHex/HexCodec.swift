public import Ferry

/// Bytes as hexadecimal digits, two for each, for people who read along: the first exercise of CONTRIBUTING.md.
public struct HexCodec: Codec {
    /// Makes the codec.
    public init() {}

    /// The digits, in lower case.
    public func encode(_ message: [UInt8]) -> [UInt8] {
        let digits = Array("0123456789abcdef".utf8)
        return message.flatMap { [digits[Int($0 >> 4)], digits[Int($0 & 0x0F)]] }
    }

    /// The bytes.
    ///
    /// - Throws: ``/Ferry/FerryError`` with `malformedStream` and the place of the first digit that is none, or when one is
    ///   missing.
    public func decode(_ payload: [UInt8]) throws(FerryError) -> [UInt8] {
        guard payload.count.isMultiple(of: 2) else {
            throw FerryError(
                .malformedStream,
                "The message has \(payload.count) digits, and each byte takes two. Use HexCodec on both sides.")
        }
        var message: [UInt8] = []
        message.reserveCapacity(payload.count / 2)
        for place in stride(from: 0, to: payload.count, by: 2) {
            message.append(try Self.value(payload, at: place) << 4 | Self.value(payload, at: place + 1))
        }
        return message
    }

    private static func value(_ payload: [UInt8], at place: Int) throws(FerryError) -> UInt8 {
        switch payload[place] {
        case UInt8(ascii: "0")...UInt8(ascii: "9"): return payload[place] - UInt8(ascii: "0")
        case UInt8(ascii: "a")...UInt8(ascii: "f"): return payload[place] - UInt8(ascii: "a") + 10
        default:
            throw FerryError(
                .malformedStream,
                "Byte \(place) of the message is \(payload[place]), no hexadecimal digit. Use HexCodec on both sides.")
        }
    }
}
