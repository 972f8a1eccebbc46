// Keys that are kept, and whose they are.

extension LEHost {
    /// Keys of earlier connections, in place of those known now.
    public mutating func setBonds(_ bonds: [Bond]) {
        self.bonds = bonds
        newcomers.keep(bonds)
        rememberedClients.removeAll { client in !bonds.contains { $0.peer == client.address } }
    }

    /// Forgets a peer's keys, and what was kept with them. The peer is meant by the address it was paired by, its identity
    /// address, also where that is only claimed, or any private address that its key resolves. A connection that is encrypted stays so, but is not
    /// ``LinkSecurity/isBonded`` any more.
    ///
    /// - Returns: what was forgotten; nil when there were no keys.
    @discardableResult public mutating func forget(_ peer: Address) -> Bond? {
        guard let bond = bond(with: peer) ?? bonds.last(where: { $0.identity == peer }) else { return nil }
        for index in connections.indices where self.bond(index)?.peer == bond.peer {
            connections[index].security.link.isBonded = false
        }
        discoveries.remove(bond.lastingAddress)
        setBonds(bonds.filter { $0.peer != bond.peer })
        return bond
    }

    /// The bond with a peer: by its address, or by the key that its private address was made of. An identity that is only
    /// claimed does not count.
    func bond(with peer: Address) -> Bond? {
        if let known = bonds.first(where: { $0.isKnown(as: peer) }) { return known }
        guard peer.isResolvable, let functions = pairingFunctions else { return nil }
        return bonds.first { bond in bond.identityResolvingKey.map { functions.resolves(peer, by: $0) } ?? false }
    }

    /// The bond with a connection's peer.
    func bond(_ index: Int) -> Bond? { bond(with: connections[index].peer) }

    /// The bond with a connection's peer whose key serves in these roles, and is as strong as the options demand now, whatever
    /// they were when it was made.
    ///
    /// A central that uses an address which a bond's peer has only claimed may prove the claim with that bond's key. A
    /// peripheral is not asked to: this side would demand the claimant's key of the address's owner.
    func usableBond(_ index: Int) -> Bond? {
        let peer = connections[index].peer
        let claiming = connections[index].isCentral ? nil : bonds.last { $0.identity == peer }
        guard let bond = bond(index) ?? claiming, isStrongEnough(bond),
            bond.isSecureConnections || bond.peerIsCentral != connections[index].isCentral
        else { return nil }
        return bond
    }

    /// Whether a bond's key is as strong as the options demand now.
    func isStrongEnough(_ bond: Bond) -> Bool {
        guard let options = configuration.pairing else { return false }
        return (bond.isAuthenticated || !options.requiresAuthentication)
            && (bond.isSecureConnections || !options.requiresSecureConnections)
    }

    var pairingFunctions: PairingFunctions? {
        configuration.pairing.map { PairingFunctions(cryptography: $0.cryptography) }
    }

    // MARK: New keys

    /// Keeps the keys of a pairing, unless the peer claims to be another whose keys are worth more.
    ///
    /// The identity of key distribution is a claim, made over a link that proves nothing of it (Vol 3, Part H, 3.6.5). It is
    /// kept where it can be one, and where the address that the peer uses is that identity, or was made of the key that came with
    /// it. ``Bond/isIdentityBelieved`` says when it counts.
    ///
    /// - Parameters:
    ///   - made: the new bond.
    ///   - replaced: the bond that the pairing was allowed to replace.
    ///   - now: the time.
    /// - Returns: the bond as it is kept, or whose address the peer has claimed.
    mutating func keep(_ made: Bond, replacing replaced: Bond?, at now: Int64) -> Result<Bond, PairingFailure> {
        var bond = made
        let isResolved =
            bond.identityResolvingKey.map { pairingFunctions?.resolves(bond.peer, by: $0) ?? false } ?? false
        if let identity = bond.identity, !identity.canBeIdentity || isOwn(identity) {
            pending.events.append(
                .diagnostic("\(bond.peer) calls itself \(identity), which no peer is called by; it is not believed."))
            bond.identity = nil
        }
        if let identity = bond.identity, identity != bond.peer, !isResolved {
            pending.events.append(
                .diagnostic("\(bond.peer) calls itself \(identity) and does not use that address; it is not believed."))
            bond.identity = nil
        }
        if bond.identity == nil, !isResolved { bond.identityResolvingKey = nil }
        let claimed = bonds.filter { other in
            other.isKnown(as: bond.peer) || bond.identity.map { other.isKnown(as: $0) } ?? false
                || bond.identityResolvingKey.map { $0 == other.identityResolvingKey } ?? false
        }
        for other in claimed where other.peer != replaced?.peer {
            let isEarned =
                bond.isAuthenticated
                && other.isMatched(byAuthenticated: true, secureConnections: bond.isSecureConnections)
            guard isEarned else { return .failure(.identityInUse(other.lastingAddress)) }
        }
        let gone = Set(claimed.map(\.peer) + (replaced.map { [$0.peer] } ?? []))
        let kept = bonds.filter { !gone.contains($0.peer) }
        if gone.isEmpty, let options = configuration.pairing, kept.count >= options.maximumBonds,
            let least = newcomers.replaceable(byAuthenticated: bond.isAuthenticated, at: now)
        {
            pending.events.append(
                .diagnostic(
                    "The keys of \(least), which has not come back since it paired, make room for \(bond.peer)'s."))
            forget(least)
        }
        setBonds(bonds.filter { !gone.contains($0.peer) } + [bond])
        if gone.isEmpty, !bond.isAuthenticated { newcomers.add(bond.peer, at: now) }
        rememberedClients.removeAll { gone.contains($0.address) }
        return .success(bond)
    }

    /// Whether an address is one of this side's.
    private func isOwn(_ address: Address) -> Bool {
        address == configuration.address || address == privacy.address || address == controller.publicAddress
    }

    /// A link has been encrypted with a bond's key: the peer has come back. Where it uses the identity that it had claimed, the
    /// claim is proven, unless another bond's peer is known by that address.
    mutating func bondDidServe(_ index: Int, _ bond: Bond, at now: Int64) {
        newcomers.didComeBack(bond.peer, at: now)
        let peer = connections[index].peer
        guard bond.identity == peer, !bonds.contains(where: { $0.isKnown(as: peer) }),
            let place = bonds.firstIndex(of: bond)
        else { return }
        bonds[place].isIdentityProven = true
        pending.events.append(.bonded(connections[index].id, bonds[place]))
    }
}

extension Bond {
    /// Whether ``identity`` counts: a person has compared or entered a number for these keys, or a link to that very address has
    /// been encrypted with them. Until then the bond is known by ``peer`` alone: a peer that pairs without a number can claim any
    /// address.
    public var isIdentityBelieved: Bool {
        identity.map { $0.canBeIdentity && (isAuthenticated || isIdentityProven || $0 == peer) } ?? false
    }

    /// Whether an address is one that the bond's peer is known by, apart from private ones that its key resolves.
    func isKnown(as address: Address) -> Bool { peer == address || isIdentityBelieved && identity == address }
}

extension Address {
    /// Whether a device can be called so for good: public, or static random, and neither all 0 nor all 1 (Core Specification
    /// 5.4, Vol 3, Part H, 3.6.5, and Vol 6, Part B, 1.3).
    var canBeIdentity: Bool {
        switch kind {
        case .public: value != 0 && value != 0xFFFF_FFFF_FFFF
        case .random: value >> 46 == 0b11 && value & 0x3FFF_FFFF_FFFF != 0 && value != 0xFFFF_FFFF_FFFF
        }
    }

    /// Whether it has the form of a resolvable private address (Core Specification 5.4, Vol 6, Part B, 1.3.2.2).
    public var isResolvable: Bool { kind == .random && value >> 46 == 0b01 }
}
