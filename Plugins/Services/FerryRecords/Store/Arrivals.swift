#if Records
    public import Ferry
    public import Foundation
    import GRDB

    /// What an exchange commits of the peer's.
    extension RecordStore {
        /// How far a peer's stream has arrived.
        ///
        /// - Throws: `outboxFull` for more streams than a peer may have.
        func position(
            of name: String, from peer: Int64, acknowledged: Position?, _ database: Database, _ book: inout Book
        ) throws -> (stream: Int64, position: Position?) {
            guard book.peers[peer] != nil else { throw Self.forgotten }
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
            let statement = try database.cachedStatement(
                sql: """
                    SELECT stream, generation, nonce, sequence, checksum FROM ferry_position
                    WHERE stream = ? AND generation = ? AND nonce = ?
                    """)
            statement.set(1, number)
            statement.set(2, Int64(epoch.generation))
            statement.set(3, Int64(bitPattern: epoch.nonce))
            return try statement.firstRow(of: "ferry_position", keys: 3, database) { row in
                let position = Position(epoch: epoch, sequence: UInt64(try row.number(3)))
                try row.check(4, position.checksum(of: number))
                return position.sequence
            } ?? 0
        }

        /// Commits the records that are new; returns what they cost.
        ///
        /// - Throws: `closed` when there is no such stream: an unstored record is not acknowledged; SQLite's errors.
        func store(
            _ items: [RecordsMessage.Item], _ epoch: Epoch, in number: Int64, _ database: Database, _ book: inout Book
        ) throws -> Int {
            guard let last = items.last?.sequence else { return 0 }
            guard var stream = book.inbound[number] else { throw Self.forgotten }
            let isSame = stream.position?.epoch == epoch
            let before = isSame ? stream.position?.sequence ?? 0 : try committed(epoch, of: number, database)
            guard last > before else { return 0 }
            let statement = try database.cachedStatement(
                sql: """
                    INSERT INTO ferry_arrived (stream, number, generation, nonce, sequence, checksum, record)
                    VALUES (?, ?, ?, ?, ?, ?, ?)
                    """)
            var kept = 0
            statement.set(1, number)
            statement.set(3, Int64(epoch.generation))
            statement.set(4, Int64(bitPattern: epoch.nonce))
            var fresh = items.filter { $0.sequence > before }
            // Another store may have brought some.
            if RelayStream(stream.name) != nil { fresh = try fresh.filter { try stream.takes($0.bytes) } }
            let row = ArrivedRow(stream: number, epoch)
            for item in fresh {
                stream.number += 1
                stream.count += 1
                stream.bytes += item.bytes.count
                kept += RecordsMessage.cost(of: item.bytes.count)
                statement.set(2, stream.number)
                statement.set(5, Int64(item.sequence))
                statement.set(6, row.checksum(stream.number, item.sequence, item.bytes).column)
                try statement.write(item.bytes, at: 7, database)
            }
            if before == 0 { try forgetOldEpochs(of: number, database) }
            let position = Position(epoch: epoch, sequence: last)
            stream.position = position
            let result = stream
            book.change(inbound: number) { $0 = result }
            try database.cachedStatement(
                sql: """
                    INSERT INTO ferry_position (stream, generation, nonce, sequence, checksum) VALUES (?, ?, ?, ?, ?)
                    ON CONFLICT DO UPDATE SET sequence = excluded.sequence, checksum = excluded.checksum
                    """
            ).execute(arguments: [
                number, Int64(epoch.generation), Int64(bitPattern: epoch.nonce), Int64(last),
                position.checksum(of: number).column,
            ])
            return kept
        }

        /// Nothing is acknowledged that is not stored.
        private static var forgotten: FerryError {
            FerryError(.closed, "The peer was forgotten here during the exchange. Exchange again.")
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
            /// How many notices the store had written when it was written, itself included: from 1, growing by 1.
            public let number: Int64
            /// When, by the wall clock.
            public let date: Date
            /// The peer's name.
            public let peer: String?
            /// The event, and what it means for the app.
            public let text: String
        }

        /// The last notices, at most 1 000, oldest first.
        ///
        /// - Parameter number: those after the notice of this number; 0 for all.
        /// - Throws: `closed`, `storeFailed`.
        public func notices(after number: Int64 = 0) async throws(FerryError) -> [Notice] {
            try await read { database, _ in
                var notices: [Notice] = []
                let statement = try database.cachedStatement(
                    sql: "SELECT id, at, peer, text FROM ferry_notice WHERE id > ? ORDER BY id DESC LIMIT 1000")
                statement.arguments = [number]
                try statement.forEachRow(of: "ferry_notice", database) { row in
                    let date = Date(timeIntervalSince1970: Double(try row.number(1, Int64.min...Int64.max)) / 1000)
                    let peer = try row.textOrNull(2, longest: Book.longestPeerName)
                    notices.append(
                        Notice(
                            number: try row.number(0, 1...Int64.max), date: date, peer: peer,
                            text: try row.text(3, longest: 65_536)))
                    return true
                }
                return notices.reversed()
            }
        }

        func notice(_ text: String, about peer: String?, _ database: Database) throws {
            // Told once, not at each exchange.
            let isLast = try Bool.fetchOne(
                database,
                sql: "SELECT text = ? FROM ferry_notice WHERE peer IS ? ORDER BY id DESC LIMIT 1",
                arguments: [text, peer])
            guard isLast != true else { return }
            try database.execute(
                sql: "INSERT INTO ferry_notice (at, peer, text) VALUES (?, ?, ?)",
                arguments: [milliseconds, peer, text])
            try database.execute(sql: "DELETE FROM ferry_notice WHERE id <= (SELECT max(id) FROM ferry_notice) - 1000")
        }

        /// Lets a peer come with another store or key, or known less surely than before: a device that was replaced or reset. A peer
        /// that has left nothing here, and for which nothing waits, is forgotten altogether, and another has its place.
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
                entry.key = nil
                guard !book.hasLeftNothing(id) else { return try book.removePeer(id, database) }
                try book.setPeer(entry, database)
                book.forgetAcknowledged(of: id)
            }
        }
    }

    extension RecordStore {
        /// Unbinds a peer's name from the store that came under it last, within an exchange that the app allows that.
        func release(_ peer: String, _ database: Database, _ book: inout Book) throws {
            guard let id = book.peerNames[peer], var entry = book.peers[id] else { return }
            (entry.store, entry.certainty, entry.epoch, entry.largestRecord, entry.key) = (nil, nil, nil, nil, nil)
            try book.setPeer(entry, database)
            book.forgetAcknowledged(of: id)
        }
    }

    /// What the rows of records that arrive in one message have in common.
    struct ArrivedRow {
        private let common: RowChecksum

        init(stream: Int64, _ epoch: Epoch) {
            var checksum = RowChecksum(.arrived)
            checksum.add(stream)
            checksum.add(Int64(epoch.generation))
            checksum.add(bits: epoch.nonce)
            common = checksum
        }

        func checksum(_ number: Int64, _ sequence: UInt64, _ record: [UInt8]) -> RowChecksum {
            var checksum = common
            checksum.add(number)
            checksum.add(Int64(clamping: sequence))
            checksum.add(record)
            return checksum
        }
    }

    extension Position {
        /// That of its row in `ferry_position`.
        fileprivate func checksum(of stream: Int64) -> RowChecksum {
            var checksum = RowChecksum(.position)
            checksum.add(stream)
            checksum.add(Int64(epoch.generation))
            checksum.add(bits: epoch.nonce)
            checksum.add(Int64(clamping: sequence))
            return checksum
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
