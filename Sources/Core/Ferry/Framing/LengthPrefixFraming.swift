/// The payload's length, then the payload: one stream of bytes, cut anywhere.
///
/// The boundaries of chunks carry no meaning, so any link will do that keeps bytes in order. A chunk is filled with the
/// beginnings of the messages that wait behind, so small records share chunks.
///
/// ## What it can notice
/// A length above ``Limits/maximumMessageSize``, a varint that is not in its shortest form, silence in the middle of a
/// message and a link that ends in its middle. Lost or duplicated bytes are noticed only when the bytes then read as a
/// length break one of these rules.
public struct LengthPrefixFraming: Framing {
    /// The order of the bytes of a length of fixed size.
    @frozen public enum ByteOrder: Sendable, Hashable {
        /// Most significant byte first (network byte order).
        case big
        /// Least significant byte first, as in Bluetooth's own protocols.
        case little
    }

    /// How the length is written.
    @frozen public enum Prefix: Sendable, Hashable {
        /// Unsigned LEB128 in its shortest form: 1 byte up to 127, 2 up to 16 383, 3 up to 2 097 151, and so on.
        case varint
        /// 2 bytes; messages of at most 65 535 bytes.
        case uint16(ByteOrder)
        /// 4 bytes; messages of at most 4 294 967 295 bytes.
        case uint32(ByteOrder)
    }

    /// How the length is written.
    public let prefix: Prefix

    /// The name people type: `length`.
    public var name: String { "length" }

    /// Makes the framing; both sides need the same prefix.
    public init(prefix: Prefix = .varint) { self.prefix = prefix }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(prefix: prefix, limits: limits) }
}

extension LengthPrefixFraming {
    /// The state of length-prefix framing on one link.
    public struct Session: FramingSession {
        private let prefix: Prefix
        private let maximumMessageSize: Int

        @usableFromInline var outbound = OutboundQueue()
        /// How many bytes the prefix of the first message has, which count as accepted with the others.
        private var prefixCount = 0
        /// A chunk that is not simply a part of one payload is put together here.
        private var scratch: [UInt8] = []

        /// How many bytes of a message have yet to come; 0 while a prefix is being read.
        private var missingBytes = 0
        private var length: LengthDecoder
        private var assembler = MessageAssembler(bound: 0)
        private var stall: StallDetector
        private var deliveredMessages = 0
        private var failure: FerryError?

        @usableFromInline var events = FramingEventQueue()

        init(prefix: Prefix, limits: Limits) {
            self.prefix = prefix
            maximumMessageSize = max(limits.maximumMessageSize, 0)
            length = LengthDecoder(prefix)
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

extension LengthPrefixFraming.Session {
    /// The most bytes of a chunk that is put together from several parts.
    private static var maximumScratchSize: Int { 64 << 10 }

    /// Takes a payload to be sent.
    ///
    /// - Throws: `messageTooLarge` above ``Limits/maximumMessageSize`` or what the prefix can express.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        guard payload.count <= prefix.maximumLength else {
            throw FerryError(
                .messageTooLarge,
                "The message to be sent has \(payload.count) bytes; a length prefix of \(prefix.name) can express"
                    + " \(prefix.maximumLength). Use a larger prefix on both sides.")
        }
        outbound.append(payload, as: id)
        notePrefix()
    }

    /// After each change of the first message.
    private mutating func notePrefix() { prefixCount = prefix.encodedCount(outbound.first.payload.count) }

    /// Takes a message back if none of its bytes, its prefix included, has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
        defer { notePrefix() }
        return outbound.cancel(id)
    }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// How much of the message in hand is here.
    public var arriving: ReceiveProgress? {
        guard missingBytes > 0 else { return nil }
        return ReceiveProgress(receivedBytes: assembler.count, totalBytes: assembler.count + missingBytes)
    }

    /// Offers as many bytes as there are of the first message and those behind it.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below 1.
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
        // Most chunks: full, with nothing but a part of one payload, which goes on.
        let start = outbound.acceptedBytes &- prefixCount
        if start >= 0, maximumChunkSize >= 1, outbound.first.payload.count &- start > maximumChunkSize {
            guard try offerPayload(from: start, maximumChunkSize, offer) else { return .refused }
            outbound.acceptedBytes &+= maximumChunkSize
            events.progress(outbound.first.id, acceptedBytes: start &+ maximumChunkSize)
            return .accepted
        }
        return try transmitUnusual(atMost: maximumChunkSize, offer)
    }

    /// Offers a chunk with a prefix, the end of a message, or several messages in it.
    private mutating func transmitUnusual(
        atMost maximumChunkSize: Int, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        guard maximumChunkSize >= 1 else {
            throw FerryError(
                .chunkSizeTooSmall, "The link takes chunks of \(maximumChunkSize) bytes; at least 1 is needed.")
        }
        let remaining = prefixCount + outbound.first.payload.count - outbound.acceptedBytes
        let isPart =
            outbound.acceptedBytes >= prefixCount && (remaining >= maximumChunkSize || outbound.waitingCount == 0)
        if isPart {
            let length = min(remaining, maximumChunkSize)
            guard try offerPayload(from: outbound.acceptedBytes - prefixCount, length, offer) else { return .refused }
            accepted(length)
        } else {
            fillScratch(atMost: min(maximumChunkSize, Self.maximumScratchSize))
            guard try offer(scratch.span.bytes) else { return .refused }
            accepted(scratch.count)
        }
        return .accepted
    }

    // Mutating only because the session would be copied otherwise, for each chunk.
    @inline(__always)
    private mutating func offerPayload(
        from start: Int, _ length: Int, _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Bool {
        try offer(outbound.first.payload.span.bytes.extracting(start..<start + length))
    }

    /// Puts together the next chunk from the rest of the first message and the messages behind it.
    private mutating func fillScratch(atMost size: Int) {
        scratch.removeAll(keepingCapacity: true)
        appendToScratch(outbound.first.payload, from: outbound.acceptedBytes, upTo: size)
        for message in outbound.waiting where !message.isCancelled {
            if scratch.count == size { return }
            appendToScratch(message.payload, from: 0, upTo: size)
        }
    }

    private mutating func appendToScratch(_ payload: [UInt8], from offset: Int, upTo size: Int) {
        let prefixCount = prefix.encodedCount(payload.count)
        var offset = offset
        while offset < prefixCount, scratch.count < size {
            scratch.append(prefix.byte(at: offset, of: payload.count))
            offset += 1
        }
        guard offset >= prefixCount else { return }
        let start = offset - prefixCount
        let count = min(payload.count - start, size - scratch.count)
        payload.withUnsafeBytes {
            scratch.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[start..<start + count]))
        }
    }

    /// Moves on by `count` accepted bytes, across as many messages as they held.
    private mutating func accepted(_ count: Int) {
        var count = count
        while count > 0 {
            let total = prefixCount + outbound.first.payload.count
            let step = min(count, total - outbound.acceptedBytes)
            count -= step
            outbound.acceptedBytes += step
            if outbound.acceptedBytes > prefixCount {
                events.progress(outbound.first.id, acceptedBytes: outbound.acceptedBytes - prefixCount)
            }
            guard outbound.acceptedBytes == total else { return }
            events.sent(outbound.first.id)
            outbound.removeFirst()
            notePrefix()
        }
    }
}

// MARK: - Receiving

extension LengthPrefixFraming.Session {
    /// Takes a chunk that arrived: a part of a message, several messages, or anything between.
    ///
    /// - Throws: `malformedStream` for an empty chunk and for a varint that is not in its shortest form;
    ///   `messageTooLarge` for a length above ``Limits/maximumMessageSize``, before memory is taken. The same again for
    ///   every later chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        stall.chunkArrived(at: now)
        let count = chunk.byteCount
        guard count > 0, count < missingBytes else { return try receiveAcrossMessages(chunk) }
        missingBytes &-= count
        assembler.append(chunk)
    }

    /// Takes a chunk that ends a message or begins one, or is no chunk at all.
    private mutating func receiveAcrossMessages(_ chunk: RawSpan) throws(FerryError) {
        if let failure { throw failure }
        guard !chunk.isEmpty else {
            throw fail(.emptyChunk(afterMessages: deliveredMessages, bytes: assembler.count))
        }
        var offset = 0
        while offset < chunk.byteCount {
            if missingBytes > 0 {
                let count = min(missingBytes, chunk.byteCount - offset)
                assembler.append(chunk.extracting(offset..<offset + count))
                offset += count
                missingBytes -= count
                if missingBytes == 0 { deliver() }
            } else {
                let byte = chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self)
                offset += 1
                if let length = try nextLength(byte) { try begin(length) }
            }
        }
    }

    private mutating func nextLength(_ byte: UInt8) throws(FerryError) -> UInt64? {
        do {
            return try length.push(byte)
        } catch {
            let what =
                switch error {
                case .overlong: "is not in its shortest form"
                case .overflow: "does not fit 64 bits"
                }
            throw fail(
                FerryError(
                    .malformedStream,
                    "The varint length of message \(deliveredMessages + 1) from the peer \(what). Check that the peer"
                        + " speaks the same framing, with the same prefix."))
        }
    }

    private mutating func begin(_ length: UInt64) throws(FerryError) {
        guard length <= UInt64(maximumMessageSize) else {
            throw fail(
                .messageTooLarge(
                    receiving: "announces \(length) bytes", afterMessages: deliveredMessages, limit: maximumMessageSize)
            )
        }
        missingBytes = Int(length)
        assembler.begin(expecting: missingBytes)
        if missingBytes == 0 { deliver() }
    }

    private mutating func deliver() {
        events.received(assembler.takeExpected())
        deliveredMessages += 1
    }

    private mutating func fail(_ error: FerryError) -> FerryError {
        failure = error
        missingBytes = 0
        length = LengthDecoder(prefix)
        assembler = MessageAssembler(bound: 0)
        return error
    }

    private var isInMessage: Bool { missingBytes > 0 || length.byteCount > 0 }

    private var arrivedPart: ErrorText {
        missingBytes > 0
            ? "after \(assembler.count) of its \(assembler.count + missingBytes) bytes"
            : "within its length, after \(length.byteCount) of the length's bytes"
    }

    /// When the silence in the middle of a message becomes too long (``Limits/inboundStallTimeout``); nil between
    /// messages.
    public var deadline: Timestamp? { isInMessage ? stall.deadline : nil }

    /// - Throws: `truncatedMessage` when the silence in the middle of a message has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        guard let deadline, now >= deadline else { return }
        throw fail(.truncatedMessage("fell silent \(arrivedPart)", raising: true, afterMessages: deliveredMessages))
    }

    /// While the peer is asked to pause its silence does not count.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { stall.pause(isPaused, at: now) }

    /// - Throws: `truncatedMessage` when a message had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard isInMessage else { return }
        throw fail(.truncatedMessage("ended \(arrivedPart)", raising: false, afterMessages: deliveredMessages))
    }
}
