import DequeModule
import Ferry
import FerryBluetooth

// How links, roles and power come to an end.
extension RadioState {
    // MARK: Disconnecting

    /// One owner gives up its connection; the link ends with the last one, after what is queued before that.
    ///
    /// - Parameter isSilent: whether the owner is not told of the end.
    mutating func disconnect(client id: Int, isSilent: Bool = false) {
        guard let client = clients[id], client.life.beginEnding(.endedHere, isSilent: isSilent),
            let link = links[client.link]
        else { return }
        if link.clients.count > 1 {
            detach(client, from: link, .endedHere)
        } else {
            end(
                link, by: .up,
                Ending(
                    centralReason: .endedHere,
                    peripheralReason: BluetoothError(.disconnectedByPeer, "the central ended the connection")))
        }
        wake()
    }

    /// One side ends a link. Where the other has done so before, and this one has not heard of it, each has its own reason.
    private mutating func end(_ link: AirLink, by direction: Direction, _ ending: Ending) {
        switch (link.life, direction) {
        case (.open, _): startEnding(link, direction, ending)
        case (.ending(by: .down), .up): link.ending?.centralReason = ending.centralReason
        case (.ending(by: .up), .down): link.ending?.peripheralReason = ending.peripheralReason
        case (.ending, _), (.ended, _): break
        }
    }

    /// The peripheral ends a link, after what is queued before that.
    mutating func disconnectCentral(of link: AirLink) {
        end(
            link, by: .down,
            Ending(
                centralReason: BluetoothError(.disconnectedByPeer, "the peripheral ended the connection"),
                peripheralReason: .endedHere))
        wake()
    }

    private mutating func startEnding(_ link: AirLink, _ direction: Direction, _ ending: Ending) {
        link.ending = ending
        link.life = .ending(by: direction)
        send(.terminate, direction, on: link)
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
        failRequests(link, reason) { $0.client == client.id && !$0.isSent }
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

    /// Ends a link now, for the reasons that were set or that are given. A side that has ended it itself keeps its reason.
    mutating func end(_ link: AirLink, _ given: Ending? = nil) {
        guard links[link.id] != nil else { return }
        var ending =
            given ?? link.ending
            ?? Ending(centralReason: BluetoothError.notConnected, peripheralReason: BluetoothError.notConnected)
        if let begun = link.ending {
            if begun.centralReason.code == .disconnectedLocally { ending.centralReason = begun.centralReason }
            if begun.peripheralReason.code == .disconnectedLocally { ending.peripheralReason = begun.peripheralReason }
        }
        links[link.id] = nil
        linkBetween[Direct(central: link.central, peripheral: link.peripheral)] = nil
        link.life = .ended
        link.interruptDelivery()
        let now = time.now
        linkLayer?.close(link.linkLayerName, at: now)
        let node = nodes[link.peripheral]
        node.links.removeAll { $0 == link.id }
        countSharer(link)
        endOpenings(link, ending.centralReason)
        failRequests(link, ending.centralReason) { _ in true }
        openRequests.connectionDidEnd(UInt64(link.id))
        for id in link.channels { channelLinkEnded(id, ending) }
        for id in link.clients {
            if let client = clients[id] { finish(client, ending.centralReason) }
        }
        tellPeripherals(link, ending.peripheralReason)
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
        let deadlines = [link.requestDeadline, link.indicationDeadline].compactMap { $0 }
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
        if let deadline = link.requestDeadline, deadline <= now {
            let byPeer = BluetoothError(
                .disconnectedByPeer, "the central ended the connection: a request was not answered in time")
            end(link, Ending(centralReason: timedOut, peripheralReason: byPeer))
        } else if let deadline = link.indicationDeadline, deadline <= now {
            let byPeer = BluetoothError(
                .disconnectedByPeer, "the peripheral ended the connection: an indication was not confirmed in time")
            end(link, Ending(centralReason: byPeer, peripheralReason: timedOut))
        } else {
            watchTransactions(link)
        }
    }

    /// A disconnection has waited long enough for what is queued before it.
    mutating func forcedEndDue(_ id: Int) {
        guard let link = links[id] else { return }
        // One that is out of reach has not heard of it.
        end(link, link.isInRange ? nil : lost)
    }

    // MARK: Range

    mutating func setInRange(_ isInRange: Bool, _ a: Int, _ b: Int) {
        pairs[Pair(a, b), default: PairConditions()].isInRange = isInRange
        for link in sortedLinks where Pair(link.central, link.peripheral) == Pair(a, b) && link.isInRange != isInRange {
            link.isInRange = isInRange
            let now = time.now
            linkLayer?.setInRange(isInRange, on: link.linkLayerName, at: now)
            armLinkLayer()
            link.supervisionToken += 1
            if isInRange {
                resume(link)
            } else {
                setTimer(
                    after: configuration.supervisionTimeout,
                    .supervision(link: link.id, token: link.supervisionToken))
            }
        }
        scheduleAllAdvertising()
        wake()
    }

    mutating func supervisionDue(_ id: Int, token: Int) {
        guard let link = links[id], link.supervisionToken == token, !link.isInRange else { return }
        end(link, lost)
    }

    private var lost: Ending {
        let reason = BluetoothError(
            .connectionTimeout,
            "nothing was heard of the peer for \(configuration.supervisionTimeout), the supervision timeout")
        return Ending(centralReason: reason, peripheralReason: reason)
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
                end(link, Ending(centralReason: here, peripheralReason: there))
            } else if link.peripheral == node.index {
                end(link, Ending(centralReason: there, peripheralReason: here))
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
