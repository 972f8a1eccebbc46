#if Records
    public import Ferry
    public import Foundation
    import GRDB

    /// What an exchange commits of the peer's.
    extension RecordStore {
        /// What is there of a peer's stream.
        ///
        /// - Throws: `outboxFull` for more streams than a peer may have.
        func position(
            of name: String, from peer: Int64, acknowledged: Position?, _ database: Database, _ book: inout Book
        ) throws -> (stream: Int64, position: Position?) {
            let number = try book.makeInbound(name, of: peer, database)
            let position = book.inbound[number]?.position
            if let acknowledged, try committed(acknowledged.epoch, of: number, database) < acknowledged.sequence {
                let from = book.peers[peer]?.name ?? ""
                try notice(
                    "Peer \(from) says that this store has committed its stream '\(name)' up to \(acknowledged.sequence); it has it up "
                        + "to \(position?.sequence ?? 0). This store comes from a backup: what lies between is lost here "
                        + "unless the app has it.", about: from, database)
            }
            return (number, position)
        }

        /// How far an epoch of a stream is here; 0 for not at all.
        private func committed(_ epoch: Epoch, of number: Int64, _ database: Database) throws -> UInt64 {
            let sequence = try Int64.fetchOne(
                database.cachedStatement(
                    sql: "SELECT sequence FROM ferry_position WHERE stream = ? AND generation = ? AND nonce = ?"),
                arguments: [number, Int64(epoch.generation), Int64(bitPattern: epoch.nonce)])
            return UInt64(max(0, sequence ?? 0))
        }

        /// Commits what is not there yet; says what that costs.
        func store(
            _ items: [RecordsMessage.Item], _ epoch: Epoch, in number: Int64, _ database: Database, _ book: inout Book
        ) throws -> Int {
            guard var stream = book.inbound[number], let last = items.last?.sequence else { return 0 }
            let isSame = stream.position?.epoch == epoch
            let before = isSame ? stream.position?.sequence ?? 0 : try committed(epoch, of: number, database)
            guard last > before else { return 0 }
            let statement = try database.cachedStatement(
                sql: """
                    INSERT INTO ferry_arrived (stream, number, generation, nonce, sequence, record) VALUES (?, ?, ?, ?, ?, ?)
                    """)
            var kept = 0
            statement.set(1, number)
            statement.set(3, Int64(epoch.generation))
            statement.set(4, Int64(bitPattern: epoch.nonce))
            var fresh = items.filter { $0.sequence > before }
            // Another store may have brought some.
            if RelayStream(stream.name) != nil { fresh = try fresh.filter { try stream.takes($0.bytes) } }
            for item in fresh {
                stream.number += 1
                stream.count += 1
                stream.bytes += item.bytes.count
                kept += RecordsMessage.cost(of: item.bytes.count)
                statement.set(2, stream.number)
                statement.set(5, Int64(item.sequence))
                try statement.write(item.bytes, at: 6, database)
            }
            if before == 0 { try forgetOldEpochs(of: number, database) }
            stream.position = Position(epoch: epoch, sequence: last)
            let result = stream
            book.change(inbound: number) { $0 = result }
            try database.cachedStatement(
                sql: """
                    INSERT INTO ferry_position VALUES (?, ?, ?, ?)
                    ON CONFLICT DO UPDATE SET sequence = excluded.sequence
                    """
            ).execute(arguments: [
                number, Int64(epoch.generation), Int64(bitPattern: epoch.nonce), Int64(last),
            ])
            return kept
        }

        /// Makes room for one more epoch of a stream: a sender that draws a new one for each record fills no disk.
        private func forgetOldEpochs(of number: Int64, _ database: Database) throws {
            try database.cachedStatement(
                sql: """
                    DELETE FROM ferry_position WHERE stream = ?1 AND (generation, nonce) <= (
                        SELECT generation, nonce FROM ferry_position WHERE stream = ?1
                        ORDER BY generation DESC, nonce DESC LIMIT 1 OFFSET ?2)
                    """
            ).execute(arguments: [number, Self.largestEpochCount - 1])
        }

        /// The most openings of a sender of which a stream's position is remembered.
        static var largestEpochCount: Int { 4096 }

        // MARK: Notices

        /// Something that people should know, such as a store that comes from a backup.
        public struct Notice: Sendable, Hashable {
            /// When, by the wall clock.
            public let date: Date
            /// The peer's name.
            public let peer: String?
            /// What was met, and what it means.
            public let text: String
        }

        /// The last notices, at most 1 000, oldest first.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func notices() async throws(FerryError) -> [Notice] {
            try await read { database, _ in
                try Row.fetchAll(database, sql: "SELECT at, peer, text FROM ferry_notice ORDER BY id").map { row in
                    Notice(
                        date: Date(timeIntervalSince1970: Double(row["at"] as Int64) / 1000), peer: row["peer"],
                        text: row["text"])
                }
            }
        }

        func notice(_ text: String, about peer: String, _ database: Database) throws {
            // Told once, not at each exchange.
            let isLast = try Bool.fetchOne(
                database,
                sql: "SELECT text = ? FROM ferry_notice WHERE peer = ? ORDER BY id DESC LIMIT 1",
                arguments: [text, peer])
            guard isLast != true else { return }
            try database.execute(
                sql: "INSERT INTO ferry_notice (at, peer, text) VALUES (?, ?, ?)",
                arguments: [milliseconds, peer, text])
            try database.execute(sql: "DELETE FROM ferry_notice WHERE id <= (SELECT max(id) FROM ferry_notice) - 1000")
        }

        /// Lets a peer come with another store, or known less surely than before: a device that was replaced or reset.
        ///
        /// - Throws: `recordNotFound` when there is no such peer; `closed`, `diskFull`, `storeFailed`.
        public func forgetIdentity(of peer: String) async throws(FerryError) {
            try await read { database, book in
                guard let id = book.peerNames[peer], var entry = book.peers[id] else {
                    throw FerryError(.recordNotFound, "The store knows no peer '\(peer)'.")
                }
                entry.store = nil
                entry.certainty = nil
                entry.epoch = nil
                entry.largestRecord = nil
                try book.setPeer(entry, database)
                book.forgetAcknowledged(of: id)
            }
        }
    }

    extension Book.Inbound {
        /// Whether a relayed record is new here; takes its place if it is.
        ///
        /// - Throws: `misbehavingPeer` for bytes that are none.
        fileprivate mutating func takes(_ bytes: [UInt8]) throws(FerryError) -> Bool {
            let place = try RelayedRecord(decoding: bytes).place
            guard var last = relayed else {
                relayed = place
                return true
            }
            defer { relayed = last }
            return last.advance(to: place)
        }
    }
#endif
