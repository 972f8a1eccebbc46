public import Ferry

/// Messages on a stream of bytes, told apart by a byte that ends each: lines, SLIP, or COBS.
///
/// The boundaries of chunks carry no meaning. A chunk holds bytes of one message only, for many a small device takes one write as one
/// command.
///
/// ## What it can notice, and what it does then
/// The byte that ends a message never stands within one, so after damage the next message is found: bytes beyond
/// `Limits.maximumMessageSize`, bytes that are no SLIP or COBS, and a message that fell silent are reported, the bytes up to the next
/// end are passed over, and the channel stays open. There is no checksum: bytes that are lost or changed within a message are not noticed, or make
/// one that COBS refuses.
public struct UARTFraming: Framing {
    /// What ends a line.
    @frozen public enum LineEnd: Sendable, Hashable {
        /// `0A`.
        case lineFeed
        /// `0D 0A`, as terminals and AT commands have it.
        case carriageReturnLineFeed
    }

    /// How messages are told apart.
    public enum Format: Sendable, Hashable {
        /// Each message is a line. It may be empty, has no `0A` in it and no `0D` at its end. Both ends of lines are read,
        /// whichever is sent.
        case lines(LineEnd)
        /// RFC 1055: `C0` ends a message; in it `DB DC` stands for `C0` and `DB DD` for `DB`. There is no empty message.
        case slip
        /// Consistent Overhead Byte Stuffing (Cheshire and Baker, 1999): `00` ends a message, and one byte in 254 is added.
        case cobs
    }

    /// How messages are told apart.
    public let format: Format
    /// Whether the byte that ends a message goes before each one too, so that a peer that holds the beginning of another one, from a
    /// connection before this, gives it up. Receivers pass over it. Lines have none: it would be an empty line.
    public let opensFrames: Bool

    /// Makes the framing; both sides need the same format.
    public init(_ format: Format, opensFrames: Bool = false) {
        self.format = format
        if case .lines = format { self.opensFrames = false } else { self.opensFrames = opensFrames }
    }

    /// The name people type: `lines`, `slip`, `cobs`.
    public var name: String {
        switch format {
        case .lines: "lines"
        case .slip: "slip"
        case .cobs: "cobs"
        }
    }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(self, limits) }
}

extension FerryError.Code {
    /// A message that its framing cannot say: a line with a line feed in it, or an empty one by SLIP.
    public static let unsendable = FerryError.Code("uart.unsendable")
}

extension UARTFraming {
    /// The state of the framing on one link.
    public struct Session: FramingSession {
        private let encoder: FrameEncoder
        private let maximumMessageSize: Int
        private var outbound = OutboundQueue()
        /// The first message as it goes over the line, once it has been offered.
        private var frame: [UInt8] = []
        private var framedID: MessageID?

        @usableFromInline var decoder: FrameDecoder
        private var stall: StallDetector

        init(_ framing: UARTFraming, _ limits: Limits) {
            encoder = FrameEncoder(format: framing.format, opensFrames: framing.opensFrames)
            maximumMessageSize = max(limits.maximumMessageSize, 0)
            decoder = FrameDecoder(framing.format, limit: max(limits.maximumMessageSize, 0))
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { decoder.events.next() }
    }
}

// MARK: - Sending

extension UARTFraming.Session {
    /// A frame above this size is let go of when it is out. 64 KiB.
    private static var largestKeptFrame: Int { 64 << 10 }

    /// Takes a payload to be sent.
    ///
    /// - Throws: `messageTooLarge` above `Limits.maximumMessageSize`; `uart.unsendable` for what the format cannot say.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        try encoder.check(payload)
        outbound.append(payload, as: id)
    }

    /// Takes a message back if none of its bytes has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
        let isTakenBack = outbound.cancel(id)
        if isTakenBack, framedID == id { framedID = nil }
        return isTakenBack
    }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// Offers the next bytes of the first message, and of no other.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below 1.
    public mutating func transmit(
        atMost maximumSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        if outbound.isEmpty { return .idle }
        let size = maximumSize()
        guard size >= 1 else {
            throw FerryError(.chunkSizeTooSmall, "The link takes chunks of \(size) bytes; at least 1 is needed.")
        }
        if framedID != outbound.first.id {
            encoder.encode(outbound.first.payload, into: &frame)
            framedID = outbound.first.id
        }
        let end = min(frame.count, outbound.acceptedBytes + size)
        guard try offer(frame.span.bytes.extracting(outbound.acceptedBytes..<end)) else { return .refused }
        outbound.acceptedBytes = end
        let count = outbound.first.payload.count
        // What stands for a byte of the message may be two on the line: the share of the line is told.
        let share = count.multipliedFullWidth(by: end)
        let progress = end == frame.count ? count : frame.count.dividingFullWidth(share).quotient
        if progress > 0 { decoder.events.progress(outbound.first.id, acceptedBytes: progress) }
        if end == frame.count {
            decoder.events.sent(outbound.first.id)
            outbound.removeFirst()
            framedID = nil
            if frame.capacity > Self.largestKeptFrame { frame = [] }
        }
        return .accepted
    }
}

// MARK: - Receiving

extension UARTFraming.Session {
    /// Takes a chunk that arrived: a part of a message, several messages, or anything between. A fault is an event
    /// (`receiveFailed`), with `messageTooLarge` or `malformedStream`.
    ///
    /// - Throws: `malformedStream` for an empty chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        guard !chunk.isEmpty else { throw .emptyChunk(afterMessages: decoder.endedFrames, bytes: decoder.arrivedBytes) }
        stall.chunkArrived(at: now)
        decoder.receive(chunk)
    }

    /// How much of the message in hand is here; its size is not known before its end.
    public var arriving: ReceiveProgress? {
        decoder.arrivedBytes > 0 ? ReceiveProgress(receivedBytes: decoder.arrivedBytes, totalBytes: nil) : nil
    }

    /// When the silence in the middle of a message becomes too long (`Limits.inboundStallTimeout`); nil between messages.
    public var deadline: Timestamp? { decoder.isInFrame ? stall.deadline : nil }

    /// Gives the message in hand up when the silence in its middle has become too long: it is told as `truncatedMessage`.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        guard let deadline, now >= deadline else { return }
        decoder.giveUp(.truncatedMessage(silence, raising: true, afterMessages: decoder.endedFrames))
    }

    private var silence: String { "fell silent after \(decoder.arrivedBytes) bytes of it, before its end" }

    /// While the peer is asked to pause its silence does not count.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { stall.pause(isPaused, at: now) }

    /// - Throws: `truncatedMessage` when a message had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard decoder.isInFrame else { return }
        throw .truncatedMessage(
            "ended after \(decoder.arrivedBytes) bytes of it, before its end", raising: false,
            afterMessages: decoder.endedFrames)
    }
}
