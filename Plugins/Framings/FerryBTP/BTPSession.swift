public import Ferry

extension BTPFraming {
    /// The state on one link.
    public struct Session: FramingSession {
        let role: LinkRole
        let configuration: Configuration
        let maximumMessageSize: Int
        let inboundLimit: Int

        var phase: Phase
        /// When the phase's handshake has taken too long; nil before the link is there and after it.
        var handshakeDeadline: Timestamp?

        var outbound = OutboundQueue()
        /// The packet that is offered.
        var scratch: [UInt8] = []

        var assembler = MessageAssembler(bound: 0)
        var inbound = Inbound.none
        var stall: StallDetector
        var deliveredMessages = 0
        var acknowledgement = Acknowledgement.none
        /// Since when the peer owes an acknowledgement, or this side has not let it send one.
        var unacknowledgedSince = Timestamp.zero
        var isPaused = false

        @usableFromInline var events = FramingEventQueue()

        /// One link's life; each step is final.
        enum Phase: Sendable {
            case owesRequest, awaitsResponse
            case awaitsRequest
            case owesResponse(BTPRequest)
            case open(BTPWindow, packetSize: Int)
            case failed(FerryError)
        }

        /// The message that is arriving.
        enum Inbound: Sendable {
            case none
            /// `missing` bytes are still to come; `surplus` bytes beyond the announced length have come and were left out.
            case arriving(missing: Int, surplus: Int)
        }

        /// What this side owes the peer for received packets.
        enum Acknowledgement: Sendable {
            case none
            /// It waits for a packet of this side's that can carry it.
            case waits(until: Timestamp)
            case due
        }

        init(_ role: LinkRole, _ configuration: Configuration, _ limits: Limits) {
            self.role = role
            self.configuration = configuration
            inboundLimit = max(0, limits.maximumMessageSize)
            maximumMessageSize = min(inboundLimit, BTPFraming.maximumMessageSize)
            phase = role == .initiator ? .owesRequest : .awaitsRequest
            stall = StallDetector(timeout: limits.inboundStallTimeout)
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

extension BTPFraming.Session {
    /// Whether the handshake is complete.
    public var isReady: Bool { if case .open = phase { true } else { false } }

    var failure: FerryError? { if case .failed(let error) = phase { error } else { nil } }

    var isInMessage: Bool { if case .arriving = inbound { true } else { false } }

    /// How much of the message in hand is here.
    public var arriving: ReceiveProgress? {
        guard case .arriving(let missing, _) = inbound else { return nil }
        return ReceiveProgress(receivedBytes: assembler.count, totalBytes: assembler.count + missing)
    }

    mutating func fail(_ error: FerryError) -> FerryError {
        phase = .failed(error)
        handshakeDeadline = nil
        inbound = .none
        assembler = MessageAssembler(bound: 0)
        return error
    }

    // MARK: Time

    /// The link is there: the handshake has to be done in time.
    public mutating func linkDidOpen(at now: Timestamp) { handshakeDeadline = now + configuration.handshakeTimeout }

    /// The next of: the end of the handshake's time, of the peer's for an acknowledgement or for the rest of a message, and this side's
    /// own acknowledgement.
    public var deadline: Timestamp? {
        switch phase {
        case .failed: return nil
        case .owesRequest, .awaitsResponse, .awaitsRequest, .owesResponse: return handshakeDeadline
        case .open(let window, _):
            let own: Timestamp? = if case .waits(let deadline) = acknowledgement { deadline } else { nil }
            let deadlines = [own, peerDeadline(window), isInMessage ? stall.deadline : nil]
            return deadlines.compactMap { $0 }.min()
        }
    }

    /// While this side has paused the peer its acknowledgements cannot come.
    private func peerDeadline(_ window: BTPWindow) -> Timestamp? {
        guard window.unacknowledged > 0, !isPaused else { return nil }
        return unacknowledgedSince + configuration.acknowledgementTimeout
    }

    /// - Throws: `timedOut` when the handshake or an acknowledgement has not come in time, `truncatedMessage` when the silence in the
    ///   middle of a message has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        switch phase {
        case .failed: return
        case .owesRequest, .awaitsResponse, .awaitsRequest, .owesResponse:
            guard let handshakeDeadline, now >= handshakeDeadline else { return }
            let what = role == .initiator ? "answered the handshake" : "sent a handshake"
            throw fail(
                FerryError(
                    .timedOut,
                    "The peer has not \(what) within \(configuration.handshakeTimeout). Check that it speaks Matter's BTP, and is "
                        + (role == .initiator ? "ready to be commissioned." : "the side that connected.")))
        case .open(let window, _):
            if let peer = peerDeadline(window), now >= peer {
                throw fail(
                    FerryError(
                        .timedOut,
                        "The peer has not acknowledged \(window.unacknowledged) packets up to number \(window.nextToSend &- 1) within "
                            + "\(configuration.acknowledgementTimeout). It may be out of range, or stuck."))
            }
            if isInMessage, let silent = stall.deadline, now >= silent {
                throw fail(
                    .truncatedMessage("fell silent \(arrivedPart)", raising: true, afterMessages: deliveredMessages))
            }
            if case .waits(let own) = acknowledgement, now >= own { acknowledgement = .due }
        }
    }

    /// While the peer is asked to pause, neither its silence nor the lack of its acknowledgements counts.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) {
        self.isPaused = isPaused
        unacknowledgedSince = now
        stall.pause(isPaused, at: now)
    }

    /// - Throws: `truncatedMessage` when a message had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard isInMessage else { return }
        throw fail(.truncatedMessage("ended \(arrivedPart)", raising: false, afterMessages: deliveredMessages))
    }

    private var arrivedPart: String {
        guard let arriving, let total = arriving.totalBytes else { return "between messages" }
        return "after \(arriving.receivedBytes) of its \(total) bytes"
    }
}
