#if Records
    public import Ferry
    public import Foundation
    import GRDB
    import Synchronization

    /// An outbox and an inbox in one file: what ``append(_:to:stream:priority:expires:whenFull:)`` has accepted arrives in the
    /// other store's ``inbox`` once and in order, whatever crashes and however long the peer is away.
    ///
    ///     let store = try RecordStore.open("readings.ferry")
    ///     try await store.append(Array("21.5".utf8), to: "collector", stream: "temperature")
    ///     try await store.exchange(over: channel, with: "collector")
    ///
    /// One process at a time has it open. `Documentation/Records.md` has the format of the file, the protocol, and the limits.
    public final class RecordStore: Sendable {
        /// The bounds of a store.
        public struct Configuration: Sendable, Hashable {
            /// The largest record, in bytes, of either direction. Default 1 MiB.
            public var largestRecord = 1 << 20
            /// At so many bytes waiting for one peer, appending waits or refuses. Default 256 MiB.
            public var highWaterBytes = 256 << 20
            /// From so many bytes on, it goes on. Default 192 MiB.
            public var lowWaterBytes = 192 << 20
            /// At so many records waiting for one peer, appending waits or refuses. Default 2^21.
            public var highWaterRecords = 1 << 21
            /// From so many records on, it goes on. Default 3 · 2^19.
            public var lowWaterRecords = 3 << 19
            /// What of one peer's records the app may leave undone before the peer is stopped, in bytes, where each record
            /// counts 32 more. Default 16 MiB; at least one record of the largest size.
            public var inboxCapacity = 16 << 20
            /// About how many bytes of records go into one message of an exchange. Default 8 KiB.
            public var batchBytes = 8 << 10
            /// How long a peer's answer may take before an exchange ends. Default 60 s.
            public var patience = Duration.seconds(60)
            /// How long a peer may take to say who it is, before an exchange ends; ``patience``, if that is less. Default 10 s.
            public var greeting = Duration.seconds(10)
            /// Whether peers that nothing was ever appended to, and that are not named, may leave records. Default true.
            public var acceptsStrangers = true

            /// The defaults.
            public init() {}
        }

        /// The store's name, from its first opening on.
        public let id: StoreID
        /// This opening.
        public let epoch: Epoch
        /// The file.
        public let path: String
        /// Its bounds.
        public let configuration: Configuration
        /// What peers have sent.
        public var inbox: Inbox { Inbox(desk: desk, store: self) }

        let committer: Committer
        let admission: Admission
        let desk: InboxDesk
        let time: any TimeSource
        let watch = Watch()
        private let wallClock: @Sendable () -> Date

        /// Milliseconds since 1970, by the wall clock, which is trusted for nothing but records' expiry.
        var milliseconds: Int64 { Int64(clampingMilliseconds: wallClock()) }

        private init(
            _ id: StoreID, _ epoch: Epoch, _ committer: Committer, _ book: Book, _ configuration: Configuration,
            _ time: any TimeSource, _ wallClock: @escaping @Sendable () -> Date
        ) {
            self.id = id
            self.epoch = epoch
            path = committer.path
            self.configuration = configuration
            self.committer = committer
            self.time = time
            self.wallClock = wallClock
            admission = Admission(configuration, book)
            desk = InboxDesk(committer, book)
            // Who waits for what cannot come any more is told, and does not wait for ever.
            committer.whenFailed { [weak admission, weak watch, weak desk] reason in
                admission?.close(reason)
                watch?.end(reason)
                desk?.fail(reason)
            }
        }

        /// Opens a store, and makes it when the file is not there.
        ///
        /// - Parameters:
        ///   - path: the file; beside it are `-wal`, which belongs to it, and `-lock`.
        ///   - configuration: its bounds.
        ///   - time: the clock for waiting.
        ///   - wallClock: what expiry is looked up by.
        /// - Throws: `storeInUse` with the process that has it, `storeDamaged`, `storeTooNew`, `storeNotWritable`, `diskFull`,
        ///   `storeFailed`, `invalidConfiguration`.
        public static func open(
            _ path: String, configuration: Configuration = Configuration(), time: any TimeSource = SystemTime(),
            wallClock: @escaping @Sendable () -> Date = { Date() }
        ) throws(FerryError) -> RecordStore {
            try open(path, configuration, time, wallClock, Schema.migrations)
        }

        static func open(
            _ path: String, _ configuration: Configuration, _ time: any TimeSource,
            _ wallClock: @escaping @Sendable () -> Date, _ migrations: [String]
        ) throws(FerryError) -> RecordStore {
            try configuration.check()
            let lock = try StoreLock(path)
            // SQLite would open it for reading, and fail later with whatever comes first.
            guard access(path, F_OK) != 0 || access(path, R_OK | W_OK) == 0 else {
                throw storeError(DatabaseError(resultCode: .SQLITE_READONLY), at: path)
            }
            var settings = GRDB.Configuration()
            settings.label = "ferry.records"
            settings.busyMode = .immediateError
            settings.journalMode = .default
            settings.prepareDatabase { database in
                // No other connection comes, so the index of the log need not be shared memory; and each commit is synced.
                try database.execute(sql: "PRAGMA locking_mode = EXCLUSIVE")
                guard try String.fetchOne(database, sql: "PRAGMA journal_mode = WAL") == "wal" else {
                    throw DatabaseError(resultCode: .SQLITE_CANTOPEN, message: "the file cannot have a write-ahead log")
                }
                try database.execute(
                    sql: """
                        PRAGMA synchronous = FULL; PRAGMA cache_size = -8000; PRAGMA journal_size_limit = 16777216;
                        PRAGMA temp_store = MEMORY; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1
                        """)
            }
            do {
                let database = try DatabaseQueue(path: path, configuration: settings)
                let (id, epoch, book) = try database.writeWithoutTransaction { database in
                    try Schema.prepare(database, at: path, migrations)
                    return try begin(database)
                }
                let committer = Committer(path, lock, database, book)
                return RecordStore(id, epoch, committer, book, configuration, time, wallClock)
            } catch {
                throw storeError(error, at: path)
            }
        }

        /// A new epoch.
        private static func begin(_ database: Database) throws -> (StoreID, Epoch, Book) {
            var begun: (StoreID, Epoch, Book)?
            try database.inTransaction(.immediate) {
                var random = SystemRandomNumberGenerator()
                let id: StoreID
                if let row = try Row.fetchOne(database, sql: "SELECT high, low FROM ferry_store") {
                    id = StoreID(high: UInt64(bitPattern: row["high"]), low: UInt64(bitPattern: row["low"]))
                } else {
                    id = StoreID(high: random.next(), low: random.next())
                    try database.execute(
                        sql: "INSERT INTO ferry_store VALUES (1, ?, ?)",
                        arguments: [Int64(bitPattern: id.high), Int64(bitPattern: id.low)])
                }
                let last = try Int64.fetchOne(database, sql: "SELECT max(generation) FROM ferry_opening") ?? 0
                guard last < Int64.max else {
                    throw FerryError(.storeDamaged, "The store has been opened 2^63 - 1 times. Use another one.")
                }
                let epoch = Epoch(generation: UInt64(last) + 1, nonce: random.next())
                try database.execute(
                    sql: "INSERT INTO ferry_opening VALUES (?, ?)",
                    arguments: [last + 1, Int64(bitPattern: epoch.nonce)])
                begun = (id, epoch, try Book(database))
                return .commit
            }
            guard let begun else { throw DatabaseError(resultCode: .SQLITE_ERROR) }
            return begun
        }

        /// Waits until what has been called is on disk, and closes the file. Whatever waits for room ends with `closed`.
        public func close() async {
            let reason = FerryError(.closed, "The store \(path) was closed.", fate: .nothingSent)
            admission.close(reason)
            watch.end(reason)
            desk.close()
            await committer.close()
        }
    }

    extension RecordStore.Configuration {
        fileprivate func check() throws(FerryError) {
            func require(_ holds: Bool, _ name: String, _ value: Int, _ range: String) throws(FerryError) {
                guard !holds else { return }
                throw FerryError(
                    .invalidConfiguration, "RecordStore.Configuration.\(name) is \(value); it must be \(range).")
            }
            try require((1...1 << 30).contains(largestRecord), "largestRecord", largestRecord, "1 to 2^30")
            try require(highWaterBytes >= largestRecord, "highWaterBytes", highWaterBytes, "at least largestRecord")
            try require(
                (0...highWaterBytes).contains(lowWaterBytes), "lowWaterBytes", lowWaterBytes, "at most highWaterBytes")
            try require(highWaterRecords >= 1, "highWaterRecords", highWaterRecords, "at least 1")
            try require(
                (0...highWaterRecords).contains(lowWaterRecords), "lowWaterRecords", lowWaterRecords,
                "at most highWaterRecords")
            let cost = RecordsMessage.cost(of: largestRecord)
            try require(
                inboxCapacity >= cost && inboxCapacity <= 1 << 40, "inboxCapacity", inboxCapacity,
                "at least largestRecord and 32, and at most 2^40")
            try require((1...1 << 24).contains(batchBytes), "batchBytes", batchBytes, "1 to 2^24")
            for (name, value) in [("patience", patience), ("greeting", greeting)] where value <= .zero {
                throw FerryError(
                    .invalidConfiguration, "RecordStore.Configuration.\(name) is \(value); it must be more than zero.")
            }
        }
    }

    extension Int64 {
        /// Held within what a date beyond reason would overflow.
        init(clampingMilliseconds date: Date) {
            let milliseconds = date.timeIntervalSince1970 * 1000
            self = milliseconds.isNaN ? 0 : Int64(Swift.max(-9e18, Swift.min(9e18, milliseconds)))
        }
    }
#endif
