#if Records
    public import Ferry
    public import Foundation
    import GRDB

    extension RecordStore {
        /// What appending does when the outbox is at its high-water mark.
        public enum WhenFull: Sendable, Hashable {
            /// Waits until the low-water mark is reached, at most for this time, and then throws `outboxFull`.
            case wait(atMost: Duration)
            /// It throws `outboxFull`.
            case refuse
        }

        /// Puts a record into the outbox; returns when it is on disk. From then on it arrives in the peer's inbox, once,
        /// after the records appended to the same stream before. Calls at the same time share a write to the disk.
        ///
        /// A call has its place before it suspends for the first time, also when it waits for room: what one actor appends is
        /// stored in the order of its calls, awaited or in tasks that are isolated to it. `async let`, task groups and tasks of
        /// no actor begin in any order; ``append(contentsOf:to:stream:priority:expires:whenFull:)`` keeps several in theirs.
        ///
        /// - Parameters:
        ///   - record: the bytes, at most ``Configuration/largestRecord``.
        ///   - peer: the name by which exchanges with the peer are opened, such as a link's `peer.description`.
        ///   - stream: within a stream records keep their order. At most 128 bytes of UTF-8 without a NUL, 256 streams a peer.
        ///   - priority: streams with a record of higher priority go first, whole, until they are empty.
        ///   - expires: when it is no longer worth sending; nil for never. A record that was sent before may still arrive.
        ///   - whenFull: what to do at the high-water mark.
        /// - Returns: the record's name, which the peer sees too.
        /// - Throws: `messageTooLarge`, `invalidConfiguration` for names that are too long or have a NUL, `outboxFull`, `cancelled`,
        ///   `closed`, `diskFull`, `storeFailed`. After `storeFailed` the record may be on disk all the same.
        @discardableResult
        public func append(
            _ record: [UInt8], to peer: String, stream: String = "", priority: SendOptions.Priority = .normal,
            expires: Date? = nil, whenFull: WhenFull = .wait(atMost: .seconds(60))
        ) async throws(FerryError) -> RecordID {
            let ids = try await append(
                contentsOf: [record], to: peer, stream: stream, priority: priority, expires: expires, whenFull: whenFull
            )
            guard let id = ids.first else { throw FerryError(.storeFailed, "The record got no name.") }
            return id
        }

        /// The same for several records: all of them are stored, or none.
        ///
        /// - Throws: as ``append(_:to:stream:priority:expires:whenFull:)``.
        @discardableResult
        public func append(
            contentsOf records: [[UInt8]], to peer: String, stream: String = "",
            priority: SendOptions.Priority = .normal, expires: Date? = nil,
            whenFull: WhenFull = .wait(atMost: .seconds(60))
        ) async throws(FerryError) -> [RecordID] {
            guard RelayStream(stream) == nil else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(stream.debugDescription) is a relayed stream's name. Call relay(_:from:to:whenFull:), or name it otherwise.",
                    fate: .nothingSent)
            }
            return try await put(records, to: peer, stream, priority, expires, whenFull)
        }

        /// The same, to any stream.
        ///
        /// - Parameters:
        ///   - following: is called first in the same transaction; nothing is stored when it throws.
        ///   - followedBy: writes more in the same transaction.
        func put(
            _ records: [[UInt8]], to peer: String, _ stream: String, _ priority: SendOptions.Priority, _ expires: Date?,
            _ whenFull: WhenFull, following: (@Sendable (Database) throws -> Void)? = nil,
            followedBy: (@Sendable (Database, inout Book) throws -> Void)? = nil,
            isolation actor: isolated (any Actor)? = #isolation
        ) async throws(FerryError) -> [RecordID] {
            try check(records, peer, stream)
            guard !records.isEmpty else { return [] }
            let bytes = records.reduce(0) { $0 + $1.count }
            let deadline = expires.map { Int64(clampingMilliseconds: $0) }
            let insert: @Sendable (Database, inout Book) throws -> Appended = { [id, epoch] database, book in
                try following?(database)
                let appended = try Self.insert(
                    records, bytes, to: peer, stream, priority.rawValue, deadline, store: id, epoch, database, &book)
                try followedBy?(database, &book)
                return appended
            }
            let number = admission.makeNumber()
            let result: Result<Appended, any Error> = await withTaskCancellationHandler {
                // Stays on the actor, whose calls would change places otherwise: a closure that does not name it leaves it first.
                _ = actor
                return await withCheckedContinuation { continuation in
                    admission.enter(number, records.count, bytes, for: peer, whenFull, time) { [self] refusal in
                        if let refusal { return continuation.resume(returning: .failure(refusal)) }
                        // As soon as there is room: one that is called later would be stored earlier otherwise.
                        committer.submit(as: .growing, insert) { [self] result in
                            if case .failure = result { admission.leave(records.count, bytes, of: peer) }
                            continuation.resume(returning: result)
                        }
                    }
                    // The handler may have run before the call waited.
                    if Task.isCancelled { admission.cancel(number, peer) }
                }
            } onCancel: {
                admission.cancel(number, peer)
            }
            do {
                let appended = try result.get()
                watch.offer(appended.stream, to: appended.peer)
                return appended.ids
            } catch {
                throw storeError(error, at: path)
            }
        }

        private func check(_ records: [[UInt8]], _ peer: String, _ stream: String) throws(FerryError) {
            for record in records where record.count > configuration.largestRecord {
                throw FerryError(
                    .messageTooLarge,
                    "A record of \(record.count) bytes is larger than RecordStore.Configuration.largestRecord, "
                        + "\(configuration.largestRecord). Raise it on both sides, or cut the record.",
                    fate: .nothingSent)
            }
            try NameRule.checkPeer(peer)
            if let fault = NameRule.faultOfStream(stream) {
                throw FerryError(
                    .invalidConfiguration, "No stream can have this name: \(fault). Choose another.", fate: .nothingSent
                )
            }
        }

        private struct Appended {
            let ids: [RecordID]
            let stream: Int64
            let peer: Int64
        }

        private static func insert(
            _ records: [[UInt8]], _ bytes: Int, to name: String, _ streamName: String, _ priority: UInt8,
            _ expires: Int64?,
            store: StoreID, _ epoch: Epoch, _ database: Database, _ book: inout Book
        ) throws -> Appended {
            try book.writeEpoch(database)
            let peer = try book.peer(named: name, database)
            if let largest = book.peers[peer]?.largestRecord, let record = records.first(where: { $0.count > largest })
            {
                throw FerryError(
                    .messageTooLarge,
                    "A record of \(record.count) bytes is larger than peer \(name) takes, \(largest). Cut the record, or raise "
                        + "RecordStore.Configuration.largestRecord there.", fate: .nothingSent)
            }
            let stream = try book.makeOutbound(streamName, of: peer, database)
            let last = book.outbound[stream]?.last ?? 0
            guard last <= RecordsMessage.largestNumber - UInt64(records.count) else {
                throw FerryError(
                    .outboxFull, "Stream \(streamName) of peer \(name) has had 2^63 - 1 records. Use another stream.",
                    fate: .nothingSent)
            }
            let statement = try database.cachedStatement(
                sql: """
                    INSERT INTO ferry_waiting (stream, sequence, generation, priority, expires, checksum, record)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """)
            var sequence = last
            var ids: [RecordID] = []
            ids.reserveCapacity(records.count)
            statement.set(1, stream)
            statement.set(3, Int64(epoch.generation))
            statement.set(4, Int64(priority))
            statement.set(5, expires)
            let row = WaitingRow(stream: stream, generation: Int64(epoch.generation), Int64(priority), expires)
            for record in records {
                sequence += 1
                statement.set(2, Int64(sequence))
                statement.set(6, row.checksum(Int64(sequence), record).column)
                try statement.write(record, at: 7, database)
                ids.append(RecordID(sender: store, epoch: epoch, stream: streamName, sequence: sequence))
            }
            book.change(outbound: stream) { stream in
                stream.last = sequence
                stream.count += records.count
                stream.bytes += bytes
                stream.priority = max(stream.priority, priority)
            }
            return Appended(ids: ids, stream: stream, peer: peer)
        }

        // MARK: Pending records

        /// The pending records for one peer in one stream: appended, and neither committed by the peer nor withdrawn.
        public struct WaitingStream: Sendable, Hashable {
            /// The peer's name.
            public let peer: String
            /// The stream's name.
            public let stream: String
            /// How many records wait.
            public let count: Int
            /// How many bytes they have.
            public let bytes: Int
            /// The sequence of the last record that the peer has committed; 0 when it has none.
            public let committedThrough: UInt64
        }

        /// A record that waits.
        public struct WaitingRecord: Sendable, Hashable {
            /// Its name.
            public let id: RecordID
            /// Its bytes.
            public let bytes: [UInt8]
            /// How urgent it is.
            public let priority: SendOptions.Priority
            /// When it is no longer worth sending; nil for never.
            public let expires: Date?
        }

        /// The pending records by peer and stream, in the order of their names. Empty streams are among them.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func waiting() async throws(FerryError) -> [WaitingStream] {
            try await read { _, book in
                book.outbound.values.map { stream in
                    WaitingStream(
                        peer: book.peers[stream.peer]?.name ?? "", stream: stream.name, count: stream.count,
                        bytes: stream.bytes, committedThrough: stream.acknowledged?.sequence ?? 0)
                }.sorted { ($0.peer, $0.stream) < ($1.peer, $1.stream) }
            }
        }

        /// The records that wait in a stream, oldest first.
        ///
        /// - Parameters:
        ///   - peer: the peer's name.
        ///   - stream: the stream's name.
        ///   - sequence: only those after this one.
        ///   - limit: the most records to return.
        /// - Throws: `recordNotFound` when there is no such stream; `closed`, `storeFailed`.
        public func records(
            to peer: String, stream: String = "", after sequence: UInt64 = 0, limit: Int = 100
        ) async throws(FerryError) -> [WaitingRecord] {
            try await read { [id] database, book in
                let number = try Self.find(peer, stream, book)
                let statement = try database.cachedStatement(
                    sql: """
                        SELECT stream, sequence, generation, priority, expires, record, checksum FROM ferry_waiting
                        WHERE stream = ? AND sequence > ? ORDER BY sequence LIMIT ?
                        """)
                statement.set(1, number)
                statement.set(2, Int64(clamping: sequence))
                statement.set(3, Int64(limit))
                var records: [WaitingRecord] = []
                var epochs = EpochCache()
                try statement.forEachRow(of: "ferry_waiting", keys: 2, database) { row in
                    let waiting = try WaitingRow.read(row)
                    let epoch = try epochs.epoch(of: waiting.generation, row, database, book)
                    records.append(
                        WaitingRecord(
                            id: RecordID(
                                sender: id, epoch: epoch, stream: stream, sequence: waiting.sequence),
                            bytes: waiting.bytes, priority: .init(rawValue: waiting.priority),
                            expires: waiting.expires.map { Date(timeIntervalSince1970: Double($0) / 1000) }))
                    return true
                }
                return records
            }
        }

        /// How far a record has come.
        public enum Receipt: String, Sendable, Hashable {
            /// It is on this side's disk.
            case waiting
            /// An exchange has it, or had it before the store was opened anew, and it is not acknowledged.
            case handedOver
            /// It is on the other side's disk.
            case committed
            /// It expired or was cancelled. The last 65 536 of these are remembered.
            case withdrawn
        }

        /// How far a record has come.
        ///
        /// - Throws: `recordNotFound` for a record that was not appended here; `closed`, `storeFailed`.
        public func receipt(of record: RecordID, to peer: String) async throws(FerryError) -> Receipt {
            try await read { [id, epoch] database, book in
                let number = try Self.find(peer, record.stream, book)
                guard let stream = book.outbound[number], record.sender == id, record.sequence <= stream.last else {
                    throw FerryError(
                        .recordNotFound, "Record \(record) was not appended to this store for peer \(peer).")
                }
                let waits = try Bool.fetchOne(
                    database, sql: "SELECT EXISTS (SELECT 1 FROM ferry_waiting WHERE stream = ? AND sequence = ?)",
                    arguments: [number, Int64(record.sequence)])
                guard waits == false else {
                    return record.epoch == epoch && record.sequence > stream.sent ? .waiting : .handedOver
                }
                guard record.sequence <= stream.acknowledged?.sequence ?? 0 else { return .withdrawn }
                let isWithdrawn = try Bool.fetchOne(
                    database, sql: "SELECT EXISTS (SELECT 1 FROM ferry_withdrawn WHERE stream = ? AND sequence = ?)",
                    arguments: [number, Int64(record.sequence)])
                return isWithdrawn == true ? .withdrawn : .committed
            }
        }

        static func find(_ peer: String, _ stream: String, _ book: Book) throws(FerryError) -> Int64 {
            guard let id = book.peerNames[peer], let number = book.outboundStream(stream, of: id) else {
                let what = stream.isEmpty ? "stream without a name" : "stream '\(stream)'"
                throw FerryError(.recordNotFound, "The outbox has no \(what) for a peer '\(peer)'.")
            }
            return number
        }

        func read<Value: Sendable>(
            _ body: @escaping @Sendable (Database, inout Book) throws -> Value
        ) async throws(FerryError) -> Value {
            do {
                return try await committer.perform(body)
            } catch {
                throw storeError(error, at: path)
            }
        }
    }

    /// What the rows of records that are appended in one call have in common.
    struct WaitingRow {
        private let common: RowChecksum

        init(stream: Int64, generation: Int64, _ priority: Int64, _ expires: Int64?) {
            var checksum = RowChecksum(.waiting)
            checksum.add(stream)
            checksum.add(generation)
            checksum.add(priority)
            checksum.add(expires)
            common = checksum
        }

        func checksum(_ sequence: Int64, _ record: [UInt8]) -> RowChecksum {
            var checksum = common
            checksum.add(sequence)
            checksum.add(record)
            return checksum
        }

        /// What one row has.
        struct Content {
            let sequence: UInt64
            let generation: UInt64
            let priority: UInt8
            let expires: Int64?
            let bytes: [UInt8]
        }

        /// Reads a row of the columns stream, sequence, generation, priority, expires, record, checksum.
        ///
        /// - Throws: ``Damage``.
        static func read(_ row: StoredRow) throws(Damage) -> Content {
            let (stream, sequence) = (try row.number(0), try row.number(1))
            let (generation, priority) = (try row.number(2), try row.number(3, 0...255))
            let expires = try row.numberOrNull(4, Int64.min...Int64.max)
            let bytes = try row.bytes(5)
            let common = WaitingRow(stream: stream, generation: generation, priority, expires)
            try row.check(6, common.checksum(sequence, bytes))
            return Content(
                sequence: UInt64(sequence), generation: UInt64(generation), priority: UInt8(priority), expires: expires,
                bytes: bytes)
        }
    }

    /// The epochs of rows that follow one another, each looked up once.
    struct EpochCache {
        private var last: Epoch?

        /// - Throws: ``Damage`` for a generation that is none of the store's; SQLite's errors.
        mutating func epoch(
            of generation: UInt64, _ row: StoredRow, _ database: Database, _ book: Book
        ) throws -> Epoch {
            if let last, last.generation == generation { return last }
            guard let nonce = try book.nonce(of: generation, database) else {
                throw row.damage(2, "\(generation), which is no opening of the store's")
            }
            let epoch = Epoch(generation: generation, nonce: nonce)
            last = epoch
            return epoch
        }
    }
#endif
