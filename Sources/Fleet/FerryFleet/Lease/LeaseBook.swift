public import Ferry
import HeapModule

/// Which peers a gateway owns, asks for, gives up and hands over: a value without I/O, clock or randomness.
///
/// Its shell tells it which peers are heard, what the bucket and other gateways say, and the time. After every call, and at
/// ``nextDeadline``, it carries out ``takeSteps()``. What it owns, it owns by the bucket's word and its own steady clock alone: see
/// ``LeasePolicy``. A shell that cannot call it (the process is stopped, say) must ask ``token(of:at:)`` before it speaks for a peer.
///
/// A peer is asked for by each gateway that hears it and has a place free, those with a better score first. Its owner keeps it until the
/// lease is lost, the peer falls silent, or another gateway is better by ``LeasePolicy/stickiness`` for ``LeasePolicy/patience``.
public struct LeaseBook: Sendable {
    struct Wake: Sendable, Comparable {
        let at: Timestamp
        let peer: String
        static func < (a: Wake, b: Wake) -> Bool { a.at < b.at }
    }

    /// This gateway.
    public let gateway: GatewayID
    /// How many peers this gateway takes on at once.
    public let capacity: Int
    /// The fleet's times and bounds.
    public let policy: LeasePolicy
    /// How many peers this gateway has, those that it is giving up among them.
    public private(set) var owned = 0
    /// Peers that were heard and not taken note of, for there were ``LeasePolicy/maximumPeers`` already.
    public private(set) var ignored: UInt64 = 0

    let times: LeaseTimes
    let seed: UInt64
    var peers: [String: PeerLease] = [:]
    var attempts = 0
    var isAccepting = true
    /// Hand-overs begun in the minute since.
    var handOvers = (since: Timestamp(nanoseconds: .min), count: 0)
    /// When the first peer was heard.
    private var firstHeardAt: Timestamp?
    private var lastRequest: UInt64 = 0
    private var requests: [LeaseRequest.ID: String] = [:]
    private var steps: [FleetStep] = []
    private var wakes = Heap<Wake>()

    /// The book of a gateway that has just started, and has nothing.
    ///
    /// - Parameters:
    ///   - gateway: its name, and a number drawn for this life of it.
    ///   - capacity: how many peers it takes on at once, 1 to 1 000 000.
    ///   - policy: times and scores, the same at all gateways of the fleet.
    /// - Throws: ``/Ferry/FerryError`` with code `fleet.policy` for a name, capacity or policy that cannot be.
    public init(gateway: GatewayID, capacity: Int, policy: LeasePolicy = LeasePolicy()) throws(FerryError) {
        guard GatewayID.isName(gateway.name) else {
            throw FerryError(
                .fleetPolicy,
                "A gateway's name is 1 to 64 letters, digits, hyphens and underscores, not \(gateway.name.debugDescription)."
            )
        }
        guard (1...1_000_000).contains(capacity) else {
            throw FerryError(.fleetPolicy, "A gateway takes on 1 to 1000000 peers, not \(capacity).")
        }
        try policy.validate()
        self.gateway = gateway
        self.capacity = capacity
        self.policy = policy
        times = LeaseTimes(policy)
        seed = SeededGenerator.mix(stableHash(gateway.name))
    }

    // MARK: What the shell asks

    /// The peer's token while this gateway owns it: the peer's records are published under this token. Nil from the moment on when
    /// another gateway may begin, regardless of later answers.
    public func token(of peer: String, at now: Timestamp) -> FencingToken? {
        guard let lease = peers[peer], case .held(let tenure) = lease.phase, now < tenure.goodUntil else { return nil }
        return tenure.token
    }

    /// The peers that this gateway owns at this instant, in no order.
    public func ownedPeers(at now: Timestamp) -> [String] { peers.keys.filter { token(of: $0, at: now) != nil } }

    /// How well this gateway reaches a peer, in decibels: signal and free places; nil for one that it does not hear.
    public func score(of peer: String) -> Int? { peers[peer].map(score) }

    /// When ``wake(at:)`` is to be called next, at the latest.
    public var nextDeadline: Timestamp? { wakes.min?.at }

    /// Takes the steps to carry out, in order.
    public mutating func takeSteps() -> [FleetStep] {
        guard !steps.isEmpty else { return [] }
        defer { steps.removeAll(keepingCapacity: true) }
        return steps
    }

    // MARK: What the shell tells

    /// The peer was heard, by an advertisement or on its connection.
    ///
    /// - Parameters:
    ///   - peer: its name.
    ///   - signal: dBm; held within -127 and 20.
    ///   - now: by this gateway's clock.
    public mutating func heard(_ peer: String, signal: Int, at now: Timestamp) {
        let signal = min(20, max(-127, signal))
        if var lease = peers[peer] {
            lease.signal += (signal * 16 - lease.signal) / 4
            lease.heardAt = max(lease.heardAt, now)
            keep(lease, of: peer)
        } else if !isAccepting {
            return
        } else if peers.count < policy.maximumPeers {
            var lease = PeerLease(hash: stableHash(peer), signal: signal, at: now)
            lease.due = now.later(delay(&lease))
            let first = firstHeardAt ?? now
            firstHeardAt = first
            if now < first.later(times.startup) { lease.due = lease.due.later(part(times.startup, &lease)) }
            keep(lease, of: peer)
        } else {
            ignored &+= 1
        }
    }

    /// Time has passed.
    public mutating func wake(at now: Timestamp) {
        while let first = wakes.min, first.at <= now {
            wakes.removeMin()
            guard var lease = peers[first.peer], lease.queuedAt == first.at else { continue }
            lease.queuedAt = nil
            act(&lease, of: first.peer, at: now)
            finish(lease, of: first.peer, at: now)
        }
    }

    /// The bucket has answered a request, or will not. An answer that comes after the request was given up changes nothing.
    public mutating func answered(_ id: LeaseRequest.ID, _ answer: LeaseAnswer, at now: Timestamp) {
        guard let peer = requests[id], var lease = peers[peer], let pending = lease.pending, pending.id == id else {
            return
        }
        end(&lease)
        take(answer, to: pending, &lease, of: peer, at: now)
        act(&lease, of: peer, at: now)
        finish(lease, of: peer, at: now)
    }

    /// Another gateway has sent a message.
    public mutating func received(_ message: FleetMessage, at now: Timestamp) {
        switch message {
        case .sighting(let peer, let other, let score):
            guard var lease = peers[peer], Lease.scores.contains(score), GatewayID.isName(other) else { return }
            challenge(&lease, of: peer, by: other, score: score, at: now)
            finish(lease, of: peer, at: now)
        case .offer(let peer, let entry):
            guard var lease = peers[peer], case .candidate = lease.phase, lease.pending == nil,
                entry.lease.holder == nil, entry.lease.successor == gateway.name
            else { return }
            lease.saw(entry, at: now)
            lease.due = now
            act(&lease, of: peer, at: now)
            finish(lease, of: peer, at: now)
        }
    }

    /// The connection to the peer, or the attempt at one, has ended as ``FleetStep/stop(peer:by:)`` asked.
    public mutating func stopped(_ peer: String, at now: Timestamp) {
        guard var lease = peers[peer], case .stopping(let tenure, let ending) = lease.phase else { return }
        lease.due = now
        switch ending {
        case .given(let successor): lease.phase = .releasing(tenure, successor: successor)
        case .lost:
            lease.phase = .candidate
            lease.known = .something
            lease.due = now.later(delay(&lease))
        }
        act(&lease, of: peer, at: now)
        finish(lease, of: peer, at: now)
    }

    /// Gives all peers up, for a gateway whose store is full, or whose broker refuses more. It asks
    /// for no others until ``accept()``.
    public mutating func drain(at now: Timestamp) {
        isAccepting = false
        // In an order that does not differ from run to run.
        for peer in peers.keys.sorted() {
            guard var lease = peers[peer] else { continue }
            if case .held(let tenure) = lease.phase { stop(&lease, of: peer, tenure, .given(to: nil), at: now) }
            finish(lease, of: peer, at: now)
        }
    }

    /// Asks for peers again, after ``drain(at:)``.
    public mutating func accept() { isAccepting = true }

    // MARK: What the parts share

    mutating func tell(_ step: FleetStep) { steps.append(step) }

    /// Sends a request; one at a time for each peer.
    mutating func ask(
        _ operation: LeaseRequest.Operation, for purpose: PeerLease.Purpose, _ lease: inout PeerLease, of peer: String,
        at now: Timestamp
    ) {
        lastRequest &+= 1
        let id = LeaseRequest.ID(number: lastRequest)
        lease.pending = .init(id: id, purpose: purpose, sentAt: now, givenUpAt: now.later(times.requestTimeout))
        requests[id] = peer
        if purpose.isAttempt { attempts += 1 }
        steps.append(.request(LeaseRequest(id: id, peer: peer, operation: operation)))
    }

    /// The request has been answered, or given up.
    mutating func end(_ lease: inout PeerLease) {
        guard let pending = lease.pending else { return }
        requests[pending.id] = nil
        if pending.purpose.isAttempt { attempts -= 1 }
        lease.pending = nil
    }

    /// Keeps the peer, or forgets it where nothing is left to be done for it.
    private mutating func finish(_ lease: PeerLease, of peer: String, at now: Timestamp) {
        guard case .candidate = lease.phase, lease.pending == nil,
            !isAccepting || now >= lease.heardAt.later(times.silence)
        else { return keep(lease, of: peer) }
        if peers.removeValue(forKey: peer)?.isOwned == true { owned -= 1 }
    }

    private mutating func keep(_ lease: PeerLease, of peer: String) {
        var lease = lease
        let wake = lease.wakesAt(times)
        // One that is due later than it is queued is queued again when its turn comes.
        if let wake, wake < lease.queuedAt ?? .distantFuture {
            lease.queuedAt = wake
            wakes.insert(Wake(at: wake, peer: peer))
        }
        let before = peers.updateValue(lease, forKey: peer)
        owned += (lease.isOwned ? 1 : 0) - (before?.isOwned == true ? 1 : 0)
        guard wakes.count > 64 + 4 * peers.count else { return }
        wakes = Heap(peers.compactMap { peer, lease in lease.queuedAt.map { Wake(at: $0, peer: peer) } })
    }
}
