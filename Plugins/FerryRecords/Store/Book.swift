#if Records
    import Ferry
    import GRDB

    /// What the store knows of its peers and streams, in memory: small whatever waits. The writer's alone; what jobs change
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
        }

        struct Outbound: Sendable {
            let id: Int64
            let peer: Int64
            let name: String
            var last: UInt64 = 0
            var acknowledged: Position?
            var count = 0
            var bytes = 0
            /// The highest of what has come to wait since the stream was empty: all before it has to go first.
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
        private var outboundNames: [StreamName: Int64] = [:]
        private var inboundNames: [StreamName: Int64] = [:]
        private var changedOutbound: Set<Int64> = []
        private var changedInbound: Set<Int64> = []
        /// The streams that have something for a peer, and those that the app has something to read in.
        private(set) var outboundOfPeer: [Int64: [Int64]] = [:]
        private(set) var inboundOfPeer: [Int64: [Int64]] = [:]

        static let maximumPeers = 4096

        /// Reads it, at the beginning of an opening.
        init(_ database: Database) throws {
            try read(database)
            for (id, stream) in outbound { outbound[id]?.lastBefore = stream.last }
        }

        /// Forgets what was not written.
        mutating func reload(_ database: Database) throws {
            let before = outbound
            self = try Book(database)
            // A sequence that was given once is not given again, though its record was not stored.
            for (id, old) in before {
                guard var stream = outbound[id] else { continue }
                stream.last = max(stream.last, old.last)
                stream.sent = old.sent
                stream.lastBefore = old.lastBefore
                outbound[id] = stream
            }
        }

        private mutating func read(_ database: Database) throws {
            for row in try Row.fetchAll(database, sql: "SELECT * FROM ferry_peer") {
                var peer = Peer(id: row["id"], name: row["name"])
                if let high: Int64 = row["high"], let low: Int64 = row["low"] {
                    peer.store = StoreID(high: UInt64(bitPattern: high), low: UInt64(bitPattern: low))
                }
                peer.certainty = row["certainty"]
                peer.epoch = epoch(row)
                peer.largestRecord = row["largest"]
                peers[peer.id] = peer
                peerNames[peer.name] = peer.id
            }
            for row in try Row.fetchAll(database, sql: "SELECT * FROM ferry_outbound") {
                var stream = Outbound(id: row["id"], peer: row["peer"], name: row["name"])
                stream.last = sequence(row["last"])
                if let epoch = epoch(row), let acknowledged: Int64 = row["acknowledged"] {
                    stream.acknowledged = Position(epoch: epoch, sequence: sequence(acknowledged))
                }
                stream.count = row["count"]
                stream.bytes = row["bytes"]
                stream.priority = UInt8(clamping: row["priority"] as Int64)
                add(stream)
            }
            for row in try Row.fetchAll(database, sql: "SELECT * FROM ferry_inbound") {
                var stream = Inbound(id: row["id"], peer: row["peer"], name: row["name"])
                if let epoch = epoch(row), let last: Int64 = row["sequence"] {
                    stream.position = Position(epoch: epoch, sequence: sequence(last))
                }
                if let last: Int64 = row["relayed"], let time: Int64 = row["relayed_at"] {
                    stream.relayed = RelayPosition(sequence: sequence(last), time: sequence(time))
                }
                stream.number = row["number"]
                stream.count = row["count"]
                stream.bytes = row["bytes"]
                add(stream)
            }
        }

        private mutating func add(_ stream: Outbound) {
            outbound[stream.id] = stream
            outboundNames[StreamName(peer: stream.peer, name: stream.name)] = stream.id
            outboundOfPeer[stream.peer, default: []].append(stream.id)
        }

        private mutating func add(_ stream: Inbound) {
            inbound[stream.id] = stream
            inboundNames[StreamName(peer: stream.peer, name: stream.name)] = stream.id
            inboundOfPeer[stream.peer, default: []].append(stream.id)
        }

        // MARK: Finding and making

        /// - Throws: `outboxFull` when there are too many peers; SQLite's errors.
        mutating func peer(named name: String, _ database: Database) throws -> Int64 {
            if let id = peerNames[name] { return id }
            guard peers.count < Self.maximumPeers else {
                throw FerryError(
                    .outboxFull,
                    "The store knows \(peers.count) peers, as many as it may. Use another store for peer \(name).")
            }
            try database.cachedStatement(sql: "INSERT INTO ferry_peer (name) VALUES (?)").execute(arguments: [name])
            let id = database.lastInsertedRowID
            peers[id] = Peer(id: id, name: name)
            peerNames[name] = id
            return id
        }

        mutating func setPeer(_ peer: Peer, _ database: Database) throws {
            peers[peer.id] = peer
            try database.cachedStatement(
                sql: """
                    UPDATE ferry_peer SET high = ?, low = ?, certainty = ?, generation = ?, nonce = ?, largest = ? WHERE id = ?
                    """
            ).execute(arguments: [
                peer.store.map { Int64(bitPattern: $0.high) }, peer.store.map { Int64(bitPattern: $0.low) },
                peer.certainty, peer.epoch.map { Int64($0.generation) },
                peer.epoch.map { Int64(bitPattern: $0.nonce) }, peer.largestRecord, peer.id,
            ])
        }

        func outboundStream(_ name: String, of peer: Int64) -> Int64? {
            outboundNames[StreamName(peer: peer, name: name)]
        }

        /// - Throws: `outboxFull` when the peer has too many streams; SQLite's errors.
        mutating func makeOutbound(_ name: String, of peer: Int64, _ database: Database) throws -> Int64 {
            if let id = outboundStream(name, of: peer) { return id }
            try checkCount(outboundOfPeer[peer])
            try database.execute(
                sql: "INSERT INTO ferry_outbound (peer, name, last, count, bytes, priority) VALUES (?, ?, 0, 0, 0, 0)",
                arguments: [peer, name])
            add(Outbound(id: database.lastInsertedRowID, peer: peer, name: name))
            return database.lastInsertedRowID
        }

        /// - Throws: `outboxFull` when the peer has too many streams; SQLite's errors.
        mutating func makeInbound(_ name: String, of peer: Int64, _ database: Database) throws -> Int64 {
            if let id = inboundNames[StreamName(peer: peer, name: name)] { return id }
            try checkCount(inboundOfPeer[peer])
            try database.execute(
                sql: "INSERT INTO ferry_inbound (peer, name, number, count, bytes) VALUES (?, ?, 0, 0, 0)",
                arguments: [peer, name])
            add(Inbound(id: database.lastInsertedRowID, peer: peer, name: name))
            return database.lastInsertedRowID
        }

        private func checkCount(_ streams: [Int64]?) throws(FerryError) {
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

        /// Writes what has changed, at the end of a transaction.
        mutating func write(_ database: Database) throws {
            for id in changedOutbound {
                guard let stream = outbound[id] else { continue }
                try database.cachedStatement(
                    sql: """
                        UPDATE ferry_outbound SET last = ?, generation = ?, nonce = ?, acknowledged = ?, count = ?, bytes = ?,
                        priority = ? WHERE id = ?
                        """
                ).execute(arguments: [
                    Int64(stream.last), stream.acknowledged.map { Int64($0.epoch.generation) },
                    stream.acknowledged.map { Int64(bitPattern: $0.epoch.nonce) },
                    stream.acknowledged.map { Int64($0.sequence) }, stream.count, stream.bytes, Int64(stream.priority),
                    id,
                ])
            }
            changedOutbound.removeAll(keepingCapacity: true)
            for id in changedInbound {
                guard let stream = inbound[id] else { continue }
                try database.cachedStatement(
                    sql: """
                        UPDATE ferry_inbound SET generation = ?, nonce = ?, sequence = ?, number = ?, count = ?, bytes = ?,
                        relayed = ?, relayed_at = ? WHERE id = ?
                        """
                ).execute(arguments: [
                    stream.position.map { Int64($0.epoch.generation) },
                    stream.position.map { Int64(bitPattern: $0.epoch.nonce) },
                    stream.position.map { Int64($0.sequence) },
                    stream.number, stream.count, stream.bytes, stream.relayed.map { Int64($0.sequence) },
                    stream.relayed.map { Int64($0.time) }, id,
                ])
            }
            changedInbound.removeAll(keepingCapacity: true)
        }
    }

    private func epoch(_ row: Row) -> Epoch? {
        guard let generation: Int64 = row["generation"], let nonce: Int64 = row["nonce"] else { return nil }
        return Epoch(generation: UInt64(max(0, generation)), nonce: UInt64(bitPattern: nonce))
    }

    private func sequence(_ value: Int64) -> UInt64 { UInt64(max(0, value)) }
#endif
