// Peers whose addresses change: known again by the keys that they gave when they paired (Core Specification 5.4, Vol 3,
// Part C, 10.7 and 10.8). The host resolves by itself, with every controller; where the controller has shown that it does so
// too, peers are connected to without being heard first.

/// Which private addresses belong to whom, as far as it has been found out. An address is heard again and again, and to try
/// all keys each time would cost more than the rest of a report.
struct ResolutionCache: Sendable {
    /// Addresses that are remembered; beyond that it begins anew, for anybody can make up more.
    static let limit = 512
    var lasting: [Address: Address] = [:]
}

extension LEHost {
    /// The address by which a peer is known for as long as there is a bond: its identity address for a private one that a
    /// bond's key resolves, the address itself otherwise. A claim, as every address is; ``LinkSecurity/isBonded`` proves it.
    public mutating func resolve(_ address: Address) -> Address {
        guard address.isResolvable || bonds.contains(where: { $0.peer == address }) else { return address }
        if let known = resolutions.lasting[address] { return known }
        let lasting = bond(with: address)?.lastingAddress ?? address
        if resolutions.lasting.count >= ResolutionCache.limit { resolutions = ResolutionCache() }
        resolutions.lasting[address] = lasting
        return lasting
    }

    // MARK: Connecting

    /// Whether a peer has to be heard before it can be connected to, for it may have another address by now.
    func hasToBeSought(_ peer: Address) -> Bool {
        guard let bond = bond(with: peer), bond.identityResolvingKey != nil else { return false }
        return !isResolvedByController(bond.lastingAddress)
    }

    /// Listens for a peer under whatever address; the attempt to connect follows when it is heard.
    mutating func seek(_ peer: Address, at now: Int64) {
        initiator.sought.append(peer)
        if scanner.air.usesList { scanner.needsRestart = true }
        reconcileScanning(at: now)
    }

    /// Looks for the peers that are sought in what was heard.
    mutating func seek(among reports: [AdvertisingReport], at now: Int64) {
        guard !initiator.sought.isEmpty else { return }
        for report in reports where report.isConnectable && !report.isScanResponse {
            if report.isResolved { controllerDidResolve() }
            let lasting = resolve(report.address)
            let sought = initiator.sought
            guard let place = sought.firstIndex(where: { resolve($0) == lasting }) else { continue }
            let peer = initiator.sought.remove(at: place)
            initiator.found.append((report.address, peer))
            initiator.waiting.append(report.address)
        }
        reconcileScanning(at: now)
        reconcileInitiator(at: now)
    }

    /// Nobody can be sought: the controller does not scan.
    mutating func seekingDidFail(_ status: HCIErrorCode) {
        for peer in initiator.sought { pending.events.append(.connectionFailed(peer: peer, status)) }
        initiator.sought = []
    }
}
