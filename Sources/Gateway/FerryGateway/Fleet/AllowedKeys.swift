#if NATS && Records
    public import Ferry
    public import FerryNATS
    public import FerryRecords
    import Synchronization

    /// The keys whose peers the gateways of a fleet take: a list in a bucket of a nats-server, which all of them share.
    ///
    /// A gateway looks at the list when it hears of a change, and every ``Configuration/interval``. While it reaches no server it goes by
    /// what it read last; before it has read the list for the first time it takes the peers that its store knows.
    public final class AllowedKeys: Sendable {
        /// Where the list is.
        public struct Configuration: Sendable, Hashable {
            /// The servers.
            public var servers: NATSConfiguration
            /// The bucket, which has no expiry.
            public var bucket: String
            /// Whether the bucket is made when it is not there. Default true.
            public var createsBucket = true
            /// On how many servers of a cluster a new one is kept. Default 1.
            public var replicas = 1
            /// How often to look, also when no change is heard of. Default 5 s: a key that is revoked is refused everywhere within that time and a
            /// request, by gateways that reach the server.
            public var interval = Duration.seconds(5)
            /// Whether peers with a key that is not on the list are strangers, and otherwise refused. Default false.
            public var acceptsStrangers = false

            /// A bucket on these servers.
            public init(servers: NATSConfiguration, bucket: String) {
                self.servers = servers
                self.bucket = bucket
            }
        }

        /// One key of the list.
        public struct Entry: Sendable, Hashable {
            /// What the list says of a key.
            public enum Standing: Sendable, Hashable {
                /// Its peer is taken. The name is for people.
                case allowed(name: String)
                /// It was allowed, and its peer is refused.
                case revoked(name: String)
            }

            /// The key's fingerprint.
            public let fingerprint: String
            /// Whether it is allowed.
            public let standing: Standing
        }

        private struct State {
            /// Nil before the list was read.
            var standings: [String: Entry.Standing]?
            var trouble: String?
        }

        private let configuration: Configuration
        private let time: any TimeSource
        private let state = Mutex(State())

        /// Makes a list, which is read by ``run(onChange:)``.
        public init(_ configuration: Configuration, time: any TimeSource = SystemTime()) {
            self.configuration = configuration
            self.time = time
        }

        /// The obstacle to reading the list; nil when it was read.
        public var trouble: String? { state.withLock { $0.trouble } }

        /// Whom a peer is taken for, by the list as it was read last.
        public func trust(_ identity: PeerIdentity) -> RecordStore.Trust {
            guard identity.certainty == .key else { return RecordStore.Trust(identity) }
            return state.withLock { state in
                guard let standings = state.standings else { return .stranger }
                switch standings[identity.name] {
                case .allowed?: return .trusted
                case .revoked?: return .refused("its key was revoked.")
                case nil:
                    return configuration.acceptsStrangers
                        ? .stranger : .refused("its key is not on the list of allowed keys.")
                }
            }
        }

        /// Keeps the list read, until the task is cancelled. Servers that are away are waited for.
        ///
        /// - Parameter onChange: called after each change of the list. It must not block.
        /// - Throws: `cancelled`; before the bucket was open for the first time also `natsRefused`, `natsInsecure`, `natsWrongShape`,
        ///   `natsNotFound`, `invalidConfiguration`.
        public func run(onChange: @escaping @Sendable () -> Void) async throws(FerryError) {
            let connecting = Connecting(
                servers: configuration.servers, creates: configuration.createsBucket, pause: .seconds(1), time: time)
            try await connecting.run { connection, isOpen throws(FerryError) in
                let bucket = try await open(connection)
                isOpen()
                let changes = try await bucket.changes()
                let bell = Bell()
                let ears = Task {
                    for await _ in changes { bell.ring() }
                    bell.silence()
                }
                defer { ears.cancel() }
                var read: UInt64?
                while !Task.isCancelled {
                    let revision = try await bucket.lastRevision()
                    if revision != read {
                        let standings = try await Self.entries(of: bucket)
                        read = revision
                        state.withLock { $0.standings = standings }
                        onChange()
                    }
                    state.withLock { $0.trouble = nil }
                    let hasRung = await bell.wait(until: time.now + configuration.interval, by: time)
                    guard hasRung else { throw Connecting.ended }
                }
            } failed: { error throws(FerryError) in
                state.withLock { $0.trouble = error.message }
            }
            throw FerryError(.cancelled, "The task was cancelled, and the list of keys with it.")
        }

        private func open(_ connection: NATSConnection) async throws(FerryError) -> NATSBucket {
            try await NATSBucket.open(
                configuration.bucket, expiry: nil, replicas: configuration.replicas,
                creates: configuration.createsBucket, on: connection)
        }

        private static func entries(of bucket: NATSBucket) async throws(FerryError) -> [String: Entry.Standing] {
            var standings: [String: Entry.Standing] = [:]
            for key in try await bucket.keys() {
                // An unreadable entry allows no peer.
                guard let entry = try await bucket.entry(key), let standing = standing(entry.bytes) else { continue }
                standings[key] = standing
            }
            return standings
        }

        // MARK: For people

        /// The list, in the order of the fingerprints.
        ///
        /// - Throws: `natsWrongShape`, `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func entries(on connection: NATSConnection) async throws(FerryError) -> [Entry] {
            try await Self.entries(of: open(connection)).map { Entry(fingerprint: $0, standing: $1) }
                .sorted { $0.fingerprint < $1.fingerprint }
        }

        /// Writes what the list says of a key.
        ///
        /// - Throws: `invalidConfiguration` for a text that is no fingerprint, and a name of more than 256 bytes; as ``entries(on:)``.
        public func set(_ standing: Entry.Standing, of fingerprint: String, on connection: NATSConnection)
            async throws(FerryError)
        {
            try Self.check(fingerprint)
            let text =
                switch standing {
                case .allowed(let name): "allowed \(name)"
                case .revoked(let name): "revoked \(name)"
                }
            guard text.utf8.count <= 256 + 8 else {
                throw FerryError(.invalidConfiguration, "The name of a key has at most 256 bytes.")
            }
            try await open(connection).set(fingerprint, Array(text.utf8))
        }

        /// Removes a key from the list, whether it was allowed or revoked.
        ///
        /// - Throws: as ``set(_:of:on:)``.
        public func remove(_ fingerprint: String, on connection: NATSConnection) async throws(FerryError) {
            try Self.check(fingerprint)
            try await open(connection).remove(fingerprint)
        }

        /// A fingerprint is 32 digits of Crockford's base 32 in lower case; nothing else is a key of the bucket.
        ///
        /// - Throws: `invalidConfiguration`.
        package static func check(_ fingerprint: String) throws(FerryError) {
            let digits = Set("0123456789abcdefghjkmnpqrstvwxyz".utf8)
            guard fingerprint.utf8.count == 32, fingerprint.utf8.allSatisfy(digits.contains) else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(fingerprint.debugDescription) is no fingerprint of a key: it has 32 digits, as ferry key shows them."
                )
            }
        }

        static func standing(_ bytes: [UInt8]) -> Entry.Standing? {
            guard bytes.count <= 264, let text = String(validating: bytes, as: UTF8.self) else { return nil }
            let words = text.split(separator: " ", maxSplits: 1, omittingEmptySubsequences: false)
            let name = words.count > 1 ? String(words[1]) : ""
            return switch words[0] {
            case "allowed": .allowed(name: name)
            case "revoked": .revoked(name: name)
            default: nil
            }
        }
    }
#endif
