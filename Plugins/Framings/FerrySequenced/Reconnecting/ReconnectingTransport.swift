public import Ferry
import Synchronization

/// A transport whose links survive the loss of the connection: the connecting side connects again, with growing pauses,
/// and the listening side hands a peer that comes back to the link it had before.
///
///     let transport = ReconnectingTransport(over: radio)
///     let link = try await transport.connect(timeout: .seconds(10))
///     let channel = try MessageChannel(over: link, codec: codec, framing: SequencedFraming())
///
/// Both sides use it, with ``SequencedFraming``. With another framing a channel ends at the first loss, as it would have
/// without.
///
/// A link is pinned to its peer. It goes on only with the peer that it had (``/Ferry/PeerIdentity/recognizes(_:)``), so that nothing
/// meant for one peer reaches another; the listening side looks at the session that the framing names, too. Where the
/// transport cannot recognise a peer, the link ends at the first loss, unless ``UnrecognizedPeers`` says otherwise.
public struct ReconnectingTransport<Base: Transport>: Transport {
    /// What to do where the transport knows a peer for one connection only (``/Ferry/PeerIdentity/Certainty/connection``).
    public enum UnrecognizedPeers: Sendable, Hashable {
        /// The link ends with its connection: the next peer to connect may be a different one.
        case areRefused
        /// A peer that offers the service, or names the same session, counts as the same peer. **A stranger may get
        /// messages meant for the peer.**
        case areTakenForThePeer
        /// The channel is sealed (``/Ferry/SealedFraming``), and its keys are the proof: a peer that connects next gets
        /// only sealed messages, and a message of another peer ends the channel with the seal's error. The link itself
        /// continues as with ``areTakenForThePeer``, so without a seal it is as unsafe.
        case proveTheirKeys
    }

    /// How long to try, and how often.
    public struct Backoff: Sendable, Hashable {
        /// The pause before the first attempt. Default 250 ms. Each further pause is twice as long.
        public var initial: Duration = .milliseconds(250)
        /// The longest pause. Default 15 s.
        public var maximum: Duration = .seconds(15)
        /// How long one attempt may take, and how long a listening side waits for the first chunk of a peer that it lost
        /// before. Default 10 s.
        public var attempt: Duration = .seconds(10)
        /// How long a link may be without a connection before it is given up, on either side. Default 5 minutes.
        public var patience: Duration = .seconds(300)
        /// How many links without a connection a listener keeps. Default 64; the peers of others begin anew.
        public var maximumSuspended = 64

        /// The defaults.
        public init() {}

        /// The pause before the attempt with this number, from 0.
        func pause(before attempt: Int) -> Duration {
            min(initial * (1 << min(attempt, 20)), maximum)
        }

        fileprivate var limits: SessionRegistry.Limits {
            SessionRegistry.Limits(patience: patience, firstChunk: attempt, maximumSuspended: maximumSuspended)
        }
    }

    private let base: Base
    private let framing: any Framing
    private let unrecognized: UnrecognizedPeers
    private let backoff: Backoff
    private let time: any TimeSource

    /// Wraps a transport.
    ///
    /// - Parameters:
    ///   - base: what makes the connections.
    ///   - framing: what the channels use: it names the session by which a listening side tells a peer that goes on from one
    ///     that begins anew (``/Ferry/Framing/sessionID(inFirstChunk:)``).
    ///   - unrecognized: what to do where a peer cannot be recognised.
    ///   - backoff: how long to try, and how often.
    ///   - time: the clock for pauses and patience.
    public init(
        over base: Base, framing: some Framing = SequencedFraming(),
        unrecognizedPeers unrecognized: UnrecognizedPeers =
            .areRefused, backoff: Backoff = Backoff(), time: any TimeSource = SystemTime()
    ) {
        self.base = base
        self.framing = framing
        self.unrecognized = unrecognized
        self.backoff = backoff
        self.time = time
    }

    /// Connects; the link connects again, to the same peer, on its own until it is closed or the patience is at an end.
    ///
    /// - Throws: what the wrapped transport throws. Only later losses are mended.
    public func connect(timeout: Duration) async throws(FerryError) -> any Link {
        reconnecting(try await base.connect(timeout: timeout))
    }

    /// Connects to this peer; the link connects again on its own until it is closed or the patience is at an end.
    ///
    /// - Throws: what the wrapped transport throws. Only later losses are mended.
    public func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
        reconnecting(try await base.connect(to: peer, timeout: timeout))
    }

    private func reconnecting(_ first: any Link) -> any Link {
        let reconnector = Reconnector(base, unrecognized, backoff, time)
        let link = ResumableLink(over: first) { event in
            switch event {
            case .firstChunk, .resumed: break
            case .suspended(let reason): reconnector.start(after: reason)
            case .ended(let unused):
                reconnector.stop()
                unused?.link.close()
            }
        }
        reconnector.state.withLock { $0.link = link }
        return link
    }

    /// Listens; the stream has one link for each peer's session.
    ///
    /// - Throws: what the wrapped transport throws.
    public func listen() async throws(FerryError) -> LinkListener {
        let listener = try await base.listen()
        let registry = SessionRegistry(framing, unrecognized != .areRefused, backoff.limits, time)
        // The task ends with the wrapped listener, which ends with the outer one: nothing here holds that.
        let links = listener.links
        let task = Task {
            for await link in links { registry.accept(link) }
            registry.close()
            registry.outer.withLock { $0.listener }?.close()
        }
        let outer = LinkListener(time: time) {
            task.cancel()
            listener.close()
        }
        registry.outer.withLock { $0.listener = outer }
        listener.onInterruption { [weak outer] reason in
            if let reason { outer?.interrupt(reason) } else { outer?.resume() }
        }
        return outer
    }

    /// The connecting side's attempts.
    private final class Reconnector: Sendable {
        struct State {
            weak var link: ResumableLink?
            var task: Task<Void, Never>?
            var isStopped = false
        }

        let state = Mutex(State())
        private let base: Base
        private let unrecognized: UnrecognizedPeers
        private let backoff: Backoff
        private let time: any TimeSource

        init(_ base: Base, _ unrecognized: UnrecognizedPeers, _ backoff: Backoff, _ time: any TimeSource) {
            self.base = base
            self.unrecognized = unrecognized
            self.backoff = backoff
            self.time = time
        }

        func start(after reason: FerryError) {
            state.withLock { state in
                guard !state.isStopped else { return }
                state.task = Task { await self.run(after: reason) }
            }
        }

        func stop() {
            let task = state.withLock { state in
                state.isStopped = true
                return state.task.take()
            }
            task?.cancel()
        }

        private func run(after reason: FerryError) async {
            guard let peer = state.withLock({ $0.link })?.peer else { return }
            guard peer.certainty > .connection || unrecognized != .areRefused else {
                return end(
                    FerryError(
                        .disconnected,
                        "The connection was lost, and peer \(peer) cannot be recognised on another: it was known for that "
                            + "connection only. Pair with it; or seal the channel and say unrecognizedPeers: .proveTheirKeys; or say "
                            + "unrecognizedPeers: .areTakenForThePeer if a stranger may get messages meant for it.",
                        cause: reason))
            }
            let patience = time.now + backoff.patience
            var attempt = 0
            while !Task.isCancelled {
                do { try await time.sleep(for: backoff.pause(before: attempt)) } catch { return }
                attempt += 1
                guard time.now < patience else { break }
                guard let found = await connect(to: peer) else { continue }
                guard let link = state.withLock({ $0.isStopped ? nil : $0.link }), link.adopt(found) else {
                    return found.close()
                }
                return
            }
            guard !Task.isCancelled else { return }
            end(
                FerryError(
                    .disconnected,
                    "The connection was lost and \(attempt) attempts within \(backoff.patience) did not bring it back. "
                        + "Backoff.patience sets how long to try.", cause: reason))
        }

        private func end(_ reason: FerryError) { state.withLock { $0.link }?.end(reason) }

        /// One attempt. Checks the link that the transport returns: a link to another peer is of no use.
        private func connect(to peer: PeerIdentity) async -> (any Link)? {
            guard peer.certainty > .connection else { return try? await base.connect(timeout: backoff.attempt) }
            guard let found = try? await base.connect(to: peer, timeout: backoff.attempt) else { return nil }
            guard peer.recognizes(found.peer) else {
                found.close()
                return nil
            }
            return found
        }
    }
}
