public import Ferry

extension SequencedFraming {
    /// One side of the sequenced framing, with one peer, over any number of links, one after the other.
    ///
    /// `linkDidOpen` begins with a hello; `linkDidClose` keeps everything for the next link. When the session is
    /// discarded, messages not yet reported as sent count as failed.
    public struct Session: FramingSession {
        /// This session's identifier. It changes when the peer proves to have lost its state.
        public internal(set) var id: UInt32

        /// Counts since the session began.
        public internal(set) var statistics = SequencedStatistics()

        let configuration: Configuration
        let payloads: PayloadFormat

        var phase = SessionPhase.suspended
        var outbox: Outbox
        var window: SendWindow
        var arrivals: ReceiveWindow
        var inbox: Inbox
        var events: RingQueue<FramingEvent> = []
        var handshake = Handshake()
        var acknowledging = Acknowledging()
        var probing = Probing()
        var sentPiece: SentPiece?
        var receivedPiece = ReceivedPiece()
        /// Timeouts since the peer was last heard.
        var silence = 0
        /// Notices silence in the middle of a message.
        var stall: StallDetector
        /// The peer was silent past the limit, so another link should be tried.
        public internal(set) var needsNewLink = false
        /// How often the peer has lost its state.
        public internal(set) var peerRestarts = 0
        var scratch: [UInt8] = []

        init(id: UInt32, configuration: Configuration, limits: Limits, payloads: PayloadFormat) {
            self.id = id
            self.configuration = configuration
            self.payloads = payloads
            stall = StallDetector(timeout: limits.inboundStallTimeout)
            outbox = Outbox(maximumOpen: configuration.maximumOpenMessages)
            window = SendWindow(window: configuration.window)
            arrivals = ReceiveWindow(window: configuration.window)
            inbox = Inbox(
                maximumSize: RoundedSize(roundingUp: limits.maximumMessageSize),
                window: Self.creditWindow(configuration, limits))
        }

        /// What may wait to be read besides one message: half of what the limits allow.
        private static func creditWindow(_ configuration: Configuration, _ limits: Limits) -> Int {
            let (messages, overflow) = (limits.maximumInboundMessages / 2).multipliedReportingOverflow(
                by: OutboundMessage.fixedCost)
            let most = min(limits.maximumInboundBytes / 2, overflow ? .max : messages)
            return max(1 << 10, min(configuration.creditWindow, most))
        }

        /// The meeting of the two sides.
        struct Handshake {
            /// The peer's session, once met.
            var peer: UInt32?
            var isDue = false
            var deadline: Timestamp?
            var tries = 0
            var refusing = Refusing.no

            enum Refusing {
                case no
                /// The peer has to hear it.
                case due(SequencedRefusal)
                case told(SequencedRefusal)
            }

            /// Why this side refuses the peer.
            var refusal: SequencedRefusal? {
                switch refusing {
                case .no: nil
                case .due(let refusal), .told(let refusal): refusal
                }
            }
        }

        /// When the next acknowledgement is due.
        struct Acknowledging {
            var isDue = false
            var pending = 0
            var deadline: Timestamp?
        }

        /// Asking for credit when none is left and no acknowledgement is on its way.
        struct Probing {
            var state = State.idle
            var tries = 0

            enum State {
                case idle
                case waiting(until: Timestamp)
                case due
            }

            var deadline: Timestamp? { if case .waiting(let deadline) = state { deadline } else { nil } }
        }

        /// A chunk that goes out in pieces, as the link has become too small for it.
        struct SentPiece {
            var number: UInt64
            var offset = 0
        }

        /// The pieces of a chunk that have come in.
        struct ReceivedPiece {
            var sequence: UInt8 = 0
            var bytes: [UInt8] = []
        }

        static let maximumChunkSize = 1 << 15
    }
}

/// Counts of a sequenced session, in chunks.
public struct SequencedStatistics: Sendable, Hashable {
    /// Data chunks sent for the first time.
    public var dataChunks = 0
    /// Data chunks sent again.
    public var repeatedChunks = 0
    /// Chunks that carry nothing but an acknowledgement.
    public var acknowledgementChunks = 0
    /// Data chunks that arrived a second time.
    public var doubledChunks = 0
    /// Data chunks that arrived before their turn.
    public var earlyChunks = 0
    /// Chunks that the link had cut; they count as lost.
    public var damagedChunks = 0
    /// Timeouts of the retransmission timer.
    public var timeouts = 0
    /// How often a new link went on with what the last one left.
    public var resumptions = 0

    /// All zero.
    public init() {}
}

// MARK: - Messages

extension SequencedFraming.Session {
    /// As the seam says; with the configured receipt and normal priority.
    public mutating func enqueue(_ payload: [UInt8], as id: MessageID, at now: Timestamp) throws(FerryError) {
        try enqueue(payload, as: id, options: SendOptions(), at: now)
    }

    /// Takes a payload to be sent.
    ///
    /// - Throws: `messageTooLarge` when the peer has said that it does not take as much.
    public mutating func enqueue(
        _ payload: [UInt8], as id: MessageID, options: SendOptions, at now: Timestamp
    ) throws(FerryError) {
        if let error = Self.tooLarge(payload.count, outbox.peerMaximum) { throw error }
        var options = options
        if options.receipt == .asConfigured { options.receipt = configuration.receipt }
        outbox.enqueue(OutboundMessage(id: id, payload: payload, options: options))
    }

    static func tooLarge(_ count: Int, _ maximum: Int) -> FerryError? {
        guard count > maximum else { return nil }
        return FerryError(
            .messageTooLarge,
            "The message has \(count) bytes and the peer takes \(maximum). Raise its Limits.maximumMessageSize, or send "
                + "less at once.", fate: .nothingSent)
    }

    /// Takes a message back unless its last byte has left, also in the middle: the peer is told and drops what it has.
    public mutating func cancel(_ id: MessageID, at now: Timestamp) -> Bool { outbox.cancel(id) }

    /// Nothing of it is in a chunk, not all of it is, or all of it.
    public func fate(of id: MessageID) -> MessageFate { outbox.fate(of: id) }

    /// The message that arrived last in part.
    public var arriving: ReceiveProgress? { inbox.arriving }

    /// Whether the two sides have met on this link.
    public var isReady: Bool { phase == .met || phase == .established }

    /// The app has taken a message; credit for as much again is granted.
    public mutating func consume(_ count: Int, at now: Timestamp) {
        inbox.consume(count)
        stall.chunkArrived(at: now)
        guard inbox.hasNews, phase == .met || phase == .established else { return }
        acknowledging.isDue = true
        acknowledging.deadline = now
    }

    /// The next thing that happened, oldest first.
    public mutating func nextEvent() -> FramingEvent? { events.isEmpty ? nil : events.popFirst() }

    /// How many events there are.
    package var waitingEvents: Int { events.count }
}

// MARK: - Links

extension SequencedFraming.Session {
    /// True: unfinished messages go on over another link once the peer has said what it has.
    public var survivesLinkLoss: Bool { true }
    /// True: progress counts what the peer has, and credit stops it.
    public var acknowledges: Bool { true }

    /// A new link: a hello goes out first.
    public mutating func linkDidOpen(at now: Timestamp) {
        if phase != .suspended { linkDidClose(at: now) }
        phase.move(.linkOpened)
        handshake.isDue = true
        handshake.tries = 0
        needsNewLink = false
        stall.chunkArrived(at: now)
        inbox.linkDidOpen()
    }

    /// The link has ended. Nothing is lost yet.
    public mutating func linkDidClose(at now: Timestamp) {
        phase.move(.linkClosed)
        handshake.isDue = false
        handshake.deadline = nil
        acknowledging = Acknowledging()
        probing = Probing()
        sentPiece = nil
        receivedPiece = ReceivedPiece()
        arrivals.dropHeld()
        silence = 0
    }
}

// MARK: - Time

extension SequencedFraming.Session {
    /// The earliest of the timers: hello, acknowledgement, retransmission, probe, silence in the middle of a message.
    public var deadline: Timestamp? {
        var earliest = handshake.deadline
        func consider(_ deadline: Timestamp?) {
            guard let deadline else { return }
            earliest = min(earliest ?? deadline, deadline)
        }
        guard phase == .met || phase == .established else { return earliest }
        consider(acknowledging.deadline)
        consider(window.deadline)
        consider(probing.deadline)
        if inbox.expectsMore { consider(stall.deadline) }
        return earliest
    }

    /// Looks which timer has come.
    ///
    /// - Throws: `timedOut` when the peer has been silent for too long, or when a chunk does not arrive however often it
    ///   is sent; `truncatedMessage` when it has been silent in the middle of a message for
    ///   ``/Ferry/Limits/inboundStallTimeout``; `incompatiblePeer` after a refusal. After silence the session can go on over
    ///   another link (``needsNewLink``).
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        if let deadline = handshake.deadline, deadline <= now {
            handshake.deadline = nil
            if let refusal = handshake.refusal { throw refusal.error(refusedBy: "This side") }
            handshake.isDue = true
            silence += 1
        }
        guard phase == .met || phase == .established else { return try checkSilence() }
        if let deadline = acknowledging.deadline, deadline <= now {
            acknowledging.deadline = nil
            acknowledging.isDue = true
        }
        if let deadline = window.deadline, deadline <= now {
            let transmissions = window.expire()
            statistics.timeouts += 1
            silence += 1
            guard transmissions <= 3 * configuration.maximumTimeouts else {
                throw FerryError(
                    .timedOut,
                    "A chunk was sent \(transmissions) times and never arrived whole, though others do. The link may cut "
                        + "or drop large values: pass a smaller chunkSize.")
            }
        }
        if let deadline = probing.deadline, deadline <= now {
            probing.state = .due
            silence += 1
        }
        if inbox.expectsMore, let deadline = stall.deadline, deadline <= now {
            needsNewLink = true
            throw FerryError(
                .truncatedMessage,
                "The peer fell silent in the middle of a message, though it has credit. Raise Limits.inboundStallTimeout "
                    + "if it is that slow.")
        }
        try checkSilence()
    }

    private mutating func checkSilence() throws(FerryError) {
        guard silence > configuration.maximumTimeouts else { return }
        needsNewLink = true
        throw FerryError(
            .timedOut,
            "The peer has not answered \(silence - 1) times in a row. It may be out of range, busy, or not use the "
                + "sequenced framing.")
    }
}
