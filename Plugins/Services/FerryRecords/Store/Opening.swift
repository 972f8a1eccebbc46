#if Records
    public import Ferry
    public import Foundation
    import GRDB
    import GRDBSQLite

    extension RecordStore {
        /// Opens a store, and makes it when the file is not there. Opening one that is there writes nothing to it, so that it
        /// opens on a full disk.
        ///
        /// - Parameters:
        ///   - path: the file; beside it are `-wal`, which belongs to it, `-lock`, `-mark` and `-reserve`. Files that are made can
        ///     be read and written by this user only.
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
            // SQLite would open it for reading, and fail at the first write.
            guard access(path, F_OK) != 0 || access(path, R_OK | W_OK) == 0 else {
                throw storeError(DatabaseError(resultCode: .SQLITE_READONLY), at: path)
            }
            // SQLite takes a file of one byte for an empty one (unixFileSize in os_unix.c), and would overwrite it.
            var status = stat()
            if stat(path, &status) == 0, status.st_size == 1 {
                throw storeError(DatabaseError(resultCode: .SQLITE_NOTADB), at: path)
            }
            // SQLite would let everybody read it, and gives its log the same rights.
            let descriptor = Foundation.open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            if descriptor >= 0 { Foundation.close(descriptor) }
            do {
                let database = try DatabaseQueue(path: path, configuration: settings)
                let mark = Mark.read(of: path)
                let opening = try database.writeWithoutTransaction { database in
                    try Schema.prepare(database, at: path, migrations)
                    return try Opening(database, mark)
                }
                let committer = Committer(
                    path, lock, database, opening.book, Mark(of: path, opening.id, opening.book.epoch))
                let store = RecordStore(
                    opening.id, opening.book.epoch, committer, opening.book, configuration, time, wallClock)
                if !opening.losses.isEmpty { store.note(opening.losses) }
                return store
            } catch {
                throw storeError(error, at: path)
            }
        }

        private static var settings: GRDB.Configuration {
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
                // Deleted rows are not overwritten where that would take room in the log.
                try database.execute(
                    sql: """
                        PRAGMA synchronous = FULL; PRAGMA cache_size = -8000; PRAGMA journal_size_limit = 16777216;
                        PRAGMA temp_store = MEMORY; PRAGMA fullfsync = 1; PRAGMA checkpoint_fullfsync = 1;
                        PRAGMA trusted_schema = 0; PRAGMA cell_size_check = 1
                        """)
                _ = try Row.fetchAll(database, sql: "PRAGMA secure_delete = FAST")
                // The file grows by so much at a time: see `Committer.extend`.
                var step = Committer.growth
                sqlite3_file_control(database.sqliteConnection, "main", SQLITE_FCNTL_CHUNK_SIZE, &step)
            }
            return settings
        }

        // MARK: Lost records

        /// Says what the file has lost since it was accepted, and keeps its sequences from being given again.
        private func note(_ losses: [Loss]) {
            committer.submit { [self] database, book in
                for loss in losses {
                    try notice(loss.text(book), about: loss.peer(book), database)
                    guard let entry = loss.entry else { continue }
                    book.raise(entry)
                    switch entry.direction {
                    case .outbound: book.change(outbound: entry.stream) { _ in }
                    case .inbound: book.change(inbound: entry.stream) { _ in }
                    }
                }
                return losses.compactMap(\.entry).filter { entry in
                    switch entry.direction {
                    case .outbound: book.outbound[entry.stream] == nil
                    case .inbound: book.inbound[entry.stream] == nil
                    }
                }
            } finish: { [committer] result in
                // Streams that the file does not know any more are told of once.
                guard case .success(let unknown) = result, !unknown.isEmpty else { return }
                committer.mark.write(unknown.map { Mark.Entry(direction: $0.direction, stream: $0.stream, last: 0) })
            }
        }
    }

    /// What a store is when it is opened.
    private struct Opening {
        let id: StoreID
        var book: Book
        var losses: [Loss] = []

        /// - Throws: ``Damage``, `storeDamaged`; SQLite's errors.
        init(_ database: Database, _ mark: Mark.Content?) throws {
            var random = SystemRandomNumberGenerator()
            let found = try database.cachedStatement(sql: "SELECT one, high, low, checksum FROM ferry_store").firstRow(
                of: "ferry_store", database
            ) { row in
                let id = StoreID(high: try row.bits(1), low: try row.bits(2))
                try row.check(3, id.rowChecksum)
                return id
            }
            let fresh = StoreID(high: random.next(), low: random.next())
            id = found ?? fresh
            if found == nil {
                try database.execute(
                    sql: "INSERT INTO ferry_store (one, high, low, checksum) VALUES (1, ?, ?, ?)",
                    arguments: [
                        Int64(bitPattern: fresh.high), Int64(bitPattern: fresh.low), fresh.rowChecksum.column,
                    ])
                // The file itself says which store it is, also when the log is lost.
                try database.checkpoint(.truncate)
            }
            let marked = mark.flatMap { [id] in $0.store == id ? $0 : nil }
            let newest =
                try database.cachedStatement(sql: "SELECT max(generation) FROM ferry_opening").firstRow(
                    of: "ferry_opening", database
                ) { try $0.numberOrNull(0) ?? 0 } ?? 0
            let last = max(newest, Int64(clamping: marked?.generation ?? 0))
            guard last < Int64.max else {
                throw FerryError(.storeDamaged, "The store has been opened 2^63 - 1 times. Use another one.")
            }
            book = try Book(database, Epoch(generation: UInt64(last) + 1, nonce: random.next()))
            if let mark, marked == nil, found == nil, !mark.entries.isEmpty { losses = [.store(mark)] }
            for entry in marked?.entries ?? [] {
                let last =
                    switch entry.direction {
                    case .outbound: book.outbound[entry.stream]?.last ?? 0
                    case .inbound: UInt64(book.inbound[entry.stream]?.number ?? 0)
                    }
                guard entry.last > last else { continue }
                losses.append(.records(entry, after: last))
                book.raise(entry)
            }
        }
    }

    /// Accepted records that the file does not have.
    private enum Loss: Sendable {
        /// Those of a stream.
        case records(Mark.Entry, after: UInt64)
        /// All that the store had which was here before.
        case store(Mark.Content)

        var entry: Mark.Entry? {
            if case .records(let entry, _) = self { entry } else { nil }
        }

        func peer(_ book: Book) -> String? {
            guard let entry else { return nil }
            let peer =
                switch entry.direction {
                case .outbound: book.outbound[entry.stream]?.peer
                case .inbound: book.inbound[entry.stream]?.peer
                }
            return peer.flatMap { book.peers[$0]?.name }
        }

        func text(_ book: Book) -> String {
            let cause = "The log beside the file (-wal) was damaged, cut or deleted, or the file comes from a backup."
            switch self {
            case .store(let mark):
                return "The store \(mark.store) that was here is gone, with \(mark.entries.count) streams. \(cause)"
            case .records(let entry, let last):
                let range = "\(last + 1) to \(entry.last)"
                switch entry.direction {
                case .outbound:
                    let name = book.outbound[entry.stream].map { "'\($0.name)'" } ?? "number \(entry.stream)"
                    return
                        "Records of stream \(name) to peer \(peer(book) ?? "(unknown)") are missing: sequences \(range) were "
                        + "accepted, and the file has none of them. Those that the peer did not have are lost. \(cause)"
                case .inbound:
                    let name = book.inbound[entry.stream].map { "'\($0.name)'" } ?? "number \(entry.stream)"
                    return
                        "Records of stream \(name) from peer \(peer(book) ?? "(unknown)") are missing: numbers \(range) of those that "
                        + "arrived. Those that the app had not done are lost, unless the peer still has them. \(cause)"
                }
            }
        }
    }

    extension StoreID {
        /// That of its row in `ferry_store`.
        fileprivate var rowChecksum: RowChecksum {
            var checksum = RowChecksum(.store)
            checksum.add(bits: high)
            checksum.add(bits: low)
            return checksum
        }
    }
#endif
