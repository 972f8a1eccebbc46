public import Ferry

/// Messages as a Meshtastic radio exchanges them with an app: each is one value, and nothing is added.
///
/// A message is a protobuf, `ToRadio` from the app and `FromRadio` from the radio, of 1 to 512 bytes. It cannot be cut: a message that is
/// longer than the link takes at once fails with `messageTooLarge`, and the next ones go on.
///
/// ## What it can notice
/// An empty chunk and one of more than 512 bytes. A message that is lost is not noticed: Meshtastic numbers them within the protobufs.
///
/// Source: meshtastic/firmware 77540685 (`NRF52Bluetooth.cpp`, `PhoneAPI.cpp`), PyPI meshtastic 2.7.11 (`ble_interface.py`).
public struct MeshtasticFraming: Framing {
    /// The most bytes of a message, which is the most of a characteristic's value (Core Specification 5.4, Vol 3, Part F, 3.2.9).
    public static let maximumMessageSize = 512

    /// Makes the framing.
    public init() {}

    /// `meshtastic`.
    public var name: String { "meshtastic" }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(limits) }
}

extension MeshtasticFraming {
    /// The state on one link.
    public struct Session: FramingSession {
        private let maximumMessageSize: Int
        private var outbound = OutboundQueue()
        private var deliveredMessages = 0
        private var failure: FerryError?
        @usableFromInline var events = FramingEventQueue()

        init(_ limits: Limits) {
            maximumMessageSize = min(max(limits.maximumMessageSize, 0), MeshtasticFraming.maximumMessageSize)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }

        /// Takes a message to be sent.
        ///
        /// - Throws: `messageTooLarge` above 512 bytes or ``/Ferry/Limits/maximumMessageSize``; `invalidConfiguration` for an empty message,
        ///   which no value can carry.
        public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
            guard payload.count <= maximumMessageSize else {
                throw FerryError(
                    .messageTooLarge,
                    "The message to be sent has \(payload.count) bytes; a Meshtastic radio takes \(maximumMessageSize). Send less at once."
                )
            }
            guard !payload.isEmpty else {
                throw FerryError(
                    .invalidConfiguration,
                    "A message to a Meshtastic radio has 1 byte at least; this one is empty. A heartbeat is 3A 00.")
            }
            outbound.append(payload, as: id)
        }

        /// Takes a message back that has not left.
        public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

        /// A message leaves whole, or not at all.
        public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

        /// Offers the first message that the link can take at once. Those before it fail with `messageTooLarge`.
        ///
        /// - Throws: what `offer` throws.
        public mutating func transmit(
            atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
            _ offer: (RawSpan) throws(FerryError) -> Bool
        ) throws(FerryError) -> Transmission {
            while !outbound.isEmpty {
                let (id, count) = (outbound.first.id, outbound.first.payload.count)
                let size = maximumChunkSize()
                guard count <= size else {
                    events.failed(id, .wholeValueTooLarge(count, limit: size))
                    outbound.removeFirst()
                    continue
                }
                guard try offer(outbound.first.payload.span.bytes) else { return .refused }
                outbound.accept(upTo: count, telling: &events)
                return .accepted
            }
            return .idle
        }

        /// Takes a chunk that arrived, which is a message.
        ///
        /// - Throws: `malformedStream` for an empty chunk; `messageTooLarge` above 512 bytes or ``/Ferry/Limits/maximumMessageSize``. The same
        ///   again for every later chunk.
        public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
            if let failure { throw failure }
            guard chunk.byteCount > 0 else {
                throw fail(.emptyChunk(afterMessages: deliveredMessages, bytes: 0))
            }
            guard chunk.byteCount <= maximumMessageSize else {
                throw fail(
                    .messageTooLarge(
                        receiving: "has \(chunk.byteCount) bytes", afterMessages: deliveredMessages,
                        limit: maximumMessageSize))
            }
            events.received(chunk.withUnsafeBytes { [UInt8]($0) })
            deliveredMessages += 1
        }

        private mutating func fail(_ error: FerryError) -> FerryError {
            failure = error
            return error
        }

        /// Nothing is ever left in part.
        public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {}
    }
}

extension FerryError {
    fileprivate static func wholeValueTooLarge(_ count: Int, limit: Int) -> FerryError {
        FerryError(
            .messageTooLarge,
            "The message to be sent has \(count) bytes and cannot be cut; the link takes \(limit) at present. Raise the ATT_MTU, or send less at"
                + " once.", fate: .nothingSent)
    }
}
