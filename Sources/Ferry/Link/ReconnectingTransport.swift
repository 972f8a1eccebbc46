import Synchronization

/// A transport whose links survive the loss of the connection: the connecting side connects again, with growing pauses,
/// and the listening side hands a peer that comes back to the link it had before.
///
///     let transport = ReconnectingTransport(over: radio)
///     let link = try await transport.connect(timeout: .seconds(10))
///     let channel = MessageChannel(over: link, codec: codec, framing: SequencedFraming())
///
/// Both sides use it, with ``SequencedFraming``: the peer is recognised by its hello. With another framing a channel ends
/// at the first loss, as it would have without.
public struct ReconnectingTransport<Base: Transport>: Transport {
    /// How long to try, and how often.
    public struct Backoff: Sendable, Hashable {
        /// The pause before the first attempt. Default 250 ms. Each further pause is twice as long.
        public var initial: Duration = .milliseconds(250)
        /// The longest pause. Default 15 s.
        public var maximum: Duration = .seconds(15)
        /// How long one attempt may take. Default 10 s.
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
    }

    private let base: Base
    private let backoff: Backoff
    private let time: any TimeSource

    /// Wraps a transport.
    public init(over base: Base, backoff: Backoff = Backoff(), time: any TimeSource = SystemTime()) {
        self.base = base
        self.backoff = backoff
        self.time = time
    }

    /// Connects; the link connects again on its own until it is closed or the patience is at an end.
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
        let port = LinkPort(first)
        let reconnector = Reconnector(base, backoff, time)
        let link = ResumableLink(over: port) { reason in
            if reason != nil { reconnector.start() } else { reconnector.stop() }
        }
        reconnector.link.withLock { $0.link = link }
        port.activate()
        return link
    }

    /// Listens; the stream has one link for each peer's session.
    ///
    /// - Throws: what the wrapped transport throws.
    public func listen() async throws(FerryError) -> LinkListener {
        let listener = try await base.listen()
        let registry = SessionRegistry(backoff.patience, backoff.maximumSuspended, time)
        let task = Task {
            for await link in listener.links {
                let port = LinkPort(link)
                port.activate { registry.sort($0, $1) }
            }
            registry.outer.withLock { $0 }?.close()
        }
        let outer = LinkListener {
            task.cancel()
            listener.close()
        }
        registry.outer.withLock { $0 = outer }
        return outer
    }

    /// The connecting side's attempts.
    private final class Reconnector: Sendable {
        struct State {
            weak var link: ResumableLink?
            var task: Task<Void, Never>?
            var isStopped = false
        }

        let link = Mutex(State())
        private let base: Base
        private let backoff: Backoff
        private let time: any TimeSource

        init(_ base: Base, _ backoff: Backoff, _ time: any TimeSource) {
            self.base = base
            self.backoff = backoff
            self.time = time
        }

        func start() {
            link.withLock { state in
                guard !state.isStopped else { return }
                state.task = Task { await self.run() }
            }
        }

        func stop() {
            link.withLock { state in
                state.isStopped = true
                state.task?.cancel()
            }
        }

        private func run() async {
            let end = time.now + backoff.patience
            var attempt = 0
            while !Task.isCancelled {
                do { try await time.sleep(for: backoff.pause(before: attempt)) } catch { return }
                attempt += 1
                guard time.now < end else { break }
                guard let found = try? await base.connect(timeout: backoff.attempt) else { continue }
                let port = LinkPort(found)
                guard let link = link.withLock({ $0.isStopped ? nil : $0.link }) else { return found.close() }
                port.activate()
                return link.adopt(port)
            }
            link.withLock { $0.link }?.end(
                FerryError(
                    .disconnected,
                    "The connection was lost and \(attempt) attempts within \(backoff.patience) did not bring it back. "
                        + "Backoff.patience sets how long to try."))
        }
    }
}

/// The listening side's links, by their peers' sessions.
private final class SessionRegistry: Sendable {
    private struct Entry {
        let link: ResumableLink
        var timer: ScheduledTimer?
    }

    let outer = Mutex<LinkListener?>(nil)
    private let entries = Mutex<[UInt32: Entry]>([:])
    private let patience: Duration
    private let maximumSuspended: Int
    private let time: any TimeSource

    init(_ patience: Duration, _ maximumSuspended: Int, _ time: any TimeSource) {
        self.patience = patience
        self.maximumSuspended = maximumSuspended
        self.time = time
    }

    /// Finds out by its first chunk whose link this is.
    func sort(_ port: LinkPort, _ chunk: [UInt8]?) {
        guard let chunk else { return }
        guard let session = SequencedFraming.sessionID(inHello: chunk.span.bytes) else {
            return offer(ResumableLink(over: port) { _ in }, port)
        }
        let known = entries.withLock { entries in
            entries[session]?.timer?.cancel()
            entries[session]?.timer = nil
            return entries[session]?.link
        }
        if let known { return known.adopt(port) }
        let link = ResumableLink(over: port) { [weak self] reason in self?.changed(session, reason) }
        entries.withLock { $0[session] = Entry(link: link) }
        offer(link, port)
    }

    private func offer(_ link: ResumableLink, _ port: LinkPort) {
        guard outer.withLock({ $0 })?.offer(link) != true else { return }
        link.close()
        port.link.close()
    }

    /// A link is without a connection, or at its end.
    private func changed(_ session: UInt32, _ reason: FerryError?) {
        guard let reason else { return entries.withLock { $0[session] = nil } }
        let surplus: ResumableLink? = entries.withLock { entries in
            guard entries[session] != nil else { return nil }
            guard entries.values.count(where: { $0.timer != nil }) < maximumSuspended else {
                return entries.removeValue(forKey: session)?.link
            }
            entries[session]?.timer = time.schedule(at: time.now + patience) { [weak self] in
                self?.entries.withLock { $0.removeValue(forKey: session)?.link }?.end(reason)
            }
            return nil
        }
        surplus?.end(reason)
    }
}
