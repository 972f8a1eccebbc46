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
        /// transaction.
        ///
        /// - Returns: how many have left.
        /// - Throws: `closed`, `diskFull`, `storeFailed`. After `storeFailed` they may come again or not.
        @discardableResult
        public func done(through places: [ArrivedRecord.Place]) async throws(FerryError) -> Int {
            guard !places.isEmpty else { return 0 }
            let (count, released) = try await read { database, book in
                var released: [Int64: Int] = [:]
                var total = 0
                for place in places {
                    let row = try Row.fetchOne(
                        database.cachedStatement(
                            sql: """
                                SELECT count(*) AS count, coalesce(sum(length(record)), 0) AS bytes FROM ferry_arrived
                                WHERE stream = ? AND number <= ?
                                """), arguments: [place.stream, place.number])
                    let count: Int = row?["count"] ?? 0
                    let bytes: Int = row?["bytes"] ?? 0
                    guard count > 0 else { continue }
                    try database.cachedStatement(sql: "DELETE FROM ferry_arrived WHERE stream = ? AND number <= ?")
                        .execute(arguments: [place.stream, place.number])
                    book.change(inbound: place.stream) { stream in
                        stream.count -= count
                        stream.bytes -= bytes
                    }
                    total += count
                    released[place.peer, default: 0] += bytes + count * RecordsMessage.cost(of: 0)
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
                    // A file of its own, without a name as soon as it is open: it is gone however this ends. Quotas count it.
                    let descriptor = Foundation.open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0o600)
                    unlink(file)
                    let hasRoom = descriptor >= 0 && posix_fallocate(descriptor, 0, off_t(max(1, bytes))) == 0
                    if descriptor >= 0 { Foundation.close(descriptor) }
                    continuation.resume(returning: hasRoom)
                }
            }
        }

        /// Hands over again what is not done, from the oldest of each stream on, as opening the store anew does. Whoever reads the
        /// inbox at the same time may get records in both ways: let readers end first.
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
