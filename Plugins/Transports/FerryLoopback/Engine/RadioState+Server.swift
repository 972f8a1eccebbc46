import FerryBluetooth

// The peripheral's side of ATT: answers what it can, asks the owner of the characteristic for the rest.
extension RadioState {
    /// Serves a request that has just arrived over a link.
    mutating func serve(_ request: ATTRequest, on link: AirLink) {
        switch request {
        case .exchangeMTU:
            answer(link, .success(.done))
        case .discover(let procedure):
            answer(link, discover(procedure, in: nodes[link.peripheral].database))
        case .read(let attribute, let offset):
            if let response = read(attribute, offset: offset, on: link) { answer(link, response) }
        case .write(let attribute, let value):
            switch writable(attribute, on: link) {
            case .failure(let error): answer(link, .failure(error))
            case .success(let characteristic):
                let part = WriteRequest.Part(characteristic: attribute, offset: 0, value: value)
                ask(characteristic.owner, link, parts: [part])
            }
        case .prepare(let attribute, let offset, let value):
            switch writable(attribute, on: link) {
            case .failure(let error): answer(link, .failure(error))
            case .success where link.prepared.count >= 64: answer(link, .failure(.prepareQueueFull))
            case .success:
                link.prepared.append(.init(characteristic: attribute, offset: offset, value: value))
                answer(link, .success(.done))
            }
        case .execute:
            let parts = link.prepared
            link.prepared = []
            guard let first = parts.first else { return answer(link, .success(.done)) }
            switch writable(first.characteristic, on: link) {
            case .failure(let error): answer(link, .failure(error))
            case .success(let characteristic): ask(characteristic.owner, link, parts: parts)
            }
        case .configure(let attribute, let subscription, let client):
            guard let client = clients[client] else { return answer(link, .success(.done)) }
            answer(link, configure(attribute, subscription, client: client, on: link))
        }
    }

    private mutating func answer(_ link: AirLink, _ response: Result<Outcome, ATTError>) {
        send(.response(response), .down, on: link)
        resume(link)
    }

    private mutating func ask(_ owner: Int, _ link: AirLink, parts: [WriteRequest.Part]) {
        let id = RequestID(rawValue: UInt64(nextID()))
        openRequests.hold(
            id, for: UInt64(owner), on: UInt64(link.id), OpenRequest(link: link.id, isRead: false))
        let request = WriteRequest(id: id, central: link.handle, parts: parts)
        events.append(.peripheral(owner) { $0.peripheralDidReceive(request) })
    }

    /// The owner's answer to a request. Answers to requests that are not open any more are ignored.
    mutating func respond(_ owner: Int, to id: RequestID, with response: Result<[UInt8], ATTError>) {
        if let request = openRequests.answer(id, by: UInt64(owner)) { answer(request, response) }
    }

    /// Answers a request that was held for its owner.
    mutating func answer(_ request: OpenRequest, _ response: Result<[UInt8], ATTError>) {
        guard let link = links[request.link] else { return }
        answer(
            link,
            response.map { value in
                request.isRead ? .value(Array(value.prefix(link.attMTU - 1))) : .done
            })
        wake()
    }

    // MARK: Reads

    private mutating func read(
        _ attribute: AttributeID, offset: Int, on link: AirLink
    ) -> Result<Outcome, ATTError>? {
        let database = nodes[link.peripheral].database
        if let descriptor = database.descriptors[attribute] {
            return part(of: value(of: descriptor, on: link), from: offset, on: link)
        }
        guard let characteristic = database.characteristics[attribute] else { return .failure(.invalidHandle) }
        let permissions = characteristic.definition.permissions
        guard characteristic.properties.contains(.read),
            !permissions.isDisjoint(with: [.readable, .readEncryptionRequired])
        else { return .failure(.readNotPermitted) }
        if permissions.contains(.readEncryptionRequired), let error = encrypt(link) { return .failure(error) }
        if let value = characteristic.definition.value { return part(of: value, from: offset, on: link) }
        let id = RequestID(rawValue: UInt64(nextID()))
        openRequests.hold(
            id, for: UInt64(characteristic.owner), on: UInt64(link.id), OpenRequest(link: link.id, isRead: true))
        let request = ReadRequest(id: id, central: link.handle, characteristic: attribute, offset: offset)
        events.append(.peripheral(characteristic.owner) { $0.peripheralDidReceive(request) })
        return nil
    }

    private func value(of descriptor: Database.Descriptor, on link: AirLink) -> [UInt8] {
        guard descriptor.uuid == .clientCharacteristicConfiguration else { return descriptor.value }
        guard let index = link.subscription(to: descriptor.characteristic) else { return [0, 0] }
        return link.subscriptions[index].kind == .notify ? [1, 0] : [2, 0]
    }

    private func part(of value: [UInt8], from offset: Int, on link: AirLink) -> Result<Outcome, ATTError> {
        guard offset <= value.count else { return .failure(.invalidOffset) }
        return .success(.value(Array(value[offset...].prefix(link.attMTU - 1))))
    }

    // MARK: Writes

    private mutating func writable(
        _ attribute: AttributeID, on link: AirLink
    ) -> Result<Database.Characteristic, ATTError> {
        let database = nodes[link.peripheral].database
        guard let characteristic = database.characteristics[attribute] else {
            return .failure(database.descriptors[attribute] == nil ? .invalidHandle : .writeNotPermitted)
        }
        guard characteristic.properties.contains(.write) else { return .failure(.writeNotPermitted) }
        if let error = writeError(characteristic, on: link) { return .failure(error) }
        return .success(characteristic)
    }

    /// Why the permissions do not let a link write, if they do not.
    mutating func writeError(_ characteristic: Database.Characteristic, on link: AirLink) -> ATTError? {
        let permissions = characteristic.definition.permissions
        if permissions.contains(.writeEncryptionRequired) { return encrypt(link) }
        return permissions.contains(.writeable) ? nil : .writeNotPermitted
    }

    // MARK: Subscriptions

    private mutating func configure(
        _ attribute: AttributeID, _ wanted: Subscription?, client: Client, on link: AirLink
    ) -> Result<Outcome, ATTError> {
        guard let characteristic = nodes[link.peripheral].database.characteristics[attribute] else {
            return .failure(.invalidHandle)
        }
        let central = link.handle
        let index = link.subscription(to: attribute)
        guard let wanted else {
            guard let index else { return .success(.done) }
            unsubscribe(client, index, on: link)
            return .success(.done)
        }
        guard characteristic.properties.offers(wanted) else {
            return .failure(.clientConfigurationImproperlyConfigured)
        }
        if characteristic.properties.requiresEncryption(for: wanted), let error = encrypt(link) {
            return .failure(error)
        }
        if let index {
            if !link.subscriptions[index].clients.contains(where: { $0 === client }) {
                link.subscriptions[index].clients.append(client)
            }
            guard link.subscriptions[index].kind != wanted else { return .success(.done) }
            link.subscriptions[index].kind = wanted
        } else {
            link.subscriptions.append(
                Subscribed(
                    characteristic: attribute, owner: characteristic.owner, kind: wanted, clients: [client]))
            countSharer(link)
        }
        events.append(
            .peripheral(characteristic.owner) { $0.central(central, didSubscribeTo: attribute, as: wanted) })
        return .success(.done)
    }

    /// Ends one client's part in a subscription; the peripheral is told when it was the last.
    mutating func unsubscribe(_ client: Client, _ index: Int, on link: AirLink) {
        link.subscriptions[index].clients.removeAll { $0 === client }
        guard link.subscriptions[index].clients.isEmpty else { return }
        let ended = link.subscriptions.remove(at: index)
        countSharer(link)
        let central = link.handle
        let characteristic = ended.characteristic
        events.append(.peripheral(ended.owner) { $0.central(central, didUnsubscribeFrom: characteristic) })
    }

    // MARK: Encryption

    /// Encrypts a link, pairing first when that is needed, as a host does when a request asks for it. Returns what the
    /// peripheral answers when it cannot be done (Core Specification 5.4, Vol 3, Part C, 10.3.1).
    mutating func encrypt(_ link: AirLink) -> ATTError? {
        if link.isEncrypted { return nil }
        let pair = Pair(link.central, link.peripheral)
        let isBonded = pairs[pair]?.isBonded ?? false
        guard nodes[link.central].pairing == .succeeds, nodes[link.peripheral].pairing == .succeeds else {
            return isBonded ? .insufficientEncryption : .insufficientAuthentication
        }
        pairs[pair, default: PairConditions()].isBonded = true
        link.isEncrypted = true
        return nil
    }

    // MARK: Discovery

    private func discover(_ procedure: Discover, in database: Database) -> Result<Outcome, ATTError> {
        func remote(_ service: Database.Service) -> RemoteService {
            RemoteService(id: service.id, uuid: service.definition.uuid, isPrimary: service.definition.isPrimary)
        }
        switch procedure {
        case .services(let uuids):
            let found = database.services.filter {
                $0.definition.isPrimary && uuids?.contains($0.definition.uuid) != false
            }
            return .success(.services(found.map(remote)))
        case .includedServices(let uuids, let id):
            guard let service = database.service(id) else { return .failure(.invalidHandle) }
            let found = service.definition.includedServices.compactMap(database.service)
                .filter { uuids?.contains($0.definition.uuid) != false }
            return .success(.services(found.map(remote)))
        case .characteristics(let uuids, let id):
            guard let service = database.service(id) else { return .failure(.invalidHandle) }
            let found = service.characteristics.compactMap { database.characteristics[$0] }
                .filter { uuids?.contains($0.definition.uuid) != false }
            return .success(
                .characteristics(
                    found.map {
                        RemoteCharacteristic(id: $0.id, uuid: $0.definition.uuid, properties: $0.properties.onAir)
                    }))
        case .descriptors(let id):
            guard let characteristic = database.characteristics[id] else { return .failure(.invalidHandle) }
            let found = characteristic.descriptors.compactMap { database.descriptors[$0] }
            return .success(.descriptors(found.map { RemoteDescriptor(id: $0.id, uuid: $0.uuid) }))
        }
    }
}
