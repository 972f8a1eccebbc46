public import Ferry

/// How a ``CBORCodec`` writes dates. It reads all that either of them writes.
public enum CBORDateFormat: Sendable, Hashable {
    /// Seconds since 1970-01-01T00:00:00Z with tag 1 (RFC 8949, 3.4.2): an integer for whole seconds, or the
    /// floating-point number that says the fraction. A fraction that no `Double` since 1970 has, which half of all
    /// have, goes as a binary fraction of integers with tag 1001 (RFC 9581, 3): `1001({5: [exponent, mantissa]})`.
    /// Round to 1/1024 s or coarser where the other side knows tag 1 only.
    case secondsSince1970
    /// Text as in RFC 3339 with tag 0 (RFC 8949, 3.4.1), `2026-11-21T09:30:00Z`. Only whole seconds of the years 1 to
    /// 9999 can be encoded.
    case text
}

/// Messages as CBOR (RFC 8949): what JSON says, in fewer bytes and a fraction of the time.
///
/// A type's keys are text, or integers where its coding keys have them. Those save most:
///
/// ```swift
/// struct Reading: Codable {
///     var sensor: UInt16
///     var celsius: Float
///
///     enum CodingKeys: Int, CodingKey {
///         case sensor = 1
///         case celsius = 2
///     }
/// }
/// ```
///
/// The same value always becomes the same bytes: the deterministic encoding of RFC 8949, 4.2.1. Lengths are definite,
/// heads and floating-point numbers as short as can be, keys sorted by their bytes. Reading is lenient: lengths may be
/// indefinite and heads longer than they must be, keys in any order and tags unknown; a number that says the same may
/// be of the other kind, an integer key stands for the coding key with that integer and text for the one with that
/// name. A map must have each key once, and integers and text for keys.
///
/// `Data` and `[UInt8]` are byte strings, a `UUID` is one with tag 37, integers beyond 64 bits are bytes with tag 2 or
/// 3, and ``CBOREmbedded`` is a message in a message, with tag 24. All other types are written as they encode
/// themselves.
///
/// What `encode` accepts, an equal codec decodes to an equal value. So these are refused when encoding: a message above
/// `maximumDepth` or `maximumValues`; a key twice in a map; a date outside Foundation's calendars (4713 BCE to 506 713
/// CE), or one that its ``CBORDateFormat`` cannot say. All numbers that are no number become the same one, without its
/// payload.
public struct CBORCodec<Message: Codable & Sendable>: Codec {
    /// 5.
    public var identifier: UInt8 { 5 }

    /// How dates are written.
    public let dates: CBORDateFormat

    /// The deepest nesting of arrays, maps and tags that is read and written. Deeper messages are refused, so that a
    /// peer cannot exhaust the stack.
    public let maximumDepth: Int

    /// The most values that are read and written in one message: scalars, arrays and maps, however deep, without keys
    /// and tags. More are refused before anything is made of them, for in memory a value of one byte becomes dozens.
    public let maximumValues: Int

    /// Makes the codec.
    ///
    /// - Parameters:
    ///   - type: the app's message type; usually inferred.
    ///   - dates: how dates are written.
    ///   - maximumDepth: the deepest nesting that is read and written, held to 1...256.
    ///   - maximumValues: the most values that are read and written in one message, at least 1. Default 1 048 576.
    public init(
        _ type: Message.Type = Message.self, dates: CBORDateFormat = .secondsSince1970, maximumDepth: Int = 64,
        maximumValues: Int = 1 << 20
    ) {
        self.dates = dates
        self.maximumDepth = min(max(maximumDepth, 1), 256)
        self.maximumValues = max(maximumValues, 1)
    }

    /// The message as one data item.
    ///
    /// - Throws: `FerryError` with `encodingFailed`: the coding path, and why the value there cannot be written.
    public func encode(_ message: Message) throws(FerryError) -> [UInt8] {
        do {
            let writer = CBORWriter(dates: dates, maximumDepth: maximumDepth, maximumValues: maximumValues)
            return try writer.encode(message)
        } catch {
            throw .encodingFailed(error, format: "CBOR", type: Message.self)
        }
    }

    /// The message in `payload`.
    ///
    /// - Throws: `FerryError` with `decodingFailed`: for malformed CBOR, and for a key that occurs twice in a map, the byte; for
    ///   CBOR of another shape the coding path and the byte, with the coder's error as its cause.
    public func decode(_ payload: [UInt8]) throws(FerryError) -> Message {
        let parsed = try CBORReader.read(payload, maximumDepth: maximumDepth, maximumValues: maximumValues)
        do {
            return try CBORMessage(parsed, maximumDepth: maximumDepth, maximumValues: maximumValues).decode(
                Message.self)
        } catch let error as FerryError {
            throw error
        } catch {
            throw .decodingFailed(error, format: "CBOR", type: Message.self)
        }
    }
}

/// A value that travels as a separate message in a ``CBORCodec``'s message: a byte string with tag 24 (RFC 8949,
/// 3.4.5.1), as signed or forwarded parts do.
///
/// Reading takes a byte string without the tag too. The value counts to the message's depth, and is written and read
/// with its limits. No other codec carries it.
public struct CBOREmbedded<Value: Codable>: Codable {
    /// The value in it.
    public var value: Value

    /// Wraps `value`.
    public init(_ value: Value) { self.value = value }

    /// Reads the message in the byte string.
    ///
    /// - Throws: `DecodingError`, or `FerryError` where the message in it is malformed.
    public init(from decoder: any Decoder) throws {
        guard let item = decoder as? CBORValue else {
            throw DecodingError.typeMismatch(
                Self.self, .init(codingPath: decoder.codingPath, debugDescription: "Only a CBORCodec reads this type"))
        }
        value = try item.embedded().decode(Value.self)
    }

    /// Writes the value into a byte string.
    ///
    /// - Throws: `EncodingError`.
    public func encode(to encoder: any Encoder) throws {
        guard let slot = encoder as? CBORSlot else {
            throw EncodingError.invalidValue(
                self, .init(codingPath: encoder.codingPath, debugDescription: "Only a CBORCodec writes this type"))
        }
        try slot.embed(value)
    }
}

extension CBOREmbedded: Sendable where Value: Sendable {}
extension CBOREmbedded: Equatable where Value: Equatable {}
extension CBOREmbedded: Hashable where Value: Hashable {}
