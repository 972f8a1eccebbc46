#if NATS && Records
    public import Ferry
    public import FerryNATS
    public import FerryRecords
    import Synchronization

    /// Carries messages for peers from a JetStream stream into a store's outbox, and takes them out of the stream when they are on
    /// the peer's disk.
    ///
    ///     let downlink = try Downlink(store, Downlink.Configuration(servers: ["nats://localhost:4222"]))
    ///     try await downlink.run()                       // until its task is cancelled
    ///
    /// A peer gets each message once and in order of its stream, whichever gateway carries it: see
    /// ``/FerryRecords/RecordStore/relay(_:from:stream:to:whenFull:)``. So no gateway needs to know what another one has
    /// done, and what one does for a peer that it has lost does no harm.
    public final class Downlink: PeerVisitor {
        /// Where from, and within which bounds.
        public struct Configuration: Sendable, Hashable {
            /// The servers.
            public var servers: NATSConfiguration
            /// The stream. Its messages must be readable one by one.
            public var stream: NATSStream
            /// What subjects begin with; a message's is `prefix.peer.stream`.
            public var prefix: String
            /// Whether to make the stream where there is none. Default true.
            public var createsStream = true
            /// How many of a peer's messages may be in the store's outbox at once. Default 256.
            public var maximumRecords = 256
            /// How many bytes of a peer's messages may be in the store's outbox, and one message more. Default 1 MiB.
            public var maximumBytes = 1 << 20
            /// How often the stream is looked at though nothing was heard of new messages. Default 60 s.
            public var lookInterval = Duration.seconds(60)

            /// - Parameters:
            ///   - servers: addresses, such as `nats://localhost:4222`.
            ///   - stream: the stream's name, which is also what peers know the messages' origin by.
            ///   - prefix: what subjects begin with.
            public init(servers: [String], stream: String = "ferry-down", prefix: String = "ferry.commands") {
                self.servers = NATSConfiguration(servers: servers)
                self.prefix = prefix
                self.stream = NATSStream(stream, subjects: ["\(prefix).>"])
                self.stream.allowsDirectReading = true
            }
        }

        /// How it stands.
        public struct Status: Sendable, Hashable {
            /// Whether the stream can be read now.
            public var isConnected = false
            /// How many messages have come to peers' disks and left the stream.
            public var carried = 0
            /// How many are in the outbox.
            public var onTheirWay = 0
            /// The latest obstacle.
            public var trouble: String?

            /// Nothing has happened.
            public init() {}
        }

        private struct Carrier {
            let task: Task<Void, Never>
            /// Whether something came into the stream since the carrier looked.
            let news: Shell<Bool>
        }

        private struct State {
            var connection: NATSConnection?
            /// The peers whose messages this gateway carries.
            var peers: Set<String> = []
            var carriers: [String: Carrier] = [:]
            var waiting: [String: Int] = [:]
            var status = Status()
        }

        private let store: RecordStore
        private let configuration: Configuration
        private let servesAll: Bool
        private let observer: (any GatewayObserver)?
        private let names: DownlinkNames
        private let time = SystemTime()
        private let state = Mutex(State())

        /// Makes a downlink, which does nothing before ``run()``.
        ///
        /// - Parameters:
        ///   - store: whose outbox messages go through.
        ///   - configuration: where from.
        ///   - servesAll: whether it carries the messages of all peers, as one gateway alone does, and not only of those that it is
        ///     told of by ``begin(_:)``.
        ///   - observer: receives events; nil for none.
        /// - Throws: `invalidConfiguration`.
        public init(
            _ store: RecordStore, _ configuration: Configuration, servesAll: Bool = true,
            observer: (any GatewayObserver)? = nil
        ) throws(FerryError) {
            try configuration.check()
            self.store = store
            self.configuration = configuration
            self.servesAll = servesAll
            self.observer = observer
            names = DownlinkNames(prefix: configuration.prefix)
        }

        /// How it stands now.
        public var status: Status {
            state.withLock { state in
                var status = state.status
                status.isConnected = state.connection?.isConnected == true
                status.onTheirWay = state.waiting.values.reduce(0, +)
                return status
            }
        }

        /// Connects once, and looks whether the stream is as it must be; makes nothing.
        ///
        /// - Returns: what the server says of the stream; nil when there is none yet.
        /// - Throws: as ``Gateway/check(_:largestRecord:)``.
        public static func check(_ configuration: Configuration) async throws(FerryError) -> NATSStream.State? {
            try configuration.check()
            return try await NATSConnection.with(configuration.servers) { connection throws(FerryError) in
                try await Connecting.find(creates: configuration.createsStream) { () throws(FerryError) in
                    try await connection.open(configuration.stream, creates: false)
                }
            }
        }

        // MARK: Peers

        /// This gateway carries a peer's messages from now on.
        public func begin(_ peer: String) {
            state.withLock { state in
                state.peers.insert(peer)
                if let connection = state.connection { startCarrying(peer, connection, &state) }
            }
        }

        /// Stops carrying a peer's messages. Those given to its exchange may still arrive, and do no harm.
        public func stop(_ peer: String) async {
            let task = state.withLock { state in
                state.peers.remove(peer)
                return state.carriers[peer]?.task
            }
            task?.cancel()
        }

        // MARK: Running

        /// Carries, until the task is cancelled or the store closed. Servers that are away are waited for.
        ///
        /// - Throws: `cancelled`, `closed` when the store was closed, `diskFull`, `storeFailed`; before the stream was open for the
        ///   first time also `natsRefused`, `natsInsecure`, `natsWrongShape`, `natsNotFound`, `invalidConfiguration`.
        public func run() async throws(FerryError) {
            let connecting = Connecting(
                servers: configuration.servers, creates: configuration.createsStream, pause: .seconds(1), time: time)
            try await connecting.run { connection, isOpen throws(FerryError) in
                try await connection.open(configuration.stream, creates: configuration.createsStream)
                isOpen()
                observer?.observe(.connected(.downlink, server: await connection.serverID()))
                await serve(connection)
                observer?.observe(.disconnected(.downlink, isEnding: Task.isCancelled))
                throw Connecting.ended
            } failed: { error throws(FerryError) in
                // A store that was closed says so.
                _ = try await store.undone()
                note(error)
                observer?.observe(.failed(.downlink, error))
            }
            throw FerryError(.cancelled, "The task was cancelled, and the downlink with it.")
        }

        private func note(_ error: FerryError) { state.withLock { $0.status.trouble = error.message } }

        /// Until the connection ends, or the task is cancelled.
        private func serve(_ connection: NATSConnection) async {
            state.withLock { state in
                state.connection = connection
                state.status.trouble = nil
                for peer in state.peers { startCarrying(peer, connection, &state) }
            }
            await withDiscardingTaskGroup { group in
                if servesAll { group.addTask { await self.findPeers(connection) } }
                for await event in connection.events() {
                    switch event {
                    case .disconnected:
                        state.withLock {
                            $0.status.trouble = "The connection to NATS is lost; messages for peers wait in the stream."
                        }
                        observer?.observe(.disconnected(.downlink, isEnding: false))
                    case .reconnected(let server):
                        observer?.observe(.connected(.downlink, server: server))
                        // Messages published meanwhile were not heard of.
                        for carrier in state.withLock({ Array($0.carriers.values) }) { carrier.news.hear() }
                        state.withLock { $0.status.trouble = nil }
                    case .closed: break
                    }
                }
                group.cancelAll()
            }
            let tasks = state.withLock { state in
                state.connection = nil
                return state.carriers.values.map(\.task)
            }
            for task in tasks { task.cancel() }
            for task in tasks { await task.value }
        }

        /// Begins with every peer for which something is in the stream.
        private func findPeers(_ connection: NATSConnection) async {
            while !Task.isCancelled {
                do throws(FerryError) {
                    let subjects = try await connection.subjects(
                        matching: names.everything, in: configuration.stream.name)
                    for peer in Set(subjects.compactMap { names.address($0)?.peer }) {
                        let news = state.withLock { state in
                            state.peers.insert(peer)
                            startCarrying(peer, connection, &state)
                            return state.carriers[peer]?.news
                        }
                        news?.hear()
                    }
                } catch { note(error) }
                try? await time.sleep(for: min(.seconds(5), configuration.lookInterval))
            }
        }

        /// Unless it has begun.
        private func startCarrying(_ peer: String, _ connection: NATSConnection, _ state: inout State) {
            let old = state.carriers[peer]
            guard old == nil || old?.task.isCancelled == true else { return }
            let news = Shell(false, time: time)
            let task = Task { [weak self] in
                await old?.task.value
                await self?.keepCarrying(peer, connection, news)
            }
            state.carriers[peer] = Carrier(task: task, news: news)
        }

        private func keepCarrying(_ peer: String, _ connection: NATSConnection, _ news: Shell<Bool>) async {
            while !Task.isCancelled {
                do throws(FerryError) { try await carry(peer, connection, news) } catch {
                    guard !Task.isCancelled else { break }
                    note(error)
                    observer?.observe(.heldUp(peer: peer, error))
                    // A message that cannot be stored holds up its peer's, until an operator takes it out of the stream.
                    let isForGood = [.messageTooLarge, .invalidConfiguration].contains(error.code)
                    try? await time.sleep(for: isForGood ? configuration.lookInterval : .seconds(1))
                }
            }
            state.withLock { state in
                state.waiting[peer] = nil
                if state.carriers[peer]?.news === news { state.carriers[peer] = nil }
            }
        }

        /// Carries one peer's messages, from the first in the stream on.
        private func carry(_ peer: String, _ connection: NATSConnection, _ news: Shell<Bool>) async throws(FerryError) {
            let heard = try await connection.messages(to: names.pattern(peer))
            let progress = store.progress()
            let listening = [
                Task { for await _ in heard { news.hear() } },
                Task { for await _ in progress { news.wake() } },
            ]
            defer { for task in listening { task.cancel() } }
            var window = DownlinkWindow(
                .init(records: configuration.maximumRecords, bytes: configuration.maximumBytes))
            var looks = LookTimes(interval: configuration.lookInterval)
            var watch = NATSServerWatch()
            var hasBegun = false
            while !Task.isCancelled {
                if news.take() { looks.heard(at: time.now) }
                if !window.isEmpty { try await note(&window, peer) }
                if looks.isDue(at: time.now) || window.hasRemovals { try await remove(&window, &watch, connection) }
                while looks.isDue(at: time.now), window.hasRoom {
                    let messages = try await read(window, peer, connection)
                    if !hasBegun {
                        // Of an earlier turn; another gateway may have carried it since. Not before the stream can be read: the old
                        // messages are better than none.
                        try await store.withdrawRelayed(to: peer)
                        hasBegun = true
                    }
                    looks.looked(found: !messages.isEmpty, at: time.now)
                    try await put(messages, peer, &window)
                }
                state.withLock { $0.waiting[peer] = window.records }
                // Who waits for room is woken when records have gone.
                await news.wait(until: window.hasRoom ? looks.next : nil)
            }
        }

        private func read(
            _ window: DownlinkWindow, _ peer: String, _ connection: NATSConnection
        ) async throws(FerryError) -> [NATSStored] {
            var messages: [NATSStored] = []
            var bytes = 0
            var place = window.next
            // As many as one write to the disk is good for.
            while messages.count < min(window.room, 64), bytes < 256 << 10, !Task.isCancelled,
                let stored = try await connection.next(
                    of: names.pattern(peer), from: place, in: configuration.stream.name)
            {
                messages.append(stored)
                bytes += stored.message.bytes.count
                place = stored.sequence + 1
            }
            return messages
        }

        private func put(
            _ messages: [NATSStored], _ peer: String, _ window: inout DownlinkWindow
        ) async throws(FerryError) {
            for (subject, messages) in Dictionary(grouping: messages, by: \.message.subject) {
                guard let address = names.address(subject) else {
                    throw FerryError(
                        .invalidConfiguration,
                        "\(subject) names no stream of a peer: a name is escaped as in a record's subject. Take its messages out of "
                            + "stream \(configuration.stream.name).")
                }
                let records = messages.map {
                    RelayedRecord(sequence: $0.sequence, time: $0.time, bytes: $0.message.bytes)
                }
                let last = try await store.relay(
                    records, from: configuration.stream.name, stream: address.stream, to: peer)
                window.put(
                    messages.map { ($0.sequence, $0.message.bytes.count) }, of: subject, through: last)
            }
        }

        /// Sees what the peer has by now.
        private func note(_ window: inout DownlinkWindow, _ peer: String) async throws(FerryError) {
            for stream in try await store.relayedThrough(to: peer) where stream.origin == configuration.stream.name {
                let count = window.committed(names.subject(peer, stream.stream), through: stream.committedThrough)
                state.withLock { $0.status.carried += count }
                if count > 0 { observer?.observe(.carried(peer: peer, count: count)) }
            }
        }

        /// Takes out of the stream what the peer has, once the stream is seen to be what it was.
        ///
        /// - Throws: `natsConflict` when the stream may give places again that it has given before: then it is read anew.
        private func remove(
            _ window: inout DownlinkWindow, _ watch: inout NATSServerWatch, _ connection: NATSConnection
        ) async throws(FerryError) {
            let server = await connection.serverID()
            let found = try await connection.state(of: configuration.stream.name)
            if case .mayHaveLost(let why) = watch.look(server, found) {
                throw FerryError(
                    .natsConflict, "Stream \(configuration.stream.name) is read from its beginning, for \(why).")
            }
            for removal in window.removals(before: found.lastSequence) {
                try await connection.remove(removal.subject, through: removal.through, in: configuration.stream.name)
            }
        }
    }

    /// When a stream is looked at: at the beginning, and when messages were heard, a few times, for a message is stored a moment after it
    /// is heard; otherwise now and then.
    struct LookTimes: Sendable {
        private static let after: [Duration] = [.milliseconds(50), .milliseconds(250), .seconds(1), .seconds(4)]
        private let interval: Duration
        private var steps = LookTimes.after.count
        private(set) var next = Timestamp(nanoseconds: .min)

        init(interval: Duration) { self.interval = interval }

        func isDue(at now: Timestamp) -> Bool { now >= next }

        mutating func heard(at now: Timestamp) {
            steps = 0
            next = now
        }

        /// - Parameter found: whether anything was there: then more may be.
        mutating func looked(found: Bool, at now: Timestamp) {
            if found {
                next = now
            } else if steps < Self.after.count {
                next = now + Self.after[steps]
                steps += 1
            } else {
                next = now + interval
            }
        }
    }

    extension Shell<Bool> {
        /// Something has come into the stream.
        fileprivate func hear() { change { hasCome, _ in hasCome = true } }

        /// Whether something has come since the last call.
        fileprivate func take() -> Bool {
            withLock { hasCome in
                defer { hasCome = false }
                return hasCome
            }
        }
    }

    extension Downlink.Configuration {
        func check() throws(FerryError) {
            func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
            try RecordNames.check(prefix: prefix, stream: stream.name)
            guard (1...65_536).contains(maximumRecords), (1...1 << 30).contains(maximumBytes) else {
                throw refuse(
                    "\(maximumRecords) records and \(maximumBytes) bytes on their way are out of range; give 1 to 65536 and 1 to 2^30."
                )
            }
            guard lookInterval >= .milliseconds(10), lookInterval <= .seconds(86_400) else {
                throw refuse("The stream is looked at each \(lookInterval); that must be 10 ms to a day.")
            }
        }
    }
#endif
