#if NATS && Records
    import DequeModule
    public import Ferry
    import FerryFleet
    public import FerryRecords
    import Synchronization

    /// Visits the peers of a ``LeaseKeeper`` one after another, as there are links to have: connects, exchanges records both ways
    /// until nothing is left to do, and comes again.
    public final class PeerRounds: PeerVisitor {
        /// The bounds of visits.
        public struct Configuration: Sendable, Hashable {
            /// How many links there may be at once. Default 4.
            public var slots = 4
            /// How long after a visit the next one begins. Default 5 s.
            public var interval = Duration.seconds(5)
            /// Ends a visit after this long with nothing to send or to commit, and no message. Default 2 s.
            public var idle = Duration.seconds(2)
            /// How long a visit may last when others wait for its link. Default 30 s.
            public var turn = Duration.seconds(30)
            /// How long an attempt to connect may take. Default 10 s.
            public var connectTimeout = Duration.seconds(10)
            /// Consecutive failed visits after which the gateway gives up the lease. Default 3.
            public var patience = 3
            /// The bytes of records in the store, those that a server has and that are kept among them, at which its peers are given up to
            /// gateways that may have a way to publish; from three quarters of it on, it asks for peers again. Default 2 GiB.
            public var highWaterBytes = 2 << 30
            /// How often to look whether a store that took no more has room again. Default 5 s.
            public var roomInterval = Duration.seconds(5)

            /// The defaults.
            public init() {}
        }

        /// Makes a link to a peer within a time.
        public typealias Connect = @Sendable (_ peer: String, _ timeout: Duration) async throws(FerryError) -> any Link

        private struct State {
            var rounds: [String: Task<Void, Never>] = [:]
            /// The links of the visits that there are.
            var links: [String: any Link] = [:]
            var failures: [String: String] = [:]
            var isAwaitingRoom = false
        }

        private let store: RecordStore
        private let keeper: LeaseKeeper
        private let configuration: Configuration
        private let connect: Connect
        private let channel: @Sendable (any Link) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]>
        private let observer: (any GatewayObserver)?
        private let places: Places
        private let time = SystemTime()
        private let state = Mutex(State())

        /// Makes rounds, which begin as the keeper says.
        ///
        /// - Parameters:
        ///   - store: whose records are exchanged.
        ///   - keeper: whose leases they go by.
        ///   - configuration: their bounds.
        ///   - observer: receives events; nil for none.
        ///   - channel: makes a channel over a link, the same as on the other side. By default with the length prefix.
        ///   - connect: how peers are reached, by their names.
        /// - Throws: `invalidConfiguration`.
        public init(
            _ store: RecordStore, _ keeper: LeaseKeeper, configuration: Configuration = Configuration(),
            observer: (any GatewayObserver)? = nil,
            channel: @escaping @Sendable (any Link) throws(FerryError) -> MessageChannel<[UInt8], [UInt8]> = {
                link throws(FerryError) in try MessageChannel(over: link, codec: BytesCodec())
            }, connect: @escaping Connect
        ) throws(FerryError) {
            guard (1...1024).contains(configuration.slots), configuration.patience >= 1 else {
                throw FerryError(
                    .invalidConfiguration, "\(configuration.slots) links at once are out of range; give 1 to 1024.")
            }
            self.store = store
            self.keeper = keeper
            self.configuration = configuration
            self.connect = connect
            self.channel = channel
            self.observer = observer
            places = Places(configuration.slots)
        }

        /// Why the last visit to a peer was in vain, of those with which it was.
        public var failures: [String: String] { state.withLock { $0.failures } }

        /// Begins visits to a peer.
        public func begin(_ peer: String) {
            let old = state.withLock { state -> Task<Void, Never>? in
                let old = state.rounds[peer]
                state.rounds[peer] = Task { [weak self] in
                    await old?.value
                    await self?.goRound(peer)
                }
                return old
            }
            old?.cancel()
        }

        /// Ends visits to a peer.
        public func stop(_ peer: String) async {
            let task = state.withLock { state -> Task<Void, Never>? in
                state.failures[peer] = nil
                return state.rounds.removeValue(forKey: peer)
            }
            task?.cancel()
            // The last messages have half of the stopping time; then the link is closed.
            let timer = time.schedule(at: time.now + keeper.configuration.policy.stopping / 2) { [weak self] in
                self?.state.withLock { $0.links[peer] }?.close()
            }
            await task?.value
            timer.cancel()
        }

        private func goRound(_ peer: String) async {
            var failures = 0
            while !Task.isCancelled, await places.enter() {
                let failure = await visit(peer)
                places.leave()
                guard !Task.isCancelled else { return }
                failures = failure == nil ? 0 : failures + 1
                state.withLock { $0.failures[peer] = failure?.message }
                if let failure, failure.code == .diskFull {
                    awaitRoom(failure) { [store] in await store.hasRoom() }
                } else {
                    await lookAtHighWater()
                }
                if failures >= configuration.patience { keeper.isOutOfReach(peer) }
                try? await time.sleep(for: configuration.interval)
            }
        }

        /// Without a way to publish, collected records stay in the store, up to the high-water mark.
        private func lookAtHighWater() async {
            let (most, least) = (configuration.highWaterBytes, configuration.highWaterBytes / 4 * 3)
            guard let bytes = try? await store.undoneBytes(), bytes >= most else { return }
            let failure = FerryError(
                .queueFull,
                "The store has \(bytes) bytes of records, and is to have \(most). Other gateways get its peers until it has published "
                    + "enough to be at \(least).")
            awaitRoom(failure) { [store] in (try? await store.undoneBytes()).map { $0 <= least } ?? true }
        }

        /// A store that takes no more takes nothing from any peer: others have them until there is room.
        private func awaitRoom(_ failure: FerryError, _ hasRoom: @escaping @Sendable () async -> Bool) {
            let isFirst = state.withLock { state in
                defer { state.isAwaitingRoom = true }
                return !state.isAwaitingRoom
            }
            guard isFirst else { return }
            keeper.pause(failure)
            Task { [weak self, keeper, time, configuration] in
                repeat {
                    try? await time.sleep(for: configuration.roomInterval)
                    guard self != nil else { return }
                } while await !hasRoom()
                self?.state.withLock { $0.isAwaitingRoom = false }
                keeper.resume()
            }
        }

        private func visit(_ peer: String) async -> FerryError? {
            // The lease may be over, and the keeper not have come to say so.
            guard keeper.token(of: peer) != nil else { return nil }
            observer?.observe(.visitBegan(peer: peer))
            let began = time.now
            do throws(FerryError) {
                let summary = try await meet(peer)
                observer?.observe(.visitEnded(peer: peer, GatewayEvent.Visit(summary, lasting: time.now - began)))
                return nil
            } catch {
                observer?.observe(.visitEnded(peer: peer, GatewayEvent.Visit(error, lasting: time.now - began)))
                return error
            }
        }

        /// - Returns: what went through; nil when the lease was over before something could.
        private func meet(_ peer: String) async throws(FerryError) -> RecordStore.Summary? {
            let link = try await connect(peer, configuration.connectTimeout)
            guard !Task.isCancelled, keeper.token(of: peer) != nil else {
                link.close()
                return nil
            }
            state.withLock { $0.links[peer] = link }
            defer { state.withLock { $0.links[peer] = nil } }
            keeper.met(peer)
            let turns = Task { [weak self] in await self?.giveTurns(peer) }
            defer { turns.cancel() }
            let summary: RecordStore.Summary
            do throws(FerryError) {
                let channel = try channel(link)
                summary = try await store.exchange(over: channel, with: peer, endingWhenIdle: configuration.idle)
            } catch {
                link.close()
                throw error
            }
            keeper.met(peer)
            return summary
        }

        /// During a visit: reports that the peer is there, and ends the visit when its turn is over and another peer waits.
        private func giveTurns(_ peer: String) async {
            let end = time.now + configuration.turn
            while !Task.isCancelled {
                do { try await time.sleep(for: .seconds(1)) } catch { return }
                keeper.met(peer)
                guard time.now >= end, places.hasWaiters else { continue }
                try? await store.endExchange(with: peer, because: "The turn is over, for another peer needs the link.")
            }
        }
    }

    /// So many may be in at once; others wait in their turn.
    final class Places: Sendable {
        private struct State {
            var free: Int
            var waiting: Deque<(number: Int, continuation: CheckedContinuation<Bool, Never>)> = []
            var lastNumber = 0
        }

        private let state: Mutex<State>

        init(_ count: Int) { state = Mutex(State(free: count)) }

        var hasWaiters: Bool { state.withLock { !$0.waiting.isEmpty } }

        /// - Returns: false when the task was cancelled: then it has no place.
        func enter() async -> Bool {
            let number = state.withLock { state in
                state.lastNumber += 1
                return state.lastNumber
            }
            return await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let isIn = state.withLock { state -> Bool? in
                        if Task.isCancelled { return false }
                        guard state.free > 0 else {
                            state.waiting.append((number, continuation))
                            return nil
                        }
                        state.free -= 1
                        return true
                    }
                    if let isIn { continuation.resume(returning: isIn) }
                }
            } onCancel: {
                let waiter = state.withLock { state in
                    state.waiting.firstIndex { $0.number == number }.map { state.waiting.remove(at: $0) }
                }
                waiter?.continuation.resume(returning: false)
            }
        }

        func leave() {
            let next = state.withLock { state in
                let next = state.waiting.popFirst()
                if next == nil { state.free += 1 }
                return next
            }
            next?.continuation.resume(returning: true)
        }
    }
#endif
