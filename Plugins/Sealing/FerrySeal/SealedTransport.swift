#if Seal
    public import Ferry
    import Synchronization

    /// Channels over a transport whose peers prove their keys: what connects is pinned to a key, and what listens takes a list of keys.
    ///
    ///     let transport = SealedTransport(over: radio, framing: SequencedFraming(), as: mine)
    ///     let channel = try await transport.connect(to: .key(theirs), codec: TextCodec(), timeout: .seconds(10))
    ///     let listener = try await transport.listen(from: .keys(in: list), codec: TextCodec())
    ///     for await channel in listener.channels { ... }
    ///
    /// It makes channels and not links: a seal costs 16 bytes a message, and would cost them a chunk below a framing. A link cannot
    /// prove a key, so ``/Ferry/MessageChannel/peer`` has the certainty ``/Ferry/PeerIdentity/Certainty/key`` and the key's fingerprint as
    /// its name, and `Link.peer` stays what the transport says.
    ///
    /// Over `ReconnectingTransport` a link is pinned to the key as well: its keys outlive the connection, and a message of another peer
    /// does not open. Where the transport itself cannot recognise a peer, give it `unrecognizedPeers: .proveTheirKeys`.
    public struct SealedTransport<Base: Transport, BaseFraming: Framing>: Sendable {
        private let base: Base
        private let framing: BaseFraming
        private let key: SecretKey
        private let handshakeTimeout: Duration
        private let time: any TimeSource

        /// Wraps a transport; nothing is opened yet.
        ///
        /// - Parameters:
        ///   - base: makes the links.
        ///   - framing: carries the sealed payloads, as ``/Ferry/SealedFraming`` takes it.
        ///   - key: this side's identity.
        ///   - handshakeTimeout: how long a handshake may take. Default 15 s.
        ///   - time: the clock of the channels.
        public init(
            over base: Base, framing: BaseFraming, as key: SecretKey, handshakeTimeout: Duration = .seconds(15),
            time: any TimeSource = SystemTime()
        ) {
            self.base = base
            self.framing = framing
            self.key = key
            self.handshakeTimeout = handshakeTimeout
            self.time = time
        }

        private func sealed(_ sealing: NoiseSealing) -> SealedFraming<BaseFraming, NoiseSealing> {
            SealedFraming(framing, by: sealing, handshakeTimeout: handshakeTimeout)
        }

        // MARK: Connecting

        /// Connects, and returns a channel to a peer that has proven its key.
        ///
        /// - Parameters:
        ///   - peer: who has to be there.
        ///   - place: the identity by which the transport finds the peer, such as an address; nil for whichever peer offers the service.
        ///   - codec: makes payloads of values.
        ///   - timeout: how long to look for the peer, to connect and to meet, at most.
        /// - Throws: what the transport throws; `seal.stranger`, `seal.refused` and the other errors of a seal when another peer is
        ///   there; `disconnected` when the peer does not accept this side's key; `timedOut`, `cancelled`.
        public func connect<Message: Sendable>(
            to peer: NoiseSealing.Peer, at place: PeerIdentity? = nil, codec: some Codec<Message>, timeout: Duration
        ) async throws(FerryError) -> MessageChannel<Message, Message> {
            try await connect(NoiseSealing(connectingAs: key, to: peer), place, codec, timeout)
        }

        /// Connects to the peer that an identity was kept for: the ``/Ferry/MessageChannel/peer`` of an earlier sealed channel.
        ///
        /// - Parameters:
        ///   - peer: an identity by key, whose name is a fingerprint.
        ///   - place: the identity by which the transport finds the peer, such as an address; nil for whichever peer offers the service.
        ///   - codec: makes payloads of values.
        ///   - timeout: how long to look for the peer, to connect and to meet, at most.
        /// - Throws: as with a ``NoiseSealing/Peer``; `invalidConfiguration` for an identity that is not by key.
        public func connect<Message: Sendable>(
            to peer: PeerIdentity, at place: PeerIdentity? = nil, codec: some Codec<Message>, timeout: Duration
        ) async throws(FerryError) -> MessageChannel<Message, Message> {
            guard peer.certainty == .key, let fingerprint = Fingerprint(peer.name) else {
                throw FerryError(
                    .invalidConfiguration,
                    "The identity \(peer) is not by key. Give the peer of an earlier sealed channel, or connect over the transport itself."
                )
            }
            let sealing = NoiseSealing(connectingAs: key, to: .anyone, where: { $0.fingerprint == fingerprint })
            return try await connect(sealing, place, codec, timeout)
        }

        private func connect<Message: Sendable>(
            _ sealing: NoiseSealing, _ place: PeerIdentity?, _ codec: some Codec<Message>, _ timeout: Duration
        ) async throws(FerryError) -> MessageChannel<Message, Message> {
            let deadline = time.now + timeout
            let link: any Link
            if let place {
                link = try await base.connect(to: place, timeout: timeout)
            } else {
                link = try await base.connect(timeout: timeout)
            }
            let channel = try MessageChannel(over: link, codec: codec, framing: sealed(sealing), time: time)
            let timer = time.schedule(at: deadline) { [weak channel] in
                guard let channel, channel.peer.certainty < .key else { return }
                channel.close()
            }
            defer { timer.cancel() }
            if await channel.meets() { return channel }
            channel.close()
            if Task.isCancelled {
                throw FerryError(.cancelled, "The task was cancelled before the peer had proven its key.")
            }
            if time.now >= deadline {
                throw FerryError(
                    .timedOut,
                    "The peer has not proven its key within \(timeout). It may not seal its messages: use the same setting on both sides."
                )
            }
            throw channel.closeReason ?? FerryError(.disconnected, "The peer left before it had proven its key.")
        }

        // MARK: Listening

        /// Listens for peers that prove one of the keys.
        ///
        /// - Parameters:
        ///   - acceptance: who may come.
        ///   - codec: makes payloads of values.
        ///   - maximumHandshakes: how many peers may be meeting at once; the one that has been at it longest gives its place to the next.
        /// - Throws: what the transport throws.
        public func listen<Message: Sendable>(
            from acceptance: NoiseSealing.Acceptance, codec: some Codec<Message>, maximumHandshakes: Int = 64
        ) async throws(FerryError) -> SealedListener<Message> {
            let framing = sealed(NoiseSealing(acceptingAs: key, from: acceptance))
            return SealedListener(try await base.listen(), maximumHandshakes) { [time] link throws(FerryError) in
                try MessageChannel(over: link, codec: codec, framing: framing, time: time)
            }
        }
    }

    /// A sealed transport that is waiting for peers. Iterate over ``channels``, in one task.
    public final class SealedListener<Message: Sendable>: Sendable {
        /// A channel for each peer that has met this side's acceptance. Of a peer that knew this side's key before, the proof is the first
        /// message that opens: only then ``/Ferry/MessageChannel/peer`` names it, and until then it has no identity.
        public let channels: AsyncStream<MessageChannel<Message, Message>>

        private let listener: LinkListener
        private let task: Task<Void, Never>

        fileprivate init(
            _ listener: LinkListener, _ maximumHandshakes: Int,
            _ open: @escaping @Sendable (any Link) throws(FerryError) -> MessageChannel<Message, Message>
        ) {
            self.listener = listener
            let (channels, continuation) = AsyncStream.makeStream(of: MessageChannel<Message, Message>.self)
            self.channels = channels
            let meetings = Meetings<Message>(max(1, maximumHandshakes))
            let links = listener.links
            task = Task {
                await withDiscardingTaskGroup { group in
                    for await link in links {
                        guard let channel = try? open(link) else { continue }
                        let place = meetings.begin(channel)
                        group.addTask {
                            let hasMet = await channel.meets()
                            meetings.end(place)
                            guard hasMet, case .enqueued = continuation.yield(channel) else { return channel.close() }
                        }
                    }
                    // The listener of peers that are still meeting has ended.
                    meetings.endAll()
                }
                continuation.finish()
            }
        }

        deinit { close() }

        /// Stops listening, and closes the channels of peers that are still meeting. Channels that were taken go on.
        public func close() {
            task.cancel()
            listener.close()
        }

        /// Why no peer can come, as ``/Ferry/LinkListener/interruption``.
        public var interruption: FerryError? { listener.interruption }
    }

    /// The peers that are at their handshake with a listener, at most a number of them.
    private final class Meetings<Message: Sendable>: Sendable {
        private struct State {
            var channels: [Int: MessageChannel<Message, Message>] = [:]
            var last = 0
        }
        private let state = Mutex(State())
        private let limit: Int

        init(_ limit: Int) { self.limit = limit }

        func begin(_ channel: MessageChannel<Message, Message>) -> Int {
            let (place, oldest) = state.withLock { state in
                let oldest = state.channels.count < limit ? nil : state.channels.keys.min()
                let closed = oldest.flatMap { state.channels.removeValue(forKey: $0) }
                state.last += 1
                state.channels[state.last] = channel
                return (state.last, closed)
            }
            oldest?.close()
            return place
        }

        func end(_ place: Int) { state.withLock { _ = $0.channels.removeValue(forKey: place) } }

        func endAll() {
            let channels = state.withLock { state in
                defer { state.channels = [:] }
                return Array(state.channels.values)
            }
            for channel in channels { channel.close() }
        }
    }

    extension MessageChannel {
        /// Waits until the handshake is complete on this side; false when the channel ends before, or the task is cancelled.
        fileprivate func meets() async -> Bool {
            for await status in statuses {
                switch status.phase {
                case .open: return true
                // What a peer has sent that has proven its key and left can be read.
                case .ended: return peer.certainty == .key
                case .connecting, .suspended: break
                }
            }
            return false
        }
    }
#endif
