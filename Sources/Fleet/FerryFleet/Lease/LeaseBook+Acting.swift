import Ferry

/// Steps that are due for a peer, and the bucket's answers to them.
extension LeaseBook {
    /// Does for the peer what its time has come for.
    mutating func act(_ lease: inout PeerLease, of peer: String, at now: Timestamp) {
        if let pending = lease.pending, now >= pending.givenUpAt {
            end(&lease)
            take(.unknown, to: pending, &lease, of: peer, at: now)
        }
        switch lease.phase {
        case .candidate:
            if lease.pending == nil, now >= lease.due, isAccepting { attempt(&lease, of: peer, at: now) }
        case .held(let tenure):
            if now >= tenure.goodUntil.later(-times.stopping) {
                stop(&lease, of: peer, tenure, .lost, at: now)
            } else if now >= lease.heardAt.later(times.silence) {
                stop(&lease, of: peer, tenure, .given(to: nil), at: now)
            } else if lease.pending == nil, now >= tenure.renewsAt {
                let renewed = Lease(holder: gateway, term: tenure.token, score: score(lease))
                ask(.update(renewed, expecting: tenure.revision), for: .renew, &lease, of: peer, at: now)
            }
        case .stopping: break
        case .releasing(let tenure, let successor):
            if now >= tenure.goodUntil {
                end(&lease)
                becomeCandidate(&lease, at: now)
            } else if lease.pending == nil, now >= lease.due {
                let free = Lease(holder: nil, term: tenure.token, score: score(lease), successor: successor)
                ask(.update(free, expecting: tenure.revision), for: .release, &lease, of: peer, at: now)
            }
        }
    }

    /// Tries to get the lease, or looks who has it.
    private mutating func attempt(_ lease: inout PeerLease, of peer: String, at now: Timestamp) {
        guard owned + attempts < capacity else {
            lease.due = now.later(times.poll + part(times.poll, &lease))
            return
        }
        guard attempts < policy.maximumAttempts else {
            lease.due = now.later(times.requestTimeout / 4 + part(times.requestTimeout, &lease) + 1)
            return
        }
        let mine = Lease(holder: gateway, score: score(lease))
        switch lease.known {
        case .nothing: ask(.create(mine), for: .acquire(mine), &lease, of: peer, at: now)
        case .entry(let entry, let since) where canTake(entry, seen: since, at: now):
            ask(.update(mine, expecting: entry.revision), for: .acquire(mine), &lease, of: peer, at: now)
        case .something, .entry: ask(.read, for: .look, &lease, of: peer, at: now)
        }
    }

    /// Whether this gateway may put its own in place of an entry: one that it wrote itself in this life, or one that was given up.
    private func canTake(_ entry: LeaseEntry, seen since: Timestamp, at now: Timestamp) -> Bool {
        if let holder = entry.lease.holder { return holder == gateway }
        guard let successor = entry.lease.successor, successor != gateway.name else { return true }
        return now >= since.later(times.reservation)
    }

    mutating func take(
        _ answer: LeaseAnswer, to pending: PeerLease.Pending, _ lease: inout PeerLease, of peer: String,
        at now: Timestamp
    ) {
        switch (lease.phase, pending.purpose) {
        case (.candidate, .acquire(let mine)): acquired(answer, mine, pending, &lease, of: peer, at: now)
        case (.candidate, _): looked(answer, &lease, of: peer, at: now)
        case (.held(let tenure), _), (.stopping(let tenure, _), _), (.releasing(let tenure, _), _):
            renewed(answer, tenure, pending, &lease, of: peer, at: now)
        }
    }

    private mutating func acquired(
        _ answer: LeaseAnswer, _ mine: Lease, _ pending: PeerLease.Pending, _ lease: inout PeerLease, of peer: String,
        at now: Timestamp
    ) {
        lease.due = now
        guard case .stored(let revision) = answer else {
            lease.known = .something
            if answer == .unknown { lease.due = now.later(times.requestTimeout + part(times.requestTimeout, &lease)) }
            return
        }
        let entry = LeaseEntry(mine, revision: revision)
        // From when it was asked for: the bucket may have had it from that instant on.
        let tenure = PeerLease.Tenure(
            token: entry.token, since: now, revision: revision, goodUntil: pending.sentAt.later(times.validity),
            renewsAt: pending.sentAt.later(times.renewal))
        lease.known = .entry(entry, since: now)
        lease.challenge = nil
        guard isAccepting else {
            lease.phase = .releasing(tenure, successor: nil)
            return
        }
        // What came too late to be of use is asked for anew.
        guard now < tenure.goodUntil.later(-times.stopping) else { return }
        lease.phase = .held(tenure)
        tell(.begin(peer: peer, tenure.token))
    }

    private mutating func looked(_ answer: LeaseAnswer, _ lease: inout PeerLease, of peer: String, at now: Timestamp) {
        guard case .entry(let entry) = answer else {
            lease.due = now.later(times.requestTimeout + part(times.requestTimeout, &lease))
            return
        }
        let before = lease.known
        lease.saw(entry, at: now)
        guard let entry, case .entry(_, let since) = lease.known else {
            lease.due = now.later(delay(&lease))
            return
        }
        if let holder = entry.lease.holder {
            if holder == gateway {
                lease.due = now
            } else if before == lease.known {
                // Not renewed since: it ends a time to live after it was seen first, at the latest.
                lease.due = max(
                    since.later(times.timeToLive + delay(&lease)), now.later(times.requestTimeout))
            } else {
                lease.due = now.later(times.poll + part(times.poll / 2, &lease))
            }
            let score = score(lease)
            if holder.name != gateway.name, score >= entry.lease.score + policy.stickiness {
                tell(.tell(gateway: holder.name, .sighting(peer: peer, by: gateway.name, score: score)))
            }
        } else if entry.lease.successor == gateway.name {
            lease.due = now
        } else if entry.lease.successor != nil {
            lease.due = max(now, since.later(times.reservation)).later(delay(&lease))
        } else {
            lease.due = now.later(delay(&lease))
        }
    }

    /// An answer to the owner's renewal, its release, or its read after either.
    private mutating func renewed(
        _ answer: LeaseAnswer, _ before: PeerLease.Tenure, _ pending: PeerLease.Pending, _ lease: inout PeerLease,
        of peer: String, at now: Timestamp
    ) {
        var tenure = before
        switch answer {
        case .stored(let revision):
            if case .releasing(_, let successor) = lease.phase, pending.purpose == .release {
                let free = Lease(holder: nil, term: tenure.token, score: score(lease), successor: successor)
                released(&lease, of: peer, LeaseEntry(free, revision: revision), at: now)
                return
            }
            tenure.revision = revision
            tenure.goodUntil = max(tenure.goodUntil, pending.sentAt.later(times.validity))
            tenure.renewsAt = pending.sentAt.later(times.renewal)
        case .refused:
            // The gateway's own update may have been stored, and its answer lost.
            if case .stopping = lease.phase { return }
            ask(.read, for: .check, &lease, of: peer, at: now)
            return
        case .entry(let entry):
            guard let entry, entry.lease.holder == gateway, entry.token == tenure.token else {
                if case .held = lease.phase { stop(&lease, of: peer, tenure, .lost, at: now) }
                if case .releasing = lease.phase { becomeCandidate(&lease, at: now) }
                return
            }
            tenure.revision = entry.revision
            tenure.renewsAt = now
            lease.due = now
        case .unknown:
            let wait = times.requestTimeout / 2 + part(times.requestTimeout / 2, &lease) + 1
            tenure.renewsAt = now.later(wait)
            lease.due = now.later(wait)
        }
        switch lease.phase {
        case .candidate: break
        case .held: lease.phase = .held(tenure)
        case .stopping(_, let ending): lease.phase = .stopping(tenure, ending)
        case .releasing(_, let successor): lease.phase = .releasing(tenure, successor: successor)
        }
    }

    private mutating func released(
        _ lease: inout PeerLease, of peer: String, _ entry: LeaseEntry, at now: Timestamp
    ) {
        lease.phase = .candidate
        lease.known = .entry(entry, since: now)
        // Others first.
        lease.due = now.later(times.reservation + times.poll)
        if let successor = entry.lease.successor { tell(.tell(gateway: successor, .offer(peer: peer, entry))) }
    }

    private func becomeCandidate(_ lease: inout PeerLease, at now: Timestamp) {
        lease.phase = .candidate
        lease.known = .something
        lease.due = now.later(delay(&lease))
    }

    /// Has the radio let go of a peer.
    mutating func stop(
        _ lease: inout PeerLease, of peer: String, _ tenure: PeerLease.Tenure, _ ending: PeerLease.Ending,
        at now: Timestamp
    ) {
        lease.phase = .stopping(tenure, ending)
        lease.challenge = nil
        tell(.stop(peer: peer, by: min(tenure.goodUntil, now.later(times.stopping))))
    }
}

/// Scores, delays and hand-overs.
extension LeaseBook {
    func score(_ lease: PeerLease) -> Int {
        lease.signal / 16 + policy.weightOfFreePlaces * max(0, capacity - owned) / capacity
    }

    /// How long a candidate stands back: up to three quarters of the spread by its score, the rest by gateway and peer.
    func delay(_ lease: inout PeerLease) -> Int64 {
        let worse = min(90, max(0, -20 - score(lease)))
        return times.spread / 4 * 3 * Int64(worse) / 90 + part(times.spread / 4, &lease)
    }

    /// From nothing to the whole, by gateway and peer, another each time, so that gateways do not fall into step.
    func part(_ whole: Int64, _ lease: inout PeerLease) -> Int64 {
        lease.turn = (lease.turn + 1) & 3
        let bits = SeededGenerator.mix(seed ^ lease.hash &+ UInt64(lease.turn) &* 0x9E37_79B9_7F4A_7C15)
        return Int64((UInt64(max(0, whole)).multipliedFullWidth(by: bits)).high)
    }

    /// Another gateway says that it hears the peer better.
    mutating func challenge(
        _ lease: inout PeerLease, of peer: String, by other: String, score theirs: Int, at now: Timestamp
    ) {
        guard case .held(let tenure) = lease.phase, other != gateway.name else { return }
        guard theirs >= score(lease) + policy.stickiness else {
            if lease.challenge?.gateway == other { lease.challenge = nil }
            return
        }
        if var challenge = lease.challenge, challenge.gateway == other {
            challenge.count = min(challenge.count + 1, 3)
            challenge.score = theirs
            challenge.heardAt = now
            lease.challenge = challenge
        } else if lease.challenge.map({ $0.score < theirs || now >= $0.heardAt.later(times.silence) }) ?? true {
            lease.challenge = .init(gateway: other, since: now, heardAt: now, score: theirs, count: 1)
        }
        guard let challenge = lease.challenge, challenge.gateway == other, challenge.count >= 3,
            now >= challenge.since.later(times.patience), now >= tenure.since.later(times.minimumTenure)
        else { return }
        if now >= handOvers.since.later(60_000_000_000) { handOvers = (now, 0) }
        guard handOvers.count < policy.handOversPerMinute else { return }
        handOvers.count += 1
        stop(&lease, of: peer, tenure, .given(to: other), at: now)
    }
}
