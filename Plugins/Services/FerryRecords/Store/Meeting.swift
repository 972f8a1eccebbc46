#if Records
    import Ferry
    import Foundation
    import GRDB

    /// What an exchange asks of the disk, each a piece of a transaction.
    extension RecordStore {
        /// The result of meeting a peer.
        struct Meeting: Sendable {
            /// The store's number of the peer; nil for a stranger that has brought nothing, of which nothing is kept.
            let peer: Int64?
            let name: String
            /// The epoch in which the peer's store was met before.
            let seen: Epoch?
            let offers: [Offer]
            /// What the app has left lying of the peer's, as it costs.
            let stored: Int
        }

        struct Offer: Sendable {
            let id: Int64
            let name: String
            let priority: UInt8
            let acknowledged: Position?
        }

        /// Whether the peer is who it should be; notes its epoch, unless it is a stranger.
        ///
        /// - Throws: `strangePeer`.
        func meet(
            _ hello: RecordsMessage.Hello, _ identity: PeerIdentity, named given: String?,
            trust: Trust = .trusted, _ database: Database, _ book: inout Book
        ) throws -> Meeting {
            if case .refused(let reason) = trust {
                throw FerryError(.strangePeer, "Peer \(identity) is not taken here: \(reason)")
            }
            guard hello.store != id else {
                throw FerryError(
                    .strangePeer,
                    "The peer's store is this store, \(id), or a copy of it. Each side needs its own store: make the "
                        + "peer's anew, not by copying.")
            }
            let name = given ?? (identity.certainty > .connection ? identity.description : nil)
            if let name { try NameRule.checkPeer(name) }
            let owner = book.peers.values.first { $0.store == hello.store }
            let wanted = name ?? owner?.name ?? "store:\(hello.store)"
            if let owner { try owner.checkKey(identity) }
            if let owner, owner.name != wanted {
                throw FerryError(
                    .strangePeer,
                    "Peer \(wanted) says that its store is \(hello.store), which is peer \(owner.name)'s. Name it so, or call "
                        + "forgetIdentity(of:) for \(owner.name) (`ferry outbox forget`) if the device has another name now."
                )
            }
            let isStranger = trust == .stranger && given == nil && book.peerNames[wanted] == nil
            guard configuration.acceptsStrangers || !isStranger else {
                throw FerryError(
                    .strangePeer,
                    "\(wanted) is not known here, and this store accepts no strangers. Trust its key, pair with it, name it, or "
                        + "let the store accept strangers.")
            }
            guard !isStranger else { return Meeting(peer: nil, name: wanted, seen: nil, offers: [], stored: 0) }
            if let id = book.peerNames[wanted], let peer = book.peers[id] { try check(peer, hello, identity) }
            let number = try book.peer(named: wanted, database)
            guard var peer = book.peers[number] else { throw DatabaseError(resultCode: .SQLITE_INTERNAL) }
            let seen = peer.store == nil ? nil : peer.epoch
            if let seen,
                hello.epoch.generation < seen.generation
                    || (hello.epoch != seen && hello.epoch.generation == seen.generation)
            {
                try notice(
                    "Peer \(wanted) has been met in epoch \(seen) of its store and comes with epoch \(hello.epoch): its store "
                        + "was copied, or comes from a backup.", about: wanted, database)
            }
            peer.store = hello.store
            peer.certainty = max(peer.certainty ?? 0, identity.certainty.rawValue)
            if identity.certainty == .key { peer.key = identity.name }
            peer.met = milliseconds
            peer.epoch = hello.epoch
            peer.largestRecord = hello.largestRecord
            try book.setPeer(peer, database)
            let offers = (book.outboundOfPeer[number] ?? []).compactMap { book.outbound[$0] }.filter { $0.count > 0 }
            let stored = (book.inboundOfPeer[number] ?? []).reduce(0) { $0 + (book.inbound[$1]?.cost ?? 0) }
            return Meeting(
                peer: number, name: wanted, seen: seen,
                offers: offers.map {
                    Offer(id: $0.id, name: $0.name, priority: $0.priority, acknowledged: $0.acknowledged)
                }, stored: stored)
        }

        private func check(
            _ peer: Book.Peer, _ hello: RecordsMessage.Hello, _ identity: PeerIdentity
        ) throws(FerryError) {
            try peer.checkKey(identity)
            guard let store = peer.store else { return }
            guard store == hello.store else {
                throw FerryError(
                    .strangePeer,
                    "Peer \(peer.name) had the store \(store) and now says that it is \(hello.store). If the device or its store "
                        + "was replaced, call forgetIdentity(of:) (`ferry outbox forget`); pending records then go to the new one."
                )
            }
            guard identity.certainty.rawValue >= peer.certainty ?? 0 else {
                throw FerryError(
                    .strangePeer,
                    "Peer \(peer.name) is known more surely than by this link, \(identity). Pair with it again, or call "
                        + "forgetIdentity(of:) (`ferry outbox forget`).")
            }
        }

        /// Whether this store has been in the epoch in which the peer says that it met it.
        func checkOwn(_ seen: Epoch?, by peer: String, _ database: Database, _ book: Book) throws {
            guard let seen else { return }
            let nonce = try book.nonce(of: seen.generation, database)
            let oldest =
                try database.cachedStatement(sql: "SELECT min(generation) FROM ferry_opening").firstRow(
                    of: "ferry_opening", database
                ) { UInt64(try $0.numberOrNull(0) ?? 0) } ?? 0
            guard seen.generation >= oldest, nonce != seen.nonce else { return }
            try notice(
                "Peer \(peer) has met this store in epoch \(seen), which this store has not been in: it was copied, or comes from "
                    + "a backup. What it still had to send is sent, and nothing twice; what it had received since is lost here "
                    + "unless the app has it.", about: peer, database)
        }

        /// Forgets what the peer has, if its position is one of this store's.
        ///
        /// - Throws: `misbehavingPeer` for a position that nothing was sent up to.
        func adopt(
            _ position: Position?, of number: Int64, _ database: Database, _ book: inout Book
        ) throws -> Forgotten {
            guard let stream = book.outbound[number], let peer = book.peers[stream.peer]?.name else {
                return Forgotten(parts: [], isComplete: true)
            }
            let before = stream.acknowledged
            // An exchange of this opening has had all up to `sent`; of earlier openings only their last is known.
            func checkSent(_ position: Position) throws(FerryError) {
                let last = position.epoch == epoch ? stream.sent : stream.lastBefore
                guard position.sequence <= last else {
                    throw FerryError(
                        .misbehavingPeer,
                        "Peer \(peer) says that it has stream '\(stream.name)' up to \(position.sequence) of epoch \(position.epoch), "
                            + "of which no more than \(last) was sent. Nothing is taken for sent that was not.")
                }
            }
            let isOwn = try position.map { position in
                try book.nonce(of: position.epoch.generation, database) == position.epoch.nonce
            }
            if let before, position == nil || isOwn == true && position.map({ $0.isBefore(before) }) == true {
                try notice(
                    "Peer \(peer) has committed stream '\(stream.name)' up to \(before.sequence), and now has it up to "
                        + "\(position?.sequence ?? 0): its store comes from a backup or is new. What lies between is not sent "
                        + "again, for it is not here any more.", about: peer, database)
            }
            if let position, isOwn == true { try checkSent(position) }
            // Of a relayed stream the peer may have had the last from another store.
            if let position, isOwn == false, RelayStream(stream.name) == nil {
                try notice(
                    "Peer \(peer) has records of stream '\(stream.name)' from epoch \(position.epoch), which this store has not "
                        + "been in: this store was copied, or comes from a backup.", about: peer, database)
            }
            guard let position, isOwn == true, before?.isBefore(position) ?? true else {
                return Forgotten(parts: [], isComplete: true)
            }
            return try acknowledge(position, of: number, database, &book)
        }

        /// Records that the peer has committed and that are gone here.
        struct Forgotten: Sendable {
            let parts: [Part]
            /// Whether none is left: otherwise the rest is for the next transaction.
            let isComplete: Bool
        }

        /// Forgets what the peer has committed, in bites: the log has room for one on a full disk too.
        func acknowledge(
            _ position: Position, of number: Int64, _ database: Database, _ book: inout Book
        ) throws -> Forgotten {
            let through = try bite(position, of: number, database, book)
            // Never backwards: a receiver from a backup commits again what it had committed.
            if book.outbound[number]?.acknowledged?.isBefore(through) ?? true {
                book.change(outbound: number) { $0.acknowledged = through }
            }
            let parts = try Self.remove(
                "stream = ? AND sequence <= ? AND generation <= ?",
                [number, Int64(through.sequence), Int64(through.epoch.generation)], database, &book)
            if let stream = book.outbound[number], through.sequence >= stream.last, stream.count != 0,
                try Int.fetchOne(
                    database, sql: "SELECT 1 FROM ferry_waiting WHERE stream = ? LIMIT 1", arguments: [number]) == nil
            {
                throw DamageAfterChanges(
                    damage: Damage(
                        table: "ferry_outbound", row: "id \(number)", column: "count",
                        what: "\(stream.count) more than the records that are there"))
            }
            return Forgotten(parts: parts, isComplete: through == position)
        }

        /// How far one transaction takes the stream.
        private func bite(
            _ position: Position, of number: Int64, _ database: Database, _ book: Book
        ) throws -> Position {
            let limit = book.isShortOfRoom ? Self.smallBite : Self.largeBite
            guard let stream = book.outbound[number], stream.count > limit else { return position }
            let statement = try database.cachedStatement(
                sql: """
                    SELECT stream, sequence FROM ferry_waiting WHERE stream = ? AND sequence <= ? AND generation <= ?
                    ORDER BY sequence LIMIT 1 OFFSET ?
                    """)
            statement.set(1, number)
            statement.set(2, Int64(clamping: position.sequence))
            statement.set(3, Int64(clamping: position.epoch.generation))
            statement.set(4, Int64(limit - 1))
            let last = try statement.firstRow(of: "ferry_waiting", keys: 2, database) { UInt64(try $0.number(1)) }
            return Position(epoch: position.epoch, sequence: last ?? position.sequence)
        }

        /// How many records one transaction takes away, and how many on a full disk: they touch at most that many pages of each of
        /// three trees, and a few more, which ``Reserve/size`` has room for.
        static var largeBite: Int { 10_000 }
        static var smallBite: Int { 32 }

        /// What ``load(_:after:bytes:_:_:)`` has found.
        struct Loaded: Sendable {
            let records: [RecordsSession.Loaded]
            let expired: [Part]
            /// The first record's, where it cannot be sent. Expired records are removed all the same.
            let damage: Damage?
        }

        /// Records that wait, in their order; those before a damaged one, if there is one.
        func load(
            _ number: Int64, after sequence: UInt64, bytes wanted: Int, _ database: Database, _ book: inout Book
        ) throws -> Loaded {
            let expired = try Self.withdrawExpired(at: milliseconds, database, &book)
            let statement = try database.cachedStatement(
                sql: """
                    SELECT stream, sequence, generation, priority, expires, record, checksum FROM ferry_waiting
                    WHERE stream = ? AND sequence > ? ORDER BY sequence LIMIT 1024
                    """)
            statement.set(1, number)
            statement.set(2, Int64(clamping: sequence))
            var records: [RecordsSession.Loaded] = []
            var total = 0
            var epochs = EpochCache()
            var damage: Damage?
            do {
                try statement.forEachRow(of: "ferry_waiting", keys: 2, database) { row in
                    let waiting = try WaitingRow.read(row)
                    let epoch = try epochs.epoch(of: waiting.generation, row, database, book)
                    total += waiting.bytes.count + 4
                    records.append(
                        .init(epoch: epoch, item: .init(sequence: waiting.sequence, bytes: waiting.bytes)))
                    return total < wanted
                }
            } catch let error as Damage {
                if records.isEmpty { damage = error }
            }
            // From here on a channel may have them.
            if let last = records.last?.item.sequence { book.noteSent(last, of: number) }
            if records.isEmpty, damage == nil { damage = unloadable(number, after: sequence, book) }
            return Loaded(records: records, expired: expired, damage: damage)
        }

        /// Without a record on its way, a stream that should have some and has none never ends.
        private func unloadable(_ number: Int64, after sequence: UInt64, _ book: Book) -> Damage? {
            guard let stream = book.outbound[number], stream.count > 0,
                sequence <= stream.acknowledged?.sequence ?? 0
            else { return nil }
            return Damage(
                table: "ferry_outbound", row: "id \(number)", column: "count",
                what: "\(stream.count), and no record is there")
        }
    }

    extension Book.Peer {
        /// What a peer says that has proven a key is bound to that key.
        ///
        /// - Throws: `strangePeer` for another key, and for none.
        fileprivate func checkKey(_ identity: PeerIdentity) throws(FerryError) {
            guard let key, identity.certainty != .key || identity.name != key else { return }
            let claim = identity.certainty == .key ? "has proven the key \(identity.name)" : "has proven no key"
            throw FerryError(
                .strangePeer,
                "The peer says that it is \(name), whose key is \(key), and \(claim). If the device has a new key, call "
                    + "forgetIdentity(of:) (`ferry outbox forget`).")
        }
    }

    extension Position {
        /// In one store's own history, both of whose epochs are its own.
        func isBefore(_ other: Position) -> Bool {
            (epoch.generation, sequence) < (other.epoch.generation, other.sequence)
        }
    }
#endif
