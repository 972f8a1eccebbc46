#if NATS && Records
    public import Ferry
    public import FerryFleet
    public import FerryNATS
    public import FerryRecords

    /// Who is told what happens in a gateway, for logs, metrics and traces. It decides nothing: without one everything goes the same
    /// way, and costs nothing of it.
    ///
    ///     let gateway = try Gateway(store, configuration, observer: observer)
    ///
    /// Calls come from several threads, perhaps at the same time, and never with a lock held. They must not block: the gateway goes on
    /// when they return.
    public protocol GatewayObserver: Sendable {
        /// Receives an event. Events of records come for many records at once.
        func observe(_ event: GatewayEvent)

        /// What the message of a record is to carry besides its own headers, such as a `traceparent`. Asked for each record after it was
        /// told by ``GatewayEvent/read(_:)``. Left out is what cannot be a header, names that begin with `Nats-` or `Ferry-`, and
        /// headers beyond 1 024 bytes together. Default none.
        func headers(for record: GatewayEvent.Record) -> [NATSMessage.Header]
    }

    extension GatewayObserver {
        /// None.
        public func headers(for record: GatewayEvent.Record) -> [NATSMessage.Header] { [] }
    }

    /// What happens in a ``Gateway``, a ``LeaseKeeper``, ``PeerRounds`` and a ``Downlink``. More may come: switch over it with a `default`.
    public enum GatewayEvent: Sendable {
        /// What a connection is for.
        public enum Part: String, Sendable, Hashable {
            /// What the records go to.
            case stream
            /// The bucket of a fleet's leases.
            case leases
            /// The stream of messages for peers.
            case downlink
        }

        // MARK: Records

        /// Records were read from the store, and are published next. Each comes once, and again after ``readingBegins``.
        case read([Record])
        /// The stream has them.
        case published([Publication])
        /// They are not in the stream: they are tried again.
        case putOff([PutOff])
        /// Reading begins, with the oldest record of the store. Records that were read, but not published, are read once more.
        case readingBegins
        /// Everything in the store is published again, for this reason: the server may have lost something.
        case repeats(because: String)

        // MARK: Servers

        /// A server can be asked, of this `server_id`.
        case connected(Part, server: String)
        /// The server is away; or the gateway is ending, and needs none.
        case disconnected(Part, isEnding: Bool)
        /// A connection could not be made, or has ended, for this reason. It is tried again soon.
        case failed(Part, FerryError)
        /// The server was looked at, and is as it was; `released` records have left the store, for the stream has them for good.
        case looked(released: Int)
        /// The server could not be looked at.
        case lookFailed(FerryError)

        // MARK: Messages for peers

        /// So many messages from the stream are on the peer's disk.
        case carried(peer: String, count: Int)
        /// A peer's messages do not go on, for this reason. It is tried again.
        case heldUp(peer: String, FerryError)

        // MARK: Peers

        /// A visit is over: one that was begun, or, where a hub serves the peers, any (``/FerryRecords/RecordHub``).
        case visitEnded(peer: String, Visit)

        // MARK: Peers of a fleet

        /// The bucket has answered a request for a peer's lease.
        case leaseAnswered(peer: String, LeaseAnswer)
        /// The peer is this gateway's from now on, under this token.
        case leaseBegan(peer: String, FencingToken)
        /// The peer was let go: in time, or later than its lease allowed.
        case leaseEnded(peer: String, FencingToken?, isLate: Bool)
        /// A visit to a peer begins: it is connected to.
        case visitBegan(peer: String)
    }

    extension GatewayEvent {
        /// A record on its way to the stream.
        public struct Record: Sendable, Hashable {
            /// What it is.
            public let id: RecordID
            /// Its name: ``/FerryRecords/RecordID/name``, the message's `Nats-Msg-Id`.
            public let name: String
            /// Who sent it.
            public let peer: String
            /// The token of the peer's lease, where this gateway had it when the record was read.
            public let token: FencingToken?
            /// How many bytes it has.
            public let bytes: Int
        }

        /// A record that the stream has.
        public struct Publication: Sendable, Hashable {
            /// The record.
            public let record: Record
            /// Its place in the stream; nil where the server tells none, such as a broker of MQTT.
            public let sequence: UInt64?
            /// Whether the stream had it already.
            public let isDuplicate: Bool
            /// How long the answer took.
            public let publishing: Duration
            /// How long ago it was read from the store.
            public let sinceRead: Duration
        }

        /// A record that the stream does not have.
        public struct PutOff: Sendable, Hashable {
            /// The record.
            public let record: Record
            /// Why.
            public let error: FerryError.Code
            /// The same for people.
            public let message: String
            /// Whether it can never be stored as things are. It holds up its stream, and what follows it there comes to nothing as well;
            /// each minute it is read and tried again.
            public let isHeld: Bool
        }

        /// A visit to a peer, or of one.
        public struct Visit: Sendable, Hashable {
            /// How long it took.
            public let duration: Duration
            /// How many records came and are on this side's disk; nil where it ended with a failure.
            public let received: Int?
            /// How many records went and are on the peer's disk; nil where it ended with a failure.
            public let sent: Int?
            /// Why it was in vain; nil for one that was not.
            public let failure: FerryError.Code?
            /// The same for people.
            public let message: String?

            /// - Parameter summary: nil when the lease was over before something could go through.
            init(_ summary: RecordStore.Summary?, lasting duration: Duration) {
                self.duration = duration
                received = summary?.received ?? 0
                sent = summary?.committed ?? 0
                failure = nil
                message = nil
            }

            init(_ error: FerryError, lasting duration: Duration) {
                self.duration = duration
                received = nil
                sent = nil
                failure = error.code
                message = error.message
            }
        }
    }

    /// Several observers in the place of one: each is told, in their order, and the headers of all are taken.
    public struct GatewayObservers: GatewayObserver {
        private let all: [any GatewayObserver]

        /// Observers.
        public init(_ all: [any GatewayObserver]) { self.all = all }

        /// Tells all of them.
        public func observe(_ event: GatewayEvent) { for one in all { one.observe(event) } }

        /// Those of all of them.
        public func headers(for record: GatewayEvent.Record) -> [NATSMessage.Header] {
            all.flatMap { $0.headers(for: record) }
        }
    }
#endif
