public import Ferry

/// Messages as Polar's watches and straps exchange them: each chunk begins with a byte that says whether it is the first, whether more
/// follow, and which it is, modulo 16.
///
/// | bits of the first byte | meaning |
/// |---|---|
/// | 0 | 0 in a message's first chunk, 1 in the others |
/// | 1 and 2 | 3: more follows; 1: the message ends; 0: an error follows, 2 bytes, the less significant first |
/// | 4 to 7 | the chunk's number in its message, from 0, modulo 16 |
///
/// An error ends the message in whose place or middle it comes; the error 0 is success, and ends a message as it is.
///
/// ## What it can notice
/// A chunk that is lost, doubled or overtaken, by its number, unless it is 16 or a multiple of them; a bit that cannot be; a message of more
/// than ``/Ferry/Limits/maximumMessageSize`` bytes; silence in its middle and a link that ends there. Nothing is sent again: the link has to be
/// made anew.
///
/// Source: PyPI polar-ble-tools 0.6.0, `polar/pftp.py`, against which it is tested (RFC 76 in Polar's words).
public struct PFTPFraming: Framing {
    /// What becomes of errors that the peer sends in the place of a message.
    public enum Errors: Sendable, Hashable {
        /// An error ends the link, with `pftp.refused`.
        case endLink
        /// Each message begins with the number of its error, 2 bytes, the less significant first, in both directions: 0 for a message, and
        /// for an error nothing else. So a client can go on after one.
        case leadMessages
    }

    /// `pftp`.
    public var name: String { "pftp" }
    /// What becomes of errors.
    public let errors: Errors

    /// Makes the framing.
    public init(errors: Errors = .endLink) { self.errors = errors }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { Session(limits, errors) }
}

extension PFTPFraming {
    /// The first byte of a chunk.
    struct Head {
        enum Status: UInt8 { case error, last, unknown, more }

        let byte: UInt8

        init(_ byte: UInt8) { self.byte = byte }

        init(_ status: Status, number: Int) {
            byte = (number == 0 ? 0 : 1) | status.rawValue << 1 | UInt8(truncatingIfNeeded: number & 0xF) << 4
        }

        var isFirst: Bool { byte & 1 == 0 }
        var status: Status { Status(rawValue: byte >> 1 & 3) ?? .unknown }
        var number: Int { Int(byte >> 4) }
    }

    /// The state on one link.
    public struct Session: FramingSession {
        private let maximumMessageSize: Int
        private let errors: Errors

        private var outbound = OutboundQueue()
        /// In how many chunks the first message's bytes have been accepted.
        private var acceptedChunks = 0
        /// The chunk that is offered.
        private var scratch: [UInt8] = []

        private var assembler: MessageAssembler
        private var stall: StallDetector
        /// How many chunks of the message in hand have arrived.
        private var arrived = 0
        private var deliveredMessages = 0
        private var failure: FerryError?

        @usableFromInline var events = FramingEventQueue()

        init(_ limits: Limits, _ errors: Errors) {
            self.errors = errors
            let lead = errors == .leadMessages ? 2 : 0
            maximumMessageSize = max(limits.maximumMessageSize, lead)
            assembler = MessageAssembler(bound: maximumMessageSize)
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

// MARK: - Sending

extension PFTPFraming.Session {
    /// Takes a message to be sent.
    ///
    /// - Throws: `messageTooLarge` above ``/Ferry/Limits/maximumMessageSize``; `invalidConfiguration` for a message without the number of its
    ///   error where one is due, and for one with a number and more.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        guard payload.count <= maximumMessageSize else {
            throw .messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        if errors == .leadMessages {
            guard payload.count >= 2, payload[0] == 0 && payload[1] == 0 || payload.count == 2 else {
                throw FerryError(
                    .invalidConfiguration,
                    "A message begins with the number of its error, 2 bytes, and has nothing else unless that is 0; this one has "
                        + "\(payload.count) bytes.")
            }
        }
        outbound.append(payload, as: id)
    }

    /// Takes a message back if none of its chunks has been accepted.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbound.cancel(id) }

    /// Nothing has left, or not all of it.
    public func fate(of id: MessageID) -> MessageFate { outbound.fate(of: id) }

    /// Offers the next chunk of the first message.
    ///
    /// - Throws: what `offer` throws, or `chunkSizeTooSmall` below 3 bytes.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        guard !outbound.isEmpty else { return .idle }
        let size = maximumChunkSize()
        guard size >= 3 else {
            throw FerryError(
                .chunkSizeTooSmall, "The link takes chunks of \(size) bytes; PFTP needs 3 at least, for an error.")
        }
        let payload = outbound.first.payload
        let isError = errors == .leadMessages && (payload[0] != 0 || payload[1] != 0)
        let lead = errors == .leadMessages && !isError ? 2 : 0
        let begin = max(outbound.acceptedBytes, lead)
        let count = min(size - 1, payload.count - begin)
        let isLast = begin + count == payload.count
        scratch.removeAll(keepingCapacity: true)
        scratch.append(PFTPFraming.Head(isError ? .error : isLast ? .last : .more, number: acceptedChunks).byte)
        payload.withUnsafeBytes {
            scratch.append(contentsOf: UnsafeRawBufferPointer(rebasing: $0[begin..<begin + count]))
        }
        guard try offer(scratch.span.bytes) else { return .refused }
        acceptedChunks = isLast ? 0 : acceptedChunks + 1
        outbound.accept(upTo: begin + count, telling: &events)
        return .accepted
    }
}

// MARK: - Receiving

extension PFTPFraming.Session {
    /// How much of the message in hand is here; its size is not known before its end.
    public var arriving: ReceiveProgress? {
        arrived > 0 ? ReceiveProgress(receivedBytes: assembler.count, totalBytes: nil) : nil
    }

    /// Takes a chunk that arrived.
    ///
    /// - Throws: `malformedStream` for an empty chunk, one out of its order, a status that there is not and an error of less than 2 bytes;
    ///   `messageTooLarge` above ``/Ferry/Limits/maximumMessageSize``; `pftp.refused` for an error, where errors end the link. The same again
    ///   for every later chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        if let failure { throw failure }
        stall.chunkArrived(at: now)
        guard chunk.byteCount > 0 else {
            throw fail(.emptyChunk(afterMessages: deliveredMessages, bytes: assembler.count))
        }
        let head = PFTPFraming.Head(chunk.unsafeLoad(as: UInt8.self))
        guard head.number == arrived & 0xF, head.isFirst == (arrived == 0) else { throw fail(outOfOrder(head)) }
        if arrived == 0, errors == .leadMessages { assembler.append(([0, 0] as [UInt8]).span.bytes) }
        switch head.status {
        case .unknown: throw fail(malformed("has the status 2, which there is not"))
        case .error: try receiveError(chunk)
        case .more, .last:
            let count = chunk.byteCount - 1
            guard count <= maximumMessageSize - assembler.count else {
                throw fail(
                    .messageTooLarge(
                        receiving: "has more than \(assembler.count) bytes and its next chunk \(count) more",
                        afterMessages: deliveredMessages, limit: maximumMessageSize))
            }
            assembler.append(chunk.extracting(droppingFirst: 1))
            arrived += 1
            if head.status == .last { deliver(assembler.takeUnannounced()) }
        }
    }

    private mutating func receiveError(_ chunk: RawSpan) throws(FerryError) {
        guard chunk.byteCount >= 3 else {
            throw fail(malformed("is an error of \(chunk.byteCount - 1) bytes; errors have 2"))
        }
        let bytes = chunk.withUnsafeBytes { [$0[1], $0[2]] }
        let number = UInt16(bytes[0]) | UInt16(bytes[1]) << 8
        guard number != 0 else { return deliver(assembler.takeUnannounced()) }
        guard errors == .leadMessages else { throw fail(.pftpRefused(number, "a message")) }
        assembler = MessageAssembler(bound: maximumMessageSize)
        deliver(bytes)
    }

    private mutating func deliver(_ message: [UInt8]) {
        events.received(message)
        deliveredMessages += 1
        arrived = 0
    }

    private func outOfOrder(_ head: PFTPFraming.Head) -> FerryError {
        let due = arrived == 0 ? "a message's first chunk was due" : "number \(arrived & 0xF) of a message was due"
        let came = head.isFirst ? "a message's first chunk" : "a later chunk"
        return malformed(
            "says that it is \(came), number \(head.number), where \(due): chunks were lost, doubled or overtaken")
    }

    private func malformed(_ what: String) -> FerryError {
        FerryError(
            .malformedStream,
            "A chunk of message \(deliveredMessages + 1) from the peer, after \(assembler.count) bytes of it, \(what). Connect again; check "
                + "that the peer is a device of Polar's.")
    }

    private mutating func fail(_ error: FerryError) -> FerryError {
        failure = error
        arrived = 0
        assembler = MessageAssembler(bound: maximumMessageSize)
        return error
    }

    /// When the silence in the middle of a message becomes too long (``/Ferry/Limits/inboundStallTimeout``); nil between messages.
    public var deadline: Timestamp? { arrived > 0 ? stall.deadline : nil }

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
        guard arrived > 0 else { return }
        throw fail(
            .truncatedMessage(
                "ended after \(assembler.count) bytes of it, before its last chunk", raising: false,
                afterMessages: deliveredMessages))
    }
}
