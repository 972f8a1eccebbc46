#if Records
    public import Ferry
    import Foundation
    import GRDB

    /// Records that an app has handed on, and keeps until what it handed them to is sure of them.
    extension ArrivedRecord {
        /// Where a record is in the inbox, without its bytes.
        public struct Place: Sendable, Hashable {
            /// All records of one peer's stream have the same one, and no others of this store.
            public let stream: Int64
            /// It grows from record to record of the stream.
            public let number: Int64
            let peer: Int64
        }

        /// Its place in the inbox.
        public var place: Place { Place(stream: stream, number: number, peer: peerNumber) }
    }

    extension RecordStore {
        /// The app is through with these records and with all before them in their streams: they leave the inbox in one
        /// transaction, or in several where the disk is full.
        ///
        /// - Returns: how many have left.
        /// - Throws: `closed`, `diskFull`, `storeFailed`. After `storeFailed` they may come again or not.
        @discardableResult
        public func done(through places: [ArrivedRecord.Place]) async throws(FerryError) -> Int {
            guard !places.isEmpty else { return 0 }
            do {
                return try await leave(places)
            } catch  where error.code == .diskFull {
                // The log has no room for all of them.
                var count = 0
                for place in places {
                    while case let some = try await leave([place], atMost: Self.smallBite), some > 0 { count += some }
                }
                return count
            }
        }

        /// They leave the inbox, with those before them.
        private func leave(
            _ places: [ArrivedRecord.Place], atMost limit: Int? = nil
        ) async throws(FerryError) -> Int {
            let (count, released) = try await read { database, book in
                var released: [Int64: Int] = [:]
                var total = 0
                for place in places {
                    var (those, arguments): (String, StatementArguments) = (
                        "stream = ? AND number <= ?", [place.stream, place.number]
                    )
                    if let limit {
                        those = """
                            stream = ?1 AND number IN (
                            SELECT number FROM ferry_arrived WHERE stream = ?1 AND number <= ?2 ORDER BY number LIMIT ?3)
                            """
                        arguments += [limit]
                    }
                    let counting = try database.cachedStatement(
                        sql: """
                            SELECT count(*) AS count, coalesce(sum(length(record)), 0) AS bytes FROM ferry_arrived WHERE \(those)
                            """)
                    try counting.setArguments(arguments)
                    let sums = try counting.firstRow(of: "ferry_arrived", keys: 0, database) {
                        (count: Int(try $0.number(0)), bytes: Int(try $0.number(1)))
                    }
                    guard let sums, sums.count > 0 else { continue }
                    try database.cachedStatement(sql: "DELETE FROM ferry_arrived WHERE \(those)").execute(
                        arguments: arguments)
                    try book.remove(sums.count, sums.bytes, fromInbound: place.stream)
                    total += sums.count
                    released[place.peer, default: 0] += sums.bytes + sums.count * RecordsMessage.cost(of: 0)
                }
                return (total, released)
            }
            for (peer, cost) in released { watch.release(cost, of: peer) }
            return count
        }

        /// Whether something can be written where the store is: after `diskFull`, whether to try again.
        ///
        /// - Parameter bytes: how much there must be room for.
        public func hasRoom(for bytes: Int = 1 << 20) async -> Bool {
            let file = path + "-room"
            return await withCheckedContinuation { continuation in
                DispatchQueue.global().async {
                    // A separate file, without a name as soon as it is open: it is gone however this ends. Quotas count it.
                    let descriptor = Foundation.open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
                    unlink(file)
                    let hasRoom = descriptor >= 0 && allocate(descriptor, max(1, bytes))
                    if descriptor >= 0 { Foundation.close(descriptor) }
                    continuation.resume(returning: hasRoom)
                }
            }
        }

        /// Delivers again the records that are not done, from the oldest of each stream on, as opening the store anew does. A task
        /// that reads the inbox meanwhile may get a record twice: let readers end first.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func readAgain() async throws(FerryError) {
            let streams = try await read { _, book in
                book.inbound.values.filter { $0.count > 0 }.map(\.id).sorted()
            }
            desk.restart(streams)
        }
    }
#endif
