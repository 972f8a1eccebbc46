public import Ferry

/// Messages as mobile documents and their readers exchange them over Bluetooth LE (ISO/IEC 18013-5:2021, 8.3.3.1.1.6): each
/// chunk begins with a byte, 0 in a message's last and 1 in the others.
///
/// Use it with a layout of ``/FerryBluetooth/GATTConfiguration``: `mdocPeripheralServer(service:psm:)` or
/// `mdocCentralClient(service:ident:psm:)`. Over an L2CAP channel messages have a length instead: ``overL2CAP``.
///
/// It sends what the standard says: every chunk but the last has as many bytes as the link takes, at most 512. It receives
/// chunks of any size, as wallets in the field send shorter ones.
///
/// ## What it can notice
/// A first byte that is neither 0 nor 1, a chunk without content before the last, a message of more than
/// ``/Ferry/Limits/maximumMessageSize`` bytes, silence in its middle and a link that ends in its middle. A chunk that is lost,
/// doubled or overtaken is not noticed; session encryption, above this format, notices it.
public struct MdocFraming: Framing {
    /// The most bytes of a chunk, its first byte included: those of an attribute value (Core Specification 5.4, Vol 3, Part F,
    /// 3.2.9).
    public static let maximumChunkSize = 512

    /// The framing of the same messages over an L2CAP channel: a length of 4 bytes, the most significant first.
    public static var overL2CAP: LengthPrefixFraming { LengthPrefixFraming(prefix: .uint32(.big)) }

    /// `mdoc`.
    public var name: String { "mdoc" }

    /// Makes the framing.
    public init() {}

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(limits) }
}

extension MdocFraming {
    /// The state on one link.
    public struct Session: FramingSession {
        private let maximumMessageSize: Int

        private var outbound = OutboundQueue()
        /// The chunk that is offered.
        private var scratch: [UInt8] = []

        private var assembler: MessageAssembler
        private var stall: StallDetector
        /// Whether a message has arrived in part.
        private var isInMessage: Bool { assembler.count > 0 }
        /// How many bytes the message being received may still have; 0 after an error.
        private var roomInMessage: Int
        private var deliveredMessages = 0
        private var failure: FerryError?

        @usableFromInline var events = FramingEventQueue()

        init(_ limits: Limits) {
            maximumMessageSize = max(limits.maximumMessageSize, 0)
            roomInMessage = maximumMessageSize
            assembler = MessageAssembler(bound: maximumMessageSize)
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

// MARK: - Sending

extension MdocFraming.Session {
    /// Takes a message to be sent.
    ///
    /// - Throws: `mdoc.emptyMessage` for no bytes, since the format has no such messages; `messageTooLarge` above
    ///   ``/Ferry/Limits/maximumMessageSize``.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard !payload.isEmpty else { throw .emptyMdocMessage }
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        outbound.append(payload, as: id)
    }

    /// Takes a message back if none of its chunks has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// Offers the next chunk of the first message.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below 2 bytes.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        guard !outbound.isEmpty else { return .idle }
        let size = min(maximumChunkSize(), MdocFraming.maximumChunkSize)
        guard size >= 2 else {
            throw FerryError(
                .chunkSizeTooSmall, "The link takes chunks of \(size) bytes; the mdoc framing needs 2 at least.")
        }
        let start = outbound.acceptedBytes
        let end = min(outbound.first.payload.count, start + size - 1)
        scratch.removeAll(keepingCapacity: true)
        scratch.append(end == outbound.first.payload.count ? 0 : 1)
        outbound.first.payload.withUnsafeBytes {
            scratch.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[start..<end]))
        }
        guard try offer(scratch.span.bytes) else { return .refused }
        outbound.accept(upTo: end, telling: &events)
        return .accepted
    }
}

// MARK: - Receiving

extension MdocFraming.Session {
    /// How much of the message in hand is here; its size is not known before its end.
    public var arriving: ReceiveProgress? {
        isInMessage ? ReceiveProgress(receivedBytes: assembler.count, totalBytes: nil) : nil
    }

    /// Takes a chunk that arrived. One whose first byte is 0 ends a message, with or without content; a message without any
    /// content, which no conforming peer sends, is delivered as an empty one.
    ///
    /// - Throws: `malformedStream` for an empty chunk, another first byte, and a chunk of a 1 alone; `messageTooLarge` above
    ///   ``/Ferry/Limits/maximumMessageSize``. The same again for every later chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        stall.chunkArrived(at: now)
        let count = chunk.byteCount &- 1
        guard count > 0, count <= roomInMessage, chunk.unsafeLoad(as: UInt8.self) == 1 else {
            return try receiveUnusual(chunk)
        }
        roomInMessage &-= count
        assembler.append(chunk.extracting(droppingFirst: 1))
    }

    /// Takes a message's last chunk, or one that cannot be taken.
    private mutating func receiveUnusual(_ chunk: RawSpan) throws(FerryError) {
        if let failure { throw failure }
        guard chunk.byteCount > 0 else {
            throw fail(.emptyChunk(afterMessages: deliveredMessages, bytes: assembler.count))
        }
        let flag = chunk.unsafeLoad(as: UInt8.self)
        guard flag <= 1 else {
            throw fail(malformed("begins with \(flag); 1 says that more follows and 0 that none does"))
        }
        let count = chunk.byteCount - 1
        guard count <= roomInMessage else {
            throw fail(
                .messageTooLarge(
                    receiving: "has more than \(assembler.count) bytes and its next chunk \(count) more",
                    afterMessages: deliveredMessages, limit: maximumMessageSize))
        }
        guard flag == 0 else { throw fail(malformed("is a 1 alone, which says that more follows and brings nothing")) }
        assembler.append(chunk.extracting(droppingFirst: 1))
        events.received(assembler.takeUnannounced())
        deliveredMessages += 1
        roomInMessage = maximumMessageSize
    }

    private func malformed(_ what: String) -> FerryError {
        FerryError(
            .malformedStream,
            "A chunk of message \(deliveredMessages + 1) from the peer, after \(assembler.count) bytes of it, \(what). Check that "
                + "the peer speaks ISO/IEC 18013-5 over these characteristics.")
    }

    private mutating func fail(_ error: FerryError) -> FerryError {
        failure = error
        roomInMessage = 0
        assembler = MessageAssembler(bound: maximumMessageSize)
        return error
    }

    /// When the silence in the middle of a message becomes too long (``/Ferry/Limits/inboundStallTimeout``); nil between
    /// messages.
    public var deadline: Timestamp? { isInMessage ? stall.deadline : nil }

    /// - Throws: `truncatedMessage` when the silence in the middle of a message has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        guard let deadline, now >= deadline else { return }
        throw fail(
            .truncatedMessage(
                "fell silent after \(assembler.count) bytes of it, before its last chunk", raising: true,
                afterMessages: deliveredMessages))
    }

    /// While the peer is asked to pause its silence does not count.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { stall.pause(isPaused, at: now) }

    /// - Throws: `truncatedMessage` when a message had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard isInMessage else { return }
        throw fail(
            .truncatedMessage(
                "ended after \(assembler.count) bytes of it, before its last chunk", raising: false,
                afterMessages: deliveredMessages))
    }
}

extension FerryError.Code {
    /// The mdoc framing was given a message without bytes.
    public static let emptyMdocMessage = Self("mdoc.emptyMessage")
}

extension FerryError {
    static var emptyMdocMessage: FerryError {
        FerryError(
            .emptyMdocMessage,
            "The message to be sent has no bytes, and an mdoc channel carries none such: readers take one for the end of the "
                + "session. Close the channel to end it.")
    }
}
