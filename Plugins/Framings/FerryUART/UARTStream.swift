public import Ferry

/// A stream of bytes without messages, as a serial line is: sent bytes are cut into chunks, and each chunk that arrives is handed on
/// as it is.
///
/// Nothing is added, and nothing can be noticed. Text may be cut within a character, wherever the link has cut it.
public struct UARTStream: Framing {
    /// Makes the framing.
    public init() {}

    /// The name people type: `raw`.
    public var name: String { "raw" }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(limits) }

    /// The state of the stream on one link.
    public struct Session: FramingSession {
        private let maximumMessageSize: Int
        private var outbound = OutboundQueue()
        @usableFromInline var events = FramingEventQueue()
        private var arrivedChunks = 0

        init(_ limits: Limits) { maximumMessageSize = max(limits.maximumMessageSize, 0) }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }

        /// Takes bytes to be sent; none at all are sent at once.
        ///
        /// - Throws: `messageTooLarge` above `Limits.maximumMessageSize`.
        public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
            guard payload.count <= maximumMessageSize else {
                throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
            }
            outbound.append(payload, as: id)
        }

        /// Takes bytes back if none of them has been accepted.
        public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

        /// Nothing has left, or not all of it.
        public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

        /// Offers the next bytes.
        ///
        /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below 1.
        public mutating func transmit(
            atMost maximumSize: @autoclosure () -> Int, at now: Timestamp,
            _ offer: (RawSpan) throws(FerryError) -> Bool
        ) throws(FerryError) -> Transmission {
            while !outbound.isEmpty, outbound.first.payload.isEmpty {
                events.sent(outbound.first.id)
                outbound.removeFirst()
            }
            if outbound.isEmpty { return .idle }
            let size = maximumSize()
            guard size >= 1 else {
                throw FerryError(.chunkSizeTooSmall, "The link takes chunks of \(size) bytes; at least 1 is needed.")
            }
            let start = outbound.acceptedBytes
            let end = min(outbound.first.payload.count, start + size)
            guard try offer(outbound.first.payload.span.bytes.extracting(start..<end)) else { return .refused }
            outbound.accept(upTo: end, telling: &events)
            return .accepted
        }

        /// Hands a chunk on.
        ///
        /// - Throws: `malformedStream` for an empty chunk, `messageTooLarge` above `Limits.maximumMessageSize`.
        public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
            guard !chunk.isEmpty else { throw .emptyChunk(afterMessages: arrivedChunks, bytes: 0) }
            guard chunk.byteCount <= maximumMessageSize else {
                throw .messageTooLarge(
                    receiving: "has \(chunk.byteCount) bytes", afterMessages: arrivedChunks, limit: maximumMessageSize)
            }
            arrivedChunks += 1
            events.received(chunk.withUnsafeBytes { [UInt8]($0) })
        }

        /// Does nothing: a stream may end anywhere.
        public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {}
    }
}
