import Synchronization

/// The shell of a channel: owns the link, the lock and the timer, and does what ``ChannelState`` answers.
///
/// There is no task and no queue. Whoever brings an event (a sender, the link, the timer) takes the lock, lets the state
/// push chunks into the link until it refuses, and after unlocking resumes whoever was waiting. The link's contract
/// makes that safe: it never calls back from within a call.
package final class ChannelCore: LinkReceiver {
    private let link: any Link
    private let time: any TimeSource
    private let state: Mutex<ChannelState>
    private let nextID = Atomic<UInt64>(0)

    package init(
        link: any Link, session: any FramingSession, chunkSize: Int, limits: Limits, time: any TimeSource,
        envelopeCount: Int = 0
    ) {
        self.link = link
        self.time = time
        state = Mutex(
            ChannelState(session: session, chunkSize: chunkSize, limits: limits, envelopeCount: envelopeCount))
    }

    package func open() {
        change { state, link, now in state.open(link, at: now) }
        link.activate(self)
    }

    package var closeReason: FerryError? { state.withLock { $0.closeReason } }
    package var statistics: ChannelStatistics { state.withLock { $0.statistics } }

    // MARK: Sending

    func send(
        _ payload: [UInt8], options: SendOptions = SendOptions(), timeout: Duration?,
        progress: (@Sendable (SendProgress) -> Void)?
    ) async throws(FerryError) {
        if Task.isCancelled { throw ChannelState.cancelledInTime }
        let id = makeID()
        let result = await withTaskCancellationHandler {
            await withCheckedContinuation { continuation in
                submit(payload, as: id, options: options, timeout: timeout, progress: progress) {
                    continuation.resume(returning: $0)
                }
                // The handler may have run before the message was there to be cancelled.
                if Task.isCancelled { cancel(id) }
            }
        } onCancel: {
            cancel(id)
        }
        try result.get()
    }

    package func makeID() -> MessageID {
        MessageID(rawValue: nextID.add(1, ordering: .relaxed).oldValue)
    }

    /// Queues a payload; `completion` is called once, never from within this call's lock.
    package func submit(
        _ payload: [UInt8], as id: MessageID, options: SendOptions = SendOptions(), timeout: Duration? = nil,
        progress: (@Sendable (SendProgress) -> Void)? = nil,
        completion: @escaping @Sendable (Result<Void, FerryError>) -> Void
    ) {
        change { [time] state, link, now in
            let timer = timeout.map { timeout in
                time.schedule(at: now + timeout) { [self] in expire(id) }
            }
            let send = PendingSend(
                totalBytes: payload.count, timer: timer, progress: progress, completion: completion)
            return state.submit(payload, as: id, options, send, link, at: now)
        }
    }

    package func cancel(_ id: MessageID) {
        change { state, _, now in state.cancel(id, at: now) }
    }

    private func expire(_ id: MessageID) {
        change { state, _, now in state.expire(id, at: now) }
    }

    // MARK: Receiving

    func read(isolation actor: isolated (any Actor)?) async -> Delivery {
        if let delivery = take() { return delivery }
        let id = makeID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: actor) { continuation in
                change { state, link, now in
                    state.read(Reader(id: id, resume: { continuation.resume(returning: $0) }), link, at: now)
                }
                if Task.isCancelled { cancelRead(id) }
            }
        } onCancel: {
            cancelRead(id)
        }
    }

    /// What can be read without waiting, if anything.
    package func take() -> Delivery? {
        var delivery: Delivery?
        change { state, link, now in
            delivery = state.take()
            return delivery.map { state.taken(link, at: now, consumed: $0.byteCount) } ?? Effects()
        }
        return delivery
    }

    private func cancelRead(_ id: MessageID) {
        change { state, _, _ in state.cancelRead(id) }
    }

    // MARK: The link

    package func linkIsReady() {
        change { state, link, now in state.pump(link, at: now) }
    }

    package func linkDidReceive(_ chunk: RawSpan) {
        let now = time.now
        let effects = state.withLock { state in
            var effects = state.receive(chunk, link, at: now)
            arm(&state, &effects, at: now)
            return effects
        }
        perform(effects)
    }

    package func linkDidClose(_ reason: FerryError) {
        change { state, _, now in state.linkDidClose(reason, at: now) }
    }

    package func linkDidSuspend(_ reason: FerryError) {
        change { state, link, now in state.linkDidSuspend(reason, link, at: now) }
    }

    package func linkDidResume() {
        change { state, link, now in state.open(link, at: now) }
    }

    package func finish(_ reason: FerryError) {
        change { state, _, now in state.finish(reason, at: now) }
    }

    // MARK: Lock, timer, effects

    private func change(_ body: (inout ChannelState, any Link, Timestamp) -> Effects) {
        let now = time.now
        let effects = state.withLock { state in
            var effects = body(&state, link, now)
            arm(&state, &effects, at: now)
            return effects
        }
        perform(effects)
    }

    /// Keeps one timer no later than the state's next wake-up. A timer that comes early only looks again, so the hot path
    /// hardly ever touches it. It keeps the channel alive until it fires or the channel ends, whichever is first.
    private func arm(_ state: inout ChannelState, _ effects: inout Effects, at now: Timestamp) {
        guard let deadline = state.nextWakeUp else { return }
        if let armed = state.timerDeadline, armed <= deadline { return }
        state.timer?.cancel()
        state.timerDeadline = deadline
        state.timer = time.schedule(at: deadline) { [self] in wake() }
    }

    private func wake() {
        change { state, link, now in
            if let armed = state.timerDeadline, armed > now { return Effects() }
            state.timerDeadline = nil
            state.timer = nil
            return state.wake(link, at: now)
        }
    }

    private func perform(_ effects: Effects) {
        for (report, progress) in effects.progress { report(progress) }
        for (completion, result) in effects.completions { completion(result) }
        for (reader, delivery) in effects.deliveries { reader.resume(delivery) }
        if effects.closesLink { link.close() }
        if let reason = effects.replacesLink, !link.replaceConnection() { finish(reason) }
    }
}
