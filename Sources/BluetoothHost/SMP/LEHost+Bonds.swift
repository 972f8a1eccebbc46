// Keys that are kept, and whose they are.

extension LEHost {
    /// Keys of earlier connections, in place of those known now.
    public mutating func setBonds(_ bonds: [Bond]) {
        self.bonds = bonds
        rememberedClients.removeAll { client in !bonds.contains { $0.peer == client.address } }
    }

    /// Forgets a peer's keys, and what was kept with them. The peer is meant by the address it was paired by, its identity
    /// address, or any private address that its key resolves. A connection that is encrypted stays so, but is not
    /// ``LinkSecurity/isBonded`` any more.
    ///
    /// - Returns: what was forgotten; nil when there were no keys.
    @discardableResult public mutating func forget(_ peer: Address) -> Bond? {
        guard let bond = bond(with: peer) else { return nil }
        for index in connections.indices where self.bond(index)?.peer == bond.peer {
            connections[index].security.link.isBonded = false
        }
        discoveries.remove(bond.lastingAddress)
        setBonds(bonds.filter { $0.peer != bond.peer })
        return bond
    }

    /// The bond with a peer: by its address, or by the key that its private address was made of.
    func bond(with peer: Address) -> Bond? {
        if let known = bonds.first(where: { $0.peer == peer || $0.identity == peer }) { return known }
        guard peer.isResolvable, let functions = pairingFunctions else { return nil }
        return bonds.first { bond in bond.identityResolvingKey.map { functions.resolves(peer, by: $0) } ?? false }
    }

    /// The bond with a connection's peer.
    func bond(_ index: Int) -> Bond? { bond(with: connections[index].peer) }

    /// The bond with a connection's peer whose key serves in these roles, and is as strong as the options demand now, whatever
    /// they were when it was made.
    func usableBond(_ index: Int) -> Bond? {
        guard let bond = bond(index), let options = configuration.pairing else { return nil }
        let isUsable =
            (bond.isSecureConnections || bond.peerIsCentral != connections[index].isCentral)
            && (bond.isAuthenticated || !options.requiresAuthentication)
            && (bond.isSecureConnections || !options.requiresSecureConnections)
        return isUsable ? bond : nil
    }

    var pairingFunctions: PairingFunctions? {
        configuration.pairing.map { PairingFunctions(cryptography: $0.cryptography) }
    }

    // MARK: New keys

    /// Keeps the keys of a pairing, unless the peer claims to be another whose keys are worth more.
    ///
    /// The identity of key distribution is a claim, made over a link that proves nothing of it (Vol 3, Part H, 3.6.5). It is
    /// taken where the address that the peer uses is that identity, or was made of the key that came with it.
    ///
    /// - Parameter replaced: the bond that the pairing was allowed to replace.
    /// - Returns: the bond as it is kept, or whose address the peer has claimed.
    mutating func keep(_ made: Bond, replacing replaced: Bond?) -> Result<Bond, PairingFailure> {
        var bond = made
        let isResolved =
            bond.identityResolvingKey.map { pairingFunctions?.resolves(bond.peer, by: $0) ?? false } ?? false
        if let identity = bond.identity, identity != bond.peer, !isResolved {
            pending.events.append(
                .diagnostic("\(bond.peer) calls itself \(identity) and does not use that address; it is not believed."))
            bond.identity = nil
            bond.identityResolvingKey = nil
        }
        let claimed = bonds.filter { other in
            other.peer == bond.peer || other.identity == bond.peer
                || bond.identity.map { $0 == other.peer || $0 == other.identity } ?? false
                || bond.identityResolvingKey.map { $0 == other.identityResolvingKey } ?? false
        }
        for other in claimed where other.peer != replaced?.peer {
            let isEarned =
                bond.isAuthenticated
                && other.isMatched(byAuthenticated: true, secureConnections: bond.isSecureConnections)
            guard isEarned else { return .failure(.identityInUse(other.lastingAddress)) }
        }
        let gone = Set(claimed.map(\.peer) + (replaced.map { [$0.peer] } ?? []))
        setBonds(bonds.filter { !gone.contains($0.peer) } + [bond])
        rememberedClients.removeAll { gone.contains($0.address) }
        return .success(bond)
    }
}

extension Address {
    /// Whether it has the form of a resolvable private address (Core Specification 5.4, Vol 6, Part B, 1.3.2.2).
    public var isResolvable: Bool { kind == .random && value >> 46 == 0b01 }
}
