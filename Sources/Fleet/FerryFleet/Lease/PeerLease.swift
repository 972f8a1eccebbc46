import Ferry

/// What one gateway knows of one peer, and of the lease on it.
struct PeerLease: Sendable, Hashable {
    /// The time from when a lease was got until it is another's to take.
    struct Tenure: Sendable, Hashable {
        let token: FencingToken
        let since: Timestamp
        /// The revision that the bucket has, as far as is known.
        var revision: UInt64
        /// By this gateway's clock. From then on another gateway may begin.
        var goodUntil: Timestamp
        var renewsAt: Timestamp
    }

    /// What follows when the radio has let go of the peer.
    enum Ending: Sendable, Hashable {
        /// The lease is lost, or cannot be renewed.
        case lost
        /// It is given up, to a successor or to any gateway.
        case given(to: String?)
    }

    enum Phase: Sendable, Hashable {
        case candidate
        case held(Tenure)
        /// The radio was told to let go.
        case stopping(Tenure, Ending)
        /// The radio has let go, and the bucket is to be told.
        case releasing(Tenure, successor: String?)
    }

    /// What the bucket has, as far as is known.
    enum Known: Sendable, Hashable {
        case nothing
        case something
        /// Seen first, in this revision, at this instant.
        case entry(LeaseEntry, since: Timestamp)
    }

    enum Purpose: Sendable, Hashable {
        case acquire(Lease), look, renew, check, release

        /// Whether it counts against ``LeasePolicy/maximumAttempts``.
        var isAttempt: Bool {
            switch self {
            case .acquire, .look: true
            case .renew, .check, .release: false
            }
        }
    }

    struct Pending: Sendable, Hashable {
        let id: LeaseRequest.ID
        let purpose: Purpose
        let sentAt: Timestamp
        let givenUpAt: Timestamp
    }

    /// A gateway that says it reaches the peer better.
    struct Challenge: Sendable, Hashable {
        let gateway: String
        let since: Timestamp
        var heardAt: Timestamp
        var score: Int
        var count: Int
    }

    /// Stands for the peer's name where delays are drawn.
    let hash: UInt64
    var phase = Phase.candidate
    /// Smoothed, in sixteenths of a dBm.
    var signal: Int
    var heardAt: Timestamp
    /// When the next attempt is due, of candidates and of those that release.
    var due: Timestamp
    var known = Known.nothing
    var pending: Pending?
    var challenge: Challenge?
    /// Which of four delays is next.
    var turn: UInt8 = 0
    /// When the book's queue has it.
    var queuedAt: Timestamp?

    init(hash: UInt64, signal: Int, at now: Timestamp) {
        self.hash = hash
        self.signal = signal * 16
        heardAt = now
        due = now
    }

    /// Whether the bucket may hold it to be this gateway's.
    var isOwned: Bool {
        if case .candidate = phase { false } else { true }
    }

    /// When something is to be done unless something happens before.
    func wakesAt(_ times: LeaseTimes) -> Timestamp? {
        let isForgottenAt = heardAt.later(times.silence)
        switch phase {
        case .candidate: return pending?.givenUpAt ?? min(due, isForgottenAt)
        case .held(let tenure):
            return min(
                tenure.goodUntil.later(-times.stopping), isForgottenAt, pending?.givenUpAt ?? tenure.renewsAt)
        case .stopping: return pending?.givenUpAt
        case .releasing(let tenure, _): return min(tenure.goodUntil, pending?.givenUpAt ?? due)
        }
    }

    /// Takes a look at the bucket into account.
    mutating func saw(_ entry: LeaseEntry?, at now: Timestamp) {
        guard let entry else {
            known = .nothing
            return
        }
        if case .entry(let before, _) = known, before.revision == entry.revision { return }
        known = .entry(entry, since: now)
    }
}

/// Bits of a text, the same on every machine and in every run: FNV-1a, 64 bits.
func stableHash(_ text: String) -> UInt64 {
    text.utf8.reduce(0xcbf2_9ce4_8422_2325) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
}
