#if Records
    public import Ferry

    /// Keeps a store's outboxes moving: connects to the peers for whom something waits, as there are slots, and serves those
    /// who come.
    ///
    ///     let hub = RecordHub(store, over: transport)
    ///     try await hub.run()                  // until its task is cancelled
    ///
    /// Of the peers that something waits for, the one that has waited longest is next, where a level of priority counts as so
    /// much waiting (``Configuration/waitingWorthPriority``). A visit lasts until nothing is left to do, or until its turn is
    /// over and another peer needs the slot. A peer that is not found, or with which nothing gets through, is tried again after
    /// growing pauses, and takes no more than ``Configuration/attempts`` slots from others.
    ///
    /// Peers are connected to by ``/Ferry/Transport/connect(to:timeout:)``. Records for a peer that cannot be connected to wait
    /// until it comes.
    public final class RecordHub: Sendable {
        private struct Contact: Sendable {
            let name: String
            let identity: PeerIdentity?
            var failure: FerryError?
        }

        /// What takes a slot.
        private struct Running {
            /// Ends it at once.
            let cancel: @Sendable () -> Void
            var exchange: Exchange?
            /// The hub wants it to end: that an attempt is given up then is no failure.
            var isCalledOff = false
            /// When its farewell has taken too long.
            var limit: ScheduledTimer?
        }

        /// A peer that has come.
        private struct Guest {
            let exchange: Exchange
            /// Once it has a slot.
            var visit: HubPlan.Visit?
        }

        private struct State {
            var plan: HubPlan
            var contacts: [Int64: Contact] = [:]
            var numbers: [String: Int64] = [:]
            /// The peers whose pending records are to be counted anew; nil for all.
            var changed: Set<Int64>?
            /// Peers that have come, by their comers' numbers.
            var comers: [Int: Guest] = [:]
            var running: [HubPlan.Visit: Running] = [:]
            var isRunning = false
            /// Why the store can be used no more.
            var end: FerryError?
            var interruption: FerryError?
            var onInterruption: (@Sendable (FerryError?) -> Void)?
            /// The changes of `interruption` that are being told.
            var untold: [FerryError?] = []
            var onVisit: (@Sendable (Visit) -> Void)?
        }

        private let store: RecordStore
        private let transport: any Transport
        private let configuration: Configuration
        private let reach: @Sendable (String) -> PeerIdentity?
        private let channel: @Sendable (any Link) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]>
        private let shell: Shell<State>
        private var time: any TimeSource { shell.time }

        /// Makes a hub, which does nothing before ``run()``.
        ///
        /// - Parameters:
        ///   - store: what it serves. One hub a store.
        ///   - transport: what it connects with and listens on.
        ///   - configuration: its bounds.
        ///   - reach: whom to connect to for a peer's name; nil for a peer that comes by itself. By default a name is taken as an
        ///     identity's `description`, such as `address:C0:11:22:33:44:55`.
        ///   - channel: makes a channel over a link, the same as on the other side. By default with the length prefix.
        /// - Throws: `invalidConfiguration`.
        public init(
            _ store: RecordStore, over transport: any Transport, configuration: Configuration = Configuration(),
            reach: @escaping @Sendable (String) -> PeerIdentity? = { PeerIdentity($0) },
            channel: @escaping @Sendable (any Link) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> = {
                link throws(FerryError) in try MessageChannel(over: link, codec: BytesCodec())
            }
        ) throws(FerryError) {
            try configuration.check()
            self.store = store
            self.transport = transport
            self.configuration = configuration
            self.reach = reach
            self.channel = channel
            shell = Shell(State(plan: HubPlan(configuration)), time: store.time)
        }

        /// Connects and serves, until the task is cancelled or the store closed. It runs once.
        ///
        /// - Throws: `cancelled`, `closed` when the store was closed, `storeFailed`, `diskFull`; `transportUnavailable` when it
        ///   cannot listen at the beginning. When listening ends later, it begins anew, and ``interruption`` says why it ended.
        public func run() async throws(FerryError) {
            let isFirst = shell.withLock { state in
                defer { state.isRunning = true }
                return !state.isRunning
            }
            guard isFirst else {
                throw FerryError(.invalidConfiguration, "The hub has been run before. Make a new one.")
            }
            let unlisten = store.watch.listen { [weak self] in self?.hear($0) }
            defer { unlisten() }
            let listener = configuration.listens ? try await transport.listen() : nil
            let failure = await withDiscardingTaskGroup(returning: FerryError.self) { group in
                if let listener { group.addTask { await self.listen(listener) } }
                let failure = await self.serve(&group)
                group.cancelAll()
                return failure
            }
            throw failure
        }

        private func serve(_ group: inout DiscardingTaskGroup) async -> FerryError {
            while !Task.isCancelled {
                let (end, changed) = shell.withLock { state in
                    defer { state.changed = [] }
                    return (state.end, state.changed)
                }
                if let end { return end }
                do throws(FerryError) { try await look(at: changed) } catch { return error }
                let (steps, deadline) = shell.withLock { state in
                    let now = time.now
                    return (state.plan.steps(at: now), state.plan.nextDeadline(at: now))
                }
                for step in steps {
                    switch step {
                    case .connect(let visit, let peer):
                        start(visit, &group) { await self.pay(visit, to: peer) }
                    case .end(let visit): callOff(visit)
                    }
                }
                await shell.wait(until: deadline)
            }
            return FerryError(.cancelled, "The task was cancelled, and the hub with it.")
        }

        /// One task a visit, so that one visit can be ended.
        private func start(
            _ visit: HubPlan.Visit, _ group: inout DiscardingTaskGroup, _ body: @escaping @Sendable () async -> Void
        ) {
            let task = shell.withLock { state in
                let task = Task { await body() }
                state.running[visit] = Running(cancel: task.cancel)
                return task
            }
            group.addTask {
                await withTaskCancellationHandler {
                    await task.value
                } onCancel: {
                    task.cancel()
                }
                self.shell.withLock { $0.running.removeValue(forKey: visit) }?.limit?.cancel()
            }
        }

        /// Ends a visit whose turn is over, or that has become needless: an exchange says so to the peer, and has 5 s for that.
        private func callOff(_ visit: HubPlan.Visit) {
            let running = shell.withLock { state in
                state.running[visit]?.isCalledOff = true
                return state.running[visit]
            }
            guard let running, let exchange = running.exchange else {
                running?.cancel()
                return
            }
            let limit = time.schedule(at: time.now + .seconds(5)) { running.cancel() }
            shell.withLock { $0.running[visit]?.limit = limit }
            exchange.fail(FerryError(.exchangeEnded, "The turn is over, for another peer needs the slot."))
        }

        // MARK: Links

        private func pay(_ visit: HubPlan.Visit, to id: Int64) async {
            var failure: FerryError?
            if let contact = shell.withLock({ $0.contacts[id] }), let identity = contact.identity {
                let began = time.now
                do throws(FerryError) {
                    let link = try await transport.connect(to: identity, timeout: configuration.connectTimeout)
                    shell.change { state, now in state.plan.connected(visit, at: now) }
                    failure = await exchange(visit, link, with: contact.name, since: began)
                } catch {
                    let isCalledOff = shell.withLock { $0.running[visit]?.isCalledOff } == true
                    failure = isCalledOff ? nil : error
                    if !isCalledOff { told(contact.name, identity, hasCome: false, since: began, .failure(error)) }
                }
            }
            await end(visit, id, failure)
        }

        /// Exchanges with a peer that has come. It has a slot once it has said who it is.
        private func receive(_ comer: Acceptor.Comer) async {
            let (link, began) = (comer.link, time.now)
            var exchange: Exchange?
            let result: Result<RecordStore.Summary, FerryError>
            do throws(FerryError) {
                var gate = ExchangeGate()
                gate.greets = { [weak self] identity throws(FerryError) in try self?.greeted(comer, as: identity) }
                gate.met = { comer.checked() }
                gate.proves = { comer.proved() }
                let begun = Exchange(store, try channel(link), nil, idleTimeout: configuration.idle, gate: gate)
                exchange = begun
                shell.withLock { $0.comers[comer.number] = Guest(exchange: begun) }
                comer.onReplaced { [weak begun] in begun?.fail($0) }
                result = .success(try await begun.run())
            } catch {
                link.close()
                result = .failure(error)
            }
            let visit = shell.withLock { $0.comers.removeValue(forKey: comer.number)?.visit }
            told(exchange?.peerName, link.peer, hasCome: true, since: began, result)
            guard let visit else { return }
            shell.withLock { $0.running.removeValue(forKey: visit) }?.limit?.cancel()
            await end(visit, nil, nil)
        }

        /// Called with the exchange's lock.
        private func greeted(_ comer: Acceptor.Comer, as identity: PeerIdentity) throws(FerryError) {
            do throws(FerryError) { try comer.greeted(as: identity, isChecked: false) } catch {
                shell.change { state, now in state.plan.turnAway(at: now) }
                throw error
            }
        }

        /// Called with the acceptor's lock: takes a slot for a peer that has come.
        private func take(for comer: Acceptor.Comer, insteadOf other: Acceptor.Comer?) -> Bool {
            shell.withLock { state in
                if let other, let visit = state.comers[other.number]?.visit {
                    state.comers[other.number]?.visit = nil
                    state.plan.gaveWay(visit)
                    state.running.removeValue(forKey: visit)?.limit?.cancel()
                }
                let link = comer.link
                let peer = link.peer.certainty > .connection ? state.numbers[link.peer.description] : nil
                guard let visit = state.plan.came(peer, at: time.now) else { return false }
                state.comers[comer.number]?.visit = visit
                state.running[visit] = Running(
                    cancel: { link.close() }, exchange: state.comers[comer.number]?.exchange)
                return true
            }
        }

        private func exchange(
            _ visit: HubPlan.Visit, _ link: any Link, with name: String, since began: Timestamp
        ) async -> FerryError? {
            let result: Result<RecordStore.Summary, FerryError>
            do throws(FerryError) {
                let exchange = Exchange(
                    store, try channel(link), name, idleTimeout: configuration.idle)
                shell.withLock { $0.running[visit]?.exchange = exchange }
                result = .success(try await exchange.run())
            } catch {
                link.close()
                result = .failure(error)
            }
            told(name, link.peer, hasCome: false, since: began, result)
            return switch result {
            case .success: nil
            case .failure(let error): error
            }
        }

        private func end(_ visit: HubPlan.Visit, _ id: Int64?, _ failure: FerryError?) async {
            // The plan needs the count of pending records. That the store is closed is noticed elsewhere.
            if let id { try? await look(at: [id]) }
            shell.change { state, now in
                state.plan.ended(visit, at: now, chance: .random(in: 0...1))
                if let id { state.contacts[id]?.failure = failure }
            }
        }

        private func listen(_ first: LinkListener) async {
            var configuration = AcceptingPlan.Configuration(places: configuration.slots)
            configuration.greeting = min(store.configuration.greeting, store.configuration.patience)
            let acceptor = Acceptor(
                configuration, time: time,
                places: Acceptor.Places(
                    count: { [weak self] in self?.shell.withLock { $0.plan.placesForComers } ?? 0 },
                    take: { [weak self] in self?.take(for: $0, insteadOf: $1) ?? false }))
            await withDiscardingTaskGroup { group in await listen(first, acceptor, &group) }
        }

        private func listen(_ first: LinkListener, _ acceptor: Acceptor, _ group: inout DiscardingTaskGroup) async {
            var listener: LinkListener? = first
            var wait = configuration.firstBackoff
            while !Task.isCancelled {
                if let listener {
                    listener.onInterruption { [weak self] in self?.interrupted(by: $0) }
                    for await link in listener.links {
                        acceptor.serve(link, &group) { await self.receive($0) }
                        wait = configuration.firstBackoff
                    }
                }
                guard !Task.isCancelled else { break }
                listener?.close()
                try? await time.sleep(for: wait)
                wait = min(wait * 2, configuration.longestBackoff)
                do throws(FerryError) {
                    listener = try await transport.listen()
                    interrupted(by: nil)
                } catch {
                    listener = nil
                    interrupted(by: error)
                }
            }
            listener?.close()
        }

        // MARK: Interruption

        /// Why no peer can come: the adapter is switched off, say, or listening has ended and cannot begin anew. Nil while peers
        /// can come, as of a ``/Ferry/LinkListener``.
        public var interruption: FerryError? { shell.withLock { $0.interruption } }

        /// Names who is told of each change of ``interruption``, and, where there is one already, of that at once. There is one
        /// at a time; the next takes its place.
        ///
        /// - Parameter body: called with the reason, or with nil when peers can come again. It must not block.
        public func onInterruption(_ body: @escaping @Sendable (FerryError?) -> Void) {
            let present = shell.withLock { state in
                state.onInterruption = body
                return state.interruption
            }
            if let present { body(present) }
        }

        private func interrupted(by reason: FerryError?) {
            let isFirst = shell.withLock { state in
                // A new attempt that fails as the last one did is no news.
                guard reason?.message != state.interruption?.message else { return false }
                state.interruption = reason
                state.untold.append(reason)
                return state.untold.count == 1
            }
            // One thread tells all, in their order: a reason is never told after its end.
            var isTelling = isFirst
            while isTelling {
                let (body, next) = shell.withLock { ($0.onInterruption, $0.untold[0]) }
                body?(next)
                isTelling = shell.withLock { state in
                    state.untold.removeFirst()
                    return !state.untold.isEmpty
                }
            }
        }

        // MARK: Visits

        /// Sets the observer of visits that are over, whichever side connected. There is one at a time; the next takes its place. Not
        /// reported are those that end with ``run()``, and attempts that became needless because the peer came.
        ///
        /// - Parameter body: called with the visit. It must not block.
        public func onVisit(_ body: @escaping @Sendable (Visit) -> Void) { shell.withLock { $0.onVisit = body } }

        private func told(
            _ peer: String?, _ identity: PeerIdentity, hasCome: Bool, since began: Timestamp,
            _ result: Result<RecordStore.Summary, FerryError>
        ) {
            if case .failure(let error) = result, error.code == .cancelled { return }
            guard let onVisit = shell.withLock(\.onVisit) else { return }
            onVisit(
                Visit(
                    peer: peer, identity: identity, hasCome: hasCome, duration: time.now - began, result: result))
        }

        // MARK: The store

        private func hear(_ event: Watch.Event) {
            shell.change { state, now in
                switch event {
                case .offered(let peer): state.changed?.insert(peer)
                case .met(let peer): state.plan.met(peer)
                case .parted(let peer, let records):
                    state.plan.parted(peer, records: records, at: now)
                    state.changed?.insert(peer)
                case .ended(let reason): state.end = state.end ?? reason
                }
            }
        }

        private struct Waiting: Sendable {
            let peer: Int64
            let name: String
            var count = 0
            var bytes = 0
            var priority: UInt8 = 0
        }

        private func waiting(_ peers: Set<Int64>?) async throws(FerryError) -> [Waiting] {
            try await store.read { _, book in
                (peers ?? Set(book.peers.keys)).compactMap { id in
                    guard let peer = book.peers[id] else { return nil }
                    var waiting = Waiting(peer: id, name: peer.name)
                    for case let stream? in (book.outboundOfPeer[id] ?? []).map({ book.outbound[$0] }) {
                        waiting.count += stream.count
                        waiting.bytes += stream.bytes
                        if stream.count > 0 { waiting.priority = max(waiting.priority, stream.priority) }
                    }
                    return waiting
                }
            }
        }

        /// Tells the plan of the peers' pending records; nil for all.
        private func look(at peers: Set<Int64>?) async throws(FerryError) {
            guard peers != [] else { return }
            let found = try await waiting(peers).map { ($0, reach($0.name)) }
            shell.withLock { state in
                for (waiting, identity) in found {
                    let failure = state.contacts[waiting.peer]?.failure
                    state.contacts[waiting.peer] = Contact(name: waiting.name, identity: identity, failure: failure)
                    state.numbers[waiting.name] = waiting.peer
                    state.plan.waiting(
                        waiting.count, priority: waiting.priority, for: waiting.peer, isReachable: identity != nil,
                        at: time.now)
                }
            }
        }

        /// What each peer is at, in the order of their names.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func states() async throws(FerryError) -> [PeerState] {
            let found = try await waiting(nil)
            return shell.withLock { state in
                let now = time.now
                return found.map { waiting in
                    PeerState(
                        peer: waiting.name, records: waiting.count, bytes: waiting.bytes,
                        phase: state.plan.phase(of: waiting.peer, at: now) ?? .idle,
                        failure: state.contacts[waiting.peer]?.failure)
                }.sorted { $0.peer < $1.peer }
            }
        }
    }
#endif
