public import Ferry

/// A question to the bucket of leases. Each is answered once, by ``LeaseBook/answered(_:_:at:)``, or never.
public struct LeaseRequest: Sendable, Hashable {
    /// Names the request within its book, for the answer.
    public struct ID: Sendable, Hashable { let number: UInt64 }

    /// The kind of request. None is unconditional, so that a late one cannot undo a later write: a lease is
    /// given up by an update, not by a deletion.
    public enum Operation: Sendable, Hashable {
        /// Put the entry if the key has none.
        case create(Lease)
        /// Put the entry if the key's is of this revision.
        case update(Lease, expecting: UInt64)
        /// Tell the key's entry.
        case read
    }

    /// The request's name.
    public let id: ID
    /// Whose lease it is about.
    public let peer: String
    /// The kind of request.
    public let operation: Operation
}

/// How a ``LeaseRequest`` was answered.
public enum LeaseAnswer: Sendable, Hashable {
    /// Created or updated, with this revision.
    case stored(revision: UInt64)
    /// Of a create or update: the key's entry is another, or there is one, or none. Nothing was changed.
    case refused
    /// Of a read: the entry; nil when the key has none.
    case entry(LeaseEntry?)
    /// No answer came, or no connection is there: whether it was done, or will be yet, is not known.
    case unknown
}

/// What gateways tell one another, by messages that may be lost: no promise depends on one.
public enum FleetMessage: Sendable, Hashable {
    /// To the owner of a peer: this gateway hears it too, so well.
    case sighting(peer: String, by: String, score: Int)
    /// To the successor of a lease: it was given up, and this is its entry.
    case offer(peer: String, LeaseEntry)
}

/// What a ``LeaseBook`` wants done, in this order.
public enum FleetStep: Sendable, Hashable {
    /// Ask the bucket.
    case request(LeaseRequest)
    /// The peer is this gateway's: connect to it when there is something to do. What it sends is published under the token.
    case begin(peer: String, FencingToken)
    /// End the connection to the peer, and no attempt at another. It must have ended by this instant, for from then on
    /// another gateway may begin; then call ``LeaseBook/stopped(_:at:)``.
    case stop(peer: String, by: Timestamp)
    /// Send a message to another gateway; it may be lost.
    case tell(gateway: String, FleetMessage)
}
