#if Records
    public import Ferry
    import Synchronization

    extension RecordStore {
        /// Whom a store takes a peer for that it has not met, by what its link or channel knows of it.
        public enum Trust: Sendable, Hashable {
            /// A peer: it is written to the disk when it greets, and ``Configuration/acceptsStrangers`` is not asked.
            case trusted
            /// A stranger: nothing of it is written before it has brought a record.
            case stranger
            /// A peer that is refused, whether it was met before or not. It is told the reason.
            case refused(String)

            /// By the certainty alone, as unless ``RecordStore/decideTrust(by:)`` says otherwise: a bonded peer is trusted. A key says which peer it is, and not whether anybody trusts it.
            public init(_ identity: PeerIdentity) { self = identity.certainty == .bond ? .trusted : .stranger }
        }
    }

    extension RecordStore {
        /// Who decides whom a peer is taken for; nil for its certainty alone.
        struct Decision: Sendable { var body: (@Sendable (PeerIdentity) -> Trust)? }

        /// Names who decides whom a peer is taken for, in every exchange from now on. There is one at a time; the next takes its place.
        ///
        /// - Parameter body: called with who the peer has proven to be, or who its link says it is. It must not block.
        public func decideTrust(by body: @escaping @Sendable (PeerIdentity) -> Trust) {
            decision.withLock { $0.body = body }
        }

        /// Asks again for each peer with which an exchange runs, after what decides has changed, and ends the exchanges of those that
        /// are refused now.
        public func decideTrustAgain() {
            for exchange in watch.exchanges {
                let identity = exchange.identity
                guard case .refused(let reason) = trust(identity) else { continue }
                exchange.fail(FerryError(.strangePeer, "Peer \(identity) is not taken here: \(reason)"))
            }
        }

        func trust(_ identity: PeerIdentity) -> Trust { decision.withLock { $0.body }?(identity) ?? Trust(identity) }
    }

    /// What an exchange asks and tells its owner about the peer. No closure may call the exchange: some are called with its lock.
    struct ExchangeGate: Sendable {
        /// The peer has said HELLO. Throws what it is to be told when there is no place for it.
        var greets: @Sendable (PeerIdentity) throws(FerryError) -> Void = { _ in }
        /// The peer was found to be who it says, or to be a stranger that is taken.
        var met: @Sendable () -> Void = {}
        /// Whether the peer may have another store than the last one under its name.
        var replaces = false
        /// The peer is known to the store, or has brought a record.
        var proves: @Sendable () -> Void = {}
    }
#endif
