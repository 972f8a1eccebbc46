import Synchronization

/// The shell of a channel: owns the link, the lock and the timer, and does what ``ChannelState`` answers.
///
/// There is no task and no queue. The thread that brings an event (a sender, the link, the timer) takes the lock,
/// passes it to the state, lets the state push chunks into the link until the link refuses, and performs the effects
/// after unlocking. The link's contract makes that safe: it never calls back from within a call. Effects are performed
/// in the order of their events, by one thread at a time: a thread that finds another at it leaves its effects to that
/// one.
///
/// What stands around a link, such as a ``LinkObserver``, is called with the lock held, and may cancel a task or close the
/// channel. So what an app can ask for at any moment is an ``Event``, and never waits for the lock: it is done at once, or
/// by the thread that has the lock, perhaps this one, before anything else.
package final class ChannelCore: LinkReceiver {
    private let link: any Link
    private let time: any TimeSource
    private let guarded: Mutex<Guarded>
    private let nextID = Atomic<UInt64>(0)
    /// Events that came while the lock was held, oldest first. Taken with or without the other lock, never before it.
    private let postponed = Mutex<[Event]>([])
    private let hasPostponed = Atomic(false)

    /// What an app asks for without waiting for an answer.
    private enum Event: Sendable {
        case reserve(MessageID)
        case forfeit(MessageID)
        case submit(
            [UInt8], MessageID, SendOptions, timeout: Duration?, progress: (@Sendable (SendProgress) -> Void)?,
            completion: @Sendable (Result<Void, FerryError>) -> Void)
        case abandon(MessageID, Abandonment)
        case cancelRead(MessageID)
        case unwatch(MessageID)
        case drain
        case finish(FerryError)
    }

    private struct Guarded: ~Copyable, Sendable {
        var state: ChannelState
        var alarm: (at: Timestamp, timer: ScheduledTimer)?
        /// Whether the link has been asked to pause its peer.
        var hasPaused = false
        /// Whether a thread is performing effects.
        var isPerforming = false
        var lastStatus = ChannelStatus(phase: .connecting, resumptions: 0)
        var watchers = Watchers()
    }

    package init(
        link: any Link, session: any FramingSession, chunkSize: Int, limits: Limits, time: any TimeSource,
        envelopeCount: Int = 0
    ) {
        self.link = link
        self.time = time
        guarded = Mutex(
            Guarded(
                state: ChannelState(
                    session: session, chunkSize: chunkSize, limits: limits, envelopeCount: envelopeCount)))
    }

    /// Activates the link. What it holds is taken before anything is sent, for it may have ended already.
    package func open() {
        change(pumps: false) { state, now in state.linkDidOpen(at: now) }
        link.activate(self)
        change { _, _ in }
    }

    package var peer: PeerIdentity { look { $0.provenPeer } ?? link.peer }
    package var closeReason: FerryError? { look { state in state.closeReason } }
    package var statistics: ChannelStatistics { look { state in state.statistics } }
    package var status: ChannelStatus { look { state in state.status } }
    package var arriving: ReceiveProgress? { look { state in state.arriving } }

    /// Looks at the state, after all that was asked for before.
    private func look<Value: Sendable>(_ body: (borrowing ChannelState) -> Value) -> Value {
        if hasPostponed.load(ordering: .acquiring) { change { _, _ in } }
        let value = guarded.withLock { body($0.state) }
        // A thread that asked for something meanwhile has found the lock taken, and left it to this one.
        leave(with: nil)
        return value
    }

    // MARK: Sending

    /// Sends a payload and waits until it is out.
    ///
    /// - Parameter place: where ``reserve()`` has put it in the order of sending; nil for the end.
    func send(
        _ payload: Result<[UInt8], FerryError>, in place: MessageID? = nil, options: SendOptions = SendOptions(),
        timeout: Duration?, progress: (@Sendable (SendProgress) -> Void)? = nil,
        isolation actor: isolated (any Actor)? = #isolation
    ) async throws(FerryError) {
        let bytes: [UInt8]
        do throws(FerryError) {
            bytes = try payload.get()
            if Task.isCancelled {
                throw FerryError(
                    .cancelled, "The task was cancelled before the message was sent.", fate: .nothingSent)
            }
        } catch {
            if let place { forfeit(place) }
            throw error
        }
        let id = place ?? makeID()
        let result = await withTaskCancellationHandler {
            // Stays on the actor, whose calls would change places otherwise: a closure that does not name it leaves it first.
            _ = actor
            return await withCheckedContinuation { continuation in
                submit(bytes, as: id, options: options, timeout: timeout, progress: progress) {
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

    /// A place at the end of the order of sending, for a message that is still to be encoded: those after it wait for it. A
    /// submission under this number, or ``forfeit(_:)``, has to follow.
    package func reserve() -> MessageID {
        let id = makeID()
        // Nothing comes of it: neither time nor effects.
        let isDone = guarded.withLockIfAvailable { guarded in
            guard !hasPostponed.load(ordering: .acquiring) else { return false }
            guarded.state.reserve(id)
            return true
        }
        if isDone == true { leave(with: nil) } else { act(.reserve(id), pumps: false) }
        return id
    }

    /// Gives up a place: its message will not be sent.
    package func forfeit(_ place: MessageID) { act(.forfeit(place)) }

    /// Queues a payload; `completion` is called once, never from within this call's lock.
    package func submit(
        _ payload: [UInt8], as id: MessageID, options: SendOptions = SendOptions(), timeout: Duration? = nil,
        progress: (@Sendable (SendProgress) -> Void)? = nil,
        completion: @escaping @Sendable (Result<Void, FerryError>) -> Void
    ) {
        let isDone = tryChange { guarded, now in
            submit(payload, as: id, options, timeout, progress, completion, to: &guarded.state, at: now)
        }
        if isDone { return }
        postpone(.submit(payload, id, options, timeout: timeout, progress: progress, completion: completion))
    }

    private func submit(
        _ payload: [UInt8], as id: MessageID, _ options: SendOptions, _ timeout: Duration?,
        _ progress: (@Sendable (SendProgress) -> Void)?,
        _ completion: @escaping @Sendable (Result<Void, FerryError>) -> Void, to state: inout ChannelState,
        at now: Timestamp
    ) {
        let timer = timeout.map { timeout in
            time.schedule(at: now + timeout) { [self] in act(.abandon(id, .timedOut)) }
        }
        let send = PendingSend(totalBytes: payload.count, timer: timer, progress: progress, completion: completion)
        state.submit(payload, as: id, options, send, at: now)
    }

    package func cancel(_ id: MessageID) { act(.abandon(id, .cancelled)) }

    // MARK: Receiving

    func read(isolation actor: isolated (any Actor)?) async -> Delivery {
        if let delivery = take() { return delivery }
        let id = makeID()
        return await withTaskCancellationHandler {
            await withCheckedContinuation(isolation: actor) { continuation in
                change { state, now in
                    state.read(Reader(id: id, resume: { continuation.resume(returning: $0) }), at: now)
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
        change { state, now in delivery = state.take(at: now) }
        return delivery
    }

    private func cancelRead(_ id: MessageID) { act(.cancelRead(id)) }

    // MARK: The link

    package func linkIsReady() { change { _, _ in } }

    package func linkDidReceive(_ chunk: RawSpan) {
        let now = time.now
        let effects = guarded.withLock { guarded in
            catchUp(&guarded, at: now)
            guarded.state.receive(chunk, at: now)
            return settle(&guarded, pumps: true, at: now)
        }
        leave(with: effects)
    }

    package func linkDidClose(_ reason: FerryError) { change { state, now in state.linkDidClose(reason, at: now) } }

    package func linkDidSuspend(_ reason: FerryError) {
        change { state, now in state.linkDidSuspend(reason, at: now) }
    }

    package func linkDidResume() { change { state, now in state.linkDidOpen(at: now) } }

    // MARK: The end

    package func finish(_ reason: FerryError) { act(.finish(reason)) }

    /// Takes no more messages, and ends when those that were taken are out.
    package func drain() { act(.drain) }

    // MARK: Watching

    /// The channel's states from now on, the present one first; only the newest waits to be read.
    func watchStatus() -> AsyncStream<ChannelStatus> {
        let (stream, continuation) = AsyncStream<ChannelStatus>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let id = makeID()
        continuation.onTermination = { [weak self] _ in self?.act(.unwatch(id), pumps: false) }
        tell { guarded in
            let status = guarded.state.status
            // Without watchers until now, the last published status may be out of date.
            guarded.lastStatus = status
            guarded.watchers.status[id] = continuation
            return {
                continuation.yield(status)
                if status.phase == .ended { continuation.finish() }
            }
        }
        return stream
    }

    /// How far the message in hand has come, whenever a chunk of it arrives; only the newest waits to be read.
    func watchArriving() -> AsyncStream<ReceiveProgress> {
        let (stream, continuation) = AsyncStream<ReceiveProgress>.makeStream(bufferingPolicy: .bufferingNewest(1))
        let id = makeID()
        continuation.onTermination = { [weak self] _ in self?.act(.unwatch(id), pumps: false) }
        tell { guarded in
            guarded.watchers.arriving[id] = continuation
            let isOver = guarded.state.status.phase == .ended
            return { if isOver { continuation.finish() } }
        }
        return stream
    }

    private struct Watchers: Sendable {
        var status: [MessageID: AsyncStream<ChannelStatus>.Continuation] = [:]
        var arriving: [MessageID: AsyncStream<ReceiveProgress>.Continuation] = [:]

        var isEmpty: Bool { status.isEmpty && arriving.isEmpty }
    }

    /// Does what `body` returns in its turn, with the lock free.
    private func tell(_ body: (inout Guarded) -> @Sendable () -> Void) {
        let now = time.now
        let effects = guarded.withLock { guarded in
            catchUp(&guarded, at: now)
            let telling = body(&guarded)
            guarded.state.afterwards(telling)
            return settle(&guarded, pumps: false, at: now)
        }
        leave(with: effects)
    }

    /// Notifies the watchers after the lock is released. A cancelled watcher takes this lock while it holds its task's
    /// lock, which the notifying thread takes too.
    private func tellWatchers(_ guarded: inout Guarded) {
        let watchers = guarded.watchers
        if !watchers.arriving.isEmpty, let progress = guarded.state.arriving {
            guarded.state.afterwards { for watcher in watchers.arriving.values { watcher.yield(progress) } }
        }
        let status = guarded.state.status
        guard status != guarded.lastStatus else { return }
        guarded.lastStatus = status
        let isOver = status.phase == .ended
        if isOver { guarded.watchers = Watchers() }
        guarded.state.afterwards {
            for watcher in watchers.status.values { watcher.yield(status) }
            guard isOver else { return }
            for watcher in watchers.status.values { watcher.finish() }
            for watcher in watchers.arriving.values { watcher.finish() }
        }
    }

    // MARK: Lock, timer, effects

    /// Waits for the lock. Not for what an app may call from within a call of the link's, which is an ``Event``.
    private func change(pumps: Bool = true, _ body: (inout ChannelState, Timestamp) -> Void) {
        let now = time.now
        let effects = guarded.withLock { guarded in
            let pumps = catchUp(&guarded, at: now) || pumps
            body(&guarded.state, now)
            return settle(&guarded, pumps: pumps, at: now)
        }
        leave(with: effects)
    }

    /// Applies the event, or leaves it to the thread that holds the lock.
    private func act(_ event: Event, pumps: Bool = true) {
        let isDone = tryChange(pumps: pumps) { guarded, now in apply(event, to: &guarded, at: now) }
        if !isDone { postpone(event) }
    }

    /// Changes the state if the lock is free. Returns whether it was.
    private func tryChange(pumps: Bool = true, _ body: (inout Guarded, Timestamp) -> Void) -> Bool {
        let now = time.now
        let effects: Effects?? = guarded.withLockIfAvailable { guarded in
            let pumps = catchUp(&guarded, at: now) || pumps
            body(&guarded, now)
            return settle(&guarded, pumps: pumps, at: now)
        }
        guard let effects else { return false }
        leave(with: effects)
        return true
    }

    /// Has the thread that has the lock do it.
    private func postpone(_ event: Event) {
        postponed.withLock { events in
            events.append(event)
            hasPostponed.store(true, ordering: .sequentiallyConsistent)
        }
        doPostponed()
    }

    /// Does what other threads, or calls from within, have asked for meanwhile, unless another thread has the lock: that one
    /// looks after it has unlocked. It has seen the mark, or the lock is free here: both are told and looked at in one order.
    private func doPostponed() {
        while hasPostponed.load(ordering: .sequentiallyConsistent) {
            let now = time.now
            let effects: Effects?? = guarded.withLockIfAvailable { guarded in
                catchUp(&guarded, at: now)
                return settle(&guarded, pumps: true, at: now)
            }
            guard let effects else { return }
            if let effects { perform(effects) }
        }
    }

    /// With the lock free again.
    private func leave(with effects: Effects?) {
        if let effects { perform(effects) }
        if hasPostponed.load(ordering: .sequentiallyConsistent) { doPostponed() }
    }

    /// Applies the events that were postponed. Returns whether there were any.
    @discardableResult
    private func catchUp(_ guarded: inout Guarded, at now: Timestamp) -> Bool {
        guard hasPostponed.load(ordering: .acquiring) else { return false }
        let events = postponed.withLock { events in
            hasPostponed.store(false, ordering: .sequentiallyConsistent)
            defer { events = [] }
            return events
        }
        for event in events { apply(event, to: &guarded, at: now) }
        return true
    }

    private func apply(_ event: Event, to guarded: inout Guarded, at now: Timestamp) {
        switch event {
        case .reserve(let id): guarded.state.reserve(id)
        case .forfeit(let id): guarded.state.forfeit(id, at: now)
        case .submit(let payload, let id, let options, let timeout, let progress, let completion):
            submit(payload, as: id, options, timeout, progress, completion, to: &guarded.state, at: now)
        case .abandon(let id, let cause): guarded.state.abandon(id, because: cause, at: now)
        case .cancelRead(let id): guarded.state.cancelRead(id)
        case .unwatch(let id):
            guarded.watchers.status[id] = nil
            guarded.watchers.arriving[id] = nil
        case .drain: guarded.state.drain(at: now)
        case .finish(let reason): guarded.state.finish(reason, at: now)
        }
    }

    /// After each event: sends what can be sent, pauses or resumes the peer, sets the timer. Returns what this thread has to
    /// do after unlocking.
    private func settle(_ guarded: inout Guarded, pumps: Bool, at now: Timestamp) -> Effects? {
        if pumps {
            guarded.state.pump(atMost: { link.maximumChunkSize }, at: now) {
                (chunk: RawSpan) throws(FerryError) in try link.trySend(chunk)
            }
        }
        if guarded.state.isPaused != guarded.hasPaused {
            guarded.hasPaused = guarded.state.isPaused
            link.setReceiving(!guarded.hasPaused)
        }
        arm(&guarded)
        if !guarded.watchers.isEmpty { tellWatchers(&guarded) }
        guard guarded.state.hasEffects, !guarded.isPerforming else { return nil }
        guarded.isPerforming = true
        return guarded.state.takeEffects()
    }

    /// Keeps one timer no later than the state's next wake-up. A timer that comes early only looks again, so the hot path
    /// hardly ever touches it. It keeps the channel alive until it fires or the channel ends, whichever is first.
    private func arm(_ guarded: inout Guarded) {
        guard let deadline = guarded.state.nextWakeUp else {
            guard guarded.state.closeReason != nil else { return }
            guarded.alarm?.timer.cancel()
            guarded.alarm = nil
            return
        }
        if let alarm = guarded.alarm, alarm.at <= deadline { return }
        guarded.alarm?.timer.cancel()
        guarded.alarm = (deadline, time.schedule(at: deadline) { [self] in wake() })
    }

    private func wake() {
        let now = time.now
        let effects = guarded.withLock { guarded -> Effects? in
            if let alarm = guarded.alarm, alarm.at > now { return nil }
            catchUp(&guarded, at: now)
            guarded.alarm = nil
            guarded.state.wake(at: now)
            return settle(&guarded, pumps: true, at: now)
        }
        leave(with: effects)
    }

    /// Performs the effects of events, including those that other threads add meanwhile.
    private func perform(_ first: Effects) {
        var next: Effects? = first
        while let effects = next {
            for (report, progress) in effects.progress { report(progress) }
            for (completion, result) in effects.completions { completion(result) }
            for (reader, delivery) in effects.deliveries { reader.resume(delivery) }
            if effects.closesLink { link.close() }
            if let reason = effects.replacesLink, !link.replaceConnection() { finish(reason) }
            for action in effects.actions { action() }
            next = guarded.withLock { guarded in
                guarded.isPerforming = guarded.state.hasEffects
                return guarded.isPerforming ? guarded.state.takeEffects() : nil
            }
        }
    }
}
