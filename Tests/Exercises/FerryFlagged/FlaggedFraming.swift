public import Ferry

/// Chunks that say whether they are a message's last: one byte, 1 for the last and 0 for the others, then its payload. The
/// second exercise of CONTRIBUTING.md.
public struct FlaggedFraming: Framing {
    /// Makes the framing.
    public init() {}

    /// `flagged`.
    public var name: String { "flagged" }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(limits) }

    /// A link's messages, on their way out and in.
    public struct Session: FramingSession {
        private let limits: Limits
        private var outbound: [(id: MessageID, payload: [UInt8])] = []
        /// Bytes of the first message that the link has taken.
        private var sent = 0
        private var inbound: [UInt8] = []
        /// When the last chunk of an unfinished message arrived.
        private var lastArrival: Timestamp?
        private var isPaused = false
        private var received = 0
        private var events: [FramingEvent] = []

        init(_ limits: Limits) { self.limits = limits }

        /// - Throws: ``/Ferry/FerryError`` with `messageTooLarge`.
        public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
            guard payload.count <= limits.maximumMessageSize else {
                throw FerryError(
                    .messageTooLarge,
                    "The message has \(payload.count) bytes; Limits.maximumMessageSize is \(limits.maximumMessageSize)."
                )
            }
            outbound.append((id, payload))
        }

        /// Whether nothing of the message had left.
        public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
            guard let place = outbound.firstIndex(where: { $0.id == id }), place > 0 || sent == 0 else { return false }
            outbound.remove(at: place)
            return true
        }

        /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below two bytes.
        public mutating func transmit(
            atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
            _ offer: (RawSpan) throws(FerryError) -> Bool
        ) throws(FerryError) -> Transmission {
            guard let (id, payload) = outbound.first else { return .idle }
            let space = maximumChunkSize() - 1
            guard space > 0 else {
                throw FerryError(.chunkSizeTooSmall, "A chunk takes 1 byte; this framing needs 2. Raise the ATT_MTU.")
            }
            let end = min(payload.count, sent + space)
            let chunk = [end == payload.count ? 1 : 0] + payload[sent..<end]
            guard try offer(chunk.span.bytes) else { return .refused }
            sent = end
            events.append(.progress(id, acceptedBytes: end))
            if end == payload.count {
                events.append(.sent(id))
                outbound.removeFirst()
                sent = 0
            }
            return .accepted
        }

        /// - Throws: `malformedStream` or `messageTooLarge`.
        public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
            let bytes = chunk.withUnsafeBytes { Array($0) }
            guard let flag = bytes.first, flag <= 1 else {
                throw FerryError(
                    .malformedStream,
                    "A chunk of message \(received + 1) begins with neither 0 nor 1. Use FlaggedFraming on both sides.")
            }
            guard inbound.count + bytes.count - 1 <= limits.maximumMessageSize else {
                throw FerryError(
                    .messageTooLarge,
                    "Message \(received + 1) is longer than Limits.maximumMessageSize, \(limits.maximumMessageSize) bytes."
                )
            }
            inbound += bytes.dropFirst()
            lastArrival = now
            guard flag == 1 else { return }
            events.append(.received(inbound))
            inbound = []
            lastArrival = nil
            received += 1
        }

        /// The next thing that happened.
        public mutating func nextEvent() -> FramingEvent? { events.isEmpty ? nil : events.removeFirst() }

        /// When the silence in the middle of a message becomes too long; nil between messages, and while the peer pauses.
        public var deadline: Timestamp? { isPaused ? nil : lastArrival.map { $0 + limits.inboundStallTimeout } }

        /// - Throws: `truncatedMessage` when the silence has become too long.
        public mutating func wake(at now: Timestamp) throws(FerryError) {
            if let deadline, now >= deadline { throw truncated("fell silent") }
        }

        /// While the peer is asked to pause its silence does not count.
        public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) {
            self.isPaused = isPaused
            if lastArrival != nil { lastArrival = now }
        }

        /// - Throws: `truncatedMessage` when a message had arrived in part.
        public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
            if lastArrival != nil { throw truncated("ended") }
        }

        private func truncated(_ what: String) -> FerryError {
            FerryError(.truncatedMessage, "The link \(what) after \(inbound.count) bytes of message \(received + 1).")
        }
    }
}
