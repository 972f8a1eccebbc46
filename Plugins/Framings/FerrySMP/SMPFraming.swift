public import Ferry

/// The Simple Management Protocol's framing, as MCUmgr on Zephyr speaks it over Bluetooth: it adds no byte.
///
/// A message carries its own length in its header of 8 bytes (``SMPHeader``), and a receiver reads until it has that many.
/// Cuts between chunks carry no meaning to this receiver. A server that ran short of buffers cuts its notifications shorter for
/// the rest of the connection, so a short chunk is no end.
///
/// A sender begins each message in a new chunk, and fills chunks: Zephyr's server refuses a first write below 8 bytes, and
/// drops a chunk that holds parts of two messages. A server that was built without reassembly takes requests of one chunk only; the
/// caller has to keep to that, and ``SMPClient`` does.
///
/// ## What it can notice
/// A first byte that no header has, a length above `Limits.maximumMessageSize`, silence in a message and a link that ends in one.
/// There is no checksum and no number of chunks: bytes that are lost are noticed when the next header is none.
public struct SMPFraming: Framing {
    /// The fewest bytes that a link must take at once: the header.
    public static let minimumChunkSize = SMPHeader.byteCount

    /// Makes the framing.
    public init() {}

    /// The name people type: `smp`.
    public var name: String { "smp" }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(limits) }
}

extension FerryError.Code {
    /// A message to be sent is not one of SMP: it has no header, or one with another length.
    public static let notSMP = FerryError.Code("smp.header")
}

extension SMPFraming {
    /// The state of the framing on one link.
    public struct Session: FramingSession {
        private enum Inbound {
            /// The header's first bytes, as a big-endian number.
            case header(bits: UInt64, count: Int)
            /// A message of which bytes are missing; at least 1.
            case message(missing: Int)
            case failed(FerryError)
        }

        private let maximumMessageSize: Int
        private var outbound = OutboundQueue()
        /// How many bytes of the first message have been accepted.

        private var inbound = Inbound.header(bits: 0, count: 0)
        private var assembler = MessageAssembler(bound: 0)
        private var stall: StallDetector
        private var deliveredMessages = 0
        @usableFromInline var events = FramingEventQueue()

        init(_ limits: Limits) {
            maximumMessageSize = max(limits.maximumMessageSize, 0)
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

// MARK: - Sending

extension SMPFraming.Session {
    /// Takes a whole message, header included.
    ///
    /// - Throws: `smp.header` where the bytes do not begin with a header that has their length; `messageTooLarge` above
    ///   `Limits.maximumMessageSize`.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard let header = SMPHeader(payload) else {
            throw FerryError(
                .notSMP,
                "The message to be sent has \(payload.count) bytes and does not begin with an SMP header. Make it with"
                    + " SMPHeader.message.")
        }
        guard Int(header.payloadCount) == payload.count - SMPHeader.byteCount else {
            throw FerryError(
                .notSMP,
                "The header of the message to be sent announces \(header.payloadCount) bytes; \(payload.count - 8) follow it."
                    + " Make it with SMPHeader.message.")
        }
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        outbound.append(payload, as: id)
    }

    /// Takes a message back if none of its bytes has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// Offers as many bytes as there are of the first message, and of no other.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below ``SMPFraming/minimumChunkSize``.
    public mutating func transmit(
        atMost maximumSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        if outbound.isEmpty { return .idle }
        let size = maximumSize()
        guard size >= SMPFraming.minimumChunkSize else {
            throw FerryError(
                .chunkSizeTooSmall,
                "The link takes chunks of \(size) bytes; SMP needs \(SMPFraming.minimumChunkSize), for its header must arrive in"
                    + " one. Raise the ATT_MTU.")
        }
        let start = outbound.acceptedBytes
        let end = min(outbound.first.payload.count, start + size)
        guard try offer(outbound.first.payload.span.bytes.extracting(start..<end)) else { return .refused }
        outbound.accept(upTo: end, telling: &events)
        return .accepted
    }
}

// MARK: - Receiving

extension SMPFraming.Session {
    /// Takes a chunk that arrived: a part of a message, several messages, or anything between.
    ///
    /// - Throws: `malformedStream` for an empty chunk and for bytes that no header begins with; `messageTooLarge` for a length above
    ///   `Limits.maximumMessageSize`, before memory is taken. The same again for every later chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        stall.chunkArrived(at: now)
        let count = chunk.byteCount
        guard count > 0 else {
            throw fail(.emptyChunk(afterMessages: deliveredMessages, bytes: arrivedBytes))
        }
        var offset = 0
        while offset < count {
            switch inbound {
            case .message(let missing):
                let step = min(missing, count - offset)
                assembler.append(chunk.extracting(offset..<offset + step))
                offset += step
                inbound = .message(missing: missing - step)
                if missing == step { deliver() }
            case .header(var bits, var have):
                while have < SMPHeader.byteCount, offset < count {
                    bits = bits << 8 | UInt64(chunk.unsafeLoad(fromByteOffset: offset, as: UInt8.self))
                    have += 1
                    offset += 1
                }
                inbound = .header(bits: bits, count: have)
                if have == SMPHeader.byteCount { try begin(bits) }
            case .failed(let error): throw error
            }
        }
    }

    private mutating func begin(_ bits: UInt64) throws(FerryError) {
        guard let header = SMPHeader(bits: bits) else {
            let first = String(UInt8(truncatingIfNeeded: bits >> 56), radix: 16)
            throw fail(
                FerryError(
                    .malformedStream,
                    "Message \(deliveredMessages + 1) from the peer begins with the byte 0x\(first), which no SMP header has: bytes"
                        + " before it were lost, or the peer speaks another format. Connect again."))
        }
        let total = SMPHeader.byteCount + Int(header.payloadCount)
        guard total <= maximumMessageSize else {
            throw fail(
                .messageTooLarge(
                    receiving: "announces \(total) bytes", afterMessages: deliveredMessages, limit: maximumMessageSize))
        }
        assembler.begin(expecting: total)
        withUnsafeBytes(of: bits.bigEndian) { assembler.append($0.bytes) }
        inbound = .message(missing: total - SMPHeader.byteCount)
        if header.payloadCount == 0 { deliver() }
    }

    private mutating func deliver() {
        events.received(assembler.takeExpected())
        deliveredMessages += 1
        inbound = .header(bits: 0, count: 0)
    }

    private mutating func fail(_ error: FerryError) -> FerryError {
        if case .failed(let first) = inbound { return first }
        inbound = .failed(error)
        assembler = MessageAssembler(bound: 0)
        return error
    }

    private var arrivedBytes: Int {
        switch inbound {
        case .header(_, let count): count
        case .message: assembler.count
        case .failed: 0
        }
    }

    private var arrivedPart: String {
        switch inbound {
        case .header(_, let count): "within its header, after \(count) of 8 bytes"
        case .message(let missing): "after \(assembler.count) of its \(assembler.count + missing) bytes"
        case .failed: "after an error"
        }
    }

    /// How much of the message in hand is here.
    public var arriving: ReceiveProgress? {
        guard case .message(let missing) = inbound else { return nil }
        return ReceiveProgress(receivedBytes: assembler.count, totalBytes: assembler.count + missing)
    }

    /// When the silence in the middle of a message becomes too long (`Limits.inboundStallTimeout`); nil between messages.
    public var deadline: Timestamp? { arrivedBytes > 0 ? stall.deadline : nil }

    /// - Throws: `truncatedMessage` when the silence in the middle of a message has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        guard let deadline, now >= deadline else { return }
        throw fail(.truncatedMessage("fell silent \(arrivedPart)", raising: true, afterMessages: deliveredMessages))
    }

    /// While the peer is asked to pause its silence does not count.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { stall.pause(isPaused, at: now) }

    /// - Throws: `truncatedMessage` when a message had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard arrivedBytes > 0 else { return }
        throw fail(.truncatedMessage("ended \(arrivedPart)", raising: false, afterMessages: deliveredMessages))
    }
}
