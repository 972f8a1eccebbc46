/// What went wrong, where, and what to do about it.
///
/// `code` is for programs, `message` for people: it names the value that was met, the place it was met in and the
/// setting or action that helps. `cause` is the error of the layer below, when there is one.
public struct FerryError: Error, Sendable {
    /// The kind of failure. A struct rather than an enum, so that kinds can be added without breaking a caller.
    public let code: Code

    #if FERRY_WITHOUT_TEXTS
        // For firmware and WebAssembly (`scripts/firmware`): texts are not even compiled, and an error is a few plain words of
        // memory.
        /// Nothing: this build is without texts.
        public var message: String { "" }
        /// Nothing: this build is without causes.
        public var cause: (any Error)? { nil }
        /// The fate of the message whose `send` has failed; nil for errors that are not about one message.
        public let fate: MessageFate?

        /// Makes an error without its text.
        public init(_ code: Code, _ message: @autoclosure () -> ErrorText, fate: MessageFate? = nil) {
            self.code = code
            self.fate = fate
        }
    #else
        /// The defect, its place and the remedy.
        public let message: String

        /// The error of the layer below (a codec's, a transport's), when there is one.
        public let cause: (any Error)?

        /// The fate of the message whose `send` has failed; nil for errors that are not about one message.
        public let fate: MessageFate?

        /// Makes an error; plugins use the same codes as the core, and codes of their own.
        public init(_ code: Code, _ message: String, cause: (any Error)? = nil, fate: MessageFate? = nil) {
            self.code = code
            self.message = message
            self.cause = cause
            self.fate = fate
        }
    #endif

    /// The same error, about a message of which so much is known.
    func telling(_ fate: MessageFate) -> FerryError {
        #if FERRY_WITHOUT_TEXTS
            FerryError(code, "", fate: fate)
        #else
            FerryError(code, message, cause: cause, fate: fate)
        #endif
    }
}

#if FERRY_WITHOUT_TEXTS
    /// A part of an error's text, in builds without them: nothing.
    public struct ErrorText: ExpressibleByStringInterpolation {
        /// Takes each interpolated value and keeps nothing.
        public struct StringInterpolation: StringInterpolationProtocol {
            /// Reserves nothing.
            @inlinable public init(literalCapacity: Int, interpolationCount: Int) {}
            /// Drops a literal.
            @inlinable public mutating func appendLiteral(_ literal: StaticString) {}
            /// Drops a value, which is not even computed.
            @inlinable public mutating func appendInterpolation<Value>(_ value: @autoclosure () -> Value) {}
        }

        /// Drops a literal.
        @inlinable public init(stringLiteral value: StaticString) {}
        /// Drops a text.
        @inlinable public init(stringInterpolation: StringInterpolation) {}
        /// Joins two texts that are nothing.
        @inlinable public static func + (a: ErrorText, b: ErrorText) -> ErrorText { a }
    }
#else
    /// A part of an error's text, where builds without texts (`scripts/firmware`) leave it out.
    package typealias ErrorText = String
#endif

/// The fate of a message whose `send` has failed: whether sending it again can duplicate it.
public enum MessageFate: String, Sendable, Hashable {
    /// None of it has left this side. Send it again.
    case nothingSent
    /// The peer does not get it, though a part of it may have left: the rest never follows. Send it again.
    case takenBack
    /// The peer may have it, or get it yet. Send it again only if receiving it twice does no harm.
    case mayHaveArrived
}

extension FerryError {
    /// The kinds of failure, grouped by the layer that reports them.
    public struct Code: Sendable, Hashable, CustomStringConvertible {
        #if FERRY_WITHOUT_TEXTS
            private let name: StaticString
            /// The code's name.
            public var description: String { name.description }

            /// A kind. Equal names are equal kinds.
            public init(_ name: StaticString) { self.name = name }

            /// Whether the names are the same, byte by byte.
            public static func == (a: Code, b: Code) -> Bool {
                guard a.name.utf8CodeUnitCount == b.name.utf8CodeUnitCount else { return false }
                for offset in 0..<a.name.utf8CodeUnitCount
                where a.name.utf8Start[offset] != b.name.utf8Start[offset] { return false }
                return true
            }

            /// Hashes the name's length, which is enough for the few that there are.
            public func hash(into hasher: inout Hasher) { hasher.combine(name.utf8CodeUnitCount) }
        #else
            /// The code's name, as printed in errors.
            public let description: String

            /// A kind of a plugin's own. Equal names are equal kinds, so take one that says whose it is: `socket.refused`.
            public init(_ name: String) { description = name }
        #endif

        // MARK: Limits

        /// A message is larger than ``Limits/maximumMessageSize``.
        public static let messageTooLarge = Code("messageTooLarge")
        /// More is waiting to be sent or read than ``Limits/maximumOutboundBytes`` or ``Limits/maximumInboundBytes``.
        public static let queueFull = Code("queueFull")
        /// A compressed message states a plain length above ``Limits/maximumDecompressedSize``.
        public static let decompressedTooLarge = Code("decompressedTooLarge")
        /// A compressed message grows by more than ``Limits/maximumCompressionRatio``.
        public static let compressionRatioExceeded = Code("compressionRatioExceeded")

        // MARK: Codec and compression

        /// The codec could not turn the value into bytes; `cause` says why.
        public static let encodingFailed = Code("encodingFailed")
        /// The codec could not turn the received bytes into a value; `cause` says why.
        public static let decodingFailed = Code("decodingFailed")
        /// A compressed payload is damaged, cut short, or not in the envelope this channel expects.
        public static let corruptCompression = Code("corruptCompression")

        // MARK: Framing

        /// The framing carries text only and was given bytes that are not UTF-8.
        public static let notText = Code("notText")
        /// The link's chunks are too small for this framing.
        public static let chunkSizeTooSmall = Code("chunkSizeTooSmall")
        /// The received chunks cannot be a stream of this framing: the two sides are out of step.
        public static let malformedStream = Code("malformedStream")
        /// The two sides' framings cannot work together: another version, codec or compression.
        public static let incompatiblePeer = Code("incompatiblePeer")
        /// The peer no longer knows this session, so the fate of a message cannot be learned any more.
        public static let peerLostState = Code("peerLostState")
        /// The link went away, or fell silent, in the middle of a message.
        public static let truncatedMessage = Code("truncatedMessage")

        // MARK: Link and channel

        /// A chunk is larger than the link's ``Link/maximumChunkSize``.
        public static let chunkTooLarge = Code("chunkTooLarge")
        /// A link was asked to carry an empty chunk.
        public static let emptyChunk = Code("emptyChunk")
        /// The peer, or the radio, ended the link.
        public static let disconnected = Code("disconnected")
        /// This side closed the link or channel.
        public static let closed = Code("closed")
        /// A deadline passed.
        public static let timedOut = Code("timedOut")
        /// The calling task was cancelled. For a message to be sent, ``FerryError/fate`` gives its fate.
        public static let cancelled = Code("cancelled")
        /// The peer cancelled a message that had arrived in part.
        public static let cancelledByPeer = Code("cancelledByPeer")
        /// The other side of a ``RequestChannel`` could not answer.
        public static let requestFailed = Code("requestFailed")
        /// The peer broke the rules too often or too grossly.
        public static let misbehavingPeer = Code("misbehavingPeer")
        /// The listener has no place for the peer at present; `message` says why. Trying again later helps.
        public static let noPlace = Code("noPlace")

        // MARK: Transport and configuration

        /// The transport cannot be used as it stands; `message` names the missing part.
        public static let transportUnavailable = Code("transportUnavailable")
        /// No peer matched the request.
        public static let peerNotFound = Code("peerNotFound")
        /// An argument is outside its legal range.
        public static let invalidConfiguration = Code("invalidConfiguration")
    }
}

extension FerryError: CustomStringConvertible {
    /// The message, the code, and the cause when there is one.
    public var description: String {
        let text = "\(message) [\(code.description)]"
        // Embedded Swift cannot print a value of unknown type, and nothing below a framing reports a cause there.
        #if !hasFeature(Embedded)
            if let cause { return "\(text) (cause: \(cause))" }
        #endif
        return text
    }
}
