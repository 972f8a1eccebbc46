#if Records
    import Ferry
    import GRDB

    /// The store's peers and streams, in memory: its size does not depend on pending records. Used by the writer alone; what jobs change
    /// is written at the end of their transaction, and read again when that fails.
    struct Book: Sendable {
        struct Peer: Sendable {
            let id: Int64
            let name: String
            var store: StoreID?
            /// How surely the peer was known when it said which store it has.
            var certainty: Int?
            var epoch: Epoch?
            /// The largest record that it takes.
            var largestRecord: Int?
            /// The fingerprint of the key that it has proven; nil before it has proven one.
            var key: String?
            /// When it was met last, in milliseconds since 1970; nil when that was before schema 4.
            var met: Int64?
        }

        struct Outbound: Sendable {
            let id: Int64
            let peer: Int64
            let name: String
            var last: UInt64 = 0
            var acknowledged: Position?
            var count = 0
            var bytes = 0
            /// The highest priority of the records appended since the stream was empty: all before such a record go first.
            var priority: UInt8 = 0
            /// The last that an exchange of this opening has had.
            var sent: UInt64 = 0
            /// The last of earlier openings.
            var lastBefore: UInt64 = 0
        }

        struct Inbound: Sendable {
            let id: Int64
            let peer: Int64
            let name: String
            var position: Position?
            /// The last place that was taken, of a stream that is relayed.
            var relayed: RelayPosition?
            /// The last number given to a record that arrived.
            var number: Int64 = 0
            var count = 0
            var bytes = 0
            var cost: Int { bytes + count * RecordsMessage.cost(of: 0) }
        }

        struct StreamName: Hashable, Sendable {
            let peer: Int64
            let name: String
        }

        private(set) var peers: [Int64: Peer] = [:]
        private(set) var outbound: [Int64: Outbound] = [:]
        private(set) var inbound: [Int64: Inbound] = [:]
        private(set) var peerNames: [String: Int64] = [:]
        /// The last ids given. An id is not given again: an exchange may still use that of a forgotten peer.
        private var lastPeer: Int64 = 0
        private var lastInbound: Int64 = 0
        private var outboundNames: [StreamName: Int64] = [:]
        private var inboundNames: [StreamName: Int64] = [:]
        private var changedOutbound: Set<Int64> = []
        private var changedInbound: Set<Int64> = []
        /// The streams that have something for a peer, and those that the app has something to read in.
        private(set) var outboundOfPeer: [Int64: [Int64]] = [:]
        private(set) var inboundOfPeer: [Int64: [Int64]] = [:]

        static let maximumPeers = 4096
        /// In bytes of UTF-8.
        static let longestPeerName = 1024

        /// This opening; its row is written by the first transaction that needs it, so that opening a store writes nothing.
        let epoch: Epoch
        private(set) var isEpochWritten = false
        /// The disk is full, and the reserve is used: transactions that make room take a little at a time.
        var isShortOfRoom = false
        /// Counts transactions, also those that are undone: what a transaction has given out counts in that one until it is committed.
        private(set) var transaction: UInt64 = 0
        /// The changes of the transaction, for the mark beside the file.
        private(set) var marks: [Mark.Entry] = []
        /// A peer or a stream was made: the file itself is to have its name, not only the log.
        private(set) var hasNewNames = false

        /// Reads it, at the beginning of an opening.
        init(_ database: Database, _ epoch: Epoch) throws {
            self.epoch = epoch
            try read(database)
            for (id, stream) in outbound { outbound[id]?.lastBefore = stream.last }
        }

        /// Discards unwritten changes.
        mutating func reload(_ database: Database) throws {
            let before = self
            self = try Book(database, before.epoch)
            (isShortOfRoom, transaction) = (before.isShortOfRoom, before.transaction)
            (lastPeer, lastInbound) = (max(lastPeer, before.lastPeer), max(lastInbound, before.lastInbound))
            // A sequence that was given once is not given again, though its record was not stored.
            for (id, old) in before.outbound {
                guard var stream = outbound[id] else { continue }
                stream.last = max(stream.last, old.last)
                stream.sent = old.sent
                stream.lastBefore = old.lastBefore
                outbound[id] = stream
            }
        }

        /// Notes this opening, before a record or a peer learns of it.
        ///
        /// - Throws: SQLite's errors.
        mutating func writeEpoch(_ database: Database) throws {
            guard !isEpochWritten else { return }
            try database.cachedStatement(
                sql: "INSERT INTO ferry_opening (generation, nonce, checksum) VALUES (?, ?, ?)"
            )
            .execute(arguments: [
                Int64(epoch.generation), Int64(bitPattern: epoch.nonce), epoch.openingChecksum.column,
            ])
            isEpochWritten = true
        }

        private mutating func read(_ database: Database) throws {
            try readPeers(database)
            try readOutbound(database)
            try readInbound(database)
            isEpochWritten = try nonce(of: epoch.generation, database) == epoch.nonce
        }

        private mutating func readPeers(_ database: Database) throws {
            try database.cachedStatement(
                sql: """
                    SELECT id, name, high, low, certainty, generation, nonce, largest, key, met, checksum FROM ferry_peer
                    """
            ).forEachRow(of: "ferry_peer", database) { row in
                guard peers.count < Self.maximumPeers else {
                    throw row.damage(0, "one more than the \(Self.maximumPeers) peers that there may be")
                }
                var peer = Peer(id: try row.number(0), name: try row.text(1, longest: Self.longestPeerName))
                if let high = try row.bitsOrNull(2) { peer.store = StoreID(high: high, low: try row.bits(3)) }
                peer.certainty = try row.numberOrNull(4, 0...255).map(Int.init)
                peer.epoch = try row.epochOrNull(5)
                peer.largestRecord = try row.numberOrNull(7).map(Int.init)
                peer.key = try row.textOrNull(8, longest: Self.longestPeerName)
                peer.met = try row.numberOrNull(9, Int64.min...Int64.max)
                try row.check(10, peer.checksum)
                guard peerNames.updateValue(peer.id, forKey: peer.name) == nil else {
                    throw row.damage(1, "the name of another peer too")
                }
                peers[peer.id] = peer
                lastPeer = max(lastPeer, peer.id)
                return true
            }
        }

        private mutating func readOutbound(_ database: Database) throws {
            try database.cachedStatement(
                sql: """
                    SELECT id, peer, name, last, generation, nonce, acknowledged, count, bytes, priority, checksum
                    FROM ferry_outbound
                    """
            ).forEachRow(of: "ferry_outbound", database) { row in
                var stream = Outbound(
                    id: try row.number(0), peer: try row.number(1),
                    name: try row.text(2, longest: RecordsMessage.longestName))
                stream.last = UInt64(try row.number(3))
                if let epoch = try row.epochOrNull(4) {
                    stream.acknowledged = Position(epoch: epoch, sequence: UInt64(try row.number(6)))
                }
                stream.count = Int(try row.number(7, 0...Int64(StreamLimit.records)))
                stream.bytes = Int(try row.number(8, 0...Int64(StreamLimit.bytes)))
                stream.priority = UInt8(try row.number(9, 0...255))
                try row.check(10, stream.checksum)
                // Written by versions that believed an acknowledgement of nothing.
                if stream.acknowledged?.sequence == 0 { stream.acknowledged = nil }
                try check(outboundOfPeer[stream.peer], of: stream.peer, row)
                let name = StreamName(peer: stream.peer, name: stream.name)
                guard outboundNames[name] == nil else {
                    throw row.damage(2, "the name of another stream of the peer too")
                }
                add(stream)
                return true
            }
        }

        private mutating func readInbound(_ database: Database) throws {
            try database.cachedStatement(
                sql: """
                    SELECT id, peer, name, generation, nonce, sequence, number, count, bytes, relayed, relayed_at, checksum
                    FROM ferry_inbound
                    """
            ).forEachRow(of: "ferry_inbound", database) { row in
                var stream = Inbound(
                    id: try row.number(0), peer: try row.number(1),
                    name: try row.text(2, longest: RecordsMessage.longestName))
                if let epoch = try row.epochOrNull(3) {
                    stream.position = Position(epoch: epoch, sequence: UInt64(try row.number(5)))
                }
                stream.number = try row.number(6, 0...StreamLimit.number)
                stream.count = Int(try row.number(7, 0...Int64(StreamLimit.records)))
                stream.bytes = Int(try row.number(8, 0...Int64(StreamLimit.bytes)))
                if let place = try row.numberOrNull(9) {
                    stream.relayed = RelayPosition(sequence: UInt64(place), time: UInt64(try row.number(10)))
                }
                try row.check(11, stream.checksum)
                try check(inboundOfPeer[stream.peer], of: stream.peer, row)
                let name = StreamName(peer: stream.peer, name: stream.name)
                guard inboundNames[name] == nil else {
                    throw row.damage(2, "the name of another stream of the peer too")
                }
                add(stream)
                return true
            }
        }

        private func check(_ streams: [Int64]?, of peer: Int64, _ row: StoredRow) throws(Damage) {
            guard peers[peer] != nil else { throw row.damage(1, "\(peer), which is no peer's id") }
            guard streams?.count ?? 0 < RecordsMessage.maximumStreams else {
                throw row.damage(
                    1, "\(peer), which has \(RecordsMessage.maximumStreams) streams already, as many as it may")
            }
        }

        private mutating func add(_ stream: Outbound) {
            outbound[stream.id] = stream
            outboundNames[StreamName(peer: stream.peer, name: stream.name)] = stream.id
            outboundOfPeer[stream.peer, default: []].append(stream.id)
        }

        private mutating func add(_ stream: Inbound) {
            inbound[stream.id] = stream
            lastInbound = max(lastInbound, stream.id)
            inboundNames[StreamName(peer: stream.peer, name: stream.name)] = stream.id
            inboundOfPeer[stream.peer, default: []].append(stream.id)
        }

        // MARK: Finding and making

        /// - Throws: `outboxFull` when there are too many peers; SQLite's errors.
        mutating func peer(named name: String, _ database: Database) throws -> Int64 {
            if let id = peerNames[name] { return id }
            if peers.count >= Self.maximumPeers, let idle = idlePeer { try removePeer(idle, database) }
            guard peers.count < Self.maximumPeers else {
                throw FerryError(
                    .outboxFull,
                    "The store knows \(peers.count) peers, as many as it may. Remove one (`ferry outbox forget`), or use another "
                        + "store for peer \(name).")
            }
            let id = lastPeer + 1
            try database.cachedStatement(sql: "INSERT INTO ferry_peer (id, name) VALUES (?, ?)").execute(
                arguments: [id, name])
            lastPeer = id
            peerNames[name] = id
            try setPeer(Peer(id: id, name: name), database)
            hasNewNames = true
            return id
        }

        mutating func setPeer(_ peer: Peer, _ database: Database) throws {
            peers[peer.id] = peer
            try database.cachedStatement(
                sql: """
                    UPDATE ferry_peer SET high = ?, low = ?, certainty = ?, generation = ?, nonce = ?, largest = ?,
                    key = ?, met = ?, checksum = ? WHERE id = ?
                    """
            ).execute(arguments: [
                peer.store.map { Int64(bitPattern: $0.high) }, peer.store.map { Int64(bitPattern: $0.low) },
                peer.certainty, peer.epoch.map { Int64($0.generation) },
                peer.epoch.map { Int64(bitPattern: $0.nonce) }, peer.largestRecord, peer.key, peer.met,
                peer.checksum.column, peer.id,
            ])
        }

        /// Whether a peer has left nothing here, and nothing waits for it: forgetting it doubles and loses nothing.
        func hasLeftNothing(_ id: Int64) -> Bool {
            (inboundOfPeer[id] ?? []).allSatisfy { inbound[$0]?.position == nil && inbound[$0]?.count == 0 }
                && (outboundOfPeer[id] ?? []).isEmpty
        }

        /// The peer that was met longest ago, of those that have left nothing.
        private var idlePeer: Int64? {
            peers.values.filter { hasLeftNothing($0.id) }.min { ($0.met ?? .min, $0.id) < ($1.met ?? .min, $1.id) }?.id
        }

        /// Takes a peer's place back. It must have left nothing.
        ///
        /// - Throws: SQLite's errors.
        mutating func removePeer(_ id: Int64, _ database: Database) throws {
            try database.execute(sql: "DELETE FROM ferry_inbound WHERE peer = ?", arguments: [id])
            try database.execute(sql: "DELETE FROM ferry_peer WHERE id = ?", arguments: [id])
            for stream in inboundOfPeer.removeValue(forKey: id) ?? [] {
                guard let gone = inbound.removeValue(forKey: stream) else { continue }
                inboundNames[StreamName(peer: id, name: gone.name)] = nil
                changedInbound.remove(stream)
            }
            if let peer = peers.removeValue(forKey: id) { peerNames[peer.name] = nil }
        }

        func outboundStream(_ name: String, of peer: Int64) -> Int64? {
            outboundNames[StreamName(peer: peer, name: name)]
        }

        /// - Throws: `closed` when there is no such peer, `outboxFull` when it has too many streams; SQLite's errors.
        mutating func makeOutbound(_ name: String, of peer: Int64, _ database: Database) throws -> Int64 {
            if let id = outboundStream(name, of: peer) { return id }
            try checkRoom(outboundOfPeer[peer], of: peer)
            try database.execute(
                sql: "INSERT INTO ferry_outbound (peer, name, last, count, bytes, priority) VALUES (?, ?, 0, 0, 0, 0)",
                arguments: [peer, name])
            let id = database.lastInsertedRowID
            add(Outbound(id: id, peer: peer, name: name))
            // Its checksum comes with the transaction's end.
            changedOutbound.insert(id)
            hasNewNames = true
            return id
        }

        /// - Throws: `closed` when there is no such peer, `outboxFull` when it has too many streams; SQLite's errors.
        mutating func makeInbound(_ name: String, of peer: Int64, _ database: Database) throws -> Int64 {
            if let id = inboundNames[StreamName(peer: peer, name: name)] { return id }
            try checkRoom(inboundOfPeer[peer], of: peer)
            let id = lastInbound + 1
            try database.execute(
                sql: "INSERT INTO ferry_inbound (id, peer, name, number, count, bytes) VALUES (?, ?, ?, 0, 0, 0)",
                arguments: [id, peer, name])
            add(Inbound(id: id, peer: peer, name: name))
            // Its checksum comes with the transaction's end.
            changedInbound.insert(id)
            hasNewNames = true
            return id
        }

        private func checkRoom(_ streams: [Int64]?, of peer: Int64) throws(FerryError) {
            // A number of an exchange's may be one of before a transaction was undone.
            guard peers[peer] != nil else {
                throw FerryError(.closed, "The store does not know the peer any more: exchange with it again.")
            }
            guard streams?.count ?? 0 < RecordsMessage.maximumStreams else {
                throw FerryError(
                    .outboxFull,
                    "The peer has \(RecordsMessage.maximumStreams) streams, as many as it may. Use one of them.")
            }
        }

        // MARK: Changing

        mutating func change(outbound id: Int64, _ body: (inout Outbound) -> Void) {
            guard var stream = outbound[id] else { return }
            body(&stream)
            if stream.count == 0 { stream.priority = 0 }
            outbound[id] = stream
            changedOutbound.insert(id)
        }

        /// Another store will have none of it.
        mutating func forgetAcknowledged(of peer: Int64) {
            for id in outboundOfPeer[peer] ?? [] { change(outbound: id) { $0.acknowledged = nil } }
        }

        mutating func noteSent(_ sequence: UInt64, of id: Int64) {
            if let stream = outbound[id] { outbound[id]?.sent = max(stream.sent, sequence) }
        }

        mutating func change(inbound id: Int64, _ body: (inout Inbound) -> Void) {
            guard var stream = inbound[id] else { return }
            body(&stream)
            inbound[id] = stream
            changedInbound.insert(id)
        }

        /// Records of a stream are gone.
        ///
        /// - Throws: ``DamageAfterChanges`` when there were fewer.
        mutating func remove(_ count: Int, _ bytes: Int, fromOutbound id: Int64) throws {
            guard let stream = outbound[id] else { return }
            try Self.check(count, bytes, of: stream.count, stream.bytes, "ferry_outbound", id)
            change(outbound: id) { stream in
                stream.count -= count
                stream.bytes -= bytes
            }
        }

        /// Records of a stream are gone.
        ///
        /// - Throws: ``DamageAfterChanges`` when there were fewer.
        mutating func remove(_ count: Int, _ bytes: Int, fromInbound id: Int64) throws {
            guard let stream = inbound[id] else { return }
            try Self.check(count, bytes, of: stream.count, stream.bytes, "ferry_inbound", id)
            change(inbound: id) { stream in
                stream.count -= count
                stream.bytes -= bytes
            }
        }

        private static func check(
            _ count: Int, _ bytes: Int, of all: Int, _ allBytes: Int, _ table: String, _ id: Int64
        ) throws(DamageAfterChanges) {
            guard count > all || bytes > allBytes else { return }
            throw DamageAfterChanges(
                damage: Damage(
                    table: table, row: "id \(id)", column: "count, bytes",
                    what: "\(all) records of \(allBytes) bytes, and \(count) of \(bytes) bytes are there"))
        }

        /// Sequences and numbers that were given before the log was damaged are not given again.
        mutating func raise(_ entry: Mark.Entry) {
            switch entry.direction {
            case .outbound:
                guard let last = outbound[entry.stream]?.last else { return }
                outbound[entry.stream]?.last = max(last, entry.last)
                // The peer may have had them.
                outbound[entry.stream]?.lastBefore = max(last, entry.last)
            case .inbound:
                guard let last = inbound[entry.stream]?.number else { return }
                inbound[entry.stream]?.number = max(last, min(Int64(clamping: entry.last), StreamLimit.number))
            }
        }

        /// Begins a transaction.
        mutating func begin() {
            transaction += 1
            marks.removeAll(keepingCapacity: true)
            hasNewNames = false
        }

        /// Writes the changes, at the end of a transaction.
        mutating func write(_ database: Database) throws {
            for id in changedOutbound {
                guard let stream = outbound[id] else { continue }
                try database.cachedStatement(
                    sql: """
                        UPDATE ferry_outbound SET last = ?, generation = ?, nonce = ?, acknowledged = ?, count = ?, bytes = ?,
                        priority = ?, checksum = ? WHERE id = ?
                        """
                ).execute(arguments: [
                    Int64(stream.last), stream.acknowledged.map { Int64($0.epoch.generation) },
                    stream.acknowledged.map { Int64(bitPattern: $0.epoch.nonce) },
                    stream.acknowledged.map { Int64($0.sequence) }, stream.count, stream.bytes, Int64(stream.priority),
                    stream.checksum.column, id,
                ])
                marks.append(stream.mark)
            }
            changedOutbound.removeAll(keepingCapacity: true)
            for id in changedInbound {
                guard let stream = inbound[id] else { continue }
                try database.cachedStatement(
                    sql: """
                        UPDATE ferry_inbound SET generation = ?, nonce = ?, sequence = ?, number = ?, count = ?, bytes = ?,
                        relayed = ?, relayed_at = ?, checksum = ? WHERE id = ?
                        """
                ).execute(arguments: [
                    stream.position.map { Int64($0.epoch.generation) },
                    stream.position.map { Int64(bitPattern: $0.epoch.nonce) },
                    stream.position.map { Int64($0.sequence) },
                    stream.number, stream.count, stream.bytes, stream.relayed.map { Int64($0.sequence) },
                    stream.relayed.map { Int64($0.time) }, stream.checksum.column, id,
                ])
                marks.append(stream.mark)
            }
            changedInbound.removeAll(keepingCapacity: true)
        }
    }

    extension Book {
        /// The nonce of one of this store's openings; `nil` when there is no such opening.
        ///
        /// - Throws: ``Damage``, SQLite's errors.
        func nonce(of generation: UInt64, _ database: Database) throws -> UInt64? {
            let statement = try database.cachedStatement(
                sql: "SELECT generation, nonce, checksum FROM ferry_opening WHERE generation = ?")
            statement.set(1, Int64(clamping: generation))
            return try statement.firstRow(of: "ferry_opening", database) { row in
                let epoch = Epoch(generation: UInt64(try row.number(0)), nonce: try row.bits(1))
                try row.check(2, epoch.openingChecksum)
                return epoch.nonce
            }
        }
    }
#endif
