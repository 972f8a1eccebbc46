import DequeModule
import Ferry
import FerryBluetooth

// How links, roles and power come to an end.
extension RadioState {
    // MARK: Disconnecting

    /// One owner gives up its connection; the link ends with the last one, after the PDUs that are queued before.
    ///
    /// - Parameter isSilent: whether the owner is not told of the end.
    mutating func disconnect(client id: Int, isSilent: Bool = false) {
        guard let client = clients[id], client.life.beginEnding(.endedHere, isSilent: isSilent),
            let link = links[client.link]
        else { return }
        if link.clients.count > 1 {
            detach(client, from: link, .endedHere)
        } else {
            beginEnding(link, by: .up)
        }
        wake()
    }

    /// The peripheral ends a link, after the PDUs that are queued before.
    mutating func disconnectCentral(of link: AirLink) {
        beginEnding(link, by: .down)
        wake()
    }

    private mutating func beginEnding(_ link: AirLink, by side: Direction) {
        guard link.changeLife({ $0.beginEnding(by: side) }) else { return }
        send(.terminate, side, on: link)
        setTimer(after: configuration.supervisionTimeout, .forcedEnd(link: link.id))
        resume(link)
    }

    private mutating func detach(_ client: Client, from link: AirLink, _ reason: BluetoothError) {
        for index in link.subscriptions.indices.reversed()
        where link.subscriptions[index].clients.contains(where: { $0 === client }) {
            unsubscribe(client, index, on: link)
        }
        link.clients.removeAll { $0 == client.id }
        link.interruptDelivery()
        failRequests(link, reason) { $0.client == client.id && $0.deadline == nil }
        for index in link.requests.indices where link.requests[index].client == client.id {
            let sent = link.requests[index]
            link.requests[index].completion = .none
            finish(sent, .failure(reason))
        }
        for id in link.channels where channels[id]?.owner == client.id { endChannel(id) }
        finish(client, reason)
        updateReceiving(link)
    }

    private mutating func finish(_ client: Client, _ reason: BluetoothError) {
        client.life.beginEnding(reason)
        events.append(.clientEnded(client.id, reason))
    }

    /// The owner's last event, with the first of the reasons that there were.
    mutating func clientEnded(_ id: Int, _ reason: BluetoothError) -> Step? {
        guard let (sink, reason) = clients.removeValue(forKey: id)?.life.end(reason) else { return nil }
        return .call { sink.peripheralDidDisconnect(reason) }
    }

    private mutating func failRequests(
        _ link: AirLink, _ reason: BluetoothError, where matches: (ClientRequest) -> Bool
    ) {
        let failed = link.requests.filter(matches)
        link.requests.removeAll(where: matches)
        for request in failed { finish(request, .failure(reason)) }
    }

    /// Ends a link now, as a side has asked for.
    mutating func endAsRequested(_ link: AirLink) {
        if let ending = link.life.requested { end(link, ending) }
    }

    /// Ends a link now. A side that has asked for the end gets that as its reason.
    mutating func end(_ link: AirLink, _ cause: Ending) {
        guard let ending = link.changeLife({ $0.end(cause) }) else { return }
        links[link.id] = nil
        linkBetween[Direct(central: link.central, peripheral: link.peripheral)] = nil
        link.interruptDelivery()
        let now = time.now
        linkLayer?.close(link.linkLayerName, at: now)
        let node = nodes[link.peripheral]
        node.links.removeAll { $0 == link.id }
        countSharer(link)
        endOpenings(link, ending.central)
        failRequests(link, ending.central) { _ in true }
        openRequests.connectionDidEnd(UInt64(link.id))
        for id in link.channels { channelLinkEnded(id, ending) }
        for id in link.clients {
            if let client = clients[id] { finish(client, ending.central) }
        }
        tellPeripherals(link, ending.peripheral)
        node.hasFreedPlace = true
        signalReadyToUpdate(node)
        scheduleAdvertising(of: node)
        wake()
    }

    /// First the disconnection, for each role that had a subscription, then the ends of the subscriptions.
    private mutating func tellPeripherals(_ link: AirLink, _ reason: BluetoothError) {
        let central = link.handle
        var owners: [Int] = []
        for owner in link.subscriptions.map(\.owner) where !owners.contains(owner) {
            owners.append(owner)
            events.append(.peripheral(owner) { $0.central(central, didDisconnect: reason) })
        }
        for subscription in link.subscriptions {
            let characteristic = subscription.characteristic
            events.append(
                .peripheral(subscription.owner) { $0.central(central, didUnsubscribeFrom: characteristic) })
        }
    }

    // MARK: Timeouts

    /// Starts to watch the link's ATT transactions, with one timer however many there are.
    mutating func watchTransactions(_ link: AirLink) {
        guard !link.isTransactionTimerSet else { return }
        let deadlines = [link.requests.first?.deadline, link.indication.deadline].compactMap { $0 }
        guard let deadline = deadlines.min() else { return }
        link.isTransactionTimerSet = true
        timers.append((deadline, .transactions(link: link.id)))
    }

    /// After an ATT transaction timeout nothing more may be asked on the link, so it is given up (Core Specification 5.4,
    /// Vol 3, Part F, 3.3.3).
    mutating func transactionsDue(_ id: Int) {
        guard let link = links[id] else { return }
        link.isTransactionTimerSet = false
        let now = time.now
        let timedOut = BluetoothError(
            .timedOut, "no answer within \(configuration.requestTimeout), the ATT transaction timeout")
        if let deadline = link.requests.first?.deadline, deadline <= now {
            let byPeer = BluetoothError(
                .disconnectedByPeer, "the central ended the connection: a request was not answered in time")
            end(link, Ending(central: timedOut, peripheral: byPeer))
        } else if let deadline = link.indication.deadline, deadline <= now {
            let byPeer = BluetoothError(
                .disconnectedByPeer, "the peripheral ended the connection: an indication was not confirmed in time")
            end(link, Ending(central: byPeer, peripheral: timedOut))
        } else {
            watchTransactions(link)
        }
    }

    /// A disconnection has waited long enough for the PDUs before it.
    mutating func forcedEndDue(_ id: Int) {
        guard let link = links[id] else { return }
        // A peer out of range has not heard of the disconnection.
        if link.reach.isInRange { endAsRequested(link) } else { end(link, lost) }
    }

    // MARK: Range

    mutating func setInRange(_ isInRange: Bool, _ a: Int, _ b: Int) {
        pairs[Pair(a, b), default: PairConditions()].isInRange = isInRange
        for link in sortedLinks
        where Pair(link.central, link.peripheral) == Pair(a, b) && link.reach.isInRange != isInRange {
            let now = time.now
            link.reach = isInRange ? .inRange : .silent(since: now)
            linkLayer?.setInRange(isInRange, on: link.linkLayerName, at: now)
            armLinkLayer()
            if isInRange {
                resume(link)
            } else {
                setTimer(after: configuration.supervisionTimeout, .supervision(link: link.id, since: now))
            }
        }
        scheduleAllAdvertising()
        wake()
    }

    mutating func supervisionDue(_ id: Int, since silence: Timestamp) {
        if let link = links[id], link.reach == .silent(since: silence) { end(link, lost) }
    }

    private var lost: Ending {
        .both(
            BluetoothError(
                .connectionTimeout,
                "nothing was heard of the peer for \(configuration.supervisionTimeout), the supervision timeout"))
    }

    private var sortedLinks: [AirLink] { links.values.sorted { $0.id < $1.id } }

    // MARK: Power

    mutating func setState(_ state: AdapterState, of index: Int) {
        let node = nodes[index]
        guard node.state != state else { return }
        let wasOn = node.state == .poweredOn
        node.state = state
        for id in node.peripherals { events.append(.peripheral(id) { $0.peripheralAdapterDidChange(state) }) }
        for id in node.centrals { events.append(.central(id) { $0.centralAdapterDidChange(state) }) }
        if wasOn { powerDown(node) }
        wake()
    }

    private mutating func powerDown(_ node: Node) {
        let here = BluetoothError.notPoweredOn(node.name, node.state)
        let there = BluetoothError(.disconnectedByPeer, "the peer's adapter was switched off")
        for link in sortedLinks {
            if link.central == node.index {
                end(link, Ending(central: here, peripheral: there))
            } else if link.peripheral == node.index {
                end(link, Ending(central: there, peripheral: here))
            }
        }
        for id in node.peripherals {
            guard let owner = peripherals[id] else { continue }
            owner.wantsReady = false
            guard owner.advertisement != nil else { continue }
            advertise(nil, owner)
            events.append(.peripheral(id) { $0.peripheralDidStopAdvertising(here) })
        }
        for id in node.centrals { stopScan(of: id) }
        failConnecting(here, of: node.centrals)
        node.database.removeAll()
        node.psms = [:]
    }

    // MARK: Roles

    /// Withdraws a service and tells the centrals that are connected.
    mutating func unpublish(_ service: AttributeID, owner: Int, node: Node) {
        guard let characteristics = node.database.remove(service, owner: owner) else { return }
        for link in node.links.compactMap({ links[$0] }) {
            link.subscriptions.removeAll { characteristics.contains($0.characteristic) }
            countSharer(link)
        }
        tellCentrals(of: node, ofModified: [service])
    }

    /// Tells the centrals that are connected that these services are gone, or that there are new ones if it names none.
    mutating func tellCentrals(of node: Node, ofModified services: [AttributeID]) {
        for client in node.links.compactMap({ links[$0] }).flatMap(\.clients) {
            events.append(.client(client) { $0.peripheralDidModifyServices(services) })
        }
        wake()
    }

    mutating func closePeripheral(_ id: Int) {
        guard let owner = peripherals[id] else { return }
        let node = nodes[owner.node]
        for service in node.database.services where service.owner == id {
            unpublish(service.id, owner: id, node: node)
        }
        node.psms = node.psms.filter { $0.value.owner != id }
        for link in node.links.compactMap({ links[$0] }) {
            if link.pausedOwners.remove(id) != nil { updateReceiving(link) }
            for channel in link.channels where channels[channel]?.owner == id { endChannel(channel) }
        }
        for request in openRequests.roleDidClose(UInt64(id)) { answer(request, .failure(.unlikelyError)) }
        released.append(owner.sink)
        advertise(nil, owner)
        peripherals[id]?.isClosed = true
        peripherals[id] = nil
        node.peripherals.removeAll { $0 == id }
        for central in centrals.values { central.scan?.forget(id) }
    }

    mutating func closeCentral(_ id: Int) {
        guard let owner = centrals[id] else { return }
        failConnecting(.roleClosed, of: [id])
        stopScan(of: id)
        for client in clients.values.filter({ $0.owner == id }).sorted(by: { $0.id < $1.id }) {
            disconnect(client: client.id)
        }
        released.append(owner.sink)
        centrals[id] = nil
        nodes[owner.node].centrals.removeAll { $0 == id }
        wake()
    }
}
