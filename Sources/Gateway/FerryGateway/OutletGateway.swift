#if NATS && Records
    public import Ferry
    public import FerryFleet
    import FerryNATS
    public import FerryRecords

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

        private typealias Work = Publishing<OutletMessage>
        private typealias Plan = Work.Plan

        private struct State {
            var work: Work
            /// Which of the outlet's connections answers are from.
            var connections: UInt64 = 0
            /// Another connection was made: answers to the messages in flight are awaited, then all records are published again.
            var isToRepeat = false
            /// Whether the last answer was the server's.
            var isAnswered = false
            /// When refused records are tried again; nil where none was refused.
            var mayReadAgain: Timestamp?
        }

        private let store: RecordStore
        private let configuration: Configuration
        private let observer: (any GatewayObserver)?
        private let open: @Sendable () async throws(FerryError) -> any Outlet
        private let shell: Shell<State>
        private var time: any TimeSource { shell.time }

        /// Makes a gateway, which does nothing before ``run()``.
        ///
        /// - Parameters:
        ///   - store: whose inbox it publishes; no other task reads that.
        ///   - configuration: within which bounds.
        ///   - time: the clock.
        ///   - observer: receives events; nil for none. The headers that it gives records go as fields.
        ///   - open: opens the outlet; called again after a pause while it throws anything but `invalidConfiguration`.
        /// - Throws: `invalidConfiguration`.
        public init(
            _ store: RecordStore, _ configuration: Configuration, time: any TimeSource = SystemTime(),
            observer: (any GatewayObserver)? = nil,
            open: @escaping @Sendable () async throws(FerryError) -> any Outlet
        ) throws(FerryError) {
            try configuration.check()
            self.store = store
            self.configuration = configuration
            self.observer = observer
            self.open = open
            var bounds = Plan.Bounds()
            bounds.inFlight = configuration.maximumInFlight
            bounds.burst = 1
            var work = Work(bounds, keeping: configuration.retention, isObserved: observer != nil)
            work.plan.namesPlaces = false
            shell = Shell(State(work: work), time: time)
        }

        /// How it stands now. It is connected when the server has answered for a record since the last trouble, or there was none yet.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func status() async throws(FerryError) -> Gateway.Status {
            let waiting = try await store.undone()
            return shell.withLock { state in
                state.work.status(
                    waiting: waiting, isConnected: state.work.plan.isOpen && state.isAnswered, at: time.now)
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
                    shell.withLock { $0.work.status.trouble = error.message }
                    observer?.observe(.failed(.stream, error))
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
            shell.withLock { state in
                state.work.plan.isOpen = true
                state.isAnswered = true
                state.connections = outlet.connections
                state.isToRepeat = false
                state.work.failure = nil
            }
            observer?.observe(.connected(.stream, server: ""))
            var failure = Self.cancelled
            let reader = makeReader()
            await withDiscardingTaskGroup { group in
                var nextLook = time.now + configuration.lookInterval
                while !Task.isCancelled {
                    do throws(FerryError) {
                        if let failure = shell.withLock({ $0.work.failure }) { throw failure }
                        let now = time.now
                        if look(outlet, at: now) || !reader.isReading {
                            try await reader.begin {
                                shell.withLock { $0.work.beginAgain() }
                            }
                        }
                        if now >= nextLook {
                            nextLook = now + configuration.lookInterval
                            try await release(outlet, at: now)
                        }
                    } catch {
                        failure = error
                        break
                    }
                    for order in orders(reader) {
                        group.addTask { [self] in ended(order.token, await outlet.publish(order.item.message)) }
                    }
                    let deadline = shell.withLock { $0.work.plan.nextDeadline } ?? nextLook
                    await shell.wait(until: min(nextLook, deadline))
                }
                shell.withLock { $0.work.plan.isOpen = false }
                await reader.end()
                // Closing answers the messages in flight.
                await outlet.close()
            }
            observer?.observe(.disconnected(.stream, isEnding: Task.isCancelled))
            return failure
        }

        /// Looks whether another connection was made.
        ///
        /// - Returns: whether reading is to begin again now.
        private func look(_ outlet: any Outlet, at now: Timestamp) -> Bool {
            let connections = outlet.connections
            let (mayRead, isRepeated) = look(connections, at: now)
            if isRepeated { observer?.observe(.repeats(because: "the server was connected to again")) }
            return mayRead
        }

        /// - Returns: whether reading is to begin again now, and whether that is because everything is published again.
        private func look(_ connections: UInt64, at now: Timestamp) -> (mayRead: Bool, isRepeated: Bool) {
            shell.withLock { state in
                if connections != state.connections {
                    state.connections = connections
                    state.isToRepeat = true
                }
                if state.isToRepeat {
                    guard state.work.plan.inFlightCount == 0 else { return (false, false) }
                    state.isToRepeat = false
                    state.work.status.repetitions += 1
                    return (true, true)
                }
                // After a message that was refused, a minute later; kept records are read once more with it.
                guard state.work.plan.refusedLanes > 0 else { return (false, false) }
                guard let moment = state.mayReadAgain else {
                    state.mayReadAgain = now + .seconds(60)
                    return (false, false)
                }
                guard now >= moment, state.work.plan.inFlightCount == 0 else { return (false, false) }
                state.mayReadAgain = nil
                return (true, false)
            }
        }

        /// Removes from the inbox records that were acknowledged long ago, by a server to which the connection has lasted since.
        private func release(_ outlet: any Outlet, at now: Timestamp) async throws(FerryError) {
            let connections = outlet.connections
            let (places, released) = shell.withLock { state -> ([ArrivedRecord.Place], Int) in
                guard !state.isToRepeat, connections == state.connections, state.isAnswered else { return ([], 0) }
                let kept = state.work.retention.count
                let places = state.work.retention.steady(at: now)
                return (places, kept - state.work.retention.count)
            }
            guard !places.isEmpty else { return }
            do throws(FerryError) {
                try await store.done(through: places)
                shell.withLock { $0.work.retention.left() }
                observer?.observe(.looked(released: released))
            } catch {
                // Later, when the disk has room.
                guard error.code == .diskFull else { throw error }
                shell.withLock { $0.work.status.trouble = error.message }
            }
        }

        // MARK: Publishing

        /// The messages to publish now.
        private func orders(_ reader: InboxReader) -> [Plan.Order] {
            let now = time.now
            let (orders, hasRoom, events) = shell.withLock { state -> ([Plan.Order], Bool, [GatewayEvent]?) in
                guard !state.isToRepeat else { return ([], false, nil) }
                var orders: [Plan.Order] = []
                var events: [GatewayEvent]?
                var more: [Plan.Order]
                repeat {
                    more = []
                    events = state.work.order(&more, at: now).map { (events ?? []) + $0 }
                    orders += more
                } while !more.isEmpty
                return (orders, state.work.plan.hasRoom, events)
            }
            if hasRoom { reader.ring() }
            if let observer, let events { for event in events { observer.observe(event) } }
            return orders
        }

        private func ended(_ token: UInt64, _ answer: OutletAnswer) {
            shell.change { state, now in
                let (outcome, result): (Plan.Outcome, Result<Observation.Receipt, FerryError>) =
                    switch answer {
                    case .taken(let isDuplicate):
                        (isDuplicate ? .had(0) : .stored(0), .success(.init(place: nil, isDuplicate: isDuplicate)))
                    case .full(let error), .gone(let error), .unanswered(let error): (.later, .failure(error))
                    case .refused(let error): (.refused, .failure(error))
                    }
                if let error = answer.error {
                    state.work.status.trouble = error.message
                    if answer.isToRepeat { state.isAnswered = false }
                }
                if state.work.ended(token, outcome, result, at: now) { state.isAnswered = true }
            }
        }

        // MARK: Reading

        private func makeReader() -> InboxReader {
            InboxReader(
                store, InboxReader.Naming(gateway: configuration.name, prefix: "", token: { _ in nil }), time: time,
                observer: observer,
                for: self)
        }
    }

    extension OutletGateway: InboxReader.Owner {
        var hasRoom: Bool { shell.withLock { $0.work.plan.hasRoom } }

        func readingFailed(_ error: FerryError) {
            shell.change { state, _ in state.work.failure = error }
        }

        func add(_ entries: [InboxReader.Entry]) {
            let items = entries.map { entry in
                let fields = entry.headers.map { OutletMessage.Field($0.name, $0.value) }
                return Plan.Item(
                    lane: entry.record.place.stream, id: entry.id,
                    message: OutletMessage(entry.names.lane, key: entry.id, fields: fields, bytes: entry.record.bytes),
                    size: entry.record.bytes.count, place: entry.record.place, read: entry.read, seen: entry.seen)
            }
            shell.change { state, _ in for item in items { state.work.plan.add(item) } }
        }
    }
#endif
