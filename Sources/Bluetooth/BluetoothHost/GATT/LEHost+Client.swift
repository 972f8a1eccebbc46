// The GATT client (Core Specification 5.4, Vol 3, Part G, 4).

import DequeModule

extension LEHost {
    /// Requests of one connection that may wait.
    static let procedureLimit = 64

    /// Begins a request; they are carried out one at a time in order. ``HostEvent/completed(_:_:_:)`` follows.
    ///
    /// - Returns: nil when the connection has ended.
    public mutating func request(_ request: ClientRequest, of id: ConnectionID, at now: Int64) -> OperationID? {
        guard let index = index(id), connections[index].closing == nil else { return nil }
        let operation = OperationID(rawValue: makeID())
        if case .write(_, let value) = request, value.count > ATT.maximumValueLength {
            pending.events.append(.completed(operation, id, .failure(.refused(.invalidAttributeValueLength))))
        } else if connections[index].procedures.count >= Self.procedureLimit {
            pending.events.append(.completed(operation, id, .failure(.tooManyRequests)))
        } else {
            connections[index].procedures.append(ClientProcedure(request, id: operation.rawValue))
            pumpProcedures(index, at: now)
        }
        return operation
    }

    /// Queues a Write Command, copying the value, or returns false when the queue is full, in which case
    /// ``HostEvent/readyToSend(_:)`` follows. Nil when the connection has ended or the value is above ATT_MTU - 3.
    public mutating func writeCommand(_ value: RawSpan, to handle: UInt16, of id: ConnectionID) -> Bool? {
        guard let index = index(id), connections[index].closing == nil,
            value.byteCount <= min(connections[index].attMTU - 3, ATT.maximumValueLength)
        else { return nil }
        guard !connections[index].security.isHeldBack,
            connections[index].hasRoom(for: value.byteCount, limit: configuration.maximumQueuedBytes)
        else {
            connections[index].wantsReady = true
            return false
        }
        connections[index].transmit.appendValue(ATTOpcode.writeCommand, handle: handle, value)
        return true
    }

    mutating func pumpProcedures(_ index: Int, at now: Int64) {
        guard connections[index].request == .none, !connections[index].procedures.isEmpty,
            !connections[index].security.isAwaited, !connections[index].security.isHeldBack
        else { return }
        answerFromCache(index, at: now)
        guard !connections[index].procedures.isEmpty else { return }
        if connections[index].procedures[0].isFresh { connections[index].requestBearer = chooseBearer(index) }
        let request = connections[index].procedures[0].nextRequest(mtu: requestMTU(index))
        connections[index].procedures[0].isSentEncrypted = connections[index].security.isEncrypted
        let end = connections[index].procedures[0].deadline ?? now + ATT.procedureTimeout
        connections[index].procedures[0].deadline = end
        connections[index].request = .procedure(deadline: min(now + ATT.transactionTimeout, end))
        sendRequest(index, request, at: now)
    }

    /// Ends requests whose answer is known, before anything is sent for them.
    private mutating func answerFromCache(_ index: Int, at now: Int64) {
        while let procedure = connections[index].procedures.first, procedure.isFresh,
            let answer = knownAnswer(index, procedure.request)
        {
            if case .configure = procedure.request, case .descriptors(let found) = answer, let first = found.first {
                connections[index].procedures[0].writeConfiguration(to: first)
                return
            }
            finish(index, connections[index].procedures.removeFirst().id, .success(answer), at: now)
        }
    }

    mutating func procedureDidReceive(_ index: Int, _ pdu: [UInt8], at now: Int64) {
        guard !connections[index].procedures.isEmpty else { return }
        switch connections[index].procedures[0].receive(pdu, mtu: requestMTU(index)) {
        case .again: break
        case .finished(let result):
            if awaitsSecurity(index, result, at: now) { return }
            let procedure = connections[index].procedures.removeFirst()
            if case .success(let answer) = result { keepAnswer(index, of: procedure, answer) }
            // The server says that this side does not know its services any more (Vol 3, Part G, 2.5.2.1).
            if result == .failure(.refused(.databaseOutOfSync)), procedure.id != connections[index].watch.procedure {
                serverDidChange(index, 1...0xFFFF)
            }
            finish(index, procedure.id, result, at: now)
        }
    }

    /// Whether a request that needs an encrypted link is to be made once more when the link is encrypted: each is, once.
    private mutating func awaitsSecurity(
        _ index: Int, _ result: Result<ClientResult, ClientFailure>, at now: Int64
    ) -> Bool {
        guard case .failure(.refused(let code)) = result,
            code == .insufficientAuthentication || code == .insufficientEncryption,
            connections[index].procedures[0].id != connections[index].watch.procedure,
            !connections[index].procedures[0].wasRepeated
        else { return false }
        let link = connections[index].security.link
        // The refused request may have been sent before the link was encrypted.
        if !link.isEncrypted || connections[index].procedures[0].isSentEncrypted {
            // A link that is encrypted can be more so only by a number that people compare or enter.
            let isAsStrongAsCanBe = link.isAuthenticated || configuration.pairing?.capability == .noInputNoOutput
            guard !link.isEncrypted || code == .insufficientAuthentication && !isAsStrongAsCanBe,
                connections[index].security.isBusy || beginSecurity(index, at: now)
            else { return false }
            connections[index].security.isAwaited = true
        }
        connections[index].procedures[0].startAgain()
        return true
    }

    mutating func finish(_ index: Int, _ id: UInt64, _ result: Result<ClientResult, ClientFailure>, at now: Int64) {
        if connections[index].watch.procedure == id { return watchDidAnswer(index, result, at: now) }
        pending.events.append(.completed(OperationID(rawValue: id), connections[index].id, result))
    }
}

// The client's own work with a server's Generic Attribute service (Core Specification 5.4, Vol 3, Part G, 7): it reads
// the Database Hash, writes the features that it supports, and subscribes to Service Changed.

/// How far that is.
struct ServerWatch: Sendable {
    enum Step: Sendable, Equatable {
        case hash
        case service
        case characteristics
        case serverFeatures
        case features
        case configuration(UInt16)
    }

    var step: Step?
    /// The procedure that the step waits for.
    var procedure: UInt64?
    /// The Service Changed characteristic, once the server is to indicate it.
    var serviceChanged: UInt16?
    var characteristics: [DiscoveredCharacteristic] = []
    /// Whether the server takes enhanced bearers, and none has been asked for.
    var takesBearers = false
    /// Whose entry in the cache holds for this connection, if one does.
    var cached: Address?
}

extension LEHost {
    /// Bits of Client Supported Features.
    private var ownFeatures: ClientFeatures {
        let all: ClientFeatures = [.robustCaching, .enhancedBearers, .multipleNotifications]
        return configuration.usesEnhancedBearers ? all : all.subtracting(.enhancedBearers)
    }

    /// Begins, before anything that the application asks.
    mutating func watchServer(_ index: Int, at now: Int64) {
        if connections[index].security.link.isBonded {
            connections[index].watch.serviceChanged = discoveries.serviceChanged(of: lastingAddress(index))
        }
        ask(index, .hash, .readByType(1...0xFFFF, .databaseHash))
        pumpProcedures(index, at: now)
    }

    private mutating func ask(_ index: Int, _ step: ServerWatch.Step, _ request: ClientRequest) {
        let id = makeID()
        connections[index].watch.step = step
        connections[index].watch.procedure = id
        connections[index].procedures.prepend(ClientProcedure(request, id: id))
    }

    /// Goes on with the answer to a step. What a server does not have is passed over.
    mutating func watchDidAnswer(_ index: Int, _ result: Result<ClientResult, ClientFailure>, at now: Int64) {
        let step = connections[index].watch.step
        connections[index].watch.step = nil
        connections[index].watch.procedure = nil
        // Once this side has said that it uses them.
        defer { if connections[index].watch.step == nil { openBearer(index, at: now) } }
        switch (step, result) {
        case (.hash, _):
            if case .success(.value(let hash)) = result, hash.count == 16 { useCache(index, hash: hash) }
            ask(index, .service, .services(.genericAttribute))
        case (.service, .success(.services(let found))) where !found.isEmpty:
            ask(index, .characteristics, .characteristics(in: found[0].handles))
        case (.characteristics, .success(.characteristics(let found))):
            connections[index].watch.characteristics = found
            if configuration.usesEnhancedBearers,
                let features = found.first(where: { $0.uuid == .serverSupportedFeatures && $0.properties & 0x02 != 0 })
            {
                ask(index, .serverFeatures, .read(features.value))
            } else {
                tellFeatures(index)
            }
        case (.serverFeatures, let result):
            if case .success(.value(let features)) = result, let first = features.first, first & 0x01 != 0 {
                connections[index].watch.takesBearers = true
            }
            tellFeatures(index)
        case (.features, _): configureServiceChanged(index)
        case (.configuration(let handle), .success(.done)):
            connections[index].watch.serviceChanged = handle
            useBond(index)
            if let address = connections[index].watch.cached { discoveries.setServiceChanged(handle, of: address) }
        default: break
        }
    }

    private mutating func tellFeatures(_ index: Int) {
        let features = connections[index].watch.characteristics.first {
            $0.uuid == .clientSupportedFeatures && $0.properties & 0x08 != 0
        }
        guard let features else { return configureServiceChanged(index) }
        ask(index, .features, .write(features.value, [ownFeatures.rawValue]))
    }

    private mutating func configureServiceChanged(_ index: Int) {
        guard let changed = connections[index].watch.characteristics.first(where: { $0.uuid == .serviceChanged })
        else { return }
        ask(index, .configuration(changed.value), .configure(value: changed.value, end: changed.end, bits: 2))
    }

    // MARK: The cache

    /// By what a peer is known from one connection to the next.
    func lastingAddress(_ index: Int) -> Address { keyring.lastingAddress(of: connections[index].peer) }

    /// Results heard over an unencrypted link, which any device could have forged, are kept apart from those of a link
    /// that only the peer can have encrypted, and serve unencrypted links only.
    private mutating func useCache(_ index: Int, hash: [UInt8]?) {
        let isProven = connections[index].security.link.isBonded
        guard isProven || bond(index) == nil else { return }
        let address = lastingAddress(index)
        discoveries.use(address, hash: hash, isProven: isProven)
        connections[index].watch.cached = address
    }

    /// A bonded server without a hash tells by Service Changed, also what happened while it was away.
    private mutating func useBond(_ index: Int) {
        guard connections[index].watch.cached == nil, connections[index].security.link.isBonded else { return }
        useCache(index, hash: nil)
    }

    /// The answer to a request, if it is known already.
    func knownAnswer(_ index: Int, _ request: ClientRequest) -> ClientResult? {
        guard let address = connections[index].watch.cached, let key = DiscoveryKey(request) else { return nil }
        return discoveries.answer(key, of: address)
    }

    /// Keeps what a procedure has found.
    mutating func keepAnswer(_ index: Int, of procedure: ClientProcedure, _ result: ClientResult) {
        guard let address = connections[index].watch.cached, let key = DiscoveryKey(procedure.request) else { return }
        if case .configuration = key {
            guard let found = procedure.configuration else { return }
            discoveries.keep(.descriptors([found]), for: key, of: address)
        } else {
            discoveries.keep(result, for: key, of: address)
        }
    }

    /// A server's services have changed: forgets the results, and reads the hash again.
    mutating func serverDidChange(_ index: Int, _ range: ClosedRange<UInt16>) {
        discoveries.forget(connections[index].watch.cached ?? lastingAddress(index))
        connections[index].watch.cached = nil
        pending.events.append(.servicesChanged(connections[index].id, range))
        rereadHash(index)
    }

    /// A peer is bonded from now on: later results are kept as the peer's own.
    mutating func serverWasBonded(_ index: Int) {
        guard connections[index].watch.cached != nil else { return }
        connections[index].watch.cached = nil
        rereadHash(index)
    }

    private mutating func rereadHash(_ index: Int) {
        guard connections[index].watch.step == nil, connections[index].closing == nil,
            connections[index].procedures.count < Self.procedureLimit
        else { return }
        let id = makeID()
        connections[index].watch.step = .hash
        connections[index].watch.procedure = id
        let procedure = ClientProcedure(.readByType(1...0xFFFF, .databaseHash), id: id)
        // Behind the request that is under way, if one is.
        let place = connections[index].request == .none ? 0 : min(1, connections[index].procedures.count)
        connections[index].procedures.insert(procedure, at: place)
    }
}
