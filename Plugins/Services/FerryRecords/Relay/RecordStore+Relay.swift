#if Records
    public import Ferry
    import GRDB

    /// Records of another store or a broker, which this store relays to peers, as a gateway does.
    ///
    /// Several stores may carry one stream, each from where the peer is when it begins: the peer takes each place once. What it needs
    /// for that is that each store appends the stream's records in their order and without holes, from the oldest on that the
    /// peer may not have; and that the peer has one name for all of these stores.
    extension RecordStore {
        /// Puts records of an origin's stream into the outbox, behind those that were put there before; returns when they are on
        /// disk. At the peer they come out of the inbox with ``ArrivedRecord/origin``.
        ///
        /// - Parameters:
        ///   - records: in the order of their places; each at most ``Configuration/largestRecord`` less
        ///     ``RelayedRecord/overhead``.
        ///   - origin: whose they are, without a colon; with the stream's name at most 115 bytes of UTF-8.
        ///   - stream: the stream's name there.
        ///   - peer: the name by which exchanges with the peer are opened.
        ///   - whenFull: what to do at the high-water mark.
        /// - Returns: the sequence of the last, for ``relayedThrough(to:)``.
        /// - Throws: as ``append(_:to:stream:priority:expires:whenFull:)``.
        @discardableResult
        public func relay(
            _ records: [RelayedRecord], from origin: String, stream: String, to peer: String,
            whenFull: WhenFull = .wait(atMost: .seconds(60))
        ) async throws(FerryError) -> UInt64 {
            let name = RelayStream(origin: origin, name: stream)
            try name.check()
            let ids = try await put(records.map(\.encoded), to: peer, name.text, .normal, nil, whenFull)
            return ids.last?.sequence ?? 0
        }

        /// How far a relayed stream has come: through which of this store's sequences the peer has it on its disk.
        public struct RelayProgress: Sendable, Hashable {
            /// Whose it is.
            public let origin: String
            /// The stream's name there.
            public let stream: String
            /// The last sequence of ``relay(_:from:stream:to:whenFull:)`` that the peer has committed; 0 for none.
            public let committedThrough: UInt64
            /// How many records wait.
            public let waiting: Int
        }

        /// How far the streams are that are relayed to a peer.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func relayedThrough(to peer: String) async throws(FerryError) -> [RelayProgress] {
            try await read { _, book in
                Self.relayed(to: peer, book).map { relay, stream in
                    RelayProgress(
                        origin: relay.origin, stream: relay.name, committedThrough: stream.acknowledged?.sequence ?? 0,
                        waiting: stream.count)
                }
            }
        }

        /// Withdraws a peer's pending records in relayed streams: another store may have carried them meanwhile. A peer that gets some
        /// of them all the same takes no place twice.
        ///
        /// - Returns: how many records there were.
        /// - Throws: `closed`, `diskFull`, `storeFailed`.
        @discardableResult
        public func withdrawRelayed(to peer: String) async throws(FerryError) -> Int {
            var total = 0
            while true {
                // In bites: the log has room for one on a full disk too. Not remembered one by one: their receipts are never asked for.
                let parts = try await read { database, book in
                    guard let (_, stream) = Self.relayed(to: peer, book).first(where: { $0.1.count > 0 }) else {
                        return [Part]()
                    }
                    return try Self.remove(
                        "stream = ?1 AND sequence IN (SELECT sequence FROM ferry_waiting WHERE stream = ?1 LIMIT ?2)",
                        [stream.id, book.isShortOfRoom ? Self.smallBite : Self.largeBite], database, &book)
                }
                guard !parts.isEmpty else { return total }
                leave(parts)
                total += parts.reduce(0) { $0 + $1.count }
            }
        }

        private static func relayed(to peer: String, _ book: Book) -> [(RelayStream, Book.Outbound)] {
            guard let number = book.peerNames[peer] else { return [] }
            return (book.outboundOfPeer[number] ?? []).compactMap { id in
                guard let stream = book.outbound[id], let relay = RelayStream(stream.name) else { return nil }
                return (relay, stream)
            }
        }

        /// An element each time that records have left the outbox, until the task that reads is cancelled or the store closed.
        package func progress() -> AsyncStream<Void> { watch.watch() }
    }
#endif
