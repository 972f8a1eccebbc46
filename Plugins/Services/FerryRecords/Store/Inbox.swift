#if Records
    import DequeModule
    public import Ferry
    import Foundation
    public import GRDB
    import Synchronization

    /// A record that a peer has sent. It stays in the inbox until it is done, and comes again when the store is opened anew
    /// before that.
    public struct ArrivedRecord: Sendable {
        /// Its name, which no other record has: where records go on to other systems, deduplicate by it.
        public let id: RecordID
        /// Who sent it: the name by which exchanges with the peer are opened.
        public let peer: String
        /// The fingerprint of the key that the peer has proven; nil when it has proven none.
        public let key: String?
        /// The record.
        public let bytes: [UInt8]
        /// The sender, when the peer relays the record, as a gateway does; nil for the peer's own.
        public let origin: Origin?

        /// Where a relayed record comes from.
        public struct Origin: Sendable, Hashable {
            /// Whose it is, such as the name of a stream of a message broker.
            public let name: String
            /// The stream's name there.
            public let stream: String
            /// Its place in the stream: it grows from record to record.
            public let sequence: UInt64
            /// When it was written there, in nanoseconds since 1970.
            public let time: UInt64
        }

        let stream: Int64
        /// How many bytes it has in the store.
        let storedBytes: Int
        let number: Int64
        let peerNumber: Int64
        let store: RecordStore

        /// The app is through with the record: it leaves the inbox, and does not come again.
        ///
        /// - Returns: whether it was still there.
        /// - Throws: `closed`, `diskFull`, `storeFailed`. After `storeFailed` it may come again or not.
        @discardableResult
        public func done() async throws -> Bool { try await store.done(self, nil) }

        /// The same, within a transaction with what the app does: on disk is either both or neither, so that the record has its
        /// effect exactly once. The app's tables are in the store's file; their names must not begin with `ferry_`.
        ///
        ///     try await record.done { database in
        ///         try database.execute(sql: "INSERT INTO reading VALUES (?)", arguments: [celsius])
        ///     }
        ///
        /// - Parameter body: what the app writes. It must not end the transaction. When it throws, nothing of it is written, and
        ///   the record is not done. It is not called for a record that is done.
        /// - Returns: whether the record was still there.
        /// - Throws: what `body` throws; `closed`, `diskFull`, `storeFailed`.
        @discardableResult
        public func done(with body: @escaping @Sendable (Database) throws -> Void) async throws -> Bool {
            try await store.done(self, body)
        }
    }

    /// The records that peers have sent, each stream's in its order, each to one reader.
    public struct Inbox: AsyncSequence, Sendable {
        /// A record.
        public typealias Element = ArrivedRecord
        /// The one kind of error.
        public typealias Failure = FerryError

        let desk: InboxDesk
        let store: RecordStore

        /// Begins, or goes on, reading.
        public func makeAsyncIterator() -> Iterator { Iterator(desk: desk, store: store) }

        /// Reads one record at a time.
        public struct Iterator: AsyncIteratorProtocol {
            let desk: InboxDesk
            let store: RecordStore

            /// The next record that no reader of this opening has had; nil when the store was closed or the task cancelled.
            ///
            /// - Throws: `diskFull`, `storeFailed`.
            public mutating func next() async throws(FerryError) -> ArrivedRecord? {
                try await next(isolation: nil)
            }

            /// The next record that no reader of this opening has had; nil when the store was closed or the task cancelled.
            ///
            /// - Throws: `diskFull`, `storeFailed`.
            public mutating func next(isolation actor: isolated (any Actor)?) async throws(FerryError) -> ArrivedRecord?
            {
                try await desk.next(isolation: actor, store)
            }

            /// The next record, and what else is in memory behind it: up to 128 records.
            package mutating func page() async throws(FerryError) -> [ArrivedRecord]? {
                guard let first = try await desk.next(isolation: nil, store) else { return nil }
                return [first] + desk.atHand(store)
            }
        }
    }

    extension RecordStore {
        /// How many records of peers are here that the app has not done.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func undone() async throws(FerryError) -> Int {
            try await read { _, book in book.inbound.values.reduce(0) { $0 + $1.count } }
        }

        /// Their bytes, with the overhead of each.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func undoneBytes() async throws(FerryError) -> Int {
            try await read { _, book in book.inbound.values.reduce(0) { $0 + $1.cost } }
        }

        /// Takes a record's row away; returns whether it was there.
        static func delete(_ record: ArrivedRecord, _ database: Database) throws -> Bool {
            try database.cachedStatement(sql: "DELETE FROM ferry_arrived WHERE stream = ? AND number = ?").execute(
                arguments: [record.stream, record.number])
            return database.changesCount > 0
        }

        static func isThere(_ record: ArrivedRecord, _ database: Database) throws -> Bool {
            let statement = try database.cachedStatement(
                sql: "SELECT EXISTS (SELECT 1 FROM ferry_arrived WHERE stream = ? AND number = ?)")
            return try Bool.fetchOne(statement, arguments: [record.stream, record.number]) == true
        }

        func done(
            _ record: ArrivedRecord, _ body: (@Sendable (Database) throws -> Void)?
        ) async throws -> Bool {
            // What the app writes may take more room than the record leaves.
            let wasThere = try await committer.perform(as: body == nil ? .lasting : .growing) { database, book in
                var wasThere = false
                do {
                    try database.inSavepoint {
                        wasThere = try Self.delete(record, database)
                        guard wasThere else { return .commit }
                        do { try body?(database) } catch { throw Committer.Refusal(cause: error) }
                        return .commit
                    }
                } catch let error where !(error is Committer.Refusal) {
                    throw error
                }
                if wasThere {
                    try book.remove(1, record.storedBytes, fromInbound: record.stream)
                }
                return wasThere
            }
            if wasThere { watch.release(RecordsMessage.cost(of: record.storedBytes), of: record.peerNumber) }
            return wasThere
        }
    }

    /// Hands records to readers, a page at a time.
    final class InboxDesk: Sendable {
        struct Page: Sendable {
            let records: [Entry]
            let isLast: Bool
        }

        struct Entry: Sendable {
            let id: RecordID
            let peer: String
            let key: String?
            let peerNumber: Int64
            let bytes: [UInt8]
            let origin: ArrivedRecord.Origin?
            let storedBytes: Int
            let number: Int64
            let stream: Int64
        }

        private struct Reader {
            let number: Int
            let continuation: CheckedContinuation<Result<Entry?, FerryError>, Never>
        }

        private struct State {
            var buffer: Deque<Entry> = []
            /// Streams in which there is something to read, in their turn, and the last number read of each.
            var fresh: Deque<Int64> = []
            var read: [Int64: Int64] = [:]
            var isLoading = false
            /// How many times reading has begun again: a page that was asked for before is not taken.
            var pass = 0
            var readers: Deque<Reader> = []
            var nextReader = 0
            /// What readers get from now on; `nil` while the store is open.
            var end: Result<Entry?, FerryError>?
        }

        private let committer: Committer
        private let state = Mutex(State())
        private static var page: Int { 64 }
        private static var pageBytes: Int { 256 << 10 }

        init(_ committer: Committer, _ book: Book) {
            self.committer = committer
            let fresh = book.inbound.values.filter { $0.count > 0 }.map(\.id).sorted()
            state.withLock { $0.fresh = Deque(fresh) }
        }

        /// There is something new in a stream.
        func arrive(in stream: Int64) {
            state.withLock { if !$0.fresh.contains(stream) { $0.fresh.append(stream) } }
            turn()
        }

        func next(isolation: isolated (any Actor)?, _ store: RecordStore) async throws(FerryError) -> ArrivedRecord? {
            if let entry = entryAtHand() { return ArrivedRecord(entry, store) }
            let number = state.withLock { state in
                state.nextReader += 1
                return state.nextReader
            }
            let result = await withTaskCancellationHandler {
                await withCheckedContinuation { continuation in
                    let end = state.withLock { state -> Result<Entry?, FerryError>? in
                        if let end = state.end { return end }
                        if Task.isCancelled { return .success(nil) }
                        state.readers.append(Reader(number: number, continuation: continuation))
                        return nil
                    }
                    if let end { continuation.resume(returning: end) } else { turn() }
                }
            } onCancel: {
                let reader = state.withLock { state in
                    state.readers.firstIndex { $0.number == number }.map { state.readers.remove(at: $0) }
                }
                reader?.continuation.resume(returning: .success(nil))
            }
            return try result.get().map { ArrivedRecord($0, store) }
        }

        /// All that is in memory; the next page is read meanwhile.
        func atHand(_ store: RecordStore) -> [ArrivedRecord] {
            let entries = state.withLock { state in
                guard state.end == nil, state.readers.isEmpty else { return Deque<Entry>() }
                defer { state.buffer = [] }
                return state.buffer
            }
            turn(isReading: true)
            return entries.map { ArrivedRecord($0, store) }
        }

        /// An entry in memory, without waiting; the next page is read meanwhile.
        private func entryAtHand() -> Entry? {
            guard !Task.isCancelled else { return nil }
            let (entry, isLow) = state.withLock { state -> (Entry?, Bool) in
                guard state.end == nil, state.readers.isEmpty, let entry = state.buffer.popFirst() else {
                    return (nil, false)
                }
                return (entry, state.buffer.count < Self.page && !state.isLoading && !state.fresh.isEmpty)
            }
            if isLow { turn(isReading: true) }
            return entry
        }

        /// Begins again, with these streams and the records that have come meanwhile.
        func restart(_ streams: [Int64]) {
            state.withLock { state in
                state.pass += 1
                state.isLoading = false
                state.buffer = []
                state.read = [:]
                state.fresh = Deque(streams + state.fresh.filter { !streams.contains($0) })
            }
            turn()
        }

        /// The store is closed, or has failed: readers get this from now on.
        fileprivate func end(_ end: Result<Entry?, FerryError>) {
            let readers = state.withLock { state in
                state.end = state.end ?? end
                defer { state.readers = [] }
                return state.readers
            }
            for reader in readers { reader.continuation.resume(returning: end) }
        }

        /// The store is closed: readers come to their end.
        func close() { end(.success(nil)) }

        /// The store has failed: readers throw why.
        func fail(_ reason: FerryError) { end(.failure(reason)) }

        /// Gives readers the entries in memory, and reads on when they want more, or soon will.
        private func turn(isReading: Bool = false) {
            var served: [(Reader, Entry)] = []
            let wanted = state.withLock { state -> (Int64, Int64, Int)? in
                while !state.readers.isEmpty, let entry = state.buffer.popFirst() {
                    served.append((state.readers.removeFirst(), entry))
                }
                guard isReading || !state.readers.isEmpty, !state.isLoading, let stream = state.fresh.popFirst() else {
                    return nil
                }
                state.isLoading = true
                return (stream, state.read[stream] ?? 0, state.pass)
            }
            for (reader, entry) in served { reader.continuation.resume(returning: .success(entry)) }
            guard let (stream, last, pass) = wanted else { return }
            committer.submit { database, book in
                try Self.read(stream, after: last, database, book)
            } finish: { [self] result in
                finish(stream, pass, result)
            }
        }

        private func finish(_ stream: Int64, _ pass: Int, _ result: Result<Page, any Error>) {
            let failed = state.withLock { state -> (Reader, FerryError)? in
                guard state.pass == pass else { return nil }
                state.isLoading = false
                switch result {
                case .success(let page):
                    if let last = page.records.last { state.read[stream] = last.number }
                    state.buffer.append(contentsOf: page.records)
                    // Others have their turn before it.
                    if !page.isLast && !state.fresh.contains(stream) { state.fresh.append(stream) }
                    return nil
                case .failure(let error):
                    state.fresh.append(stream)
                    return state.readers.popFirst().map { ($0, storeError(error, at: committer.path)) }
                }
            }
            if let (reader, error) = failed {
                reader.continuation.resume(returning: error.code == .closed ? .success(nil) : .failure(error))
            }
            turn()
        }

        static func read(
            _ number: Int64, after last: Int64, _ database: Database, _ book: Book
        ) throws -> Page {
            guard let stream = book.inbound[number], let peer = book.peers[stream.peer] else {
                return Page(records: [], isLast: true)
            }
            let statement = try database.cachedStatement(
                sql: """
                    SELECT stream, number, generation, nonce, sequence, record, checksum FROM ferry_arrived
                    WHERE stream = ? AND number > ? ORDER BY number LIMIT ?
                    """)
            statement.set(1, number)
            statement.set(2, last)
            statement.set(3, Int64(page))
            let relay = RelayStream(stream.name)
            let sender = peer.store ?? StoreID(high: 0, low: 0)
            var records: [Entry] = []
            records.reserveCapacity(page)
            var bytes = 0
            try statement.forEachRow(of: "ferry_arrived", keys: 2, database) { row in
                let place = try row.number(1)
                let epoch = Epoch(generation: UInt64(try row.number(2)), nonce: try row.bits(3))
                let id = RecordID(
                    sender: sender, epoch: epoch, stream: stream.name, sequence: UInt64(try row.number(4)))
                let record = try row.bytes(5)
                try row.check(6, ArrivedRow(stream: number, epoch).checksum(place, id.sequence, record))
                bytes += record.count
                // Only relayed records are stored as such.
                let relayed = try relay.map { relay in
                    guard let relayed = try? RelayedRecord(decoding: record) else {
                        throw row.damage(5, "no relayed record")
                    }
                    return (relay, relayed)
                }
                let origin = relayed.map { relay, record in
                    ArrivedRecord.Origin(
                        name: relay.origin, stream: relay.name, sequence: record.sequence, time: record.time)
                }
                records.append(
                    Entry(
                        id: id, peer: peer.name, key: peer.key, peerNumber: peer.id,
                        bytes: relayed?.1.bytes ?? record, origin: origin, storedBytes: record.count, number: place,
                        stream: number))
                return bytes < pageBytes
            }
            return Page(records: records, isLast: records.count < page && bytes < pageBytes)
        }
    }

    extension ArrivedRecord {
        fileprivate init(_ entry: InboxDesk.Entry, _ store: RecordStore) {
            self.init(
                id: entry.id, peer: entry.peer, key: entry.key, bytes: entry.bytes, origin: entry.origin,
                stream: entry.stream, storedBytes: entry.storedBytes, number: entry.number,
                peerNumber: entry.peerNumber, store: store)
        }
    }
#endif
