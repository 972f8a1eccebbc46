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
        guard connections[index].hasRoom(for: value.byteCount, limit: configuration.queueLimit) else {
            connections[index].wantsReady = true
            return false
        }
        connections[index].transmit.appendValue(ATTOpcode.writeCommand, handle: handle, value)
        return true
    }

    mutating func pumpProcedures(_ index: Int, at now: Int64) {
        guard connections[index].requestDeadline == nil, !connections[index].procedures.isEmpty,
            !connections[index].security.isAwaited
        else { return }
        let request = connections[index].procedures[0].nextRequest(mtu: connections[index].attMTU)
        connections[index].requestDeadline = now + ATT.transactionTimeout
        send(request, on: ChannelID.att, to: index, at: now)
    }

    mutating func procedureDidReceive(_ index: Int, _ pdu: [UInt8], at now: Int64) {
        guard !connections[index].procedures.isEmpty else { return }
        switch connections[index].procedures[0].receive(pdu, mtu: connections[index].attMTU) {
        case .again: break
        case .finished(let result):
            if awaitsSecurity(index, result, at: now) { return }
            finish(index, connections[index].procedures.removeFirst().id, result)
        }
    }

    /// Whether a request that needs an encrypted link is to be made once more when the link is encrypted: each is, once.
    private mutating func awaitsSecurity(
        _ index: Int, _ result: Result<ClientResult, ClientFailure>, at now: Int64
    ) -> Bool {
        guard case .failure(.refused(let code)) = result,
            code == .insufficientAuthentication || code == .insufficientEncryption,
            !connections[index].procedures[0].wasRepeated, !connections[index].security.isEncrypted,
            connections[index].security.isBusy || beginSecurity(index, at: now)
        else { return false }
        connections[index].procedures[0].startAgain()
        connections[index].security.isAwaited = true
        return true
    }

    mutating func finish(_ index: Int, _ id: UInt64, _ result: Result<ClientResult, ClientFailure>) {
        if case .asking(let procedure, let handle) = connections[index].serviceChanged, procedure == id {
            serviceChangedDidAnswer(index, handle, result)
            return
        }
        pending.events.append(.completed(OperationID(rawValue: id), connections[index].id, result))
    }

    // MARK: Service Changed

    /// Asks a server's Generic Attribute service for its Service Changed characteristic, so that the application learns
    /// when what it found is no longer so (Vol 3, Part G, 7.1).
    mutating func watchServiceChanged(_ index: Int, at now: Int64) {
        continueWatching(index, .services(.genericAttribute))
        pumpProcedures(index, at: now)
    }

    private mutating func continueWatching(_ index: Int, _ request: ClientRequest, handle: UInt16 = 0) {
        let id = makeID()
        connections[index].serviceChanged = .asking(procedure: id, handle: handle)
        connections[index].procedures.prepend(ClientProcedure(request, id: id))
    }

    private mutating func serviceChangedDidAnswer(
        _ index: Int, _ handle: UInt16, _ result: Result<ClientResult, ClientFailure>
    ) {
        switch result {
        case .success(.services(let found)) where !found.isEmpty:
            continueWatching(index, .characteristics(in: found[0].handles))
        case .success(.characteristics(let found)):
            guard let changed = found.first(where: { $0.uuid == .serviceChanged }) else {
                connections[index].serviceChanged = .idle
                return
            }
            continueWatching(
                index, .configure(value: changed.value, end: changed.end, bits: 2), handle: changed.value)
        case .success(.done): connections[index].serviceChanged = .watching(handle: handle)
        default: connections[index].serviceChanged = .idle
        }
    }
}
