#if NATS && Records
    public import Ferry
    public import FerryFleet
    public import FerryNATS
    public import FerryRecords

    /// Publishes the records that arrive in a store's inbox to a JetStream stream: at least once, under a name by which consumers
    /// have each once, and in order per peer and stream.
    ///
    ///     let gateway = try Gateway(store, configuration)
    ///     try await gateway.run()                        // until its task is cancelled
    ///
    /// The disk is the truth: a server answers before its own disk has synced. A record leaves the inbox only when the server that
    /// answered for it was seen up ``Configuration/retention`` later; when a server may have lost something, everything that is
    /// still here is published again. Without a server, records wait on disk, and peers when that is full.
    public final class Gateway: Sendable {
        /// Where to, and within which bounds.
        public struct Configuration: Sendable, Hashable {
            /// The servers.
            public var servers: NATSConfiguration
            /// The stream. Its duplicate window must be longer than ``retention``.
            public var stream: NATSStream
            /// What subjects begin with; a record's is `prefix.sender.stream`.
            public var prefix: String
            /// The gateway's name, which records carry.
            public var name: String
            /// Whether to make the stream where there is none. Default true.
            public var createsStream = true
            /// How long a record is kept after the server's answer: several of the server's flush intervals, which are 60 s in
            /// nats-server 2.9. Default 240 s.
            public var retention = Duration.seconds(240)
            /// How often the server is looked at. Default 10 s.
            public var lookInterval = Duration.seconds(10)
            /// How many records may be on their way at once. Default 1024.
            public var maximumInFlight = 1024
            /// How long to wait before connecting again, and how long an answer may take. Default 10 s.
            public var patience = Duration.seconds(10)

            /// - Parameters:
            ///   - servers: addresses, such as `nats://localhost:4222`.
            ///   - name: the gateway's name.
            ///   - stream: the stream's name.
            ///   - prefix: what subjects begin with.
            public init(
                servers: [String], name: String, stream: String = "ferry", prefix: String = "ferry.records"
            ) {
                self.servers = NATSConfiguration(servers: servers)
                self.servers.name = name
                self.name = name
                self.prefix = prefix
                self.stream = NATSStream(stream, subjects: ["\(prefix).>"])
            }
        }

        /// How it stands.
        public struct Status: Sendable, Hashable {
            /// Whether records can be published now.
            public var isConnected = false
            /// How many records the stream has answered for since the beginning, with those that it had already.
            public var published = 0
            /// How many of those it had already.
            public var duplicates = 0
            /// How many records are kept though the stream has them.
            public var kept = 0
            /// How many records are in the inbox, those included.
            public var waiting = 0
            /// How often everything was published again.
            public var repetitions = 0
            /// How long the oldest record has waited that the stream has not answered for, since it was read from the store: at the
            /// begin of the gateway, and again when everything is published again. Zero when there is none.
            public var oldest = Duration.zero
            /// How many streams of peers wait for a record that the server can never take.
            public var held = 0
            /// The latest obstacle.
            public var trouble: String?

            /// Nothing has happened.
            public init() {}
        }

        private typealias Work = Publishing<NATSMessage>
        private typealias Plan = Work.Plan

        private struct State {
            var work: Work
            var watch = NATSServerWatch()
            var wantsLook = true
            var isLost = false
            /// Why acknowledged records may be gone though the server is the same: the stream had another shape when it was looked at.
            var loss: String?
            var mayReadAgain = Timestamp.zero
            /// What records go to, while there is a connection.
            var publisher: NATSPublisher?
            /// What fills the plan, while there is a connection.
            var reader: InboxReader?
            /// The next messages, for one turn after the other.
            var orders: [Plan.Order] = []
        }

        private let store: RecordStore
        private let configuration: Configuration
        private let token: @Sendable (String) -> FencingToken?
        private let observer: (any GatewayObserver)?
        private let shell: Shell<State>
        private var time: any TimeSource { shell.time }

        /// Makes a gateway, which does nothing before ``run()``.
        ///
        /// - Parameters:
        ///   - store: whose inbox it publishes; no other task reads that.
        ///   - configuration: where to.
        ///   - time: the clock.
        ///   - observer: receives events; nil for none.
        ///   - token: under which token a peer is this gateway's; nil where it is not, or where there are no leases.
        /// - Throws: `invalidConfiguration`.
        public init(
            _ store: RecordStore, _ configuration: Configuration, time: any TimeSource = SystemTime(),
            observer: (any GatewayObserver)? = nil,
            token: @escaping @Sendable (_ peer: String) -> FencingToken? = { _ in nil }
        ) throws(FerryError) {
            try configuration.check()
            self.store = store
            self.configuration = configuration
            self.token = token
            self.observer = observer
            var bounds = Plan.Bounds()
            bounds.inFlight = configuration.maximumInFlight
            let work = Work(bounds, keeping: configuration.retention, isObserved: observer != nil)
            shell = Shell(State(work: work), time: time)
        }

        /// How it stands now.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func status() async throws(FerryError) -> Status {
            let waiting = try await store.undone()
            return shell.withLock { state in
                state.work.status(waiting: waiting, isConnected: state.work.plan.isOpen, at: time.now)
            }
        }

        /// Connects once, and looks whether the stream is as it must be; makes nothing.
        ///
        /// - Throws: the obstacle, and what to do: `natsNoServer`, `natsRefused`, `natsInsecure`, `natsWrongShape`,
        ///   `messageTooLarge` where the server takes less than the store's largest record, `natsNotFound` where there is no
        ///   stream and ``Configuration/createsStream`` is false, `natsNotReady`, `timedOut`, `natsFailed`.
        public static func check(
            _ configuration: Configuration, largestRecord: Int
        ) async throws(FerryError) -> NATSStream.State? {
            try configuration.check()
            return try await NATSConnection.with(configuration.servers) { connection throws(FerryError) in
                try checkPayload(connection, largestRecord)
                return try await Connecting.find(creates: configuration.createsStream) { () throws(FerryError) in
                    try await connection.open(configuration.stream, creates: false)
                }
            }
        }

        /// The names and headers beside a record's bytes.
        private static let overhead = 4096

        private static func checkPayload(_ connection: NATSConnection, _ largestRecord: Int) throws(FerryError) {
            let most = connection.maximumPayload - overhead
            guard largestRecord > most else { return }
            throw FerryError(
                .messageTooLarge,
                "Records can have \(largestRecord) bytes, and the server takes \(most) at most, with their names. Raise the server's "
                    + "max_payload, or lower the largest record.")
        }

        /// Publishes, until the task is cancelled or the store closed. Servers that are away are waited for, and so is room on a full
        /// disk, from which everything that is there is published meanwhile.
        ///
        /// - Throws: `cancelled`, `closed` when the store was closed, `storeFailed`; before anything was published also
        ///   `natsRefused`, `natsInsecure`, `natsWrongShape`, `messageTooLarge`, `natsNotFound`, `invalidConfiguration`.
        public func run() async throws(FerryError) {
            let connecting = Connecting(
                servers: configuration.servers, creates: configuration.createsStream,
                pause: min(configuration.patience, .seconds(2)), time: time)
            try await connecting.run { connection, isOpen throws(FerryError) in
                try Self.checkPayload(connection, store.configuration.largestRecord)
                try await connection.open(configuration.stream, creates: configuration.createsStream)
                let publisher = try await NATSPublisher(
                    connection, to: configuration.stream.name,
                    maximumInFlight: min(65_536, configuration.maximumInFlight * 2), timeout: configuration.patience,
                    feed: { [weak self] in self?.step($0, &$1) })
                isOpen()
                shell.withLock { $0.publisher = publisher }
                observer?.observe(.connected(.stream, server: await connection.serverID()))
                let failure = await serve(connection)
                shell.withLock { state in
                    state.work.plan.isOpen = false
                    state.publisher = nil
                }
                throw failure
            } failed: { error throws(FerryError) in
                if error.code == .storeFailed { throw error }
                // A store that was closed says so.
                _ = try await store.undone()
                shell.withLock { $0.work.status.trouble = error.message }
                observer?.observe(.failed(.stream, error))
            }
            throw Self.cancelled
        }

        private static var cancelled: FerryError {
            FerryError(.cancelled, "The task was cancelled, and the gateway with it.")
        }

        // MARK: One connection

        /// - Returns: why it ended.
        private func serve(_ connection: NATSConnection) async -> FerryError {
            shell.withLock { state in
                state.wantsLook = true
                state.isLost = false
                state.work.failure = nil
            }
            let changes = connection.events()
            let events = Task { [weak self] in
                for await event in changes { self?.hear(event) }
            }
            let reader = makeReader()
            shell.withLock { $0.reader = reader }
            var failure = Self.cancelled
            var nextLook = time.now
            while !Task.isCancelled {
                do throws(FerryError) {
                    let (wantsLook, isLost, failure) = shell.withLock { state in
                        defer { state.wantsLook = false }
                        return (state.wantsLook, state.isLost, state.work.failure)
                    }
                    if let failure { throw failure }
                    if isLost { throw Connecting.ended }
                    var again = !reader.isReading
                    if wantsLook || time.now >= nextLook {
                        do throws(FerryError) {
                            if try await look(connection) { again = true }
                            nextLook = time.now + configuration.lookInterval
                        } catch {
                            guard error.code != .closed, error.code != .storeFailed else { throw error }
                            shell.withLock { $0.work.status.trouble = error.message }
                            observer?.observe(.lookFailed(error))
                            nextLook = time.now + .seconds(1)
                        }
                    }
                    if mayReadAgain(at: time.now) { again = true }
                    if again {
                        try await reader.begin {
                            shell.withLock { $0.work.beginAgain() }
                        }
                    }
                } catch {
                    failure = error
                    break
                }
                publish()
                let deadline = shell.withLock { $0.work.plan.nextDeadline }
                await shell.wait(until: min(nextLook, deadline ?? nextLook))
            }
            events.cancel()
            shell.withLock { $0.reader = nil }
            await reader.end()
            observer?.observe(.disconnected(.stream, isEnding: Task.isCancelled))
            return failure
        }

        /// After a message that was refused, each minute.
        private func mayReadAgain(at now: Timestamp) -> Bool {
            shell.withLock { state in
                guard state.work.plan.refusedLanes > 0, now >= state.mayReadAgain else { return false }
                state.mayReadAgain = now + .seconds(60)
                return true
            }
        }

        private func hear(_ event: NATSConnection.Event) {
            shell.withLock { state in
                switch event {
                case .disconnected:
                    state.work.plan.isOpen = false
                    state.work.status.trouble = "The connection to NATS is lost; records wait on disk."
                case .reconnected: state.wantsLook = true
                case .closed(let reason):
                    state.work.plan.isOpen = false
                    state.isLost = true
                    if !reason.isEmpty { state.work.status.trouble = "The connection to NATS has ended: \(reason)." }
                }
            }
            switch event {
            case .reconnected(let server): observer?.observe(.connected(.stream, server: server))
            case .disconnected: observer?.observe(.disconnected(.stream, isEnding: false))
            case .closed: break
            }
            shell.wake()
        }

        /// Looks at the server: whether it is the one that answered, and what can leave the inbox because of it.
        ///
        /// - Returns: whether everything is to be published again.
        private func look(_ connection: NATSConnection) async throws(FerryError) -> Bool {
            guard connection.isConnected else {
                shell.withLock { $0.work.plan.isOpen = false }
                return false
            }
            // The answer covers the records that were acknowledged before the question.
            let now = time.now
            let server = await connection.serverID()
            let (displaced, answered) = shell.withLock { ($0.work.plan.displaced, $0.watch.lastAnswered) }
            let found = try await openStream(connection)
            guard connection.isConnected, await connection.serverID() == server else {
                shell.change { state, _ in state.wantsLook = true }
                return false
            }
            let (finding, places, released) = shell.withLock {
                state -> (NATSServerWatch.Finding, [ArrivedRecord.Place], Int) in
                var finding = state.watch.look(server, found, answered: answered)
                if let loss = state.loss { finding = .mayHaveLost(loss) }
                state.loss = nil
                state.work.plan.namesPlaces = !found.removesWhatIsRead
                guard finding == .steady else { return (finding, [], 0) }
                state.work.plan.isOpen = true
                let kept = state.work.retention.count
                let places = state.work.retention.steady(at: now)
                return (finding, places, kept - state.work.retention.count)
            }
            guard case .mayHaveLost(let why) = finding else {
                // Nothing was lost: what a subject ends with now is what the next one comes after.
                for (lane, next) in displaced {
                    let last = try await connection.lastSequence(
                        of: next.message.subject, in: configuration.stream.name)
                    guard connection.isConnected, await connection.serverID() == server else { break }
                    shell.withLock { $0.work.plan.follow(lane, after: last) }
                }
                // Last, for it fails while the disk is full.
                try await store.done(through: places)
                shell.withLock { $0.work.retention.left() }
                observer?.observe(.looked(released: released))
                return false
            }
            shell.withLock { state in
                state.work.plan.isOpen = true
                state.work.status.repetitions += 1
                state.work.status.trouble = "Everything that is kept is published again, for \(why)."
            }
            observer?.observe(.repeats(because: why))
            return true
        }

        /// Looks at the stream as when the connection was opened, for others can change it and remove it at any time. What would lose
        /// records gets none, and is told.
        private func openStream(_ connection: NATSConnection) async throws(FerryError) -> NATSStream.State {
            do throws(FerryError) {
                return try await connection.open(configuration.stream, creates: configuration.createsStream)
            } catch {
                let loss: String? =
                    switch error.code {
                    case .natsWrongShape: "the stream was not as it must be"
                    case .natsNotFound: "the stream was not there"
                    default: nil
                    }
                if let loss {
                    shell.withLock { state in
                        state.work.plan.isOpen = false
                        state.loss = loss
                    }
                }
                throw error
            }
        }

        // MARK: Publishing

        /// Something can go now: a record has come, or a pause is over.
        private func publish() { shell.withLock { $0.publisher }?.turn() }

        /// Reports results to the plan; returns the next publications.
        private func step(_ ended: [NATSPublisher.Ended], _ orders: inout [NATSPublisher.Order]) {
            let now = time.now
            let (haveAllGone, reader, events) = shell.withLock { state in
                var haveAllGone = true
                for end in ended { if !Self.take(end, &state, at: now) { haveAllGone = false } }
                state.orders.removeAll(keepingCapacity: true)
                let events = state.work.order(&state.orders, at: now)
                orders.append(contentsOf: state.orders.lazy.map(Self.publication))
                return (haveAllGone, state.work.plan.hasRoom ? state.reader : nil, events)
            }
            reader?.ring()
            if let observer, let events { for event in events { observer.observe(event) } }
            // A failure may require a look at the stream, or a pause.
            if !haveAllGone { shell.wake() }
        }

        private static func publication(_ order: Plan.Order) -> NATSPublisher.Order {
            NATSPublisher.Order(
                token: order.token,
                NATSPublisher.Publication(
                    order.item.message, id: order.item.id, predecessor: order.predecessor, follows: order.follows))
        }

        /// - Returns: whether nothing is to be looked at or awaited because of it.
        private static func take(_ end: NATSPublisher.Ended, _ state: inout State, at now: Timestamp) -> Bool {
            switch end.result {
            case .success(let receipt):
                state.watch.answered(receipt.sequence)
                state.work.ended(
                    end.token, receipt.isDuplicate ? .had(receipt.sequence) : .stored(receipt.sequence),
                    .success(.init(place: receipt.sequence, isDuplicate: receipt.isDuplicate)), at: now)
                return true
            case .failure(let error):
                let outcome = Plan.Outcome(error)
                let goesAtOnce = outcome == .outOfPlace && state.work.plan.isFollower(end.token)
                let displaced = state.work.plan.displaced.count
                state.work.ended(end.token, outcome, .failure(error), at: now)
                if outcome != .outOfPlace { state.work.status.trouble = error.message }
                if state.work.plan.displaced.count > displaced { state.wantsLook = true }
                return goesAtOnce && !state.wantsLook
            }
        }

        // MARK: Reading

        private func makeReader() -> InboxReader {
            let naming = InboxReader.Naming(gateway: configuration.name, prefix: configuration.prefix, token: token)
            return InboxReader(store, naming, time: time, observer: observer, for: self)
        }
    }

    extension Gateway: InboxReader.Owner {
        var hasRoom: Bool { shell.withLock { $0.work.plan.hasRoom } }

        func readingFailed(_ error: FerryError) {
            shell.change { state, _ in state.work.failure = error }
        }

        func add(_ entries: [InboxReader.Entry]) {
            let items = entries.map { entry in
                Plan.Item(
                    lane: entry.record.place.stream, id: entry.id,
                    message: NATSMessage(entry.names.subject, headers: entry.headers, bytes: entry.record.bytes),
                    size: entry.record.bytes.count, place: entry.record.place, read: entry.read, seen: entry.seen)
            }
            shell.withLock { state in for item in items { state.work.plan.add(item) } }
            publish()
        }
    }

    extension PublishPlan.Outcome {
        /// What an error of NATS means.
        init(_ error: FerryError) {
            self =
                switch error.code {
                case .natsConflict: .outOfPlace
                case .messageTooLarge, .invalidConfiguration: .refused
                default: .later
                }
        }
    }
#endif
