// What the application does with the server: services, answers and values.

extension LEHost {
    /// Adds a service, and tells the clients that subscribed to Service Changed. Returns nil when the 65 535 handles
    /// are used up, a fixed value is above 512 bytes, a property promises signed writes, or an included handle is no
    /// service.
    public mutating func addService(_ service: ServiceSpecification, at now: Int64) -> ServiceHandles? {
        let areIncludable = service.includes.allSatisfy { database.attribute($0).map(database.isService) ?? false }
        let areValid = service.characteristics.allSatisfy { characteristic in
            (characteristic.value?.count ?? 0) <= ATT.maximumValueLength && characteristic.properties & 0x40 == 0
                && characteristic.descriptors.allSatisfy { $0.value.count <= ATT.maximumValueLength }
        }
        guard areIncludable, areValid, let handles = database.add(service) else { return nil }
        servicesDidChange(handles.service...handles.end, at: now)
        return handles
    }

    /// Removes a service; clients that asked for it are told. Others are not removed by their handle's mistake: unknown
    /// handles are ignored.
    public mutating func removeService(_ service: UInt16, at now: Int64) {
        guard let range = database.remove(service) else { return }
        for index in connections.indices {
            for handle in range { connections[index].configurations[handle] = nil }
            connections[index].bearer.prepared.removeAll { range.contains($0.handle) }
            for place in connections[index].shelf.indices {
                connections[index].shelf[place].prepared.removeAll { range.contains($0.handle) }
            }
        }
        servicesDidChange(range, at: now)
    }

    // MARK: Answers

    /// Answers a request: with the value from the offset on for a read, with anything for a write. Requests that have
    /// been answered, or whose connection has ended, are ignored.
    public mutating func respond(
        to id: ServerRequestID, with result: Result<[UInt8], ATTErrorCode>, at now: Int64
    ) {
        for index in connections.indices {
            if connections[index].bearer.pendingRequest?.id == id { return answerPending(index, result, at: now) }
            guard let other = connections[index].shelf.first(where: { $0.pendingRequest?.id == id }) else { continue }
            return withBearer(other.channel, of: index) { $0.answerPending(index, result, at: now) }
        }
    }

    private mutating func answerPending(_ index: Int, _ result: Result<[UInt8], ATTErrorCode>, at now: Int64) {
        guard let request = connections[index].bearer.pendingRequest else { return }
        connections[index].bearer.pendingRequest = nil
        switch result {
        case .failure(let code): refuse(index, request.opcode, request.handle, code, at: now)
        case .success(let value): answer(index, request, value, at: now)
        }
        serveWaiting(index, at: now)
    }

    private mutating func answer(_ index: Int, _ request: PendingServerRequest, _ value: [UInt8], at now: Int64) {
        switch request.kind {
        case .read: respond(index, [ATTOpcode.readResponse] + value, at: now)
        case .readBlob: respond(index, [ATTOpcode.readBlobResponse] + value, at: now)
        case .write: respond(index, [ATTOpcode.writeResponse], at: now)
        case .execute: respond(index, [ATTOpcode.executeWriteResponse], at: now)
        case .readByType:
            let cut = value.prefix(min(connections[index].bearer.mtu - 4, 253))
            var pdu = [ATTOpcode.readByTypeResponse, UInt8(cut.count + 2)]
            pdu.append(u16: request.handle)
            respond(index, pdu + cut, at: now)
        case .readMultiple(let handles, let next, let isVariable, var collected):
            if isVariable { collected.append(u16: UInt16(truncatingIfNeeded: min(value.count, 512))) }
            collected += value.prefix(ATT.maximumValueLength)
            do throws(ATTRequest.Refusal) {
                let answer = try readMultiple(index, handles, from: next + 1, isVariable, collected: collected)
                if let answer { respond(index, answer, at: now) }
            } catch {
                refuse(index, request.opcode, error.handle, error.code, at: now)
            }
        }
    }

    // MARK: Values

    /// Queues a value for all subscribed clients, or those of `recipients` that are, copying it for each; as a
    /// notification where the client asked for both kinds. It is cut to a client's ATT_MTU - 3. Clients that understand it
    /// get values that wait one behind the other in one notification.
    ///
    /// All or nothing: false when one of them has no room, or has an indication to confirm;
    /// ``HostEvent/readyToSend(_:)`` follows for that one.
    public mutating func updateValue(
        _ value: RawSpan, of handle: UInt16, for recipients: [ConnectionID]? = nil, at now: Int64
    ) -> Bool {
        guard let configuration = database.configuration(of: handle) else { return true }
        var hasRoom = true
        for index in connections.indices where isSubscribed(index, configuration, recipients) {
            let isBlocked =
                connections[index].indication != .none
                || !connections[index].hasRoom(for: value.byteCount, limit: self.configuration.maximumQueuedBytes)
            guard isBlocked else { continue }
            connections[index].wantsReady = true
            hasRoom = false
        }
        guard hasRoom else { return false }
        for index in connections.indices where isSubscribed(index, configuration, recipients) {
            let count = min(value.byteCount, connections[index].attMTU - 3, ATT.maximumValueLength)
            let value = value.extracting(0..<count)
            if (connections[index].configurations[configuration] ?? 0) & 1 != 0 {
                connections[index].appendNotification(handle: handle, value)
            } else {
                connections[index].transmit.appendValue(ATTOpcode.indication, handle: handle, value)
                connections[index].indication = .value(deadline: now + ATT.transactionTimeout)
            }
        }
        return true
    }

    /// Whether a characteristic's value can be notified or indicated.
    public func hasConfiguration(_ handle: UInt16) -> Bool { database.configuration(of: handle) != nil }

    private func isSubscribed(_ index: Int, _ configuration: UInt16, _ recipients: [ConnectionID]?) -> Bool {
        guard connections[index].closing == nil, connections[index].configurations[configuration] != nil else {
            return false
        }
        // A client that is out of step takes no values (Vol 3, Part G, 2.5.2.1), until it is told of the change.
        guard !isOutOfStep(index) || connections[index].indication.isServiceChanged else { return false }
        return recipients?.contains(connections[index].id) ?? true
    }
}
