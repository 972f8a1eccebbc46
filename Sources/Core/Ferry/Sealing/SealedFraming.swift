import DequeModule

/// A framing whose payloads are sealed: it seals and opens, and hands the sealed payloads to another framing.
///
///     let framing = SealedFraming(LengthPrefixFraming(), by: sealing)
///     let channel = try MessageChannel(over: link, codec: TextCodec(), framing: framing)
///
/// Both sides use it. The handshake begins with the first link; until it is complete messages wait, and none is delivered.
/// With a framing that goes on over another link the seal goes on too. A peer that has lost its session has lost the keys as well:
/// the channel ends with `peerLostState`.
///
/// A message's size is what the app sends: ``Limits/maximumMessageSize`` does not count what sealing adds.
public struct SealedFraming<Base: Framing, Sealing: MessageSealing>: Framing {
    /// What carries the sealed payloads.
    public let base: Base
    /// What seals them.
    public let sealing: Sealing
    /// How long the handshake may take on a link.
    public let handshakeTimeout: Duration

    /// Makes the framing.
    ///
    /// - Parameters:
    ///   - base: carries the sealed payloads; any framing but one for text.
    ///   - sealing: seals them.
    ///   - handshakeTimeout: how long the handshake may take on a link, before the channel ends with `timedOut`. Default 15 s.
    public init(_ base: Base, by sealing: Sealing, handshakeTimeout: Duration = .seconds(15)) {
        self.base = base
        self.sealing = sealing
        self.handshakeTimeout = handshakeTimeout
    }

    /// Both names, such as `length+noise`.
    public var name: String { "\(base.name)+\(sealing.name)" }

    /// As the framing below.
    public var keepsMessageOrder: Bool { base.keepsMessageOrder }

    /// The state for a new link.
    public func makeSession(limits: Limits) -> Session { makeSession(limits: limits, payloads: PayloadFormat()) }

    /// The same for payloads of a known format.
    public func makeSession(limits: Limits, payloads: PayloadFormat) -> Session {
        makeSession(limits: limits, payloads: payloads, role: .initiator)
    }

    /// As the framing below.
    public var needsRole: Bool { base.needsRole }

    /// The same for one of the link's two sides, which the framing below may have to know.
    public func makeSession(limits: Limits, payloads: PayloadFormat, role: LinkRole) -> Session {
        let seal = sealing.makeSeal(
            for: SealedExchange(payloads: payloads, keepsOrder: base.keepsMessageOrder))
        var sealed = limits
        let (largest, overflow) = limits.maximumMessageSize.addingReportingOverflow(seal.maximumOverhead)
        sealed.maximumMessageSize = max(overflow ? .max : largest, SealedFramingBounds.largestHandshake)
        return Session(
            base: base.makeSession(limits: sealed, payloads: payloads, role: role), seal: seal,
            keepsOrder: base.keepsMessageOrder, maximumMessageSize: limits.maximumMessageSize,
            handshakeTimeout: handshakeTimeout)
    }

    /// Refuses what the framing below refuses, and a framing for text.
    public func check(_ payloads: PayloadFormat) throws(FerryError) {
        try base.check(payloads)
        var bytes = payloads
        bytes.isEnveloped = true
        do { try base.check(bytes) } catch {
            throw FerryError(
                .invalidConfiguration,
                "The \(base.name) framing, as it is set up, cannot carry sealed payloads, which are not text. Use binary content, "
                    + "or the length prefix.")
        }
    }

    /// As the framing below.
    public func sessionID(inFirstChunk chunk: RawSpan) -> UInt64? { base.sessionID(inFirstChunk: chunk) }
}

enum SealedFramingBounds {
    /// A session takes messages of as many bytes at least, so that a small limit does not keep the handshake out.
    static let largestHandshake = 1024
    /// How long a refusal may take to leave before the link closes all the same.
    static let refusalTime = Duration.seconds(1)
}

extension SealedFraming {
    /// A session of the framing below, and a seal.
    public struct Session: FramingSession {
        private var base: Base.Session
        private var seal: Sealing.Seal
        private let keepsOrder: Bool
        private let maximumMessageSize: Int
        private let handshakeTimeout: Duration

        private var phase = Phase.greeting(deadline: nil)
        private var waiting = WaitingPayloads()
        private var underWay = SealedUnderWay()
        /// Delivered and unconsumed messages, oldest first: bytes as the app counts them, and as the framing below does.
        private var delivered: Deque<(plain: Int, sealed: Int)> = []
        private var events: Deque<FramingEvent> = []
        private var seenRestarts = 0
        /// The time of the call that is under way.
        private var now = Timestamp.zero
        private var handshakeMessages: UInt64 = 0

        /// One session's life; each step is final.
        private enum Phase {
            /// The handshake is under way. Its deadline runs while there is a link.
            case greeting(deadline: Timestamp?)
            /// The handshake is complete here, and its last message, this side's, may be overtaken: nothing follows it until it is known
            /// to have arrived.
            case confirming(MessageID, deadline: Timestamp?)
            case established
            /// This side has ended the handshake. The refusal goes out before the error ends the channel.
            case refusing(FerryError, deadline: Timestamp)
            case failed(FerryError)
        }

        init(
            base: Base.Session, seal: Sealing.Seal, keepsOrder: Bool, maximumMessageSize: Int,
            handshakeTimeout: Duration
        ) {
            self.base = base
            self.seal = seal
            self.keepsOrder = keepsOrder
            self.maximumMessageSize = maximumMessageSize
            self.handshakeTimeout = handshakeTimeout
        }

        /// Who the peer has proven to be; nil until it has.
        public var provenPeer: PeerIdentity? { seal.provenPeer }
    }
}

// MARK: - The handshake

extension SealedFraming.Session {
    private var failure: FerryError? { if case .failed(let error) = phase { error } else { nil } }

    private var isEstablished: Bool { if case .established = phase { true } else { false } }

    /// Ends the session: the first error counts.
    private mutating func fail(_ error: FerryError) {
        guard failure == nil else { return }
        phase = .failed(error)
    }

    /// Ends the handshake: the peer is told, where the seal has a word for it, and then the session fails.
    private mutating func refuse(_ error: FerryError) {
        guard case .greeting = phase, let refusal = seal.refusal else { return fail(error) }
        do {
            handshakeMessages += 1
            let id = MessageID(rawValue: .max - handshakeMessages)
            try base.enqueue(refusal, as: id, options: SendOptions(receipt: .delivered), at: now)
            phase = .refusing(error, deadline: now + SealedFramingBounds.refusalTime)
        } catch { fail(error) }
    }

    private var isRefusing: Bool { if case .refusing = phase { true } else { false } }

    private func throwFailure() throws(FerryError) {
        if let failure { throw failure }
    }

    /// Hands this side's messages of the handshake to the framing below.
    private mutating func greet() throws(FerryError) {
        guard case .greeting(let deadline) = phase else { return }
        var last: MessageID?
        while let message = try seal.nextHandshakeMessage() {
            handshakeMessages += 1
            let id = MessageID(rawValue: .max - handshakeMessages)
            try base.enqueue(message, as: id, options: SendOptions(receipt: .delivered), at: now)
            last = id
        }
        guard seal.isEstablished else { return }
        if !keepsOrder, let last { phase = .confirming(last, deadline: deadline) } else { phase = .established }
    }

    /// Of the last messages' numbers, from the top: the channel counts from 0.
    private func isHandshake(_ id: MessageID) -> Bool { id.rawValue >= .max - handshakeMessages }

    private var handshakeDeadline: Timestamp? {
        switch phase {
        case .greeting(let deadline), .confirming(_, let deadline): deadline
        case .refusing(_, let deadline): deadline
        case .established, .failed: nil
        }
    }

    private mutating func setHandshakeDeadline(_ deadline: Timestamp?) {
        switch phase {
        case .greeting: phase = .greeting(deadline: deadline)
        case .confirming(let id, _): phase = .confirming(id, deadline: deadline)
        case .established, .refusing, .failed: break
        }
    }
}

// MARK: - Sending

extension SealedFraming.Session {
    /// Takes a payload to be sealed and sent, in normal priority.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        try enqueue(payload, as: id, options: SendOptions(), at: now)
    }

    /// Takes a payload to be sealed and sent.
    public mutating func enqueue(
        _ payload: [UInt8], as id: MessageID, options: SendOptions, at now: Timestamp
    ) throws(FerryError) {
        try throwFailure()
        guard payload.count <= maximumMessageSize else {
            throw FerryError.messageTooLarge(sending: payload.count, limit: maximumMessageSize)
        }
        waiting.append(payload, as: id, options)
    }

    /// Takes a message back while it waits to be sealed, and later where the framing below can do so without a gap, or gaps do no
    /// harm.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool {
        if waiting.remove(id) { return true }
        // The peer counts: a message that is sealed has to arrive.
        guard !keepsOrder, base.cancel(id, at: now) else { return false }
        underWay.end(id)
        return true
    }

    /// `nothingSent` while the message waits to be sealed; after that as the framing below.
    public func fate(of id: MessageID) -> MessageFate { waiting.contains(id) ? .nothingSent : base.fate(of: id) }

    /// Offers the next chunk of the handshake or of sealed messages.
    ///
    /// - Throws: as the framing below; and what the seal throws.
    public mutating func transmit(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        self.now = now
        try throwFailure()
        if case .refusing(let error, _) = phase {
            let outcome = try base.transmit(atMost: maximumChunkSize(), at: now, offer)
            guard outcome == .idle else { return outcome }
            fail(error)
            throw error
        }
        if !isEstablished || !waiting.isEmpty {
            collect()
            try throwFailure()
            do {
                try greet()
                try sealWaiting(maximumChunkSize)
            } catch {
                fail(error)
                throw error
            }
        }
        return try base.transmit(atMost: maximumChunkSize(), at: now, offer)
    }

    /// Seals waiting messages: all of them where the framing below chooses the order, otherwise enough to fill the next chunk, so that
    /// the others can still be taken back.
    private mutating func sealWaiting(_ maximumChunkSize: () -> Int) throws(FerryError) {
        guard isEstablished, !waiting.isEmpty else { return }
        let chunkSize = keepsOrder ? maximumChunkSize() : .max
        while !keepsOrder || underWay.remaining < chunkSize, let next = waiting.popFirst() {
            // A message that the framing refuses takes no number.
            var sealing = seal
            let sealed = try sealing.seal(next.payload)
            do { try base.enqueue(sealed, as: next.id, options: next.options, at: now) } catch {
                events.append(.failed(next.id, error.telling(.nothingSent)))
                continue
            }
            seal = sealing
            underWay.begin(next.id, plain: next.payload.count, sealed: sealed.count)
        }
    }
}

// MARK: - Receiving

extension SealedFraming.Session {
    /// Takes a chunk that arrived, and opens what it completes.
    ///
    /// - Throws: as the framing below; what the seal throws of a message; `peerLostState`.
    public mutating func receive(_ chunk: RawSpan, at now: Timestamp) throws(FerryError) {
        self.now = now
        try throwFailure()
        do {
            try base.receive(chunk, at: now)
        } catch {
            collect()
            fail(error)
        }
        collect()
        try throwFailure()
    }

    /// The next thing that happened, oldest first.
    public mutating func nextEvent() -> FramingEvent? {
        collect()
        return events.popFirst()
    }

    /// Takes over what the framing below has to tell.
    private mutating func collect() {
        while failure == nil, let event = base.nextEvent() { translate(event) }
        guard failure == nil, base.peerRestarts != seenRestarts else { return }
        seenRestarts = base.peerRestarts
        fail(
            FerryError(
                .peerLostState,
                "The peer has lost its session, and the keys of this seal with it. Open a new channel."))
    }

    private mutating func translate(_ event: FramingEvent) {
        switch event {
        case .received(let payload): received(payload)
        case .progress(let id, let acceptedBytes):
            guard let progress = underWay.progress(id, acceptedBytes) else { return }
            if case .progress(id, _) = events.last { events.removeLast() }
            events.append(.progress(id, acceptedBytes: progress))
        case .sent(let id):
            guard isHandshake(id) else {
                underWay.end(id)
                return events.append(.sent(id))
            }
            if case .confirming(id, _) = phase { phase = .established }
        case .failed(let id, let error):
            guard isHandshake(id) else {
                underWay.end(id)
                return events.append(.failed(id, error))
            }
            fail(error)
        case .receiveFailed: events.append(event)
        }
    }

    private mutating func received(_ payload: [UInt8]) {
        do throws(FerryError) {
            guard !isRefusing else { return base.consume(payload.count, at: now) }
            guard seal.isEstablished else {
                do { try seal.receiveHandshake(payload) } catch { return refuse(error) }
                base.consume(payload.count, at: now)
                return try greet()
            }
            let plain = try seal.open(payload)
            guard plain.count <= maximumMessageSize else {
                throw FerryError.messageTooLarge(
                    receiving: "has \(plain.count) bytes", afterMessages: 0, limit: maximumMessageSize)
            }
            if base.acknowledges { delivered.append((plain.count, payload.count)) }
            events.append(.received(plain))
        } catch {
            fail(error)
        }
    }

    /// The app has taken messages of `count` bytes together.
    public mutating func consume(_ count: Int, at now: Timestamp) {
        var rest = count
        var isFirst = true
        var sealed = 0
        while let next = delivered.first, next.plain <= rest, isFirst || rest > 0 {
            delivered.removeFirst()
            rest -= next.plain
            sealed += next.sealed
            isFirst = false
        }
        base.consume(sealed, at: now)
    }

    /// The message that arrives, without what sealing added; nil during the handshake.
    public var arriving: ReceiveProgress? {
        guard seal.isEstablished, let arriving = base.arriving else { return nil }
        let added = min(seal.maximumOverhead, 17)
        return ReceiveProgress(
            receivedBytes: max(0, arriving.receivedBytes - added),
            totalBytes: arriving.totalBytes.map { max(0, $0 - added) })
    }

    /// As the framing below.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) { base.pauseReceiving(isPaused, at: now) }
}

// MARK: - Links and time

extension SealedFraming.Session {
    /// Whether the handshake is complete, and the framing below is ready.
    public var isReady: Bool { isEstablished && base.isReady }
    /// As the framing below.
    public var survivesLinkLoss: Bool { base.survivesLinkLoss }
    /// As the framing below.
    public var acknowledges: Bool { base.acknowledges }
    /// As the framing below.
    public var needsNewLink: Bool { base.needsNewLink }
    /// As the framing below.
    public var peerRestarts: Int { base.peerRestarts }

    /// A new link: the handshake begins, or goes on.
    public mutating func linkDidOpen(at now: Timestamp) {
        self.now = now
        setHandshakeDeadline(now + handshakeTimeout)
        base.linkDidOpen(at: now)
    }

    /// The link has ended.
    ///
    /// - Throws: as the framing below; `disconnected` when the handshake ends with the link.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        self.now = now
        setHandshakeDeadline(nil)
        defer { collect() }
        if case .refusing(let error, _) = phase { throw error }
        try base.linkDidClose(at: now)
        if case .greeting = phase, !base.survivesLinkLoss {
            throw FerryError(
                .disconnected,
                "The link ended before the two sides had proven their keys. The peer may not accept this side's key, or may not seal: "
                    + "look at its log.")
        }
    }

    /// The earlier of the handshake's deadline and that of the framing below.
    public var deadline: Timestamp? {
        guard let own = handshakeDeadline else { return base.deadline }
        return base.deadline.map { min($0, own) } ?? own
    }

    /// Looks which deadline has come.
    ///
    /// - Throws: as the framing below; `timedOut` when the handshake has taken too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        self.now = now
        try throwFailure()
        if case .refusing(let error, let deadline) = phase, deadline <= now { fail(error) }
        if let deadline = handshakeDeadline, deadline <= now {
            fail(
                FerryError(
                    .timedOut,
                    "The peer has not finished the handshake within \(handshakeTimeout). It may not seal its messages: use the same "
                        + "setting on both sides."))
        }
        if let deadline = base.deadline, deadline <= now {
            do { try base.wake(at: now) } catch {
                collect()
                throw failure ?? error
            }
        }
        collect()
        try throwFailure()
    }
}
