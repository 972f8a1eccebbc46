import DequeModule

/// A channel's state, without lock, clock or task. Every event is a mutating function that returns what the shell has to
/// do once the lock is free.
struct ChannelState: ~Copyable, Sendable {
    private var session: any FramingSession
    private let chunkSize: Int
    private let limits: Limits
    /// Bytes of a payload that are the envelope's and do not count towards the largest message.
    private let envelopeCount: Int

    private var sends: [MessageID: PendingSend] = [:]
    private var outboundBytes = 0
    private var refusedSince: Timestamp?
    private var lastAccepted = Timestamp.zero

    private var inbound: Deque<Delivery> = []
    private var inboundBytes = 0
    private var readers: Deque<Reader> = []
    private var isPaused = false
    /// Links in a row that were given up because the peer said nothing.
    private var silentLinks = 0
    private static let maximumSilentLinks = 3

    private(set) var closeReason: FerryError?
    private(set) var statistics = ChannelStatistics()

    /// The one timer, kept here because it belongs under the lock; set and read by the shell only.
    var timer: ScheduledTimer?
    var timerDeadline: Timestamp?

    init(session: any FramingSession, chunkSize: Int, limits: Limits, envelopeCount: Int) {
        self.session = session
        self.chunkSize = max(1, chunkSize)
        self.limits = limits
        self.envelopeCount = envelopeCount
    }

    static var cancelledInTime: FerryError {
        FerryError(.cancelled, "The task was cancelled and the message taken back in time: the peer does not get it.")
    }

    /// How far a message has come, in words.
    private func extent(_ send: PendingSend) -> String {
        "\(send.acceptedBytes) of \(send.totalBytes) bytes of the message "
            + (session.acknowledges ? "acknowledged by the peer" : "accepted by the link")
    }

    mutating func open(_ link: any Link, at now: Timestamp) -> Effects {
        session.linkDidOpen(at: now)
        return pump(link, at: now)
    }
}

// MARK: - Sending

extension ChannelState {
    mutating func submit(
        _ payload: [UInt8], as id: MessageID, _ options: SendOptions, _ send: PendingSend, _ link: any Link,
        at now: Timestamp
    ) -> Effects {
        do {
            try admit(payload, as: id, options, at: now)
        } catch {
            send.timer?.cancel()
            return Effects(completing: send, .failure(error))
        }
        sends[id] = send
        outboundBytes += payload.count
        return pump(link, at: now)
    }

    private mutating func admit(
        _ payload: [UInt8], as id: MessageID, _ options: SendOptions, at now: Timestamp
    ) throws(FerryError) {
        if let closeReason {
            throw FerryError(closeReason.code, "The channel is closed; nothing was sent.", cause: closeReason)
        }
        guard payload.count - envelopeCount <= limits.maximumMessageSize else {
            throw FerryError(
                .messageTooLarge,
                "The message has \(payload.count - envelopeCount) bytes; Limits.maximumMessageSize is \(limits.maximumMessageSize). "
                    + "Raise it on both sides, or send less at once.")
        }
        guard outboundBytes == 0 || outboundBytes + payload.count <= limits.maximumOutboundBytes else {
            throw FerryError(
                .queueFull,
                "\(outboundBytes) bytes wait to be sent and the message has \(payload.count); "
                    + "Limits.maximumOutboundBytes is \(limits.maximumOutboundBytes). Await earlier sends first.")
        }
        try session.enqueue(payload, as: id, options: options, at: now)
    }

    mutating func cancel(_ id: MessageID, at now: Timestamp) -> Effects {
        guard sends[id] != nil, session.cancel(id, at: now) else { return Effects() }
        return complete(id, .failure(Self.cancelledInTime))
    }

    /// A send's timeout has come. What cannot be taken back is finished; only its sender stops waiting.
    mutating func expire(_ id: MessageID, at now: Timestamp) -> Effects {
        guard let send = sends[id] else { return Effects() }
        if session.cancel(id, at: now) {
            let error = FerryError(
                .timedOut,
                "The timeout passed with \(extent(send)). It was taken back in time: the peer does not get it.")
            return complete(id, .failure(error))
        }
        sends[id]?.completion = nil
        let error = FerryError(
            .timedOut,
            "The timeout passed with \(extent(send)). The channel "
                + "goes on and finishes the message, so that the peer stays in step; close the channel to stop it.")
        return Effects(completing: send, .failure(error))
    }

    /// Offers chunks to the link until it refuses or nothing is left.
    mutating func pump(_ link: any Link, at now: Timestamp) -> Effects {
        guard closeReason == nil else { return Effects() }
        let bound = chunkSize
        var accepted = 0
        var acceptedBytes = 0
        var outcome = Transmission.idle
        do {
            outcome = try session.transmitAll(atMost: min(link.maximumChunkSize, bound), at: now) {
                (chunk: RawSpan) throws(FerryError) -> Bool in
                guard try link.trySend(chunk) else { return false }
                accepted += 1
                acceptedBytes += chunk.byteCount
                return true
            }
        } catch {
            return finish(error, at: now)
        }
        note(outcome, accepted, acceptedBytes, at: now)
        return drainEvents(link, at: now)
    }

    private mutating func note(_ outcome: Transmission, _ accepted: Int, _ bytes: Int, at now: Timestamp) {
        statistics.chunksSent += accepted
        statistics.bytesSent += bytes
        if accepted > 0 {
            lastAccepted = now
            if let since = refusedSince { statistics.timeWaiting += now - since }
            refusedSince = nil
        }
        if outcome == .refused, refusedSince == nil {
            statistics.waitsForReady += 1
            refusedSince = now
            if accepted == 0 { lastAccepted = now }
        }
        if outcome == .idle { refusedSince = nil }
    }

    private mutating func complete(_ id: MessageID, _ result: Result<Void, FerryError>) -> Effects {
        guard let send = sends.removeValue(forKey: id) else { return Effects() }
        outboundBytes -= send.totalBytes
        send.timer?.cancel()
        return Effects(completing: send, result)
    }
}

// MARK: - Receiving

extension ChannelState {
    mutating func receive(_ chunk: RawSpan, _ link: any Link, at now: Timestamp) -> Effects {
        guard closeReason == nil else { return Effects() }
        silentLinks = 0
        statistics.chunksReceived += 1
        statistics.bytesReceived += chunk.byteCount
        do {
            try session.receive(chunk, at: now)
        } catch {
            return finish(error, at: now)
        }
        return pump(link, at: now)
    }

    private mutating func drainEvents(_ link: any Link, at now: Timestamp) -> Effects {
        var effects = Effects()
        while let event = session.nextEvent() {
            switch event {
            case .received(let payload):
                statistics.messagesReceived += 1
                deliver(.message(payload), &effects, at: now)
            case .receiveFailed(let error):
                deliver(.failure(error), &effects, at: now)
            case .progress(let id, let acceptedBytes):
                guard let index = sends.index(forKey: id) else { continue }
                sends.values[index].acceptedBytes = acceptedBytes
                if let report = sends.values[index].progress {
                    let totalBytes = sends.values[index].totalBytes
                    effects.progress.append(
                        (report, SendProgress(acceptedBytes: acceptedBytes, totalBytes: totalBytes)))
                }
            case .sent(let id):
                statistics.messagesSent += 1
                effects.merge(complete(id, .success(())))
            case .failed(let id, let error):
                effects.merge(complete(id, .failure(error)))
            }
        }
        // A session that grants credit bounds the bytes itself: half of the limit, and one message.
        guard session.acknowledges || inboundBytes <= limits.maximumInboundBytes || inbound.count <= 1,
            inbound.count <= limits.maximumInboundMessages
        else {
            let error = FerryError(
                .queueFull,
                "\(inbound.count) messages of \(inboundBytes) bytes wait to be read and the link cannot stop its peer; "
                    + "Limits.maximumInboundBytes is \(limits.maximumInboundBytes) and Limits.maximumInboundMessages "
                    + "\(limits.maximumInboundMessages). Read `messages` faster, or raise them.")
            effects.merge(finish(error, at: now))
            return effects
        }
        // A session that grants credit stops the peer itself, and a paused link would keep acknowledgements out too.
        if !isPaused, isHalfFull, !session.acknowledges {
            isPaused = true
            session.pauseReceiving(true, at: now)
            link.setReceiving(false)
        }
        return effects
    }

    private var isHalfFull: Bool {
        inboundBytes > limits.maximumInboundBytes / 2 || inbound.count > limits.maximumInboundMessages / 2
    }

    private mutating func deliver(_ delivery: Delivery, _ effects: inout Effects, at now: Timestamp) {
        if let reader = readers.popFirst() {
            session.consume(delivery.byteCount, at: now)
            effects.deliveries.append((reader, delivery))
        } else {
            inbound.append(delivery)
            inboundBytes += delivery.byteCount
        }
    }

    mutating func read(_ reader: Reader, _ link: any Link, at now: Timestamp) -> Effects {
        guard let delivery = take() else {
            readers.append(reader)
            return Effects()
        }
        var effects = taken(link, at: now, consumed: delivery.byteCount)
        effects.deliveries.append((reader, delivery))
        return effects
    }

    /// What can be read now, if anything. The owner calls `taken` next.
    mutating func take() -> Delivery? {
        guard let delivery = inbound.popFirst() else { return closeReason == nil ? nil : .end }
        inboundBytes -= delivery.byteCount
        return delivery
    }

    mutating func taken(_ link: any Link, at now: Timestamp, consumed count: Int) -> Effects {
        guard closeReason == nil else { return Effects() }
        session.consume(count, at: now)
        if isPaused, !isHalfFull {
            isPaused = false
            session.pauseReceiving(false, at: now)
            link.setReceiving(true)
        }
        return pump(link, at: now)
    }

    mutating func cancelRead(_ id: MessageID) -> Effects {
        guard let index = readers.firstIndex(where: { $0.id == id }) else { return Effects() }
        var effects = Effects()
        effects.deliveries.append((readers.remove(at: index), .end))
        return effects
    }
}

// MARK: - Time and the end

extension ChannelState {
    /// When to call ``wake(_:at:)``, or nil.
    var nextWakeUp: Timestamp? {
        guard closeReason == nil else { return nil }
        guard let refusedSince else { return session.deadline }
        let probe = refusedSince + limits.readinessProbeInterval
        guard let deadline = session.deadline else { return probe }
        return min(probe, deadline)
    }

    mutating func wake(_ link: any Link, at now: Timestamp) -> Effects {
        guard closeReason == nil else { return Effects() }
        if let deadline = session.deadline, deadline <= now {
            do { try session.wake(at: now) } catch { return peerIsSilent(error, at: now) }
        }
        guard let since = refusedSince, since + limits.readinessProbeInterval <= now else {
            return pump(link, at: now)
        }
        let sentBefore = statistics.chunksSent
        let effects = pump(link, at: now)
        if statistics.chunksSent > sentBefore { statistics.lostReadySignals += 1 }
        guard closeReason == nil, refusedSince == since else { return effects }
        guard now - lastAccepted < limits.outboundStallTimeout else {
            var stalled = effects
            let error = FerryError(
                .timedOut,
                "The link has taken nothing for \(limits.outboundStallTimeout) while \(outboundBytes) bytes wait. The "
                    + "peer may be out of range or not reading; Limits.outboundStallTimeout sets the patience.")
            stalled.merge(finish(error, at: now))
            return stalled
        }
        // Look again one interval from now: the count of intervals starts anew, the stall's does not.
        statistics.timeWaiting += now - since
        refusedSince = now
        return effects
    }

    /// A session's timer has found that it cannot go on. Where another link may help, and one can be had, it is tried: a
    /// connection can be dead without either stack knowing.
    private mutating func peerIsSilent(_ reason: FerryError, at now: Timestamp) -> Effects {
        guard session.needsNewLink, silentLinks < Self.maximumSilentLinks else { return finish(reason, at: now) }
        silentLinks += 1
        // Nothing more is sent or expected until the next link is there.
        do { try session.linkDidClose(at: now) } catch { return finish(error, at: now) }
        refusedSince = nil
        var effects = Effects()
        effects.replacesLink = reason
        return effects
    }

    mutating func linkDidClose(_ reason: FerryError, at now: Timestamp) -> Effects {
        guard closeReason == nil else { return Effects() }
        var ending = reason
        do { try session.linkDidClose(at: now) } catch {
            ending = FerryError(error.code, error.message, cause: reason)
        }
        return finish(ending, at: now, closesLink: false)
    }

    /// The link has lost its connection. A framing that survives that waits for the next one; any other ends here.
    mutating func linkDidSuspend(_ reason: FerryError, _ link: any Link, at now: Timestamp) -> Effects {
        guard closeReason == nil else { return Effects() }
        var ending = reason
        do { try session.linkDidClose(at: now) } catch {
            ending = FerryError(error.code, error.message, cause: reason)
        }
        guard session.survivesLinkLoss else { return finish(ending, at: now) }
        refusedSince = nil
        return drainEvents(link, at: now)
    }

    /// Ends the channel: senders are told, readers get what arrived whole and then the reason or a plain end.
    mutating func finish(_ reason: FerryError, at now: Timestamp, closesLink: Bool = true) -> Effects {
        guard closeReason == nil else { return Effects() }
        closeReason = reason
        timer?.cancel()
        timer = nil
        timerDeadline = nil
        var effects = Effects()
        effects.closesLink = closesLink
        for id in sends.keys.sorted() {
            guard let send = sends[id] else { continue }
            let error = FerryError(
                reason.code, "The channel ended with \(extent(send)).", cause: reason)
            effects.merge(complete(id, .failure(error)))
        }
        if reason.code != .closed, reason.code != .disconnected {
            deliver(.failure(reason), &effects, at: now)
        }
        while let reader = readers.popFirst() { effects.deliveries.append((reader, .end)) }
        return effects
    }
}

extension FramingSession {
    /// Offers chunks until one is refused or none is left. Within the extension, so that a session behind `any` is opened
    /// once for all of them.
    fileprivate mutating func transmitAll(
        atMost maximumChunkSize: @autoclosure () -> Int, at now: Timestamp,
        _ offer: (RawSpan) throws(FerryError) -> Bool
    ) throws(FerryError) -> Transmission {
        while true {
            let outcome = try transmit(atMost: maximumChunkSize(), at: now, offer)
            guard outcome == .accepted else { return outcome }
        }
    }
}

// MARK: - What goes in and out

/// A message on its way out, and whom to tell.
struct PendingSend: Sendable {
    let totalBytes: Int
    var acceptedBytes = 0
    let timer: ScheduledTimer?
    let progress: (@Sendable (SendProgress) -> Void)?
    /// Nil once the sender has stopped waiting.
    var completion: (@Sendable (Result<Void, FerryError>) -> Void)?
}

/// Somebody who waits for a message.
struct Reader: Sendable {
    let id: MessageID
    let resume: @Sendable (Delivery) -> Void
}

/// What a reader gets.
package enum Delivery: Sendable {
    case message([UInt8])
    case failure(FerryError)
    case end

    var byteCount: Int {
        if case .message(let payload) = self { payload.count } else { 0 }
    }
}

/// What the shell does after unlocking.
struct Effects: Sendable {
    var progress: [(@Sendable (SendProgress) -> Void, SendProgress)] = []
    var completions: [(@Sendable (Result<Void, FerryError>) -> Void, Result<Void, FerryError>)] = []
    var deliveries: [(Reader, Delivery)] = []
    var closesLink = false
    /// The link is to be given up for another, if it can be, because of this.
    var replacesLink: FerryError?

    init() {}

    init(completing send: PendingSend, _ result: Result<Void, FerryError>) {
        if let completion = send.completion { completions.append((completion, result)) }
    }

    mutating func merge(_ other: Effects) {
        progress += other.progress
        completions += other.completions
        deliveries += other.deliveries
        closesLink = closesLink || other.closesLink
        replacesLink = replacesLink ?? other.replacesLink
    }
}
