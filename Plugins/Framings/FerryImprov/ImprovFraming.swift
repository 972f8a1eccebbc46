public import Ferry

/// Messages between an Improv device and an app, over the layout `GATTConfiguration.improv(state:capabilities:)`.
///
/// A message begins with a byte that says what it is. It crosses the air for none of them: the characteristic says it.
///
/// | first byte | from | the rest |
/// |---|---|---|
/// | 0 | either side | a packet (``ImprovPacket``): a command from the app, a result from the device |
/// | 1 | the device | its state (``ImprovState``), 1 byte |
/// | 2 | the device | the last error, 1 byte, 0 for none |
/// | 3 | the device, once | what it can do (``ImprovCapabilities``), 1 byte |
///
/// A packet may come in several chunks, and its length says when it is whole. Devices in the field cut a result short that is longer than the
/// ATT_MTU allows. It fails by its sum when the next one comes, and else with `truncatedMessage`, at the link's end or after
/// ``/Ferry/Limits/inboundStallTimeout``.
///
/// ## What it can notice
/// A wrong sum, a length that the strings do not have, bytes behind a packet, a note of another length, and silence within a packet.
public struct ImprovFraming: Framing {
    /// Makes the framing.
    public init() {}

    /// `improv`.
    public var name: String { "improv" }

    /// True: only the device's chunks begin with a number.
    public var needsRole: Bool { true }

    /// The state for a new link of the app, which connects.
    public func makeSession(limits: Limits) -> Session {
        makeSession(limits: limits, payloads: PayloadFormat(), role: .initiator)
    }

    /// The state for a new link.
    public func makeSession(limits: Limits, payloads: PayloadFormat, role: LinkRole) -> Session {
        Session(limits, role)
    }
}

extension ImprovFraming {
    /// The first bytes of messages.
    enum Kind: UInt8 { case packet, state, error, capabilities }

    /// The state on one link.
    public struct Session: FramingSession {
        private let role: LinkRole
        private var outbound = OutboundQueue()
        /// How many bytes of the first message have been accepted, its first byte among them.
        /// The chunk that is offered.
        private var scratch: [UInt8] = []

        /// The packet in hand, with its first byte; empty between packets. At most 259 bytes.
        private var packet: [UInt8] = []
        private var stall: StallDetector
        private var deliveredMessages = 0
        private var failure: FerryError?
        @usableFromInline var events = FramingEventQueue()

        init(_ limits: Limits, _ role: LinkRole) {
            self.role = role
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

// MARK: - Sending

extension ImprovFraming.Session {
    /// Takes a message to be sent.
    ///
    /// - Throws: `invalidConfiguration` for a message that this side does not send; `decodingFailed` for a packet that is none.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        let kind = payload.first.flatMap(ImprovFraming.Kind.init)
        switch (kind, role) {
        case (.packet, _): _ = try ImprovPacket(Array(payload.dropFirst()))
        case (.state, .responder), (.error, .responder):
            guard payload.count == 2 else { throw Self.noMessage(payload) }
        default: throw Self.noMessage(payload)
        }
        outbound.append(payload, as: id)
    }

    private static func noMessage(_ payload: [UInt8]) -> FerryError {
        FerryError(
            .invalidConfiguration,
            "A message of Improv is 0 and a packet, or from the device 1 and a state or 2 and an error, of 1 byte; this one has "
                + "\(payload.count) bytes\(payload.first.map { " and begins with \($0)" } ?? ""). Make it with ImprovPacket."
        )
    }

    /// Takes a message back if none of its bytes has been accepted.
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
        let size = maximumChunkSize()
        guard size >= 2 else {
            throw FerryError(.chunkSizeTooSmall, "The link takes chunks of \(size) bytes; Improv needs 2 at least.")
        }
        let payload = outbound.first.payload
        let lead = role == .responder ? 1 : 0
        let begin = max(outbound.acceptedBytes, 1)
        let end = min(payload.count, begin + size - lead)
        scratch.removeAll(keepingCapacity: true)
        if role == .responder { scratch.append(payload[0]) }
        scratch.append(contentsOf: payload[begin..<end])
        guard try offer(scratch.span.bytes) else { return .refused }
        outbound.accept(upTo: end, telling: &events)
        return .accepted
    }
}

// MARK: - Receiving

extension ImprovFraming.Session {
    /// How much of the packet in hand is here.
    public var arriving: ReceiveProgress? {
        packet.isEmpty ? nil : ReceiveProgress(receivedBytes: packet.count, totalBytes: wholeCount)
    }

    /// The bytes of the packet in hand, with its first one; nil before its length is here.
    private var wholeCount: Int? { packet.count > 2 ? 4 + Int(packet[2]) : nil }

    /// Takes a chunk that arrived.
    ///
    /// - Throws: `malformedStream` for bytes that are no chunk of Improv, `decodingFailed` for a packet that is none. The same again for every
    ///   later chunk.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        if let failure { throw failure }
        guard chunk.byteCount > 0 else {
            throw fail(.emptyChunk(afterMessages: deliveredMessages, bytes: packet.count))
        }
        let bytes = chunk.withUnsafeBytes { [UInt8]($0) }
        guard role == .initiator else { return try receivePacket(bytes[...], at: now) }
        switch ImprovFraming.Kind(rawValue: bytes[0]) {
        case .packet: try receivePacket(bytes.dropFirst(), at: now)
        case .state, .error, .capabilities:
            guard bytes.count == 2 else { throw fail(malformed("a note of \(bytes.count - 1) bytes, where 1 was due")) }
            deliver(bytes)
        case nil: throw fail(malformed("a chunk that begins with \(bytes[0]), which no characteristic has"))
        }
    }

    private mutating func receivePacket(_ bytes: ArraySlice<UInt8>, at now: Timestamp) throws(FerryError) {
        stall.chunkArrived(at: now)
        guard !bytes.isEmpty else { throw fail(malformed("an empty value in the place of a packet")) }
        if packet.isEmpty { packet = [ImprovFraming.Kind.packet.rawValue] }
        // Bounded: a chunk has at most 512 bytes, and the packet in hand at most 258.
        packet += bytes
        guard let wholeCount, packet.count >= wholeCount else { return }
        guard packet.count == wholeCount else {
            throw fail(malformed("\(packet.count - wholeCount) bytes behind a packet of \(wholeCount - 1)"))
        }
        do throws(FerryError) { _ = try ImprovPacket(Array(packet.dropFirst())) } catch { throw fail(error) }
        deliver(packet)
        packet = []
    }

    private mutating func deliver(_ message: [UInt8]) {
        events.received(message)
        deliveredMessages += 1
    }

    private func malformed(_ what: String) -> FerryError {
        FerryError(
            .malformedStream,
            "Message \(deliveredMessages + 1) from the peer has \(what). Connect again; check that the peer speaks Improv."
        )
    }

    private mutating func fail(_ error: FerryError) -> FerryError {
        failure = error
        packet = []
        return error
    }

    /// When the silence within a packet becomes too long (``/Ferry/Limits/inboundStallTimeout``); nil between packets.
    public var deadline: Timestamp? { packet.isEmpty ? nil : stall.deadline }

    /// - Throws: `truncatedMessage` when the silence within a packet has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        guard let deadline, now >= deadline else { return }
        throw fail(cut("fell silent"))
    }

    /// While the peer is asked to pause its silence does not count.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { stall.pause(isPaused, at: now) }

    /// - Throws: `truncatedMessage` when a packet had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard !packet.isEmpty else { return }
        throw fail(cut("ended"))
    }

    private func cut(_ what: String) -> FerryError {
        let whole = wholeCount.map { "\($0 - 1)" } ?? "unknown"
        return .truncatedMessage(
            "\(what) after \(packet.count - 1) of \(whole) bytes of a packet; devices cut results that the ATT_MTU has no room for",
            raising: false, afterMessages: deliveredMessages)
    }
}
