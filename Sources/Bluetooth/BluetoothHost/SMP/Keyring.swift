/// The keys that are kept: whose they are, which of them serve, and whose make room for new ones.
struct Keyring: Sendable {
    /// How the host pairs; nil where it does not.
    private let options: PairingOptions?
    /// The newest last.
    private(set) var bonds: [Bond] = [] { didSet { resolutions = ResolutionCache() } }
    private var newcomers = Newcomers()
    private(set) var resolutions = ResolutionCache()

    init(_ options: PairingOptions?) { self.options = options }

    /// Takes keys of earlier connections, in place of those known now.
    mutating func replaceAll(by bonds: [Bond]) {
        self.bonds = bonds
        newcomers.keep(bonds)
    }

    // MARK: Whose they are

    private var functions: PairingFunctions? { options.map { PairingFunctions(cryptography: $0.cryptography) } }

    /// The bond with a peer: by its address, or by the key that its private address was made of. An identity that is only
    /// claimed does not count.
    func bond(with peer: Address) -> Bond? {
        if let known = bonds.first(where: { $0.isKnown(as: peer) }) { return known }
        guard peer.isResolvable, let functions else { return nil }
        return bonds.first { bond in bond.identityResolvingKey.map { functions.resolves(peer, by: $0) } ?? false }
    }

    /// The latest bond whose peer says that this is its identity, believed or not.
    func bond(claiming identity: Address) -> Bond? { bonds.last { $0.identity == identity } }

    /// The address by which a peer is known for as long as there is a bond.
    func lastingAddress(of peer: Address) -> Address { bond(with: peer)?.lastingAddress ?? peer }

    /// The same, remembered for the next time.
    mutating func resolve(_ address: Address) -> Address {
        guard address.isResolvable || bonds.contains(where: { $0.peer == address }) else { return address }
        if let known = resolutions.lasting[address] { return known }
        let lasting = lastingAddress(of: address)
        if resolutions.lasting.count >= ResolutionCache.limit { resolutions = ResolutionCache() }
        resolutions.lasting[address] = lasting
        return lasting
    }

    /// Peers for the controller's resolving list: those that gave a key. Not those whose identity is only claimed: the controller
    /// would tell of them by the address of another.
    var resolvable: [Privacy.Entry] {
        bonds.filter(\.isIdentityBelieved).compactMap { bond in
            bond.identity.flatMap { identity in
                bond.identityResolvingKey.map { Privacy.Entry(identity: identity, key: $0) }
            }
        }
    }

    // MARK: Which serve

    /// The bond with a peer whose key serves in this side's role, and meets the options of now, not those of its making.
    ///
    /// A central that uses an address which a bond's peer has only claimed may prove the claim with that bond's key. A
    /// peripheral is not asked to: this side would demand the claimant's key of the address's owner.
    func usable(with peer: Address, asCentral isCentral: Bool) -> Bond? {
        let claiming = isCentral ? nil : bond(claiming: peer)
        guard let bond = bond(with: peer) ?? claiming, isStrongEnough(bond),
            bond.isSecureConnections || bond.peerIsCentral != isCentral
        else { return nil }
        return bond
    }

    /// Whether a bond's key is as strong as the options demand now.
    func isStrongEnough(_ bond: Bond) -> Bool {
        guard let options else { return false }
        return (bond.isAuthenticated || !options.requiresAuthentication)
            && (bond.isSecureConnections || !options.requiresSecureConnections)
    }

    /// A link to this address has been encrypted with a bond's key: the peer has come back. Where it uses the identity that it had
    /// claimed, the claim is proven, unless another bond's peer is known by that address.
    ///
    /// - Returns: the bond whose claim is proven by this.
    mutating func didServe(_ bond: Bond, at peer: Address, at now: Int64) -> Bond? {
        newcomers.didComeBack(bond.peer, at: now)
        guard bond.identity == peer, !bonds.contains(where: { $0.isKnown(as: peer) }),
            let place = bonds.firstIndex(of: bond)
        else { return nil }
        bonds[place].isIdentityProven = true
        return bonds[place]
    }

    // MARK: Room for more

    /// The pairings whose keys there is room for, where `existing` is the bond that one would replace.
    func room(replacing existing: Bond?, isStranger: Bool, at now: Int64) -> Newcomers.Room {
        guard let options, options.bonds, existing == nil else { return .forAll }
        return newcomers.room(beside: bonds.count, of: options.maximumBonds, isStranger: isStranger, at: now)
    }

    /// The decision about new keys.
    struct Judgement: Sendable {
        enum Outcome: Sendable, Equatable {
            /// They are kept in place of these peers' bonds, and of another's where there is no room.
            case kept(replacing: Set<Address>, displacing: Address?)
            /// The peer has claimed the address of another, whose keys are worth more.
            case refused(owner: Address)
        }

        /// The keys, with as much of the peer's claims as can be true.
        let bond: Bond
        /// What the peer says of itself and is not believed, for people; nil when all of it can be true.
        let disbelief: String?
        let outcome: Outcome
    }

    /// Judges the keys of a pairing.
    ///
    /// The identity of key distribution is a claim, made over a link that proves nothing of it (Core Specification 5.4, Vol 3,
    /// Part H, 3.6.5). It is kept where it can be one, and where the address that the peer uses is that identity, or was made of the
    /// key that came with it. ``Bond/isIdentityBelieved`` says when it counts.
    ///
    /// - Parameters:
    ///   - made: the new bond.
    ///   - existing: the bond that the pairing was allowed to replace.
    ///   - own: addresses of this side, which no peer is called by.
    ///   - now: the time.
    func judge(_ made: Bond, replacing existing: Bond?, own: [Address], at now: Int64) -> Judgement {
        var bond = made
        let disbelief = disbelief(of: made, own)
        if disbelief != nil { bond.identity = nil }
        if bond.identity == nil, !isResolved(made) { bond.identityResolvingKey = nil }
        let claimed = bonds.filter { other in
            other.isKnown(as: bond.peer) || bond.identity.map { other.isKnown(as: $0) } ?? false
                || bond.identityResolvingKey.map { $0 == other.identityResolvingKey } ?? false
        }
        for other in claimed where other.peer != existing?.peer {
            let isEarned =
                bond.isAuthenticated
                && other.isMatched(byAuthenticated: true, secureConnections: bond.isSecureConnections)
            guard isEarned else {
                return Judgement(bond: bond, disbelief: disbelief, outcome: .refused(owner: other.lastingAddress))
            }
        }
        let replaced = Set(claimed.map(\.peer) + (existing.map { [$0.peer] } ?? []))
        let isFull = replaced.isEmpty && bonds.count >= options?.maximumBonds ?? .max
        let displaced = isFull ? newcomers.replaceable(byAuthenticated: bond.isAuthenticated, at: now) : nil
        return Judgement(
            bond: bond, disbelief: disbelief, outcome: .kept(replacing: replaced, displacing: displaced))
    }

    /// Why the identity that a peer claims cannot be its own; nil where it can.
    private func disbelief(of made: Bond, _ own: [Address]) -> String? {
        guard let identity = made.identity else { return nil }
        if !identity.canBeIdentity || own.contains(identity) {
            return "\(made.peer) calls itself \(identity), which no peer is called by; it is not believed."
        }
        guard identity != made.peer, !isResolved(made) else { return nil }
        return "\(made.peer) calls itself \(identity) and does not use that address; it is not believed."
    }

    /// Whether the address that a peer uses was made of the key that came with it.
    private func isResolved(_ made: Bond) -> Bool {
        guard let key = made.identityResolvingKey, let functions else { return false }
        return functions.resolves(made.peer, by: key)
    }

    /// Keeps new keys in place of these peers'.
    mutating func keep(_ bond: Bond, replacing replaced: Set<Address>, at now: Int64) {
        replaceAll(by: bonds.filter { !replaced.contains($0.peer) } + [bond])
        if replaced.isEmpty, !bond.isAuthenticated { newcomers.add(bond.peer, at: now) }
    }
}

/// Which private addresses belong to whom, as far as it has been found out. An address is heard again and again, and to try
/// all keys each time would cost more than the rest of a report.
struct ResolutionCache: Sendable {
    /// Addresses that are remembered; beyond that it begins anew, for anybody can make up more.
    static let limit = 512
    var lasting: [Address: Address] = [:]
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
