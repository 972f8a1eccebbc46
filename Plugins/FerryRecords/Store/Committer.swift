#if Records
    import DequeModule
    import Dispatch
    import Ferry
    import GRDB
    import Synchronization

    /// The one writer: whatever waits while a transaction is being synced shares the next one.
    final class Committer: Sendable {
        /// A piece of a transaction. One that throws a ``FerryError`` or a ``Refusal`` has changed nothing and fails alone; any
        /// other error undoes the transaction. The pieces are then done one by one where the error is of one piece only, such as a
        /// constraint or a full disk; otherwise all of them fail, and the store with them.
        private struct Job: Sendable {
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
        }

        let path: String
        private let lock: Mutex<StoreLock?>
        private let database: Mutex<DatabaseQueue?>
        private let book: Mutex<Book>
        private let state = Mutex(State())
        private let onFailure = Mutex<(@Sendable (FerryError) -> Void)?>(nil)
        private let queue = DispatchQueue(label: "ferry.records")

        init(_ path: String, _ lock: consuming StoreLock, _ database: DatabaseQueue, _ book: consuming Book) {
            self.path = path
            self.lock = Mutex(lock)
            self.database = Mutex(database)
            self.book = Mutex(book)
        }

        /// Does `body` in the next transaction, and calls `finish` with what came of it when that is on disk. What is
        /// submitted earlier is done and finished earlier.
        func submit<Value: Sendable>(
            _ body: @escaping @Sendable (Database, inout Book) throws -> Value,
            finish: @escaping @Sendable (Result<Value, any Error>) -> Void
        ) {
            let value = Box<Value>()
            let job = Job(
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
            _ body: @escaping @Sendable (Database, inout Book) throws -> Value
        ) async throws -> Value {
            try await withCheckedThrowingContinuation { continuation in
                submit(body) { continuation.resume(with: $0) }
            }
        }

        /// Has `body` called when the store has failed, once, on the writer's queue: it must not block.
        func whenFailed(_ body: @escaping @Sendable (FerryError) -> Void) { onFailure.withLock { $0 = body } }

        /// How many pieces wait for the next transaction.
        var waitingPieces: Int { state.withLock { $0.waiting.count } }

        /// Whether all that was submitted is done and finished.
        var isIdle: Bool { state.withLock { !$0.isRunning } }

        /// Waits for what was submitted, and closes the file; what comes later fails.
        func close() async {
            await withCheckedContinuation { continuation in
                submit { _, _ in
                } finish: { [self] _ in
                    state.withLock { $0.isClosed = true }
                    database.withLock { database in
                        try? database?.close()
                        database = nil
                    }
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
                                try database.execute(sql: "VACUUM")
                                _ = try Row.fetchOne(database, sql: "PRAGMA wal_checkpoint(TRUNCATE)")
                            }
                        })
                }
            }
        }

        private final class Box<Value: Sendable>: Sendable { let content = Mutex<Value?>(nil) }

        /// At most so many pieces make one transaction.
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
                try database.writeWithoutTransaction { database in
                    try self.book.withLock { book in
                        do {
                            try database.inTransaction(.immediate) {
                                for (index, job) in jobs.enumerated() {
                                    do {
                                        try job.run(database, &book)
                                    } catch let error where error is FerryError || error is Refusal {
                                        // SQLite may have undone everything, as it does when the disk is full.
                                        guard database.isInsideTransaction else { throw error }
                                        errors[index] = error
                                    }
                                }
                                try book.write(database)
                                return .commit
                            }
                        } catch {
                            try book.reload(database)
                            throw error
                        }
                    }
                }
                for (index, job) in jobs.enumerated() { job.finish(errors[index]) }
            } catch {
                let failure = storeError((error as? Refusal)?.cause ?? error, at: path)
                let isOfOnePiece = [.diskFull, .storeRefused].contains(failure.code)
                // A piece that only reads, or makes room, does not fail for what another one was to write.
                if isOfOnePiece, jobs.count > 1 {
                    for job in jobs { commitOrRefuse([job]) }
                    return
                }
                // After a failed sync it is unknown what is on the disk: only opening the file anew tells.
                if !isOfOnePiece { state.withLock { $0.failure = failure } }
                for (index, job) in jobs.enumerated() { job.finish(errors[index] ?? failure) }
                if !isOfOnePiece { onFailure.withLock { $0 }?(failure) }
            }
        }
    }
#endif
