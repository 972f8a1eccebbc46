import DequeModule

/// A channel's state, without link, lock, clock or task.
///
/// The shell (``ChannelCore``) passes events in, lets the state offer chunks to the link (``pump(atMost:at:_:)``), and
/// performs the effects (``takeEffects()``) after it has released the lock.
struct ChannelState: ~Copyable, Sendable {
    var session: any FramingSession
    let chunkSize: Int
    let limits: Limits
    /// Bytes of a payload that are the envelope's and do not count towards the largest message.
    let envelopeCount: Int

    var life = Life.connecting
    /// What readers are told after all that arrived.
    private(set) var closeReason: FerryError?
    /// Whether no more messages are taken, and the channel ends with the last of those that were.
    var isDraining = false

    var sends: [MessageID: PendingSend] = [:]
    /// What does not leave yet, because a message that was sent before it is still being encoded.
    var order = SendingOrder()
    var outboundBytes = 0
    var refusedSince: Timestamp?
    /// How long the link has taken nothing, in pieces of no more than a few probes: neither a machine's sleep nor a process
    /// that was stopped counts.
    var stalledFor = Duration.zero
    /// When the link was last probed although it had not said that it is ready; until the next chunks are offered.
    var probedAt: Timestamp?

    private var inbound: Deque<Delivery> = []
    private var inboundBytes = 0
    private var readers: Deque<Reader> = []
    private(set) var isPaused = false
    /// Links in a row that were given up because the peer said nothing.
    private var silentLinks = 0
    private static let maximumSilentLinks = 3

    var statistics = ChannelStatistics()
    var effects = Effects()

    /// One channel's life. Each step is final but for the one from open to suspended and back.
    enum Life {
        /// Until the first link is there.
        case connecting
        case open
        /// Between two links.
        case suspended
        /// Nothing is sent any more; the link is asked to close and what it still holds is taken.
        case closing(deadline: Timestamp)
        case ended
    }

    init(session: any FramingSession, chunkSize: Int, limits: Limits, envelopeCount: Int) {
        self.session = session
        self.chunkSize = max(1, chunkSize)
        self.limits = limits
        self.envelopeCount = envelopeCount
    }

    var status: ChannelStatus {
        let phase: ChannelStatus.Phase =
            switch life {
            case .connecting: .connecting
            case .open: session.isReady ? .open : (statistics.resumptions > 0 ? .suspended : .connecting)
            case .suspended: .suspended
            case .closing, .ended: .ended
            }
        return ChannelStatus(phase: phase, resumptions: statistics.resumptions)
    }

    /// Who the peer has proven to be by a key; nil where the framing cannot tell.
    var provenPeer: PeerIdentity? { session.provenPeer }

    /// The message that is arriving.
    var arriving: ReceiveProgress? { session.arriving }

    /// What the shell does once the lock is free. Empty most of the time.
    mutating func takeEffects() -> Effects {
        defer { effects = Effects() }
        return effects
    }

    var hasEffects: Bool { !effects.isEmpty }

    /// Has the shell do something once the lock is free.
    mutating func afterwards(_ action: @escaping @Sendable () -> Void) { effects.actions.append(action) }

    var isOver: Bool { closeReason != nil }

    /// How far a message has come, in words.
    func extent(_ send: PendingSend) -> String {
        "\(send.acceptedBytes) of \(send.totalBytes) bytes of the message "
            + (session.acknowledges ? "acknowledged by the peer" : "accepted by the link")
    }
}

// MARK: - Receiving

extension ChannelState {
    mutating func receive(_ chunk: RawSpan, at now: Timestamp) {
        if case .ended = life { return }
        silentLinks = 0
        statistics.chunksReceived += 1
        statistics.bytesReceived += chunk.byteCount
        do {
            try session.receive(chunk, at: now)
        } catch {
            drainEvents(at: now)
            finish(error, at: now)
        }
    }

    /// Hands on what the session has to tell, and stops the peer where readers are behind.
    mutating func drainEvents(at now: Timestamp) {
        if case .ended = life { return }
        while let event = session.nextEvent() {
            switch event {
            case .received(let payload):
                statistics.messagesReceived += 1
                deliver(.message(payload), at: now)
            case .receiveFailed(let error) where error.code == .cancelledByPeer:
                // The sender took it back; nothing is missing.
                statistics.messagesCancelledByPeer += 1
            case .receiveFailed(let error):
                deliver(.failure(error), at: now)
            case .progress(let id, let acceptedBytes):
                report(acceptedBytes, of: id)
            case .sent(let id):
                statistics.messagesSent += 1
                complete(id, .success(()))
            case .failed(let id, let error):
                complete(id, .failure(error.fate == nil ? error.telling(.mayHaveArrived) : error))
            }
        }
        // A session that grants credit bounds the bytes itself: half of the limit, and one message.
        guard session.acknowledges || inboundBytes <= limits.maximumInboundBytes || inbound.count <= 1,
            inbound.count <= limits.maximumInboundMessages
        else {
            return finish(
                FerryError(
                    .queueFull,
                    "\(inbound.count) messages of \(inboundBytes) bytes wait to be read and the link cannot stop its peer; "
                        + "Limits.maximumInboundBytes is \(limits.maximumInboundBytes) and Limits.maximumInboundMessages "
                        + "\(limits.maximumInboundMessages). Read `messages` faster, or raise them."), at: now)
        }
        // A session that grants credit stops the peer itself, and a paused link would keep acknowledgements out too.
        if !isPaused, isHalfFull, !session.acknowledges {
            isPaused = true
            session.pauseReceiving(true, at: now)
        }
    }

    /// Progress goes forward only, though a peer that has lost its state begins a message again.
    private mutating func report(_ acceptedBytes: Int, of id: MessageID) {
        guard let index = sends.index(forKey: id), acceptedBytes > sends.values[index].acceptedBytes else { return }
        sends.values[index].acceptedBytes = acceptedBytes
        guard let report = sends.values[index].progress else { return }
        let step = SendProgress(acceptedBytes: acceptedBytes, totalBytes: sends.values[index].totalBytes)
        effects.progress.append((report, step))
    }

    private var isHalfFull: Bool {
        inboundBytes > limits.maximumInboundBytes / 2 || inbound.count > limits.maximumInboundMessages / 2
    }

    private mutating func deliver(_ delivery: Delivery, at now: Timestamp) {
        if let reader = readers.popFirst() {
            session.consume(delivery.byteCount, at: now)
            effects.deliveries.append((reader, delivery))
        } else {
            inbound.append(delivery)
            inboundBytes += delivery.byteCount
        }
    }

    mutating func read(_ reader: Reader, at now: Timestamp) {
        if let delivery = take(at: now) {
            effects.deliveries.append((reader, delivery))
        } else {
            readers.append(reader)
        }
    }

    /// What can be read now, if anything.
    mutating func take(at now: Timestamp) -> Delivery? {
        guard let delivery = inbound.popFirst() else {
            if case .ended = life { return .end }
            return nil
        }
        inboundBytes -= delivery.byteCount
        guard !isOver else { return delivery }
        session.consume(delivery.byteCount, at: now)
        if isPaused, !isHalfFull {
            isPaused = false
            session.pauseReceiving(false, at: now)
        }
        return delivery
    }

    mutating func cancelRead(_ id: MessageID) {
        guard let index = readers.firstIndex(where: { $0.id == id }) else { return }
        effects.deliveries.append((readers.remove(at: index), .end))
    }
}

// MARK: - Links

extension ChannelState {
    /// A link is there: the first, or the next one.
    mutating func linkDidOpen(at now: Timestamp) {
        switch life {
        case .connecting: break
        case .suspended: statistics.resumptions += 1
        case .open, .closing, .ended: return
        }
        life = .open
        session.linkDidOpen(at: now)
    }

    /// The link has lost its connection. A framing that survives that waits for the next one; any other ends here.
    mutating func linkDidSuspend(_ reason: FerryError, at now: Timestamp) {
        guard !isOver else { return }
        var ending = reason
        do { try session.linkDidClose(at: now) } catch {
            ending = FerryError(error.code, error.message, cause: reason)
        }
        drainEvents(at: now)
        guard session.survivesLinkLoss else { return finish(ending, at: now) }
        life = .suspended
        refusedSince = nil
    }

    /// A session's timer has found that it cannot go on. Where another link may help, and one can be had, it is tried: a
    /// connection can be dead without either stack knowing.
    private mutating func peerIsSilent(_ reason: FerryError, at now: Timestamp) {
        guard session.needsNewLink else { return finish(reason, at: now) }
        replaceLink(reason, at: now)
    }

    /// Goes on over another link, where one can be had; ends otherwise, and when as many in a row were of no use.
    private mutating func replaceLink(_ reason: FerryError, at now: Timestamp) {
        guard silentLinks < Self.maximumSilentLinks else { return finish(reason, at: now) }
        silentLinks += 1
        // Nothing more is sent or expected until the next link is there.
        do { try session.linkDidClose(at: now) } catch { return finish(error, at: now) }
        life = .suspended
        refusedSince = nil
        effects.replacesLink = reason
    }

    mutating func linkDidClose(_ reason: FerryError, at now: Timestamp) {
        if case .ended = life { return }
        var ending = closeReason ?? reason
        do { try session.linkDidClose(at: now) } catch {
            if closeReason == nil { ending = FerryError(error.code, error.message, cause: reason) }
        }
        drainEvents(at: now)
        finish(ending, at: now, closesLink: false)
    }

    /// The link takes nothing any more: it has ended, or cannot send at all. What it still holds is received before readers are
    /// told, and senders too where it may hold acknowledgements of theirs.
    mutating func stopSending(_ reason: FerryError, at now: Timestamp) {
        guard !isOver else { return }
        closeReason = reason
        life = .closing(deadline: now + .seconds(5))
        refusedSince = nil
        failQueued(reason)
        if !session.acknowledges { failSends(reason) }
        effects.closesLink = true
    }

    /// Takes no more messages, and ends the channel when all that were taken are out.
    mutating func drain(at now: Timestamp) {
        guard !isOver else { return }
        isDraining = true
    }

    /// Ends the channel: senders are told, readers get what arrived whole and then the reason or a plain end.
    mutating func finish(_ reason: FerryError, at now: Timestamp, closesLink: Bool = true) {
        if case .ended = life { return }
        closeReason = closeReason ?? reason
        life = .ended
        effects.closesLink = effects.closesLink || closesLink
        failSends(reason)
        failQueued(reason)
        if reason.code != .closed, reason.code != .disconnected { deliver(.failure(reason), at: now) }
        while let reader = readers.popFirst() { effects.deliveries.append((reader, .end)) }
    }

    private mutating func failSends(_ reason: FerryError) {
        for id in sends.keys.sorted() {
            guard let send = sends[id] else { continue }
            let error = FerryError(
                reason.code, "The channel ended with \(extent(send)).", cause: reason, fate: session.fate(of: id))
            complete(id, .failure(error))
        }
    }

    private mutating func failQueued(_ reason: FerryError) {
        for message in order.removeAll() {
            let error = FerryError(
                reason.code, "The channel ended with \(extent(message.send)).", cause: reason, fate: .nothingSent)
            fail(message, error)
        }
    }
}

// MARK: - Time

extension ChannelState {
    /// When to call ``wake(at:)``, or nil.
    var nextWakeUp: Timestamp? {
        switch life {
        case .ended: return nil
        case .closing(let deadline): return deadline
        case .connecting, .open, .suspended: break
        }
        guard let refusedSince else { return session.deadline }
        let probe = refusedSince + limits.readinessProbeInterval
        guard let deadline = session.deadline else { return probe }
        return min(probe, deadline)
    }

    mutating func wake(at now: Timestamp) {
        if case .closing(let deadline) = life, deadline <= now, let closeReason { return finish(closeReason, at: now) }
        guard !isOver else { return }
        if let deadline = session.deadline, deadline <= now {
            do { try session.wake(at: now) } catch {
                drainEvents(at: now)
                return peerIsSilent(error, at: now)
            }
        }
        guard let since = refusedSince, since + limits.readinessProbeInterval <= now else { return }
        stalledFor += min(now - since, limits.readinessProbeInterval * 8)
        guard stalledFor < limits.outboundStallTimeout else {
            let reason = FerryError(
                .timedOut,
                "The link has taken nothing for \(limits.outboundStallTimeout) while \(outboundBytes) bytes wait. The "
                    + "peer may be out of range or not reading; Limits.outboundStallTimeout sets the patience.")
            return session.survivesLinkLoss ? replaceLink(reason, at: now) : finish(reason, at: now)
        }
        // Look again one interval from now: the count of intervals starts anew, the stall's does not.
        statistics.timeWaiting += now - since
        refusedSince = now
        probedAt = now
    }
}
