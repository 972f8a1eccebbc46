#if Records
    public import Ferry
    import Foundation
    import GRDB

    extension RecordStore {
        /// Withdraws a record that waits.
        ///
        /// - Returns: its fate: `nothingSent` when it will not arrive, `mayHaveArrived` when it had been sent, or the
        ///   store was opened anew since it was appended, so that this is not known.
        /// - Throws: `recordNotFound` when it does not wait; `closed`, `diskFull`, `storeFailed`.
        @discardableResult
        public func cancel(_ record: RecordID, to peer: String) async throws(FerryError) -> MessageFate {
            let (fate, bytes) = try await read { [id, epoch] database, book in
                let number = try Self.find(peer, record.stream, book)
                let removed = try Self.withdraw(
                    "stream = ? AND sequence = ?", [number, Int64(clamping: record.sequence)], database, &book)
                guard record.sender == id, let bytes = removed.first?.bytes else {
                    throw FerryError(.recordNotFound, "Record \(record) does not wait for peer \(peer).")
                }
                let isUnsent = record.epoch == epoch && record.sequence > book.outbound[number]?.sent ?? 0
                return (isUnsent ? MessageFate.nothingSent : .mayHaveArrived, bytes)
            }
            admission.leave(1, bytes, of: peer)
            watch.progress()
            return fate
        }

        /// Withdraws all records whose time has come. Exchanges send none of those either.
        ///
        /// - Returns: how many there were.
        /// - Throws: `closed`, `diskFull`, `storeFailed`.
        @discardableResult
        public func expire() async throws(FerryError) -> Int {
            let now = milliseconds
            var total = 0
            while true {
                let parts = try await read { database, book in try Self.withdrawExpired(at: now, database, &book) }
                guard !parts.isEmpty else { break }
                leave(parts)
                total += parts.reduce(0) { $0 + $1.count }
            }
            return total
        }

        /// Resumes the tasks that wait for room, or for an empty outbox.
        func leave(_ parts: [Part]) {
            for part in parts { admission.leave(part.count, part.bytes, of: part.peer) }
            if !parts.isEmpty { watch.progress() }
        }

        /// In bites, so that others' records are not held up by a million of these.
        static func withdrawExpired(at now: Int64, _ database: Database, _ book: inout Book) throws -> [Part] {
            let earliest = try Int64.fetchOne(
                database.cachedStatement(
                    sql: """
                        SELECT expires FROM ferry_waiting WHERE expires IS NOT NULL AND typeof(expires) = 'integer'
                        ORDER BY expires LIMIT 1
                        """))
            guard let earliest, earliest <= now else { return [] }
            return try withdraw(
                """
                (stream, sequence) IN (SELECT stream, sequence FROM ferry_waiting WHERE expires <= ?
                ORDER BY expires LIMIT ?)
                """, [now, book.isShortOfRoom ? smallBite : largeBite], database, &book)
        }

        /// Gives back to the file system what records that are gone have left free in the file. It takes as long as copying
        /// the file, and as much room beside it; appending waits meanwhile.
        ///
        /// - Throws: `diskFull`, `closed`, `storeFailed`.
        public func compact() async throws(FerryError) {
            do {
                try await committer.compact()
            } catch {
                throw storeError(error, at: path)
            }
        }

        /// Records of one peer that are gone.
        struct Part: Sendable {
            let peer: String
            let count: Int
            let bytes: Int
        }

        /// Withdraws records, and remembers the last 65 536 that were.
        static func withdraw(
            _ condition: String, _ arguments: StatementArguments, _ database: Database, _ book: inout Book
        ) throws -> [Part] {
            try remove(condition, arguments, database, &book) {
                try database.execute(
                    sql:
                        "INSERT INTO ferry_withdrawn (stream, sequence) SELECT stream, sequence FROM ferry_waiting WHERE \(condition)",
                    arguments: arguments)
                try database.execute(
                    sql: "DELETE FROM ferry_withdrawn WHERE id <= (SELECT max(id) FROM ferry_withdrawn) - 65536")
            }
        }

        /// Removes records; says how many of each stream.
        ///
        /// - Parameter before: is called before they go, when there are some.
        static func remove(
            _ condition: String, _ arguments: StatementArguments, _ database: Database, _ book: inout Book,
            after before: () throws -> Void = {}
        ) throws -> [Part] {
            struct Sum {
                let stream: Int64
                let count: Int
                let bytes: Int
            }
            let counting = try database.cachedStatement(
                sql: """
                    SELECT stream, count(*) AS count, coalesce(sum(length(record)), 0) AS bytes FROM ferry_waiting
                    WHERE \(condition) GROUP BY stream
                    """)
            try counting.setArguments(arguments)
            var sums: [Sum] = []
            try counting.forEachRow(of: "ferry_waiting", database) { row in
                sums.append(
                    Sum(stream: try row.number(0), count: Int(try row.number(1)), bytes: Int(try row.number(2))))
                return true
            }
            guard !sums.isEmpty else { return [] }
            try before()
            try database.cachedStatement(sql: "DELETE FROM ferry_waiting WHERE \(condition)").execute(
                arguments: arguments)
            return try sums.map { sum in
                try book.remove(sum.count, sum.bytes, fromOutbound: sum.stream)
                let peer = book.outbound[sum.stream].flatMap { book.peers[$0.peer]?.name }
                return Part(peer: peer ?? "", count: sum.count, bytes: sum.bytes)
            }
        }
    }
#endif
