import Ferry
import FerryBluetooth

// Advertising, scanning and connecting.
extension RadioState {
    /// The name by which one adapter knows another: the same for the life of the radio, and different for each observer,
    /// as identifiers are on phones.
    func peerID(of node: Int, seenBy observer: Int) -> PeerID {
        nodes[observer].peers.name(node, Self.makeID(of: node, seenBy: observer)).name
    }

    private static func makeID(of node: Int, seenBy observer: Int) -> PeerID {
        let seed = UInt64(observer) << 32 | UInt64(node)
        var bits = UInt128(mixed(seed)) << 64 | UInt128(mixed(seed ^ 0x9E37_79B9_7F4A_7C15))
        bits = bits & ~(0xF << 76) | 0x4 << 76  // the form of a random UUID, RFC 9562, 5.4
        bits = bits & ~(0x3 << 62) | 0x2 << 62
        return PeerID(rawValue: bits)
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
    mutating func scheduleAdvertising(_ owner: PeripheralOwner) {
        guard !owner.isAdvertisingTimerSet, hasListener(owner) else { return }
        owner.isAdvertisingTimerSet = true
        setTimer(
            after: owner.advertisingInterval ?? configuration.advertisingInterval, .advertising(peripheral: owner.id))
    }

    /// The same for all advertisers, after a listener or what lies between adapters has changed.
    mutating func scheduleAllAdvertising() {
        for id in advertisers { if let owner = peripherals[id] { scheduleAdvertising(owner) } }
    }

    /// The same for one adapter's roles, which a central waits for.
    mutating func scheduleAdvertising(of node: Node) {
        for id in node.peripherals { if let owner = peripherals[id] { scheduleAdvertising(owner) } }
    }

    /// Starts or stops to advertise.
    mutating func advertise(
        _ advertisement: AdvertisementData?, every interval: Duration? = nil, _ owner: PeripheralOwner
    ) {
        owner.advertisingInterval = interval
        if owner.advertisement == nil, advertisement != nil { advertisers.append(owner.id) }
        if owner.advertisement != nil, advertisement == nil { advertisers.removeAll { $0 == owner.id } }
        owner.advertisement = advertisement
        scheduleAdvertising(owner)
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
            let rssi = rssi(listener.node, owner.node)
            _ = listener.scan?.report(advertisement, rssi: rssi, from: id)
            let discovery = Discovery(
                peripheral: peerID(of: owner.node, seenBy: listener.node),
                identity: Self.identity(ofNode: owner.node, isProven: false), advertisement: advertisement, rssi: rssi)
            events.append(.central(central) { $0.centralDidDiscover(discovery) })
        }
        for wait in attempts[owner.node].filter({ advertisement.isConnectable && canConnect($0, owner.node) }) {
            attempts.remove(wait.waiter, for: owner.node)
            connect(wait, owner.node)
        }
        scheduleAdvertising(owner)
        wake()
    }

    private func hasListener(_ owner: PeripheralOwner) -> Bool {
        guard let advertisement = owner.advertisement, nodes[owner.node].state == .poweredOn else { return false }
        return advertisement.isConnectable && attempts[owner.node].contains { canConnect($0, owner.node) }
            || scanners.contains { id in centrals[id].map { hears($0, owner) } ?? false }
    }

    /// Whether a connection is made as soon as its peripheral advertises.
    private func canConnect(_ wait: ConnectionAttempts<Int, Int>.Wait, _ target: Int) -> Bool {
        guard let node = centrals[Int(wait.role)]?.node else { return false }
        return isInRange(node, target) && linkBetween[Direct(central: node, peripheral: target)] == nil
    }

    /// Gives up the waits of some roles for connections.
    mutating func failConnecting(_ reason: BluetoothError, of roles: [Int]) {
        for wait in attempts.giveUp(where: { roles.contains(Int($0.role)) }).waits {
            events.append(.call { wait.waiter.resume(.failure(reason)) })
        }
    }

    /// Whether a scan would report the advertiser now.
    private func hears(_ listener: CentralOwner, _ owner: PeripheralOwner) -> Bool {
        guard let scan = listener.scan, let advertisement = owner.advertisement, listener.node != owner.node,
            nodes[listener.node].state == .poweredOn, isInRange(listener.node, owner.node)
        else { return false }
        return scan.wants(advertisement, rssi: rssi(listener.node, owner.node), from: owner.id)
    }

    // MARK: Connecting

    /// Begins to connect. Returns the adapter that is waited for.
    mutating func startConnecting(
        _ waiter: Waiter<Int>, of owner: Int, to peer: PeerID, _ events: any PeripheralConnectionEvents
    ) throws(BluetoothError) -> Int {
        let node = nodes[try openCentral(owner).node]
        try node.requirePower()
        guard let target = node.peers.key(of: peer) else { throw .unknownPeer(peer) }
        if let link = sharedLink(node.index, target) {
            attach(waiter, of: owner, events, to: link)
        } else {
            attempts.add(waiter, of: UInt64(owner), for: target, peer, events)
            scheduleAdvertising(of: nodes[target])
        }
        wake()
        return target
    }

    /// A link that another owner of the same adapter has made already.
    private func sharedLink(_ node: Int, _ target: Int) -> AirLink? {
        let id = linkBetween[Direct(central: node, peripheral: target)]
        return id.flatMap { links[$0] }.flatMap { $0.life == .open ? $0 : nil }
    }

    private mutating func connect(_ wait: ConnectionAttempts<Int, Int>.Wait, _ target: Int) {
        guard let node = centrals[Int(wait.role)]?.node else { return }
        if let link = sharedLink(node, target) {
            return attach(wait.waiter, of: Int(wait.role), wait.events, to: link)
        }
        let link = AirLink(
            id: nextID(), central: node, peripheral: target, centralName: peerID(of: node, seenBy: target),
            peripheralName: peerID(of: target, seenBy: node), anchor: time.now)
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
        attach(wait.waiter, of: Int(wait.role), wait.events, to: link)
        if configuration.attMTU > 23 || faults.wrongMTU != nil, let first = link.clients.first,
            let client = clients[first]
        {
            request(.exchangeMTU, of: client, on: link, completion: .none)
        }
    }

    private mutating func attach(
        _ waiter: Waiter<Int>, of owner: Int, _ events: any PeripheralConnectionEvents, to link: AirLink
    ) {
        let client = Client(id: nextID(), link: link.id, owner: owner, peer: link.peripheralName, events)
        client.attMTU = reportedMTU(link)
        clients[client.id] = client
        link.clients.append(client.id)
        updateReceiving(link)
        self.events.append(.connected(waiter, client: client.id))
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

/// Spreads small numbers over 64 bits.
func mixed(_ value: UInt64) -> UInt64 {
    var generator = SeededGenerator(seed: value)
    return generator.next()
}
