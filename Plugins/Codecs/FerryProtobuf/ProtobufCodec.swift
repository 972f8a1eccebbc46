#if Protobuf
    public import Ferry
    public import SwiftProtobuf

    #if canImport(FoundationEssentials)
        import FoundationEssentials
    #else
        import Foundation
    #endif

    /// Messages as Protocol Buffers, by swift-protobuf and the types that `protoc-gen-swift` makes of a `.proto` file.
    ///
    /// ```swift
    /// let codec = ProtobufCodec(Ferry_Tests_Reading.self)
    /// ```
    ///
    /// The same value always becomes the same bytes: maps are sorted. Reading keeps the fields that this side does not know,
    /// and writes them again.
    ///
    /// A message has neither a beginning nor an end in this format, and none of its fields need be there. So no bytes at all
    /// are a message, one that was cut behind a field is another message, and two after each other are one that has the
    /// fields of both. A framing delivers messages whole; without one, do not use this codec.
    ///
    /// What `encode` accepts, an equal codec decodes to an equal value. So these are refused when encoding: a message above
    /// `maximumSize` or `maximumDepth`, and one that lacks a field that proto2 requires.
    public struct ProtobufCodec<Message: SwiftProtobuf.Message>: Codec {
        /// 6.
        public var identifier: UInt8 { 6 }

        /// The most bytes that are read and written. In memory an empty message in a list takes dozens of bytes for its two,
        /// so this bounds memory where compression would not.
        public let maximumSize: Int

        /// The deepest nesting of messages that is read and written, the message itself among them. Deeper ones are refused,
        /// so that a peer cannot exhaust the stack.
        public let maximumDepth: Int

        /// Makes the codec.
        ///
        /// - Parameters:
        ///   - type: the generated message type; usually inferred.
        ///   - maximumSize: the most bytes that are read and written, at least 1. Default 1 MiB.
        ///   - maximumDepth: the deepest nesting that is read and written, held to 1...256.
        public init(_ type: Message.Type = Message.self, maximumSize: Int = 1 << 20, maximumDepth: Int = 64) {
            self.maximumSize = max(maximumSize, 1)
            self.maximumDepth = min(max(maximumDepth, 1), 256)
        }

        /// The message in the wire format of Protocol Buffers, maps sorted by their keys.
        ///
        /// - Throws: `FerryError` with `encodingFailed`, which names the message type: above a limit, or without a required field.
        public func encode(_ message: Message) throws(FerryError) -> [UInt8] {
            // First, for writing is recursive too.
            var visitor = DepthVisitor(left: maximumDepth - 1)
            do { try message.traverse(visitor: &visitor) } catch {
                throw refusal("it nests deeper than \(maximumDepth) messages", cause: error)
            }
            let payload: [UInt8]
            do {
                var options = BinaryEncodingOptions()
                options.useDeterministicOrdering = true
                payload = try message.serializedBytes(options: options)
            } catch BinaryEncodingError.missingRequiredFields {
                throw refusal("a required field is not set", cause: BinaryEncodingError.missingRequiredFields)
            } catch {
                throw refusal("\(error)", cause: error)
            }
            guard payload.count <= maximumSize else {
                throw refusal("it has \(payload.count) bytes, and at most \(maximumSize) are written", cause: nil)
            }
            return payload
        }

        private func refusal(_ why: String, cause: (any Error)?) -> FerryError {
            FerryError(.encodingFailed, "This \(Message.protoMessageName) cannot be sent: \(why).", cause: cause)
        }

        /// The message in `payload`.
        ///
        /// - Throws: `FerryError` with `decodingFailed`, which names the message type: above a limit, malformed, with text that is not
        ///   UTF-8, or without a required field; with swift-protobuf's error as its cause.
        public func decode(_ payload: [UInt8]) throws(FerryError) -> Message {
            guard payload.count <= maximumSize else {
                throw failure("it has \(payload.count) bytes, and at most \(maximumSize) are read", cause: nil)
            }
            var options = BinaryDecodingOptions()
            options.messageDepthLimit = maximumDepth
            do { return try Message(serializedBytes: payload, options: options) } catch {
                throw failure(reason(error), cause: error)
            }
        }

        private func failure(_ why: String, cause: (any Error)?) -> FerryError {
            FerryError(
                .decodingFailed,
                "The received message is not a \(Message.protoMessageName): \(why). Both sides must use the same codec and .proto file.",
                cause: cause)
        }

        private func reason(_ error: any Error) -> String {
            switch error as? BinaryDecodingError {
            case .truncated: "a field is cut short"
            case .invalidUTF8: "a field of text is not UTF-8"
            case .missingRequiredFields: "a required field is missing"
            case .messageDepthLimit: "it nests deeper than \(maximumDepth) messages"
            case .malformedProtobuf, .trailingGarbage, .internalExtensionError: "its bytes are not Protocol Buffers"
            case nil: "\(error)"
            @unknown default: "\(error)"
            }
        }
    }

    /// Follows a message inwards, and fails where it nests too deep.
    private struct DepthVisitor: Visitor {
        private struct TooDeep: Error {}

        /// How many messages may be in this one, one in another.
        let left: Int

        private func enter(_ message: any SwiftProtobuf.Message) throws {
            guard left > 0 else { throw TooDeep() }
            var inner = DepthVisitor(left: left - 1)
            try message.traverse(visitor: &inner)
        }

        mutating func visitSingularMessageField<M: SwiftProtobuf.Message>(value: M, fieldNumber: Int) throws {
            try enter(value)
        }

        mutating func visitSingularGroupField<G: SwiftProtobuf.Message>(value: G, fieldNumber: Int) throws {
            try enter(value)
        }

        mutating func visitMapField<KeyType, ValueType: MapValueType>(
            fieldType: _ProtobufMap<KeyType, ValueType>.Type,
            value: _ProtobufMap<KeyType, ValueType>.BaseType, fieldNumber: Int
        ) throws {}

        mutating func visitMapField<KeyType, ValueType>(
            fieldType: _ProtobufEnumMap<KeyType, ValueType>.Type,
            value: _ProtobufEnumMap<KeyType, ValueType>.BaseType, fieldNumber: Int
        ) throws where ValueType.RawValue == Int {}

        mutating func visitMapField<KeyType, ValueType>(
            fieldType: _ProtobufMessageMap<KeyType, ValueType>.Type,
            value: _ProtobufMessageMap<KeyType, ValueType>.BaseType, fieldNumber: Int
        ) throws {
            for message in value.values { try enter(message) }
        }

        // Nothing nests in these, and what they fall back to in the library is one of them.
        mutating func visitUnknown(bytes: Data) throws {}
        mutating func visitSingularDoubleField(value: Double, fieldNumber: Int) throws {}
        mutating func visitSingularInt64Field(value: Int64, fieldNumber: Int) throws {}
        mutating func visitSingularUInt64Field(value: UInt64, fieldNumber: Int) throws {}
        mutating func visitSingularBoolField(value: Bool, fieldNumber: Int) throws {}
        mutating func visitSingularStringField(value: String, fieldNumber: Int) throws {}
        mutating func visitSingularBytesField(value: Data, fieldNumber: Int) throws {}
        mutating func visitSingularEnumField<E: Enum>(value: E, fieldNumber: Int) throws {}
    }
#endif
