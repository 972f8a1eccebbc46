#if Records
    public import Ferry

    extension RecordStore {
        /// What a store knows of a peer.
        public struct KnownPeer: Sendable, Hashable {
            /// The name by which exchanges with it are opened.
            public let name: String
            /// Its store, to which the name is bound; `nil` before the first exchange, and after ``RecordStore/forgetIdentity(of:)``.
            public let store: StoreID?
            /// The opening of its store that came last; `nil` as ``store``.
            public let epoch: Epoch?
            /// How surely it was known at best; `nil` as ``store``.
            public let certainty: PeerIdentity.Certainty?
            /// The fingerprint of the key that it has proven; `nil` when it has proven none.
            public let key: String?
            /// The number of records that wait for it.
            public let waiting: Int
            /// The number of its records that the app has not done.
            public let undone: Int
        }

        /// The peers that the store knows, at most 4 096, in the order of their names.
        ///
        /// - Throws: `closed`, `storeFailed`.
        public func peers() async throws(FerryError) -> [KnownPeer] {
            try await read { _, book in
                book.peers.values.map { peer in
                    KnownPeer(
                        name: peer.name, store: peer.store, epoch: peer.epoch,
                        certainty: peer.store == nil ? nil : PeerIdentity.Certainty(rawValue: peer.certainty ?? 0),
                        key: peer.key,
                        waiting: (book.outboundOfPeer[peer.id] ?? []).reduce(0) {
                            $0 + (book.outbound[$1]?.count ?? 0)
                        },
                        undone: (book.inboundOfPeer[peer.id] ?? []).reduce(0) { $0 + (book.inbound[$1]?.count ?? 0) })
                }.sorted { $0.name < $1.name }
            }
        }
    }
#endif
