public import Ferry

extension GattlinkFraming {
    /// The state on one link.
    public struct Session: FramingSession {
        let content: Content
        let configuration: Configuration
        let maximumMessageSize: Int

        var phase = Phase.closed
        /// When the two sides have taken too long to begin; nil before the link is there and after it.
        var resetDeadline: Timestamp?
        /// When a control packet goes again that was not answered.
        var repeatDeadline: Timestamp?

        /// Messages of which nothing has left.
        var waiting = OutboundQueue()
        /// Messages of which something has left, and that are not acknowledged whole.
        var begun = RingQueue<Begun>()
        /// How many messages have begun before those.
        var acknowledgedMessages = 0
        /// The next byte that goes for the first time: the message, counted from the first one on, and the place in it.
        var next = (message: 0, offset: 0)
        /// Messages that count as sent when the peer has them.
        var deliveries: Set<MessageID> = []
        var sending = SendingWindow(size: 1)
        /// When the packets that were not acknowledged go again; nil when there are none.
        var resendDeadline: Timestamp?
        /// Since when the peer owes an acknowledgement.
        var silentSince = Timestamp.zero
        /// The packet that is offered.
        var scratch: [UInt8] = []

        var receiving = ReceivingWindow(size: 1)
        var acknowledgement = Acknowledgement.none
        var assembler: MessageAssembler
        /// The size of the datagram in hand; nil before its head is here.
        var arrivingSize: Int?
        var stall: StallDetector
        var isPaused = false
        var deliveredMessages = 0

        /// How often the peer has begun anew, and lost what it had.
        public private(set) var peerRestarts = 0

        @usableFromInline var events = FramingEventQueue()

        /// One link's life.
        enum Phase: Sendable {
            /// There is no link yet.
            case closed
            /// This side asks the peer to begin anew; whether that has left.
            case asking(isOut: Bool)
            /// The peer has asked this side, which answers; whether that has left.
            case answering(isOut: Bool)
            /// Whether the answer has to leave first that tells the peer of it.
            case open(owesAnswer: Bool)
            case failed(FerryError)
        }

        enum Acknowledgement: Sendable {
            case none
            /// It waits for more packets.
            case waits(until: Timestamp)
            case due
        }

        /// A message of which something has left.
        struct Begun: Sendable {
            let id: MessageID
            let payload: [UInt8]
            var progress = Progress.leaving
        }

        /// How far a message has come.
        enum Progress: Sendable {
            case leaving
            /// Its last byte has left once, so that the peer may have it.
            case out
            /// It was reported as sent.
            case told
        }

        init(_ framing: GattlinkFraming, _ limits: Limits) {
            content = framing.content
            configuration = framing.configuration
            maximumMessageSize = max(0, limits.maximumMessageSize)
            assembler = MessageAssembler(bound: max(0, limits.maximumMessageSize))
            // A packet that was lost goes again after seconds, several times if it must.
            stall = StallDetector(timeout: max(limits.inboundStallTimeout, configuration.acknowledgementTimeout))
        }

        /// The next thing that happened, oldest first.
        @inlinable
        public mutating func nextEvent() -> FramingEvent? { events.next() }
    }
}

extension GattlinkFraming.Session {
    /// Whether both sides have begun.
    public var isReady: Bool { if case .open = phase { true } else { false } }

    /// How much of the datagram in hand is here.
    public var arriving: ReceiveProgress? {
        assembler.count > 0 ? ReceiveProgress(receivedBytes: assembler.count, totalBytes: arrivingSize) : nil
    }

    mutating func fail(_ error: FerryError) -> FerryError {
        phase = .failed(error)
        assembler = MessageAssembler(bound: 0)
        return error
    }

    // MARK: The begin

    /// The link is there: this side asks the peer to begin, as the peer does.
    public mutating func linkDidOpen(at now: Timestamp) {
        phase = .asking(isOut: false)
        resetDeadline = now + configuration.resetTimeout
    }

    mutating func receiveResetRequest(at now: Timestamp) {
        if case .open = phase { restart() }
        phase = .answering(isOut: false)
        resetDeadline = resetDeadline ?? now + configuration.resetTimeout
        repeatDeadline = nil
    }

    /// The peer has begun anew. What it has acknowledged whole is with its app, and the rest is gone.
    private mutating func restart() {
        if assembler.count > 0 {
            events.receiveFailed(
                .truncatedMessage(
                    "goes on, and the peer began anew \(arrivedPart)", raising: false,
                    afterMessages: deliveredMessages))
            assembler = MessageAssembler(bound: maximumMessageSize)
            arrivingSize = nil
        }
        next = (acknowledgedMessages, 0)
        resendDeadline = nil
        acknowledgement = .none
        peerRestarts += 1
    }

    /// - Throws: `incompatiblePeer` for a peer without version 0, `malformedStream` for one that takes no packets.
    mutating func receiveResetComplete(
        _ versions: ClosedRange<UInt8>, takes: UInt8, sends: UInt8
    ) throws(FerryError) {
        let owesAnswer: Bool
        switch phase {
        case .asking: owesAnswer = true
        case .answering: owesAnswer = false
        // It was doubled.
        case .open: return
        case .closed, .failed: return
        }
        guard versions.contains(0) else {
            throw fail(
                FerryError(
                    .incompatiblePeer,
                    "The peer speaks versions \(versions.lowerBound) to \(versions.upperBound) of Gattlink, and this side version 0."
                ))
        }
        guard takes > 0 else {
            throw fail(
                FerryError(
                    .malformedStream,
                    "The peer takes no packet of Gattlink without an acknowledgement; 1 at least was expected."))
        }
        sending = SendingWindow(size: min(configuration.window, Int(takes)))
        // A peer that sends nothing without an acknowledgement sends nothing.
        receiving = ReceivingWindow(size: max(1, min(configuration.window, Int(sends))))
        phase = .open(owesAnswer: owesAnswer)
        (resetDeadline, repeatDeadline) = (nil, nil)
    }

    // MARK: Time

    /// The next of: the end of the time to begin, of the peer's to acknowledge or for the rest of a datagram, when packets go again, and
    /// this side's acknowledgement.
    public var deadline: Timestamp? {
        switch phase {
        case .closed, .failed: return nil
        case .asking, .answering: return [resetDeadline, repeatDeadline].compactMap { $0 }.min()
        case .open:
            var deadlines = [peerDeadline, isPaused ? nil : resendDeadline, assembler.count > 0 ? stall.deadline : nil]
            if case .waits(let until) = acknowledgement { deadlines.append(until) }
            return deadlines.compactMap { $0 }.min()
        }
    }

    /// While this side has paused the peer its acknowledgements cannot come.
    private var peerDeadline: Timestamp? {
        sending.packets.isEmpty || isPaused ? nil : silentSince + configuration.acknowledgementTimeout
    }

    /// - Throws: `timedOut` when the peer has not begun or not acknowledged anything in time, `truncatedMessage` when the silence in the
    ///   middle of a datagram has become too long.
    public mutating func wake(at now: Timestamp) throws(FerryError) {
        switch phase {
        case .closed, .failed: return
        case .asking, .answering:
            if let resetDeadline, now >= resetDeadline {
                throw fail(
                    FerryError(
                        .timedOut,
                        "The two sides have not begun within \(configuration.resetTimeout). Check that the peer speaks Gattlink."
                    ))
            }
            guard let due = repeatDeadline, now >= due else { return }
            phase = .asking(isOut: false)
            repeatDeadline = nil
        case .open:
            if let peer = peerDeadline, now >= peer {
                throw fail(
                    FerryError(
                        .timedOut,
                        "The peer has acknowledged none of \(sending.packets.count) packets within "
                            + "\(configuration.acknowledgementTimeout). It may be out of range, or stuck."))
            }
            if assembler.count > 0, let silent = stall.deadline, now >= silent {
                throw fail(
                    .truncatedMessage("fell silent \(arrivedPart)", raising: true, afterMessages: deliveredMessages))
            }
            if !isPaused, let due = resendDeadline, now >= due {
                sending.rewind()
                resendDeadline = nil
            }
            if case .waits(let until) = acknowledgement, now >= until { acknowledgement = .due }
        }
    }

    /// While the peer is asked to pause, neither its silence nor the lack of its acknowledgements counts.
    public mutating func pauseReceiving(_ isPaused: Bool, at now: Timestamp) {
        self.isPaused = isPaused
        silentSince = now
        if resendDeadline != nil { resendDeadline = now + configuration.resendInterval }
        stall.pause(isPaused, at: now)
    }

    /// - Throws: `truncatedMessage` when a datagram had arrived in part.
    public mutating func linkDidClose(at now: Timestamp) throws(FerryError) {
        guard assembler.count > 0 else { return }
        throw fail(.truncatedMessage("ended \(arrivedPart)", raising: false, afterMessages: deliveredMessages))
    }

    private var arrivedPart: String {
        "after \(assembler.count)" + (arrivingSize.map { " of its \($0)" } ?? "") + " bytes"
    }
}
