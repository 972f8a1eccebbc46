#if Records
    import DequeModule
    import Dispatch
    import Ferry
    import Foundation
    import GRDB
    import GRDBSQLite
    import Synchronization

    /// The one writer: jobs that are submitted while a transaction is being synced share the next one.
    final class Committer: Sendable {
        /// What a piece of a transaction asks of the disk.
        enum Kind: Sendable {
            /// It makes the store larger, which needs the reserve in its place: refused on a full disk.
            case growing
            /// It is on the disk when it is finished.
            case lasting
            /// It changes nothing, or is done again after a power cut that takes it, as when the peer says what it has: its transaction is
            /// not synced for it. One that is synced later, and closing the store, brings it to the disk too.
            case repeatable
        }

        /// A piece of a transaction. One that throws a ``FerryError``, ``Damage`` or a ``Refusal`` has changed nothing and fails alone;
        /// any other error undoes the transaction. The pieces are then done one by one where the error is of one piece only, such as a
        /// constraint or a full disk; otherwise all of them fail, and the store with them.
        private struct Job: Sendable {
            let kind: Kind
            let run: @Sendable (Database, inout Book) throws -> Void
            /// Called after the transaction, in order, and on the writer's queue: it must not block.
            let finish: @Sendable ((any Error)?) -> Void
        }

        /// An error of the app's own in its part of a transaction.
        struct Refusal: Error { let cause: any Error }

        private struct State {
            var waiting: Deque<Job> = []
            var isRunning = false
            var isClosed = false
            /// Why nothing is stored any more.
            var failure: FerryError?
            /// Whether this opening is on the disk.
            var isEpochWritten = false
        }

        let path: String
        let mark: Mark
        private let room: Mutex<Room>
        private let lock: Mutex<StoreLock?>
        private let database: Mutex<DatabaseQueue?>
        private let book: Mutex<Book>
        private let state = Mutex(State())
        private struct Listener { var body: (@Sendable (FerryError) -> Void)? }
        private let onFailure = Mutex(Listener())
        private let queue = DispatchQueue(label: "ferry.records")

        init(
            _ path: String, _ lock: consuming StoreLock, _ database: DatabaseQueue, _ book: consuming Book, _ mark: Mark
        ) {
            self.path = path
            self.mark = mark
            room = Mutex(Room(reserve: Reserve(of: path)))
            self.lock = Mutex(lock)
            self.database = Mutex(database)
            self.book = Mutex(book)
        }

        deinit {
            try? database.withLock { $0 }?.close()
            room.withLock { $0.closeFile() }
        }

        /// Does `body` in the next transaction, and calls `finish` with its result when that is on disk. Jobs are
        /// done and finished in the order of submission.
        ///
        /// - Parameter kind: anything but `growing` may use the reserve on a full disk.
        func submit<Value: Sendable>(
            as kind: Kind = .lasting,
            _ body: @escaping @Sendable (Database, inout Book) throws -> Value,
            finish: @escaping @Sendable (Result<Value, any Error>) -> Void
        ) {
            let value = Box<Value>()
            let job = Job(
                kind: kind,
                run: { database, book in
                    let result = try body(database, &book)
                    value.content.withLock { $0 = result }
                },
                finish: { [path] error in
                    if let refusal = error as? Refusal {
                        finish(.failure(refusal.cause))
                    } else if let error {
                        finish(.failure(storeError(error, at: path)))
                    } else if let result = value.content.withLock({ $0 }) {
                        finish(.success(result))
                    }
                })
            let isFirst = state.withLock { state in
                state.waiting.append(job)
                defer { state.isRunning = true }
                return !state.isRunning
            }
            if isFirst { queue.async { self.run() } }
        }

        /// The same, awaited.
        func perform<Value: Sendable>(
            as kind: Kind = .lasting, _ body: @escaping @Sendable (Database, inout Book) throws -> Value
        ) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                submit(as: kind, body) { continuation.resume(with: $0) }
            }
        }

        /// Has `body` called when the store has failed, once, on the writer's queue: it must not block.
        func whenFailed(_ body: @escaping @Sendable (FerryError) -> Void) { onFailure.withLock { $0.body = body } }

        /// Whether this opening is on the disk, so that peers may learn of it.
        var isEpochWritten: Bool { state.withLock { $0.isEpochWritten } }

        /// How many pieces wait for the next transaction.
        var waitingPieces: Int { state.withLock { $0.waiting.count } }

        /// Whether all that was submitted is done and finished.
        var isIdle: Bool { state.withLock { !$0.isRunning } }

        /// Waits for the submitted jobs, and closes the file; later jobs fail.
        func close() async {
            await withCheckedContinuation { continuation in
                submit { _, _ in
                } finish: { [self] _ in
                    state.withLock { $0.isClosed = true }
                    database.withLock { database in
                        try? database?.close()
                        database = nil
                    }
                    room.withLock { $0.closeFile() }
                    lock.withLock { $0 = nil }
                    continuation.resume()
                }
            }
        }

        /// Between two transactions: makes the file as small as it can be.
        func compact() async throws {
            try await withCheckedThrowingContinuation { (continuation: CheckedContinuation<Void, any Error>) in
                submit { _, _ in
                } finish: { [self] result in
                    continuation.resume(
                        with: Result {
                            try result.get()
                            try database.withLock { $0 }?.writeWithoutTransaction { database in
                                room.withLock { $0.pages = nil }
                                try database.execute(sql: "VACUUM")
                                _ = try Row.fetchOne(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
                            }
                        })
                }
            }
        }

        private final class Box<Value: Sendable>: Sendable { let content = Mutex<Value?>(nil) }

        /// The most jobs in one transaction.
        private static var largestTransaction: Int { 4096 }

        private func run() {
            while true {
                let jobs = state.withLock { state in
                    let jobs = Array(state.waiting.prefix(Self.largestTransaction))
                    state.waiting.removeFirst(jobs.count)
                    state.isRunning = !jobs.isEmpty
                    return jobs
                }
                guard !jobs.isEmpty else { return }
                commitOrRefuse(jobs)
            }
        }

        private func commitOrRefuse(_ jobs: [Job]) {
            let refusal = state.withLock { state in
                state.isClosed ? FerryError(.closed, "The store \(path) is closed.") : state.failure
            }
            guard let refusal else { return commit(jobs) }
            for job in jobs { job.finish(refusal) }
        }

        private func commit(_ jobs: [Job]) {
            guard let database = database.withLock({ $0 }) else { return }
            var errors: [Int: any Error] = [:]
            do {
                let isGrowing = jobs.contains { $0.kind == .growing }
                if isGrowing, !holdsReserve(database) { throw DatabaseError(resultCode: .SQLITE_FULL) }
                try transact(jobs, &errors, database, mayUseReserve: !isGrowing && jobs.count == 1)
                for (index, job) in jobs.enumerated() { job.finish(errors[index]) }
            } catch {
                let failure = storeError((error as? Refusal)?.cause ?? error, at: path)
                let isOfOnePiece =
                    [.diskFull, .storeRefused].contains(failure.code) || error is DamageAfterChanges
                // A piece that only reads, or makes room, does not fail for what another one was to write.
                if isOfOnePiece, jobs.count > 1 {
                    for job in jobs { commitOrRefuse([job]) }
                    return
                }
                // After a failed sync the disk's contents are unknown until the file is opened anew.
                if !isOfOnePiece { state.withLock { $0.failure = failure } }
                for (index, job) in jobs.enumerated() { job.finish(errors[index] ?? failure) }
                if !isOfOnePiece { onFailure.withLock { $0.body }?(failure) }
            }
        }

        // MARK: Transactions and room

        /// What the store has of the disk.
        private struct Room {
            var reserve: Reserve
            /// The pages that the file has blocks for; `nil` before the first transaction.
            var pages: Int?
            /// Whether nothing was committed since the log was cut.
            var isLogCut = false
            /// Whether each transaction is synced, as it is at first.
            var isSynced = true
            /// The file, for its blocks. Open for as long as SQLite has the file open: closing it would take SQLite's locks away.
            var descriptor: Int32 = -1

            mutating func closeFile() {
                if descriptor >= 0 { Foundation.close(descriptor) }
                descriptor = -1
            }
        }

        /// The file grows in steps of this many bytes.
        static let growth: Int32 = 128 << 10

        /// What the file leaves for the log at least, in bytes.
        private static let logRoom: Int64 = 256 << 10

        /// What the file system has left; much where it does not say.
        private func freeBytes() -> Int64 {
            var status = statvfs()
            guard statvfs(path, &status) == 0 else { return .max / 2 }
            return Int64(
                clamping: UInt64(status.f_bavail).multipliedReportingOverflow(by: UInt64(status.f_frsize)).partialValue)
        }

        /// One transaction, and again where the disk is full and room can be made.
        private func transact(
            _ jobs: [Job], _ errors: inout [Int: any Error], _ database: DatabaseQueue, mayUseReserve: Bool
        ) throws {
            var isReserveUsed = mayUseReserve && !room.withLock { $0.reserve.isHeld }
            book.withLock { $0.isShortOfRoom = isReserveUsed }
            defer { book.withLock { $0.isShortOfRoom = false } }
            while true {
                do {
                    try attempt(jobs, &errors, database)
                    // The log takes no more of the reserve's room than one transaction needs.
                    if isReserveUsed { cutLog(database) }
                    return
                } catch  where storeError(error, at: path).code == .diskFull {
                    if !room.withLock({ $0.isLogCut }), cutLog(database) { continue }
                    guard mayUseReserve, room.withLock({ $0.reserve.giveUp() }) else { throw error }
                    isReserveUsed = true
                    book.withLock { $0.isShortOfRoom = true }
                }
            }
        }

        /// Whether the reserve is there, or can be taken again.
        private func holdsReserve(_ database: DatabaseQueue) -> Bool {
            if room.withLock({ $0.reserve.take() }) { return true }
            return cutLog(database) && room.withLock { $0.reserve.take() }
        }

        /// Brings what the log has into the file, whose blocks are there for it, and gives the log's own blocks back.
        @discardableResult
        private func cutLog(_ database: DatabaseQueue) -> Bool {
            let isCut = (try? database.writeWithoutTransaction { try $0.checkpoint(.truncate) }) != nil
            room.withLock { $0.isLogCut = isCut }
            return isCut
        }

        private func attempt(
            _ jobs: [Job], _ errors: inout [Int: any Error], _ database: DatabaseQueue
        ) throws {
            errors = [:]
            let isSynced = jobs.contains { $0.kind != .repeatable }
            try database.writeWithoutTransaction { database in
                if room.withLock({ $0.isSynced }) != isSynced {
                    // With NORMAL the log is synced before it is brought into the file, and not at the transaction's end.
                    try database.execute(sql: "PRAGMA synchronous = \(isSynced ? "FULL" : "NORMAL")")
                    room.withLock { $0.isSynced = isSynced }
                }
                try book.withLock { book in
                    book.begin()
                    do {
                        try database.inTransaction(.immediate) {
                            let before = try pages(database)
                            for (index, job) in jobs.enumerated() {
                                do {
                                    try job.run(database, &book)
                                } catch let error where error is FerryError || error is Damage || error is Refusal {
                                    // SQLite may have undone everything, as it does when the disk is full.
                                    guard database.isInsideTransaction else { throw error }
                                    errors[index] = error
                                }
                            }
                            try book.write(database)
                            try extend(database, from: before)
                            return .commit
                        }
                    } catch {
                        try book.reload(database)
                        throw error
                    }
                    room.withLock { $0.isLogCut = false }
                    // Before anybody is told that it is there.
                    if book.isEpochWritten {
                        state.withLock { $0.isEpochWritten = true }
                        mark.write(book.marks)
                    }
                    // Names are in the file itself, so that what a damaged log loses can be named.
                    if book.hasNewNames { _ = try? database.checkpoint(.passive) }
                }
            }
        }

        private func pages(_ database: Database) throws -> Int {
            try Int.fetchOne(database.cachedStatement(sql: "PRAGMA page_count")) ?? 0
        }

        /// Gives the file blocks for the pages that the transaction adds, so that the log can be brought into it on a full disk. The file
        /// leaves room for the log: it does not shrink when records go, and the records in their place need a log too.
        ///
        /// - Throws: `SQLITE_FULL`.
        private func extend(_ database: Database, from before: Int) throws {
            let count = try pages(database)
            let known = room.withLock { $0.pages } ?? before
            guard count > known else { return }
            let size = try Int64.fetchOne(database.cachedStatement(sql: "PRAGMA page_size")) ?? 4096
            let step = Int64(Self.growth)
            let extended = (Int64(count) * size + step - 1) / step * step
            let log = max(Self.logRoom, 2 * Int64(count - before) * size)
            guard freeBytes() >= extended - Int64(known) * size + log else {
                throw DatabaseError(resultCode: .SQLITE_FULL, message: "the file would leave no room for its log")
            }
            guard giveBlocks(from: Int64(known) * size, to: extended, database) else {
                throw DatabaseError(resultCode: .SQLITE_FULL, message: "the file's next pages have no room on the disk")
            }
            room.withLock { $0.pages = Int(extended / size) }
        }

        /// Gives the file blocks between two of its bytes. Returns whether there was room.
        ///
        /// SQLite's own way writes zeros where it was built without `posix_fallocate`, as Debian's is: every sync of the log would
        /// wait for them.
        private func giveBlocks(from start: Int64, to end: Int64, _ database: Database) -> Bool {
            #if os(Linux)
                return room.withLock { room in
                    if room.descriptor < 0 { room.descriptor = Foundation.open(path, O_RDWR | O_CLOEXEC) }
                    return room.descriptor >= 0
                        && posix_fallocate(room.descriptor, off_t(start), off_t(end - start)) == 0
                }
            #else
                var wanted = end
                let code = sqlite3_file_control(
                    database.sqliteConnection, "main", SQLITE_FCNTL_SIZE_HINT, &wanted)
                return code == SQLITE_OK || code == SQLITE_NOTFOUND
            #endif
        }
    }
#endif
