import Ferry
import FerryBluetooth

// The peripheral's transmit queue: one for all centrals, shared by the rule that `Configuration.transmitQueueDepth` states.
extension RadioState {
    mutating func tryUpdate(
        _ value: UnsafeRawBufferPointer, of attribute: AttributeID, for recipients: UpdateRecipients,
        _ owner: PeripheralOwner
    ) throws(BluetoothError) -> Bool {
        guard !owner.isClosed else { throw BluetoothError.roleClosed }
        let node = nodes[owner.node]
        // The hot path: a subscription says that everything below holds.
        if case .one(let central) = recipients, let link = owner.link(to: central, in: self),
            let index = link.subscription(to: attribute), link.subscriptions[index].owner == owner.id
        {
            guard hasPlace(link, on: node) else { return refuse(owner) }
            queue(value, for: link, link.subscriptions[index])
            wake()
            return true
        }
        try node.requirePower()
        guard let characteristic = node.database.characteristics[attribute], characteristic.owner == owner.id else {
            throw BluetoothError.notPublished(attribute)
        }
        guard characteristic.properties.offersSubscription else { throw .notOffered(nil, by: attribute) }
        switch recipients {
        case .one(let central):
            guard owner.link(to: central, in: self) != nil else { throw .notConnected(central) }
            return true
        case .all:
            return queue(value, of: attribute, for: node.links, owner, node)
        case .some(let centrals):
            var chosen: [Int] = []
            for central in centrals {
                if let link = owner.link(to: central, in: self), !chosen.contains(link.id) { chosen.append(link.id) }
            }
            return queue(value, of: attribute, for: chosen, owner, node)
        }
    }

    /// A place of each recipient, or none at all.
    private mutating func queue(
        _ value: UnsafeRawBufferPointer, of attribute: AttributeID, for chosen: [Int], _ owner: PeripheralOwner,
        _ node: Node
    ) -> Bool {
        for id in chosen {
            guard let link = links[id], link.subscription(to: attribute) != nil else { continue }
            guard hasPlace(link, on: node) else { return refuse(owner) }
        }
        for id in chosen {
            guard let link = links[id], let index = link.subscription(to: attribute) else { continue }
            queue(value, for: link, link.subscriptions[index])
        }
        wake()
        return true
    }

    private func hasPlace(_ link: AirLink, on node: Node) -> Bool {
        guard !link.indication.isOpen else { return false }
        let held = link.down.ring?.count ?? 0
        return held < max(1, configuration.transmitQueueDepth / max(1, node.sharers))
    }

    private mutating func refuse(_ owner: PeripheralOwner) -> Bool {
        owner.wantsReady = true
        mayBeReadyEarly(.readyToUpdate(peripheral: owner.id))
        return false
    }

    private mutating func queue(_ value: UnsafeRawBufferPointer, for link: AirLink, _ subscription: Subscribed) {
        let isIndication = subscription.kind == .indicate
        let ring = ring(of: link.down)
        ring.push(
            value, length: min(value.count, link.maximumValueLength), attribute: subscription.characteristic,
            order: link.down.takeOrder(), isIndication: isIndication)
        announce(.attribute(pduLength: min(value.count, link.maximumValueLength) + 3), .down, on: link)
        if isIndication {
            let deadline = time.now + configuration.requestTimeout
            link.changeIndication { $0.queue(until: deadline) }
            watchTransactions(link)
        }
        resume(link)
    }

    /// Keeps count of the links among which the queue is shared.
    func countSharer(_ link: AirLink) {
        let isSharer = links[link.id] != nil && (!link.subscriptions.isEmpty || link.down.ring?.isEmpty == false)
        guard isSharer != link.isSharer else { return }
        link.isSharer = isSharer
        nodes[link.peripheral].sharers += isSharer ? 1 : -1
    }

    /// A place has become free: roles that were refused one get a ready signal when the link's turn is over.
    mutating func freePlace(_ link: AirLink) {
        link.down.ring?.popFirst()
        if link.subscriptions.isEmpty { countSharer(link) }
        nodes[link.peripheral].hasFreedPlace = true
    }

    /// Tells the refused of places that have become free.
    mutating func signalReadyToUpdate(_ node: Node) {
        guard node.hasFreedPlace else { return }
        node.hasFreedPlace = false
        for id in node.peripherals {
            guard let owner = peripherals[id], owner.wantsReady else { continue }
            owner.wantsReady = false
            signalReady(.readyToUpdate(peripheral: id))
        }
    }

    /// The central has confirmed an indication: its place is free again.
    mutating func receiveConfirmation(on link: AirLink) {
        guard link.changeIndication({ $0.complete() }) else { return }
        freePlace(link)
        signalReadyToUpdate(nodes[link.peripheral])
    }
}
