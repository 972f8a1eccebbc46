#if NATS && Records
    public import Ferry
    public import FerryFleet
    import FerryNATS
    public import FerryRecords
    import Synchronization

    /// What takes the records out of a store's inbox, and publishes them: a ``Gateway`` to NATS, an ``OutletGateway`` to anything else.
    public protocol PublishingGateway: Sendable {
        /// Publishes, until the task is cancelled or the store closed.
        func run() async throws(FerryError)
        /// How it stands now.
        func status() async throws(FerryError) -> Gateway.Status
    }

    extension Gateway: PublishingGateway {}

    /// Publishes the records that arrive in a store's inbox to an `Outlet`: at least once, under a key by which consumers know doubles,
    /// and in order per peer and stream.
    ///
    ///     let gateway = try OutletGateway(store, .init(name: "attic")) { try await MQTTOutlet.open(configuration) }
    ///     try await gateway.run()                        // until its task is cancelled
    ///
    /// The disk is the truth: servers answer before their disks have synced. A record leaves the inbox only when no other connection was
    /// made for ``Configuration/retention`` after its answer; after each other connection everything that is still here is published
    /// again, with the same keys. Without a server, records wait on disk, and peers when that is full.
    public final class OutletGateway: PublishingGateway {
        /// Within which bounds.
        public struct Configuration: Sendable, Hashable {
            /// The gateway's name, which records carry.
            public var name: String
            /// How long a record is kept after the server's answer, 0 to a day: longer than the server takes to write to its disk.
            /// Default 240 s.
            public var retention = Duration.seconds(240)
            /// How often records leave the inbox. Default 10 s.
            public var lookInterval = Duration.seconds(10)
            /// How many records may be on their way at once, 1 to 32 768; no more than the outlet takes. Default 256.
            public var maximumInFlight = 256
            /// How long to wait before opening the outlet again. Default 2 s.
            public var pause = Duration.seconds(2)

            /// - Parameter name: the gateway's name.
            public init(name: String) { self.name = name }

            func check() throws(FerryError) {
                func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
                guard !name.isEmpty else {
                    throw refuse("The gateway has no name, which its records carry. Give it one.")
                }
                guard retention >= .zero, retention <= .seconds(86_400) else {
                    throw refuse("The retention is \(retention); it must be 0 to a day.")
                }
                guard lookInterval >= .milliseconds(10), lookInterval <= .seconds(3600) else {
                    throw refuse("Records leave each \(lookInterval); that must be 10 ms to an hour.")
                }
                guard (1...32_768).contains(maximumInFlight) else {
                    throw refuse("\(maximumInFlight) records on their way at once are out of range; give 1 to 32768.")
                }
                guard pause >= .milliseconds(1), pause <= .seconds(3600) else {
                    throw refuse("The pause is \(pause); it must be 1 ms to an hour.")
                }
            }
        }

        private typealias Plan = PublishPlan<ArrivedRecord.Place>

        private struct State {
            var plan: Plan
            var retention: Retention<ArrivedRecord.Place>
            var status = Gateway.Status()
            /// Which of the outlet's connections answers are from.
            var connections: UInt64 = 0
            /// Another connection was made: answers to the messages in flight are awaited, then all records are published again.
            var isToRepeat = false
            /// Whether the last answer was the server's.
            var isAnswered = false
            var failure: FerryError?
            /// When refused records are tried again; nil where none was refused.
            var mayReadAgain: Timestamp?
            var room: AsyncStream<Void>.Continuation?
            var wantsRoom = false
        }

        private let store: RecordStore
        private let configuration: Configuration
        private let time: any TimeSource
        private let open: @Sendable () async throws(FerryError) -> any Outlet
        private let state: Mutex<State>
        private let news: AsyncStream<Void>
        private let tell: AsyncStream<Void>.Continuation

        /// Makes a gateway, which does nothing before ``run()``.
        ///
        /// - Parameters:
        ///   - store: whose inbox it publishes; no other task reads that.
        ///   - configuration: within which bounds.
        ///   - time: the clock.
        ///   - open: opens the outlet; called again after a pause while it throws anything but `invalidConfiguration`.
        /// - Throws: `invalidConfiguration`.
        public init(
            _ store: RecordStore, _ configuration: Configuration, time: any TimeSource = SystemTime(),
            open: @escaping @Sendable () async throws(FerryError) -> any Outlet
        ) throws(FerryError) {
            try configuration.check()
            self.store = store
            self.configuration = configuration
            self.time = time
            self.open = open
            var bounds = Plan.Bounds()
            bounds.inFlight = configuration.maximumInFlight
            bounds.burst = 1
            var plan = Plan(bounds)
            plan.namesPlaces = false
            state = Mutex(State(plan: plan, retention: Retention(configuration.retention)))
            (news, tell) = AsyncStream.makeStream(bufferingPolicy: .bufferingNewest(1))
        }

        /// How it stands now. It is connected when the server has answered for a record since the last trouble, or there was none yet.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func status() async throws(FerryError) -> Gateway.Status {
            let waiting = try await store.undone()
            return state.withLock { state in
                var status = state.status
                status.isConnected = state.plan.isOpen && state.isAnswered
                status.kept = state.retention.count
                status.waiting = waiting
                return status
            }
        }

        /// Publishes, until the task is cancelled or the store closed. A server that is away is waited for.
        ///
        /// - Throws: `cancelled`, `closed` when the store was closed, `storeFailed`, `invalidConfiguration`.
        public func run() async throws(FerryError) {
            while !Task.isCancelled {
                do throws(FerryError) {
                    throw await serve(try await open())
                } catch {
                    guard !Task.isCancelled else { break }
                    if error.code == .invalidConfiguration || error.code == .storeFailed { throw error }
                    // A store that was closed says so.
                    _ = try await store.undone()
                    state.withLock { $0.status.trouble = error.message }
                }
                try? await time.sleep(for: configuration.pause)
            }
            throw Self.cancelled
        }

        private static var cancelled: FerryError {
            FerryError(.cancelled, "The task was cancelled, and the gateway with it.")
        }

        /// - Returns: why it ended.
        private func serve(_ outlet: any Outlet) async -> FerryError {
            state.withLock { state in
                state.plan.isOpen = true
                state.isAnswered = true
                state.connections = outlet.connections
                state.isToRepeat = false
                state.failure = nil
            }
            var failure = Self.cancelled
            await withDiscardingTaskGroup { group in
                var reader: Task<Void, Never>?
                var news = news.makeAsyncIterator()
                var nextLook = time.now + configuration.lookInterval
                while !Task.isCancelled {
                    do throws(FerryError) {
                        if let failure = state.withLock({ $0.failure }) { throw failure }
                        let now = time.now
                        if look(outlet, at: now) || reader == nil { reader = try await beginReading(reader) }
                        if now >= nextLook {
                            nextLook = now + configuration.lookInterval
                            try await release(outlet, at: now)
                        }
                    } catch {
                        failure = error
                        break
                    }
                    for (token, message) in orders() {
                        group.addTask { [self] in ended(token, await outlet.publish(message)) }
                    }
                    let deadline = state.withLock { $0.plan.nextDeadline } ?? nextLook
                    let timer = time.schedule(at: min(nextLook, deadline)) { [tell] in tell.yield() }
                    _ = await news.next(isolation: nil)
                    timer.cancel()
                }
                state.withLock { $0.plan.isOpen = false }
                reader?.cancel()
                await reader?.value
                // Closing answers the messages in flight.
                await outlet.close()
            }
            return failure
        }

        /// Looks whether another connection was made.
        ///
        /// - Returns: whether reading is to begin again now.
        private func look(_ outlet: any Outlet, at now: Timestamp) -> Bool {
            let connections = outlet.connections
            return state.withLock { state in
                if connections != state.connections {
                    state.connections = connections
                    state.isToRepeat = true
                }
                if state.isToRepeat {
                    guard state.plan.inFlightCount == 0 else { return false }
                    state.isToRepeat = false
                    state.status.repetitions += 1
                    return true
                }
                // After a message that was refused, a minute later; kept records are read once more with it.
                guard state.plan.refusedLanes > 0 else { return false }
                guard let moment = state.mayReadAgain else {
                    state.mayReadAgain = now + .seconds(60)
                    return false
                }
                guard now >= moment, state.plan.inFlightCount == 0 else { return false }
                state.mayReadAgain = nil
                return true
            }
        }

        /// Removes from the inbox records that were acknowledged long ago, by a server to which the connection has lasted since.
        private func release(_ outlet: any Outlet, at now: Timestamp) async throws(FerryError) {
            let connections = outlet.connections
            let places = state.withLock { state -> [ArrivedRecord.Place] in
                guard !state.isToRepeat, connections == state.connections, state.isAnswered else { return [] }
                return state.retention.steady(at: now)
            }
            guard !places.isEmpty else { return }
            do throws(FerryError) {
                try await store.done(through: places)
                state.withLock { $0.retention.left() }
            } catch {
                // Later, when the disk has room.
                guard error.code == .diskFull else { throw error }
                state.withLock { $0.status.trouble = error.message }
            }
        }

        // MARK: Publishing

        /// The messages to publish now.
        private func orders() -> [(UInt64, OutletMessage)] {
            let now = time.now
            let (orders, room) = state.withLock {
                state -> ([(UInt64, OutletMessage)], AsyncStream<Void>.Continuation?) in
                guard !state.isToRepeat else { return ([], nil) }
                var orders: [Plan.Order] = []
                var all: [(UInt64, OutletMessage)] = []
                repeat {
                    orders = []
                    state.plan.order(&orders, at: now)
                    for order in orders {
                        guard let item = state.plan.item(order.token), let lane = item.outletLane else { continue }
                        let fields = item.message.headers.map { OutletMessage.Field($0.name, $0.value) }
                        all.append(
                            (order.token, OutletMessage(lane, key: item.id, fields: fields, bytes: item.message.bytes)))
                    }
                } while !orders.isEmpty
                guard state.wantsRoom, state.plan.hasRoom else { return (all, nil) }
                state.wantsRoom = false
                return (all, state.room)
            }
            room?.yield()
            return orders
        }

        private func ended(_ token: UInt64, _ answer: OutletAnswer) {
            let now = time.now
            state.withLock { state in
                let outcome: Plan.Outcome
                switch answer {
                case .taken: outcome = .stored(0)
                case .full, .gone, .unanswered: outcome = .later
                case .refused: outcome = .refused
                }
                if let error = answer.error {
                    state.status.trouble = error.message
                    if answer.isToRepeat { state.isAnswered = false }
                }
                var arrived: [Plan.Arrived] = []
                state.plan.ended(token, outcome, at: now, &arrived)
                guard let item = arrived.first?.item, case .taken(let isDuplicate) = answer else { return }
                state.isAnswered = true
                state.retention.stored(item.place, in: item.lane, at: now)
                state.status.published += 1
                if isDuplicate { state.status.duplicates += 1 }
            }
            tell.yield()
        }

        // MARK: Reading

        private func beginReading(_ old: Task<Void, Never>?) async throws(FerryError) -> Task<Void, Never> {
            old?.cancel()
            await old?.value
            let (room, makeRoom) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            state.withLock { state in
                state.plan.beginAgain()
                state.retention.beginAgain()
                state.room = makeRoom
                state.wantsRoom = false
            }
            try await store.readAgain()
            return Task { await self.read(room) }
        }

        /// Fills the plan from the inbox, as it has room.
        private func read(_ room: AsyncStream<Void>) async {
            var failure = FerryError(.closed, "The store \(store.path) was closed.")
            do throws(FerryError) { try await fill(room) } catch { failure = error }
            guard !Task.isCancelled else { return }
            state.withLock { $0.failure = failure }
            tell.yield()
        }

        private func fill(_ room: AsyncStream<Void>) async throws(FerryError) {
            var inbox = store.inbox.makeAsyncIterator()
            var room = room.makeAsyncIterator()
            while !Task.isCancelled {
                while !hasRoom() {
                    guard await room.next(isolation: nil) != nil else { return }
                }
                guard let records = try await inbox.page() else { return }
                var known: [Int64: StreamNames] = [:]
                let items = records.map { record in
                    let names: StreamNames
                    if let old = known[record.place.stream],
                        old.fit(record.id, peer: record.peer, key: record.key, token: nil)
                    {
                        names = old
                    } else {
                        names = StreamNames(
                            record.id, peer: record.peer, key: record.key, gateway: configuration.name, prefix: "",
                            token: nil)
                        known[record.place.stream] = names
                    }
                    return Plan.Item(
                        lane: record.place.stream, id: names.id(record.id),
                        message: NATSMessage(names.subject, headers: names.headers(record.id), bytes: record.bytes),
                        place: record.place, outletLane: names.lane)
                }
                state.withLock { state in for item in items { state.plan.add(item) } }
                tell.yield()
            }
        }

        private func hasRoom() -> Bool {
            state.withLock { state in
                state.wantsRoom = !state.plan.hasRoom
                return state.plan.hasRoom
            }
        }
    }
#endif
