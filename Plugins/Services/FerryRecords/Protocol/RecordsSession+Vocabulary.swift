#if Records
    import Ferry

    /// What a session is made with, asks for, and keeps of a stream.
    extension RecordsSession {
        struct Configuration: Sendable, Hashable {
            /// The largest record taken from the peer, in bytes.
            var largestRecord = 1 << 20
            /// What the app may leave lying of this peer's records, in costs; at least that of the largest record.
            var capacity = 4 << 20
            /// About how many bytes of records go into one message.
            var batch = 8 << 10
            /// About how many bytes of records are asked of the store at once, where it is slower than the peer.
            var largestReadAhead = 64 << 10
            /// How long an answer of the peer's may take.
            var patience = Duration.seconds(60)
            /// How long the peer's HELLO may take, which needs nothing of its disk.
            var greeting = Duration.seconds(10)
        }

        /// What the session wants of the store.
        enum Request: Sendable, Hashable {
            /// Check who the peer is; answer with ``admit(seen:stored:)``, then offer streams.
            case meet(RecordsMessage.Hello)
            /// Check whether this store has been where the peer says that it met it.
            case check(Epoch?)
            /// Look up how far the peer's stream has arrived; answer with ``found(_:of:)``.
            case find(index: Int, name: String, acknowledged: Position?)
            /// Commit the new records; answer with ``stored(_:of:through:)``.
            case store(index: Int, epoch: Epoch, [RecordsMessage.Item])
            /// Forget own records up to the peer's position, if it is one of this store's; needs no answer.
            case adopt(stream: Int64, Position?)
            /// Read own records after a sequence; answer with ``loaded(_:of:)``.
            case load(stream: Int64, after: UInt64, bytes: Int)
            /// Forget own records up to a position; answer with ``forgotten(of:)``.
            case acknowledge(stream: Int64, through: Position)
        }

        /// A record of this side's, as it is loaded.
        struct Loaded: Sendable, Hashable {
            var epoch: Epoch
            var item: RecordsMessage.Item
        }

        struct OutboundStream: Sendable, Hashable {
            enum Phase: Hashable { case offered, opening, open }
            let id: Int64
            let name: String
            var priority: UInt8
            let acknowledgedBefore: Position?
            var phase = Phase.offered
            /// The last sequence that was sent, and the last that the peer has committed, in this exchange.
            var sent: UInt64 = 0
            var acknowledged: UInt64 = 0
            /// The epochs of sent, unacknowledged records, each with its last sequence.
            var runs: [Position] = []
            /// The last sequence that was loaded.
            var read: UInt64 = 0
            var loaded: [Loaded] = []
            var loadedBytes = 0
            var loading = Loading.idle
            var forgetting = Forgetting.idle
        }

        /// What the store is asked for of one stream.
        enum Loading: Sendable, Hashable {
            case idle
            /// One load at a time. It is `outdated` when records were appended since, which it may have missed, and `slow` when
            /// the peer could have taken more meanwhile.
            case underWay(outdated: Bool, slow: Bool)
            /// Nothing more was there, and none has been appended since.
            case exhausted
        }

        /// What the store is told of the peer's acknowledgements of one stream. One request at a time: a peer that acknowledges
        /// faster than the disk forgets makes nothing grow.
        enum Forgetting: Sendable, Hashable {
            case idle
            /// The store is forgetting; `next` came meanwhile, and covers all that came before it.
            case underWay(next: Position?)
        }
    }

    extension RecordsSession.OutboundStream {
        /// Whether the peer has committed all that was sent, and nothing more is at hand.
        var isDone: Bool { loading == .exhausted && loaded.isEmpty && acknowledged == sent }

        var isLoading: Bool { if case .underWay = loading { true } else { false } }
    }
#endif
