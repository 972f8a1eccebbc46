#if NATS && Records
    public import Ferry
    public import FerryFleet
    public import FerryNATS

    /// Keeps a gateway's leases in a key-value bucket: carries out what a ``/FerryFleet/LeaseBook`` decides.
    ///
    ///     let keeper = try LeaseKeeper(LeaseKeeper.Configuration(servers: ["nats://localhost:4222"], name: "gateway-1"))
    ///     try await keeper.run(rounds)                   // until its task is cancelled; then it gives up what it has
    ///
    /// Who hears a peer says so by ``heard(_:signal:)``. The keeper has its visitor begin with peers whose lease it got, and stop
    /// before the lease is over by its own clock. ``token(of:)`` goes by the clock alone: ask it before anything is said for a peer.
    public final class LeaseKeeper: Sendable {
        /// Where leases are kept, and by which rules.
        public struct Configuration: Sendable, Hashable {
            /// The servers.
            public var servers: NATSConfiguration
            /// The bucket. Its keys expire after the policy's time to live.
            public var bucket: String
            /// On how many servers of a cluster a new bucket is kept. Default 1.
            public var replicas = 1
            /// Whether to make the bucket where there is none. Default true.
            public var createsBucket = true
            /// The gateway's name: 1 to 64 letters, digits, hyphens and underscores. No two gateways have the same.
            public var name: String
            /// How many peers this gateway takes on. Default 64.
            public var capacity = 64
            /// The fleet's rules, the same at all gateways.
            public var policy = LeasePolicy()
            /// What the subjects begin with on which it says whose peer it has; a stream that has them keeps that.
            public var claims = "ferry.owners"

            /// - Parameters:
            ///   - servers: addresses, such as `nats://localhost:4222`.
            ///   - name: the gateway's name.
            ///   - bucket: the bucket's name.
            public init(servers: [String], name: String, bucket: String = "ferry-leases") {
                self.servers = NATSConfiguration(servers: servers)
                self.servers.name = name
                self.name = name
                self.bucket = bucket
            }
        }

        /// How it stands.
        public struct Status: Sendable, Hashable {
            /// Whether the bucket can be asked.
            public var isConnected = false
            /// How many peers it owns, or is giving up.
            public var owned = 0
            /// How many tenures it has begun.
            public var begun = 0
            /// How many requests to the bucket were carried out.
            public var stored = 0
            /// Requests that were refused because another gateway was first.
            public var refused = 0
            /// How many had no answer.
            public var unanswered = 0
            /// How many times a peer was let go later than its lease allowed. More than 0 is a defect, or a machine that stood.
            public var late = 0
            /// The latest obstacle.
            public var trouble: String?
        }

        /// Its life; each step is final.
        enum Phase { case runs, ends, drains }

        struct State {
            var book: LeaseBook
            /// Where leases are asked for, and heard of; nil without a connection.
            var servers: (bucket: NATSBucket, connection: NATSConnection)?
            var tokens: [String: FencingToken] = [:]
            /// The signal that was heard last of each peer.
            var signals: [String: Int] = [:]
            /// Peers that are not taken for heard until then, for they cannot be connected to.
            var muted: [String: Timestamp] = [:]
            /// Peers that are to be let go since longer than their lease allowed.
            var late: Set<String> = []
            var outstanding = 0
            var phase = Phase.runs
            var failure: FerryError?
            var status = Status()

            /// It gives all peers up, as soon as its loop comes round.
            mutating func end() { if phase == .runs { phase = .ends } }

            mutating func isLate(_ peer: String) {
                guard late.insert(peer).inserted else { return }
                status.late += 1
                status.trouble = "The visit to \(peer) did not end when its lease was over."
            }
        }

        let configuration: Configuration
        let shell: Shell<State>
        var time: any TimeSource { shell.time }
        let observer: (any GatewayObserver)?

        /// Makes a keeper, which does nothing before ``run(_:)``.
        ///
        /// - Parameters:
        ///   - configuration: where leases are kept, and by which rules.
        ///   - observer: receives events; nil for none.
        /// - Throws: `fleet.policy` for a name, a capacity or a policy that cannot be; `invalidConfiguration`.
        public init(_ configuration: Configuration, observer: (any GatewayObserver)? = nil) throws(FerryError) {
            let gateway = GatewayID(configuration.name, incarnation: .random(in: 1 ... .max))
            let book = try LeaseBook(
                gateway: gateway, capacity: configuration.capacity, policy: configuration.policy)
            guard RecordNames.isPrefix(configuration.claims) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(configuration.claims.debugDescription) cannot begin subjects: use words with dots between them.")
            }
            var configuration = configuration
            configuration.servers.requestTimeout = configuration.policy.requestTimeout
            // A server that falls silent is left for another while the leases still last: after two of these, and at once for what
            // it says itself.
            configuration.servers.pingInterval = min(
                configuration.servers.pingInterval, configuration.policy.timeToLive / 10)
            self.configuration = configuration
            self.observer = observer
            shell = Shell(State(book: book), time: SteadyTime())
        }

        // MARK: What others ask and tell

        /// How it stands now.
        public var status: Status {
            shell.withLock { state in
                var status = state.status
                status.isConnected = state.servers?.connection.isConnected == true
                status.owned = state.book.owned
                return status
            }
        }

        /// How often to ``report(_:)``: three times in the time for which a key is kept.
        public var reportInterval: Duration { configuration.policy.timeToLive / 3 }

        /// The token under which a peer is this gateway's at this instant; nil when it is not.
        public func token(of peer: String) -> FencingToken? {
            shell.withLock { $0.book.token(of: peer, at: time.now) }
        }

        /// The peers that are this gateway's at this instant, in the order of their names.
        public var ownedPeers: [String] { shell.withLock { $0.book.ownedPeers(at: time.now) }.sorted() }

        /// The peer was heard, so strongly, in dBm.
        public func heard(_ peer: String, signal: Int) {
            let isSooner = shell.withLock { state -> Bool in
                let now = time.now
                if let until = state.muted[peer] {
                    guard now >= until else { return false }
                    state.muted[peer] = nil
                }
                if state.signals.count > 2 * configuration.policy.maximumPeers { state.signals = [:] }
                state.signals[peer] = signal
                let before = state.book.nextDeadline ?? .distantFuture
                state.book.heard(peer, signal: signal, at: now)
                return (state.book.nextDeadline ?? .distantFuture) < before
            }
            if isSooner { shell.wake() }
        }

        /// The peer has said something on its connection.
        public func met(_ peer: String) {
            guard let signal = shell.withLock({ $0.signals[peer] }) else { return }
            heard(peer, signal: signal)
        }

        /// The peer is heard, but cannot be connected to: for a while it counts as silent, so that it is given up to others.
        public func isOutOfReach(_ peer: String) {
            shell.withLock { state in
                let now = time.now
                if state.muted.count > configuration.policy.maximumPeers {
                    state.muted = state.muted.filter { $0.value > now }
                }
                guard state.muted.count <= configuration.policy.maximumPeers else { return }
                state.muted[peer] = now + configuration.policy.silence * 2
            }
        }

        /// Releases all leases and requests none until ``resume()``: for a gateway that cannot store.
        public func pause(_ reason: FerryError) {
            shell.change { state, now in
                state.status.trouble = reason.message
                state.book.drain(at: now)
            }
        }

        /// Asks for peers again, after ``pause(_:)``.
        public func resume() {
            shell.withLock { state in
                guard state.phase == .runs else { return }
                state.status.trouble = nil
                state.book.accept()
            }
        }

        // MARK: Running

        /// Keeps leases, until the task is cancelled; then lets go of all peers and gives their leases up. Servers that are away
        /// are waited for. It runs once.
        ///
        /// - Parameter visitor: who connects to peers.
        /// - Throws: `cancelled`; before the bucket was open for the first time also `natsRefused`, `natsInsecure`,
        ///   `natsWrongShape`, `natsNotFound`, `invalidConfiguration`.
        public func run(_ visitor: some PeerVisitor) async throws(FerryError) {
            // Releasing the leases in the end takes requests, which a cancelled task could not wait for.
            let work = Task { await self.work(visitor) }
            await withTaskCancellationHandler {
                await work.value
            } onCancel: {
                shell.change { state, _ in state.end() }
            }
            if let failure = shell.withLock({ $0.failure }) { throw failure }
            throw FerryError(.cancelled, "The task was cancelled, and the gateway with it.")
        }

        private func work(_ visitor: some PeerVisitor) async {
            let connecting = Task { await self.stayConnected() }
            var end = Timestamp.distantFuture
            while true {
                let (steps, next, isOver) = shell.withLock { state -> ([FleetStep], Timestamp, Bool) in
                    let now = time.now
                    if state.phase == .ends {
                        state.phase = .drains
                        state.book.drain(at: now)
                        let policy = configuration.policy
                        end = now + policy.stopping + policy.requestTimeout * 2
                    }
                    state.book.wake(at: now)
                    // A machine that slept wakes no timer in time.
                    let next = min(now + .seconds(1), state.book.nextDeadline ?? .distantFuture)
                    return (
                        state.book.takeSteps(), next, state.phase == .drains && (state.book.owned == 0 || now >= end)
                    )
                }
                for step in steps { carryOut(step, visitor) }
                guard !isOver else { break }
                await shell.wait(until: next)
            }
            let rest = shell.withLock { $0.tokens.keys.sorted() }
            await wait(until: time.now + configuration.policy.stopping) {
                for peer in rest { await visitor.stop(peer) }
            }
            connecting.cancel()
            await connecting.value
        }

        /// Does something that may hang, and goes on without it then.
        private func wait(until deadline: Timestamp, for deed: @escaping @Sendable () async -> Void) async {
            let isOver = Bell()
            Task {
                await deed()
                isOver.ring()
            }
            await isOver.wait(until: deadline, by: time)
        }

        private func carryOut(_ step: FleetStep, _ visitor: some PeerVisitor) {
            switch step {
            case .request(let request): ask(request)
            case .begin(let peer, let token):
                shell.withLock { state in
                    state.tokens[peer] = token
                    state.status.begun += 1
                }
                let claim = claim("began", of: peer, under: token)
                Task { await send(claim) }
                observer?.observe(.leaseBegan(peer: peer, token))
                visitor.begin(peer)
            case .stop(let peer, let deadline):
                Task {
                    // Reported now because a hung visit may never end; another gateway takes the peer over.
                    let timer = time.schedule(at: deadline) { [weak self] in
                        self?.shell.withLock { $0.isLate(peer) }
                    }
                    await visitor.stop(peer)
                    timer.cancel()
                    let (token, isLate) = shell.withLock { state in
                        if time.now > deadline { state.isLate(peer) }
                        return (state.tokens.removeValue(forKey: peer), state.late.remove(peer) != nil)
                    }
                    observer?.observe(.leaseEnded(peer: peer, token, isLate: isLate))
                    // Before the lease is given up, after which the connection may end.
                    if let token { await send(claim("ended", of: peer, under: token)) }
                    shell.change { state, now in state.book.stopped(peer, at: now) }
                }
            case .tell(let gateway, let message):
                let subject = LeaseNames.subject(configuration.bucket, gateway)
                let message = NATSMessage(subject, bytes: Array(LeaseNames.text(message).utf8))
                Task { await send(message) }
            }
        }
    }

    /// Connects to the peers of a ``LeaseKeeper``.
    public protocol PeerVisitor: Sendable {
        /// The peer is this gateway's from now on.
        func begin(_ peer: String)
        /// The peer is not any more. Returns when its connection, and every attempt at one, has ended: within
        /// ``/FerryFleet/LeasePolicy/stopping``.
        func stop(_ peer: String) async
    }

    /// Several who are told of the same peers, in their order.
    public struct PeerVisitors: PeerVisitor {
        private let visitors: [any PeerVisitor]

        /// Those who are told.
        public init(_ visitors: [any PeerVisitor]) { self.visitors = visitors }

        /// Each begins.
        public func begin(_ peer: String) { for visitor in visitors { visitor.begin(peer) } }

        /// Each stops, one after another.
        public func stop(_ peer: String) async { for visitor in visitors { await visitor.stop(peer) } }
    }
#endif
