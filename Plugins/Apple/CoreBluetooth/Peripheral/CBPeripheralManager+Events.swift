import Ferry
import FerryBluetooth
import Foundation

/// An event of a characteristic whose publication may be under way still.
struct EarlyEvent {
    let id: AttributeID
    /// There is no such characteristic.
    let refuse: () -> Void
    let body: (CBPeripheralManager, CBMutableCharacteristic) -> Void
}

/// What a peripheral manager is doing.
struct PeripheralProgress {
    var services: [CBMutableService] = []
    var characteristics: [AttributeID: CBMutableCharacteristic] = [:]
    /// Publications that are under way; events of attributes not known yet wait for them, and those that follow.
    var publishing = 0
    var early: [EarlyEvent] = []
    /// The advertisement, on the air or pending.
    var advertisement: Advertisement?
    var isAdvertising = false
    var attempt = 0
    var channels: Set<CBL2CAPPSM> = []
    var readyCalls = ReadyCalls()
    /// Number of power losses; operations begun before the last one do not count.
    var powerLosses = 0
    var restoration: RestorationFile?
    var restoring = Restoring<PeripheralSnapshot, CBMutableService>.nothing
}

extension CBPeripheralManager {
    /// Notes under which names a service is published, and lets the events go that have waited for it.
    func register(_ service: CBMutableService, _ published: PublishedService?) {
        if published == nil { progress { $0.services.removeAll { $0 === service } } }
        let local = (service.characteristics ?? []).compactMap { $0 as? CBMutableCharacteristic }
        for (index, characteristic) in local.enumerated() {
            let id = published.flatMap { index < $0.characteristics.count ? $0.characteristics[index] : nil }
            characteristic.publication {
                $0.id = id
                $0.manager = id.map { _ in self }
                $0.isFrozen = id != nil
            }
            if let id { progress { $0.characteristics[id] = characteristic } }
        }
        // Last, because one that has failed can be added again from here on.
        service.publication {
            $0.id = published?.id
            $0.manager = published.map { _ in self }
            $0.isFrozen = published != nil
        }
        let refused = progress { progress in
            progress.publishing -= 1
            guard progress.publishing == 0 else { return [EarlyEvent]() }
            defer { progress.early = [] }
            // Under the lock, so that no later event overtakes them.
            return progress.early.filter { event in
                guard let known = progress.characteristics[event.id] else { return true }
                tell { event.body($0, known) }
                return false
            }
        }
        for event in refused { event.refuse() }
    }

    /// Forgets a service, and opens it for changes again. One at a time: a removal and a loss of power may meet.
    func withdraw(_ service: CBMutableService) -> AttributeID? {
        withdrawal.withLock {
            let publication = service.publication.current
            guard publication.manager === self else { return nil }
            progress { $0.services.removeAll { $0 === service } }
            for case let characteristic as CBMutableCharacteristic in service.characteristics ?? [] {
                let id = characteristic.publication.current.id
                characteristic.publication.current = Publication()
                progress { progress in id.map { progress.characteristics[$0] = nil } }
                characteristic.subscribers.current = []
            }
            // Last, because from here on it can be added again.
            service.publication.current = Publication()
            return publication.id
        }
    }

    /// Hands an event of a characteristic to the program's queue, or refuses it when there is no such characteristic.
    fileprivate func deliver(
        _ id: AttributeID, _ body: @escaping (CBPeripheralManager, CBMutableCharacteristic) -> Void,
        orElse refuse: @escaping () -> Void = {}
    ) {
        let isRefused = progress { progress in
            let known = progress.characteristics[id]
            if let known, progress.early.isEmpty {
                tell { body($0, known) }
            } else if progress.publishing > 0 {
                progress.early.append(EarlyEvent(id: id, refuse: refuse, body: body))
            } else {
                return true
            }
            return false
        }
        if isRefused { refuse() }
    }

    /// The central's object, which from now on stands for this connection of its.
    func central(_ connected: ConnectedCentral) -> CBCentral {
        let central = central(connected.peer)
        central.connection = connected
        return central
    }

    func central(_ peer: PeerID) -> CBCentral {
        centrals.object(peer) { [role, quirks] in
            CBCentral(identifier: UUID(peer), quirks) { role.maximumUpdateValueLength(for: $0) }
        }
    }
}

/// Takes the adapter's events and has them carried out on the program's queue.
final class PeripheralEvents: PeripheralRoleEvents {
    let manager = WeakReference<CBPeripheralManager>()
    let role = Guarded<(any PeripheralRole)?>(nil)
    private let callbacks: Callbacks
    private let waiting = Guarded<[ConnectedCentral: (count: Int, isPaused: Bool)]>([:])

    /// Writes of one central that may wait for the delegate before it is asked to pause.
    static let mostUndelivered = 256
    /// Writes of one central that wait at most, where the adapter cannot have it pause; further ones are dropped.
    static let mostKept = 8192

    init(_ callbacks: Callbacks) { self.callbacks = callbacks }

    func peripheralAdapterDidChange(_ state: AdapterState) {
        callbacks.run { [manager] in manager.object?.adapterDidChange(CBManagerState(state)) }
    }

    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        manager.object?.deliver(characteristic) { manager, characteristic in
            let central = manager.central(central)
            characteristic.subscribers { if !$0.contains(central) { $0.append(central) } }
            manager.delegate?.peripheralManager(manager, central: central, didSubscribeTo: characteristic)
        }
    }

    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        manager.object?.deliver(characteristic) { manager, characteristic in
            let central = manager.central(central)
            characteristic.subscribers { $0.removeAll { $0 == central } }
            manager.delegate?.peripheralManager(manager, central: central, didUnsubscribeFrom: characteristic)
        }
    }

    func peripheralDidReceive(_ request: ReadRequest) {
        guard let manager = manager.object else { return }
        let answer = PendingAnswer(request.id, isRead: true, manager.role)
        manager.deliver(request.characteristic) { manager, characteristic in
            let central = manager.central(request.central)
            let ask = CBATTRequest(answer, central, characteristic, offset: request.offset, value: nil)
            guard let delegate = manager.delegate else {
                return manager.respond(to: ask, withResult: .requestNotSupported)
            }
            delegate.peripheralManager(manager, didReceiveRead: ask)
        } orElse: {
            answer.give(.failure(.attributeNotFound))
        }
    }

    func peripheralDidReceive(_ request: WriteRequest) {
        guard let manager = manager.object, let first = request.parts.first else { return }
        let answer = PendingAnswer(request.id, isRead: false, manager.role)
        manager.deliver(first.characteristic) { manager, _ in
            let central = manager.central(request.central)
            let asks: [CBATTRequest] = request.parts.compactMap { part in
                manager.progress { $0.characteristics[part.characteristic] }.map {
                    CBATTRequest(answer, central, $0, offset: part.offset, value: Data(part.value))
                }
            }
            // Some of the characteristics may have been withdrawn meanwhile.
            guard let first = asks.first, asks.count == request.parts.count else {
                answer.give(.failure(.attributeNotFound))
                return
            }
            guard let delegate = manager.delegate else {
                return manager.respond(to: first, withResult: .requestNotSupported)
            }
            delegate.peripheralManager(manager, didReceiveWrite: asks)
        } orElse: {
            answer.give(.failure(.attributeNotFound))
        }
    }

    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        let data = value.withUnsafeBytes { Data($0) }
        guard let manager = manager.object else { return }
        guard waiting({ $0[central]?.count ?? 0 }) < Self.mostKept else {
            return Misuse.report("a write was dropped: \(Self.mostKept) wait for the delegate already")
        }
        count(central, 1)
        manager.deliver(characteristic) { [weak self] manager, characteristic in
            self?.count(central, -1)
            let ask = CBATTRequest(nil, manager.central(central), characteristic, offset: 0, value: data)
            manager.delegate?.peripheralManager(manager, didReceiveWrite: [ask])
        } orElse: { [weak self] in
            self?.count(central, -1)
        }
    }

    /// Counts the writes that wait for the program, and has the central pause when they are many.
    private func count(_ central: ConnectedCentral, _ change: Int) {
        waiting { waiting in
            var entry = waiting[central] ?? (0, false)
            entry.count += change
            var isReceiving: Bool?
            if !entry.isPaused, entry.count >= Self.mostUndelivered {
                entry.isPaused = true
                isReceiving = false
            } else if entry.isPaused, entry.count <= Self.mostUndelivered / 4 {
                entry.isPaused = false
                isReceiving = true
            }
            waiting[central] = entry.count == 0 && !entry.isPaused ? nil : entry
            // Under the lock, so that pausing and going on cannot change places.
            if let isReceiving { role.current?.setReceiving(isReceiving, from: central) }
        }
    }

    func peripheralIsReadyToUpdate() {
        callbacks.run { [manager] in
            guard let manager = manager.object, !manager.progress({ $0.readyCalls.isLost(manager.quirks) }) else {
                return
            }
            manager.delegate?.peripheralManagerIsReady(toUpdateSubscribers: manager)
        }
    }

    func peripheralDidOpen(_ channel: any L2CAPChannel) {
        callbacks.run { [manager] in
            guard let manager = manager.object else { return channel.close() }
            let opened = CBL2CAPChannel(channel, peer: manager.central(channel.peerID))
            manager.delegate?.peripheralManager(manager, didOpen: opened, error: nil)
        }
    }

    func peripheralDidStopAdvertising(_ reason: BluetoothError) {
        callbacks.run { [manager] in
            manager.object?.progress {
                $0.isAdvertising = false
                $0.advertisement = nil
            }
        }
    }
}

extension CBPeripheralManager {
    func adapterDidChange(_ state: CBManagerState) {
        guard isDue(state, delegate != nil) else { return }
        if let found = progress({ $0.restoring.found }) { handBack(found) }
        setState(state)
        if state != .poweredOn {
            // The adapter has dropped everything, so all services must be added again. But it may be on again already,
            // and may have taken requests before this event.
            let (services, channels) = progress { progress in
                defer {
                    progress.isAdvertising = false
                    progress.advertisement = nil
                    progress.channels = []
                    progress.powerLosses += 1
                }
                return (progress.services, progress.channels)
            }
            for service in services {
                if let id = withdraw(service) { role.unpublish(id) }
            }
            for channel in channels { role.unpublishL2CAPChannel(PSM(rawValue: channel)) }
            role.stopAdvertising()
        }
        delegate?.peripheralManagerDidUpdateState(self)
        if state == .poweredOn { resume() }
    }
}
