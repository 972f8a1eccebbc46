import Ferry
import FerryBluetooth

// Advertising, scanning and connecting.
extension RadioState {
    /// The name by which one adapter knows another: the same for the life of the radio, and different for each observer,
    /// as identifiers are on phones.
    mutating func peerID(of node: Int, seenBy observer: Int) -> PeerID {
        let seed = UInt64(observer) << 32 | UInt64(node)
        var bits = UInt128(mixed(seed)) << 64 | UInt128(mixed(seed ^ 0x9E37_79B9_7F4A_7C15))
        bits = bits & ~(0xF << 76) | 0x4 << 76  // the form of a random UUID, RFC 9562, 5.4
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        let id = PeerID(rawValue: bits)
        nodes[observer].peers[id] = node
        return id
    }

    /// An adapter by its static random address.
    static func identity(ofNode node: Int, isProven: Bool) -> PeerIdentity {
        PeerIdentity(
            bluetoothAddress: firstAddress + UInt64(node), isRandom: true, isProven: isProven)
    }

    private static let firstAddress: UInt64 = 0xC0FE_0000_0000

    /// The adapter with this identity.
    func node(_ identity: PeerIdentity) -> Int? {
        guard let (value, isRandom) = identity.bluetoothAddress, isRandom, identity.certainty > .connection,
            value >= Self.firstAddress, value - Self.firstAddress < nodes.count
        else { return nil }
        return Int(value - Self.firstAddress)
    }

    /// Whether both sides of a link have shown that they have the key of their bond.
    func isProven(_ link: AirLink) -> Bool {
        link.isEncrypted && pairs[Pair(link.central, link.peripheral)]?.isBonded ?? false
    }

    func isInRange(_ a: Int, _ b: Int) -> Bool { pairs[Pair(a, b)]?.isInRange ?? true }

    func rssi(_ a: Int, _ b: Int) -> Int { pairs[Pair(a, b)]?.rssi ?? configuration.rssi }

    // MARK: Advertising events

    /// Sets an advertiser's next event, if anyone is listening for it.
    mutating func kickAdvertising(_ owner: PeripheralOwner) {
        guard !owner.isAdvertisingTimerSet, hasListener(owner) else { return }
        owner.isAdvertisingTimerSet = true
        setTimer(after: configuration.advertisingInterval, .advertising(peripheral: owner.id))
    }

    /// The same for all advertisers, after a listener or the surroundings have changed.
    mutating func kickAllAdvertising() {
        for id in advertisers { if let owner = peripherals[id] { kickAdvertising(owner) } }
    }

    /// The same for one adapter's, which somebody waits for.
    mutating func kickAdvertising(of node: Node) {
        for id in node.peripherals { if let owner = peripherals[id] { kickAdvertising(owner) } }
    }

    /// Starts or stops to advertise.
    mutating func advertise(_ advertisement: AdvertisementData?, _ owner: PeripheralOwner) {
        if owner.advertisement == nil, advertisement != nil { advertisers.append(owner.id) }
        if owner.advertisement != nil, advertisement == nil { advertisers.removeAll { $0 == owner.id } }
        owner.advertisement = advertisement
        kickAdvertising(owner)
    }

    mutating func stopScan(of central: Int) {
        centrals[central]?.scan = nil
        scanners.removeAll { $0 == central }
    }

    mutating func advertisingDue(_ id: Int) {
        guard let owner = peripherals[id] else { return }
        owner.isAdvertisingTimerSet = false
        guard let advertisement = owner.advertisement, nodes[owner.node].state == .poweredOn else { return }
        for central in scanners {
            guard let listener = centrals[central], hears(listener, owner) else { continue }
            listener.seen[id] = advertisement
            let discovery = Discovery(
                peripheral: peerID(of: owner.node, seenBy: listener.node),
                identity: Self.identity(ofNode: owner.node, isProven: false), advertisement: advertisement,
                rssi: rssi(listener.node, owner.node))
            events.append(.central(central) { $0.centralDidDiscover(discovery) })
        }
        let node = nodes[owner.node]
        let waiting = node.awaited.filter { canConnect($0) }
        if !waiting.isEmpty { node.awaited.removeAll { canConnect($0) } }
        for pending in waiting { connect(pending) }
        kickAdvertising(owner)
        wake()
    }

    private func hasListener(_ owner: PeripheralOwner) -> Bool {
        guard owner.advertisement != nil, nodes[owner.node].state == .poweredOn else { return false }
        return nodes[owner.node].awaited.contains(where: canConnect)
            || scanners.contains { id in centrals[id].map { hears($0, owner) } ?? false }
    }

    /// Whether a connection is made as soon as its peripheral advertises.
    private func canConnect(_ pending: PendingConnection) -> Bool {
        isInRange(pending.node, pending.target)
            && linkBetween[Direct(central: pending.node, peripheral: pending.target)] == nil
    }

    /// Gives up those waits for a connection that match.
    mutating func failConnecting(_ reason: BluetoothError, where matches: (PendingConnection) -> Bool) {
        for node in nodes where !node.awaited.isEmpty {
            for pending in node.awaited where matches(pending) {
                events.append(.call { pending.finish(.failure(reason)) })
            }
            node.awaited.removeAll(where: matches)
        }
    }

    /// Whether a scan would report the advertiser now.
    private func hears(_ listener: CentralOwner, _ owner: PeripheralOwner) -> Bool {
        guard let scan = listener.scan, let advertisement = owner.advertisement, listener.node != owner.node,
            nodes[listener.node].state == .poweredOn, isInRange(listener.node, owner.node),
            scan.allowsDuplicates || listener.seen[owner.id] != advertisement,
            scan.rssi?.contains(rssi(listener.node, owner.node)) ?? true
        else { return false }
        if let name = scan.name, advertisement.localName != name { return false }
        guard !scan.services.isEmpty else { return true }
        return scan.services.contains {
            advertisement.services.contains($0) || advertisement.overflowServices.contains($0)
        }
    }

    // MARK: Connecting

    /// Begins to connect, or finishes at once where it cannot be.
    mutating func startConnecting(_ pending: PendingConnection) {
        if let link = sharedLink(pending) {
            attach(pending, to: link)
        } else {
            nodes[pending.target].awaited.append(pending)
            kickAdvertising(of: nodes[pending.target])
        }
        wake()
    }

    /// A link that another owner of the same adapter has made already.
    private func sharedLink(_ pending: PendingConnection) -> AirLink? {
        let id = linkBetween[Direct(central: pending.node, peripheral: pending.target)]
        return id.flatMap { links[$0] }.flatMap { $0.ending == nil ? $0 : nil }
    }

    private mutating func connect(_ pending: PendingConnection) {
        if let link = sharedLink(pending) { return attach(pending, to: link) }
        let link = AirLink(
            id: nextID(), central: pending.node, peripheral: pending.target,
            centralName: peerID(of: pending.node, seenBy: pending.target),
            peripheralName: peerID(of: pending.target, seenBy: pending.node), anchor: time.now)
        links[link.id] = link
        linkBetween[Direct(central: link.central, peripheral: link.peripheral)] = link.id
        let now = time.now
        linkLayer?.open(link.linkLayerName, at: now)
        armLinkLayer()
        nodes[link.peripheral].links.append(link.id)
        linkCount += 1
        let faults = pairs[Pair(link.central, link.peripheral)]?.faults ?? configuration.faults
        link.faults = FaultInjector(faults, stream: linkCount)
        if faults.wrongMTU != nil { count(.wrongMTU) }
        // As hosts do when they have a key.
        if pairs[Pair(link.central, link.peripheral)]?.isBonded ?? false { _ = encrypt(link) }
        attach(pending, to: link)
        if configuration.attMTU > 23 || faults.wrongMTU != nil, let first = link.clients.first,
            let client = clients[first]
        {
            _ = request(.exchangeMTU, of: client, on: link, completion: .none)
        }
    }

    private mutating func attach(_ pending: PendingConnection, to link: AirLink) {
        let client = Client(
            id: nextID(), link: link.id, owner: pending.owner, peer: link.peripheralName, pending.events)
        client.attMTU = reportedMTU(link)
        clients[client.id] = client
        link.clients.append(client.id)
        updateReceiving(link)
        let id = client.id
        events.append(.call { pending.finish(.success(id)) })
    }

    /// Whether the central's side takes values: only when all its owners do.
    mutating func updateReceiving(_ link: AirLink) {
        link.down.isReceiving = link.clients.allSatisfy { clients[$0]?.isReceiving ?? true }
        if !link.down.isReceiving { link.interruptDelivery() }
        link.up.isReceiving = link.pausedOwners.isEmpty
        confirm(link)
        resume(link)
        wake()
    }
}

/// The finaliser of SplitMix64: spreads small numbers over 64 bits.
func mixed(_ value: UInt64) -> UInt64 {
    var z = value &+ 0x9E37_79B9_7F4A_7C15
    z = (z ^ (z >> 30)) &* 0xBF58_476D_1CE4_E5B9
    z = (z ^ (z >> 27)) &* 0x94D0_49BB_1331_11EB
    return z ^ (z >> 31)
}
