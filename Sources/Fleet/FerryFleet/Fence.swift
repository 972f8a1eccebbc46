public import Ferry

/// What a consumer asks of each message that a gateway has published: was its owner still the owner?
///
/// A gateway that was stopped (a debugger, a machine that swaps, SIGSTOP) may go on long after its lease was lost, and publish what it
/// still had. Of that, two kinds differ:
///
/// - **Records** are facts with names: (peer, epoch, stream, sequence). The peer was told that they are on the gateway's disk, and has
///   deleted them, so they must be taken however late they come, under any token; taken twice, by their name, they do no
///   harm. The fence lets all of them through and says which are ``Verdict/late(newest:)``: those must not move anything that only
///   the newest may move, such as "last heard" or a watermark.
/// - **Claims** are true of one instant, and the last one wins: that a gateway is connected to the peer, the peer's state as it sees it,
///   how far commands to the peer have been carried out. A claim under an older token than the newest seen for that peer is
///   ``Verdict/refused(newest:)``, or a gateway that wakes up would undo its successor's.
///
/// Tokens of different peers are not compared. The fence is part of the consumer's state: keep it in the transaction that
/// takes the message (``newest`` and ``init(capacity:newest:)``), or a message that was fenced off before a restart comes through after it.
public struct Fence: Sendable, Hashable {
    /// What a message is, by what it does when it comes late.
    public enum Kind: Sendable, Hashable, CaseIterable {
        /// A fact with a unique name.
        case record
        /// Something of which only the last counts.
        case claim
    }

    /// How to handle a message.
    public enum Verdict: Sendable, Hashable {
        /// Take it: no newer token has been seen for the peer.
        case current
        /// Take the record by its name; it says nothing about the present.
        case late(newest: FencingToken)
        /// Do not take the claim.
        case refused(newest: FencingToken)
    }

    /// Peers that are remembered at most.
    public let capacity: Int
    /// The newest token seen, by peer.
    public private(set) var newest: [String: FencingToken]
    /// How many claims were refused.
    public private(set) var refusals: UInt64 = 0

    /// An empty fence, or one with the tokens that were kept.
    public init(capacity: Int = 1_000_000, newest: [String: FencingToken] = [:]) {
        self.capacity = max(1, capacity)
        self.newest = newest
    }

    /// Whether to take a message about a peer that was published under a token.
    ///
    /// - Throws: ``/Ferry/FerryError`` with code `fleet.fenceFull` for a peer that is new where there are ``capacity`` of them.
    ///   Forgetting one instead would let older claims about it through.
    public mutating func admit(
        _ kind: Kind, of peer: String, under token: FencingToken
    ) throws(FerryError) -> Verdict {
        guard let seen = newest[peer] else {
            guard newest.count < capacity else {
                throw FerryError(
                    .fenceFull,
                    "The fence has its \(capacity) peers: forget(_:) those that are gone for good, or raise its capacity."
                )
            }
            newest[peer] = token
            return .current
        }
        if token >= seen {
            newest[peer] = token
            return .current
        }
        switch kind {
        case .record: return .late(newest: seen)
        case .claim:
            refusals &+= 1
            return .refused(newest: seen)
        }
    }

    /// Forgets a peer that is gone for good: the next message about it is taken.
    public mutating func forget(_ peer: String) { newest[peer] = nil }
}
