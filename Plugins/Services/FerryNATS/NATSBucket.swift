#if NATS
    import CNATS
    public import Ferry

    /// A key-value bucket: what several processes agree by.
    ///
    /// A revision grows with each change in the bucket. Who creates a key has it; who changes it names the revision that it has
    /// seen last, so that of two that try one fails. A key that is not changed for ``expiry`` is removed; a bucket without expiry
    /// keeps it.
    public final class NATSBucket: Sendable {
        /// What a key has.
        public struct Entry: Sendable, Hashable {
            /// The key.
            public let key: String
            /// Its value.
            public let bytes: [UInt8]
            /// The revision in which it was set.
            public let revision: UInt64
        }

        /// The bucket's name.
        public let name: String
        /// The time without a change after which a key is removed; nil for never.
        public let expiry: Duration?
        private let connection: NATSConnection
        private let raw: NATSKeyValue
        /// Whether any of its servers may be asked for a key, which does not wait for other requests; else its leader is.
        private let allowsDirectReading: Bool

        private init(
            _ name: String, _ expiry: Duration?, _ connection: NATSConnection, _ opened: (NATSKeyValue, Bool)
        ) {
            (self.name, self.expiry, self.connection) = (name, expiry, connection)
            (raw, allowsDirectReading) = opened
        }

        /// Opens a bucket, and makes it when it is not there.
        ///
        /// - Parameters:
        ///   - name: letters, digits, `-` and `_`.
        ///   - expiry: the time without a change after which a key must be removed; whole milliseconds, 100 ms to a year; nil for never.
        ///   - replicas: on how many servers of a cluster a new one is kept.
        ///   - creates: whether to make one where there is none.
        ///   - connection: the server's.
        /// - Throws: `natsWrongShape` for a bucket without expiry, or with another one; `natsNotFound`, `invalidConfiguration`,
        ///   `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public static func open(
            _ name: String, expiry: Duration?, replicas: Int = 1, creates: Bool = true,
            on connection: NATSConnection
        ) async throws(FerryError) -> NATSBucket {
            if let expiry, expiry < .milliseconds(100) || expiry > .seconds(31_536_000) {
                throw FerryError(.invalidConfiguration, "The expiry \(expiry) is out of range; give 100 ms to a year.")
            }
            let letters = name.utf8.allSatisfy {
                (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0) || $0 == 0x2D
                    || $0 == 0x5F
            }
            guard letters, !name.isEmpty else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(name.debugDescription) is no name for a bucket: use letters, digits, - and _.")
            }
            let opened = try await connection.perform { handle throws(FerryError) in
                var store: OpaquePointer?
                // The bucket's stream; asked for a few times, which libnats does not do.
                do throws(FerryError) { _ = try handle.find("KV_\(name)") } catch  where error.code == .natsNotFound {}
                var status = js_KeyValue(&store, handle.jetStream, name)
                if status == NATS_NOT_FOUND && creates {
                    status = name.withCString { name in
                        var wanted = kvConfig()
                        kvConfig_Init(&wanted)
                        wanted.Bucket = name
                        wanted.History = 1
                        wanted.TTL = expiry?.nanoseconds ?? 0
                        wanted.StorageType = js_FileStorage
                        wanted.Replicas = Int32(clamping: replicas)
                        return js_CreateKeyValue(&store, handle.jetStream, &wanted)
                    }
                }
                try require(status, "The bucket \(name) cannot be opened")
                let raw = NATSKeyValue(store)
                var found: OpaquePointer?
                try require(kvStore_Status(&found, raw.raw), "The bucket \(name) cannot be looked at")
                defer { kvStatus_Destroy(found) }
                try check(name, expiry, found: kvStatus_TTL(found))
                return (raw, try handle.find("KV_\(name)").traits.contains(.directReading))
            }
            return NATSBucket(name, expiry, connection, opened)
        }

        /// Finds an existing bucket with any expiry.
        ///
        /// - Throws: `natsNotFound`, `natsWrongShape` for one without expiry, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`,
        ///   `natsFailed`.
        public static func find(_ name: String, on connection: NATSConnection) async throws(FerryError) -> NATSBucket {
            let (opened, expiry) = try await connection.perform { handle throws(FerryError) in
                var store: OpaquePointer?
                let status = js_KeyValue(&store, handle.jetStream, name)
                try require(status, "The bucket \(name) cannot be opened")
                let raw = NATSKeyValue(store)
                var found: OpaquePointer?
                try require(kvStore_Status(&found, raw.raw), "The bucket \(name) cannot be looked at")
                defer { kvStatus_Destroy(found) }
                return ((raw, try handle.find("KV_\(name)").traits.contains(.directReading)), kvStatus_TTL(found))
            }
            try check(name, .nanoseconds(expiry), found: expiry)
            return NATSBucket(name, .nanoseconds(expiry), connection, opened)
        }

        /// - Parameter found: in nanoseconds.
        static func check(_ name: String, _ expiry: Duration?, found: Int64) throws(FerryError) {
            guard let expiry else {
                guard found > 0 else { return }
                throw FerryError(
                    .natsWrongShape,
                    "The keys of bucket \(name) expire after \(found / 1_000_000) ms, and its values must stay. Name another one; "
                        + "a new one is made (nats kv add \(name)).")
            }
            let seconds = "\(expiry.milliseconds)ms"
            guard found > 0 else {
                throw FerryError(
                    .natsWrongShape,
                    "The bucket \(name) has no expiry: what a dead process held would be held for ever. Remove it, or name another "
                        + "one; a new one is made with \(seconds) (nats kv add \(name) --ttl=\(seconds)).")
            }
            guard found == expiry.nanoseconds else {
                throw FerryError(
                    .natsWrongShape,
                    "The keys of bucket \(name) expire after \(found / 1_000_000) ms, and this program goes by \(seconds). Give all "
                        + "programs the same expiry, or name another bucket.")
            }
        }

        /// Makes a key that is not there.
        ///
        /// - Returns: its revision.
        /// - Throws: `natsConflict` when it is there; `invalidConfiguration`, `natsNotReady`, `timedOut`, `closed`,
        ///   `natsNoServer`, `natsFailed`.
        public func create(_ key: String, _ bytes: [UInt8]) async throws(FerryError) -> UInt64 {
            let conflict: FerryError
            do throws(FerryError) { return try await write(key, bytes, from: 0, "created") } catch
                where error.code == .natsConflict
            {
                conflict = error
            }
            // One that was removed has left a mark.
            guard let mark = try await newest(key), mark.isRemoval else { throw conflict }
            return try await write(key, bytes, from: mark.entry.revision, "created")
        }

        /// Changes a key that has a revision, and with that lets its expiry begin anew.
        ///
        /// - Returns: its new revision.
        /// - Throws: `natsConflict` when it has another revision, or is gone; `invalidConfiguration`, `natsNotReady`, `timedOut`,
        ///   `closed`, `natsNoServer`, `natsFailed`.
        public func update(_ key: String, _ bytes: [UInt8], from last: UInt64) async throws(FerryError) -> UInt64 {
            try await write(key, bytes, from: last, "changed")
        }

        /// Sets a key, replacing any value.
        ///
        /// - Returns: its revision.
        /// - Throws: `invalidConfiguration`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        @discardableResult
        public func set(_ key: String, _ bytes: [UInt8]) async throws(FerryError) -> UInt64 {
            try await write(key, bytes, from: nil, "set")
        }

        /// Removes a key with any value; no error when it is not there.
        ///
        /// - Throws: `invalidConfiguration`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func remove(_ key: String) async throws(FerryError) {
            _ = try await write(key, [], headers: [.init(Self.operation, "DEL")], from: nil, "removed")
        }

        /// What a key has; nil when it is not there.
        ///
        /// - Throws: `invalidConfiguration`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func entry(_ key: String) async throws(FerryError) -> Entry? {
            guard let (entry, isRemoval) = try await newest(key), !isRemoval else { return nil }
            return entry
        }

        /// - Parameters:
        ///   - last: the revision that the key must have; 0 where it must not be there; nil for any.
        ///   - deed: the attempt, for the error.
        private func write(
            _ key: String, _ bytes: [UInt8], headers: [NATSMessage.Header] = [], from last: UInt64?, _ deed: String
        ) async throws(FerryError) -> UInt64 {
            let what = "Key \(key) of bucket \(name) cannot be \(deed)"
            let headers = headers + (last.map { [.init("Nats-Expected-Last-Subject-Sequence", "\($0)")] } ?? [])
            let message = NATSMessage(try subject(key), headers: headers, bytes: bytes)
            let answer = try await connection.request(message, what)
            return try answer.bytes.withUnsafeBytes(PublishAnswer.read).mapError { $0.error(what) }.get().sequence
        }

        /// The last that was written, a removal as well; nil when there is nothing.
        private func newest(_ key: String) async throws(FerryError) -> (entry: Entry, isRemoval: Bool)? {
            let subject = try subject(key)
            let found =
                allowsDirectReading
                ? try await connection.direct("\(stream).\(subject)", "Key \(key) of bucket \(name) cannot be read")
                : try await connection.last(of: subject, in: stream)
            return found.map { stored in
                let entry = Entry(key: key, bytes: stored.message.bytes, revision: stored.sequence)
                return (entry, stored.message[Self.operation] != nil)
            }
        }

        /// The header of what removes a key.
        private static let operation = "KV-Operation"

        private var stream: String { "KV_\(name)" }

        private func subject(_ key: String) throws(FerryError) -> String {
            let isKey =
                NATSMessage.isSubject(key)
                && key.utf8.allSatisfy {
                    (0x30...0x39).contains($0) || (0x41...0x5A).contains($0) || (0x61...0x7A).contains($0)
                        || "-/_=.".utf8.contains($0)
                }
            guard isKey else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(key.debugDescription) is no key: use letters, digits, - / _ = and dots between words.")
            }
            return "$KV.\(name).\(key)"
        }

        /// Tells of each change of a key, as it is published; none is told that comes while the connection is lost.
        ///
        /// - Throws: `closed`, `natsFailed`.
        public func changes() async throws(FerryError) -> AsyncStream<Void> {
            let messages = try await connection.messages(to: "$KV.\(name).>")
            let (changes, tell) = AsyncStream<Void>.makeStream(bufferingPolicy: .bufferingNewest(1))
            let task = Task {
                for await _ in messages { tell.yield() }
                tell.finish()
            }
            tell.onTermination = { _ in task.cancel() }
            return changes
        }

        /// A number that grows with each change in the bucket.
        ///
        /// - Throws: `natsNotFound`, `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func lastRevision() async throws(FerryError) -> UInt64 {
            try await connection.state(of: stream).lastSequence
        }

        /// The keys that there are.
        ///
        /// - Throws: `natsNotReady`, `timedOut`, `closed`, `natsNoServer`, `natsFailed`.
        public func keys() async throws(FerryError) -> [String] {
            try await connection.perform { [name, raw, connection] _ throws(FerryError) in
                var list = kvKeysList()
                var options = kvWatchOptions()
                kvWatchOptions_Init(&options)
                options.Timeout = connection.configuration.requestTimeout.milliseconds
                let status = kvStore_Keys(&list, raw.raw, &options)
                guard status != NATS_NOT_FOUND else { return [] }
                try require(status, "The keys of bucket \(name) cannot be listed")
                defer { kvKeysList_Destroy(&list) }
                return (0..<Int(list.Count)).compactMap { list.Keys?[$0].map { String(cString: $0) } }
            }
        }
    }

    /// libnats' bucket.
    final class NATSKeyValue: @unchecked Sendable {
        let raw: OpaquePointer?
        init(_ raw: OpaquePointer?) { self.raw = raw }
        deinit { kvStore_Destroy(raw) }
    }
#endif
