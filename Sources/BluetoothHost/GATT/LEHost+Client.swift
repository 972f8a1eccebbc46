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
        guard connections[index].requestDeadline == nil, !connections[index].procedures.isEmpty,
            !connections[index].security.isAwaited, !connections[index].security.isHeldBack
        else { return }
        answerFromCache(index, at: now)
        guard !connections[index].procedures.isEmpty else { return }
        if connections[index].procedures[0].isFresh { connections[index].requestBearer = chooseBearer(index) }
        let request = connections[index].procedures[0].nextRequest(mtu: requestMTU(index))
        connections[index].procedures[0].isSentEncrypted = connections[index].security.isEncrypted
        let end = connections[index].procedures[0].deadline ?? now + ATT.procedureTimeout
        connections[index].procedures[0].deadline = end
        connections[index].requestDeadline = min(now + ATT.transactionTimeout, end)
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
        // What was refused may have been sent before the link was encrypted.
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
