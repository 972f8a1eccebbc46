/// Turns values into bytes and back.
///
/// A codec is stateless towards its peer: each message stands alone. The channel wraps a thrown error in a
/// ``FerryError`` with `encodingFailed` or `decodingFailed` and the thrown error as its cause; a message that cannot be
/// decoded does not end the channel.
public protocol Codec<Message>: Sendable {
    /// The app's value.
    associatedtype Message: Sendable

    /// A number for the format, which the sequenced framing states to the peer: one with another number is refused before a
    /// message is misread. 0 when it is not told; 1 to 63 are Ferry's own, the others are free. Default 0.
    var identifier: UInt8 { get }

    /// Whether encoding and decoding cost no more than a copy. Then a channel does them where it is called; all else is
    /// kept off the caller's actor. Default false.
    var isTrivial: Bool { get }

    /// The payload for `message`.
    func encode(_ message: Message) throws -> [UInt8]

    /// The value in `payload`, which is all of one message.
    func decode(_ payload: [UInt8]) throws -> Message
}

extension Codec {
    /// 0: not told.
    public var identifier: UInt8 { 0 }
    /// False.
    public var isTrivial: Bool { false }
}

/// Messages that are bytes already. Neither direction copies.
public struct BytesCodec: Codec {
    /// Makes the codec.
    public init() {}

    /// 1.
    public var identifier: UInt8 { 1 }

    /// True.
    public var isTrivial: Bool { true }

    /// Returns the same bytes.
    public func encode(_ message: [UInt8]) -> [UInt8] { message }

    /// Returns the same bytes.
    public func decode(_ payload: [UInt8]) -> [UInt8] { payload }
}

/// Messages that are text, as UTF-8. Bytes that are not valid UTF-8 are refused, never repaired.
public struct TextCodec: Codec {
    /// Makes the codec.
    public init() {}

    /// 2.
    public var identifier: UInt8 { 2 }

    /// True.
    public var isTrivial: Bool { true }

    /// The text's UTF-8.
    public func encode(_ message: String) -> [UInt8] { Array(message.utf8) }

    /// The text.
    ///
    /// - Throws: ``FerryError`` with `notText` and the place of the first wrong byte.
    public func decode(_ payload: [UInt8]) throws(FerryError) -> String {
        if let text = String(validating: payload, as: UTF8.self) { return text }
        let offset = UTF8Text.firstInvalidOffset(in: payload) ?? payload.count
        throw FerryError(
            .notText,
            "The message is not UTF-8 at byte \(offset) of \(payload.count). "
                + "Use BytesCodec on both sides for binary messages.")
    }
}
