/// Chunks of a payload, then one value that holds a marker alone: the convention of Apple's BLE transfer sample and its
/// many descendants, by default with the three bytes `EOM` and chunks of 20 bytes.
///
/// The boundaries of chunks carry the meaning, so a link must deliver each as it was sent. No data chunk ever equals the
/// marker: where a cut would make one, it is made a byte (in text, a scalar) earlier.
///
/// ## What it can notice
/// The format has no length, number or checksum. A message of more than ``Limits/maximumMessageSize`` bytes, silence in
/// its middle and a link that ends in its middle are noticed; a chunk that is lost, doubled or overtaken on the way is
/// not. Use ``LengthPrefixFraming`` where both sides are yours.
public struct EndOfMessageFraming: Framing {
    /// What payloads may hold.
    @frozen public enum Content: Sendable, Hashable {
        /// Any bytes.
        case binary
        /// UTF-8 only, cut between Unicode scalars so that each chunk is well-formed by itself: for receivers that turn
        /// every chunk into a string, as the newer Swift version of Apple's sample does, and drop invalid ones. Other
        /// messages are refused with `notText` on sending. Received messages are not restricted.
        case text
    }

    /// The bytes `EOM`.
    public static let defaultMarker: [UInt8] = [0x45, 0x4F, 0x4D]

    /// The value that ends a message.
    public let marker: [UInt8]
    /// The most bytes in a chunk, or nil for as many as the link takes.
    public let chunkSize: Int?
    /// What payloads may hold.
    public let content: Content

    /// The name people type: `eom`.
    public var name: String { "eom" }

    /// The fewest bytes a link must take at once: those of the marker, and in text at least 4, the longest scalar.
    public var minimumChunkSize: Int { content == .text ? max(marker.count, 4) : marker.count }

    /// The classic form: the marker `EOM`, chunks of 20 bytes, any content.
    public init() {
        marker = Self.defaultMarker
        chunkSize = 20
        content = .binary
    }

    /// Makes another form.
    ///
    /// - Parameters:
    ///   - marker: 2 to 20 bytes, so that the marker fits the smallest Bluetooth LE chunk, and so that a message that
    ///     equals it can be cut in two. For text it must be ASCII.
    ///   - chunkSize: The most bytes in a chunk, at least ``minimumChunkSize``; nil for as many as the link takes.
    ///   - content: What payloads may hold.
    /// - Throws: ``FerryError`` with `invalidConfiguration` when an argument is outside these bounds.
    public init(
        marker: [UInt8] = Self.defaultMarker, chunkSize: Int? = 20, content: Content = .binary
    ) throws(FerryError) {
        self.marker = marker
        self.chunkSize = chunkSize
        self.content = content
        guard (2...20).contains(marker.count) else {
            throw FerryError(
                .invalidConfiguration, "The end-of-message marker has \(marker.count) bytes; it must have 2 to 20.")
        }
        #if hasFeature(Embedded)
            guard content == .binary else {
                throw FerryError(.invalidConfiguration, "Embedded Swift has no end-of-message framing for text.")
            }
        #endif
        if content == .text, let offset = marker.firstIndex(where: { $0 >= 0x80 }) {
            throw FerryError(
                .invalidConfiguration,
                "The end-of-message marker must be ASCII for text; its byte at offset \(offset) is not.")
        }
        if let chunkSize, chunkSize < minimumChunkSize {
            throw FerryError(
                .invalidConfiguration,
                "A chunk size of \(chunkSize) is too small for end-of-message framing; it must be at least"
                    + " \(minimumChunkSize) here.")
        }
    }

    /// Refuses compression of text: compressed bytes are not text.
    public func check(_ payloads: PayloadFormat) throws(FerryError) {
        guard content == .text, payloads.compression != 0 || payloads.isEnveloped else { return }
        throw FerryError(
            .invalidConfiguration,
            "End-of-message framing that carries text only cannot carry compressed payloads, which are not text. Leave the "
                + "compression out, or use binary content with a receiver that takes it.")
    }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(framing: self, limits: limits) }
}

extension EndOfMessageFraming {
    /// The state of end-of-message framing on one link.
    public struct Session: FramingSession {
        private let marker: [UInt8]
        private let maximumMessageSize: Int
        #if hasFeature(Embedded)
            private var isText: Bool { false }
        #else
            private let isText: Bool
        #endif
        /// The least and the most bytes of a chunk.
        private let minimumChunkSize: Int
        private let chunkSizeLimit: Int

        @usableFromInline var outbound = OutboundQueue()

        private var assembler: MessageAssembler
        private var stall: StallDetector
        /// How many bytes the message being received may still have; 0 after an error.
        private var roomInMessage: Int
        private var deliveredMessages = 0
        private var failure: FerryError?

        @usableFromInline var events = FramingEventQueue()

        init(framing: EndOfMessageFraming, limits: Limits) {
            marker = framing.marker
            maximumMessageSize = max(limits.maximumMessageSize, 0)
            #if !hasFeature(Embedded)
                isText = framing.content == .text
            #endif
            minimumChunkSize = framing.minimumChunkSize
            chunkSizeLimit = framing.chunkSize ?? .max
            roomInMessage = maximumMessageSize
            assembler = MessageAssembler(bound: maximumMessageSize)
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }

        /// How many events there are, progress aside.
        package var waitingEvents: Int { events.count }
    }
}

// MARK: - Sending

extension EndOfMessageFraming.Session {
    /// Takes a payload to be sent.
    ///
    /// - Throws: `messageTooLarge` above ``Limits/maximumMessageSize``; in text `notText` for bytes that are not UTF-8.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        if isText, let offset = UTF8Text.firstInvalidOffset(in: payload) {
            throw FerryError(
                .notText,
                "The message of \(payload.count) bytes is not UTF-8 at byte offset \(offset), and this end-of-message"
                    + " framing carries text only. Send text, or use binary content with a receiver that takes it.")
        }
        outbound.append(payload, as: id)
    }

    /// Takes a message back if none of its chunks has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// How much of the message in hand is here; its size is not known before its end.
    public var arriving: ReceiveProgress? {
        assembler.count > 0 ? ReceiveProgress(receivedBytes: assembler.count, totalBytes: nil) : nil
    }

    /// Offers the next chunk of the first message, or the marker after its last.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below ``EndOfMessageFraming/minimumChunkSize``.
    @inlinable
    public mutating func transmit(
        atMost maximumSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        if outbound.isEmpty { return .idle }
        return try transmitNext(atMost: maximumSize(), offer)
    }

    /// Offers the next chunk of what there is.
    @usableFromInline
    mutating func transmitNext(
        atMost maximumChunkSize: Int, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        let size = min(maximumChunkSize, chunkSizeLimit)
        guard size >= minimumChunkSize else {
            throw FerryError(
                .chunkSizeTooSmall,
                "The link takes chunks of \(maximumChunkSize) bytes; end-of-message framing needs"
                    + " \(minimumChunkSize) for its marker of \(marker.count) bytes"
                    + (isText ? " and for whole scalars." : "."))
        }
        guard outbound.acceptedBytes < outbound.first.payload.count else {
            guard try offer(marker.span.bytes) else { return .refused }
            events.sent(outbound.first.id)
            outbound.removeFirst()
            return .accepted
        }
        // Most chunks: full, binary, and longer than the marker, so that there is nothing to compare.
        if size > marker.count, !isText, outbound.first.payload.count &- outbound.acceptedBytes >= size {
            guard try offerData(size, offer) else { return .refused }
            outbound.acceptedBytes &+= size
            events.progress(outbound.first.id, acceptedBytes: outbound.acceptedBytes)
            return .accepted
        }
        let length = chunkLength(from: outbound.acceptedBytes, atMost: size)
        guard try offerData(length, offer) else { return .refused }
        outbound.acceptedBytes += length
        events.progress(outbound.first.id, acceptedBytes: outbound.acceptedBytes)
        return .accepted
    }

    /// Offers the next bytes of the first message. Mutating only because the session would be copied otherwise, for each
    /// chunk.
    @inline(__always)
    private mutating func offerData(
        _ length: Int, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Bool {
        try offer(
            outbound.first.payload.span.bytes.extracting(outbound.acceptedBytes..<outbound.acceptedBytes + length))
    }

    /// How many of the remaining bytes the next chunk takes: as many as fit, unless they would equal the marker.
    private mutating func chunkLength(from start: Int, atMost size: Int) -> Int {
        let rest = outbound.first.payload.span.bytes.extracting(droppingFirst: start)
        if isText { return textChunkLength(of: rest, atMost: size) }
        let length = min(size, rest.byteCount)
        guard length == marker.count, isMarker(rest.extracting(first: length)) else { return length }
        return length - 1
    }

    private func textChunkLength(of rest: RawSpan, atMost size: Int) -> Int {
        let length = UTF8Text.lastBoundary(in: rest, notAfter: size)
        // Receivers compare strings, and Swift's and Foundation's do so by canonical equivalence: a chunk of other bytes
        // can equal the marker (U+212A KELVIN SIGN is a K). No ASCII character has an equivalent of more than 3 bytes.
        guard length >= marker.count, length <= 3 * marker.count else { return length }
        return equalsMarkerAsText(rest.extracting(first: length))
            ? UTF8Text.lastBoundary(in: rest, notAfter: length - 1) : length
    }

    private func equalsMarkerAsText(_ chunk: RawSpan) -> Bool {
        #if hasFeature(Embedded)
            // Never asked: firmware has no text mode. The comparison of strings would bring 33 kB of Unicode's tables along.
            isMarker(chunk)
        #else
            chunk.withUnsafeBytes { String(decoding: $0, as: UTF8.self) } == String(decoding: marker, as: UTF8.self)
        #endif
    }

    private func isMarker(_ chunk: RawSpan) -> Bool {
        guard chunk.byteCount == marker.count else { return false }
        for offset in marker.indices where chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self) != marker[offset] {
            return false
        }
        return true
    }
}

// MARK: - Receiving

extension EndOfMessageFraming.Session {
    /// Takes a chunk that arrived.
    ///
    /// - Throws: `malformedStream` for an empty chunk, `messageTooLarge` above ``Limits/maximumMessageSize``; the same
    ///   again for every later chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        stall.chunkArrived(at: now)
        let count = chunk.byteCount
        guard count != marker.count, count > 0, count <= roomInMessage else { return try receiveUnusual(chunk) }
        roomInMessage &-= count
        assembler.append(chunk)
    }

    /// Takes a chunk of the marker's size, or one that cannot be taken.
    private mutating func receiveUnusual(_ chunk: RawSpan) throws(FerryError) {
        let count = chunk.byteCount
        if failure == nil && isMarker(chunk) {
            events.received(assembler.takeUnannounced())
            deliveredMessages += 1
            roomInMessage = maximumMessageSize
        } else if failure == nil && count > 0 && count <= roomInMessage {
            roomInMessage -= count
            assembler.append(chunk)
        } else {
            throw refuse(chunkOf: count)
        }
    }

    private mutating func refuse(chunkOf count: Int) -> FerryError {
        if let failure { return failure }
        let error: FerryError =
            if count == 0 {
                .emptyChunk(afterMessages: deliveredMessages, bytes: assembler.count)
            } else {
                .messageTooLarge(
                    receiving: "has more than \(assembler.count) bytes and its next chunk \(count) more",
                    afterMessages: deliveredMessages, limit: maximumMessageSize)
            }
        return fail(error)
    }

    private mutating func fail(_ error: FerryError) -> FerryError {
        failure = error
        roomInMessage = 0
        assembler = MessageAssembler(bound: maximumMessageSize)
        return error
    }

    /// When the silence in the middle of a message becomes too long (``Limits/inboundStallTimeout``); nil between
    /// messages.
    public var deadline: Timestamp? { assembler.count > 0 ? stall.deadline : nil }

    /// - Throws: `truncatedMessage` when the silence in the middle of a message has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        guard let deadline, now >= deadline else { return }
        throw fail(
            .truncatedMessage(
                "fell silent after \(assembler.count) bytes of it, before its end marker", raising: true,
                afterMessages: deliveredMessages))
    }

    /// While the peer is asked to pause its silence does not count.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { stall.pause(isPaused, at: now) }

    /// - Throws: `truncatedMessage` when a message had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard assembler.count > 0 else { return }
        throw fail(
            .truncatedMessage(
                "ended after \(assembler.count) bytes of it, before its end marker", raising: false,
                afterMessages: deliveredMessages))
    }
}
