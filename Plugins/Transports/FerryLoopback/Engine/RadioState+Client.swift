import DequeModule
import Ferry
import FerryBluetooth

// The central's side of ATT: one request at a time per link, in the order of the calls.
extension RadioState {
    /// The link and client behind a connection, or why there is none any more.
    func connected(_ id: Int) throws(BluetoothError) -> (Client, AirLink) {
        try clients[id]?.life.requireOpen()
        guard let client = clients[id], let link = links[client.link] else { throw .notConnected }
        return (client, link)
    }

    /// Refuses an attribute that the peripheral does not have.
    func known(_ attribute: AttributeID, on link: AirLink) throws(BluetoothError) {
        let database = nodes[link.peripheral].database
        guard database.characteristics[attribute] == nil, database.descriptors[attribute] == nil,
            database.service(attribute) == nil
        else { return }
        throw .notFound(attribute)
    }

    /// Queues a request behind those that wait.
    mutating func request(
        _ kind: ClientRequest.Kind, of client: Client, on link: AirLink,
        completion: ClientRequest.Completion
    ) {
        link.requests.append(ClientRequest(client: client.id, kind: kind, completion: completion))
        sendNextRequest(link)
        wake()
    }

    /// Sends the next step of the first request, unless one is outstanding.
    private mutating func sendNextRequest(_ link: AirLink) {
        guard let request = link.requests.first, request.deadline == nil else { return }
        link.requests[0].deadline = time.now + configuration.requestTimeout
        let pdu: ATTRequest
        let room = link.attMTU - 5  // Core Specification 5.4, Vol 3, Part F, 3.4.6.1
        switch request.kind {
        case .exchangeMTU: pdu = .exchangeMTU
        case .discover(let procedure): pdu = .discover(procedure)
        case .read(let attribute, let collected): pdu = .read(attribute, offset: collected.count)
        case .write(let attribute, let value): pdu = .write(attribute, value)
        case .longWrite(_, let value, let prepared) where prepared >= value.count: pdu = .execute
        case .longWrite(let attribute, let value, let prepared):
            pdu = .prepare(attribute, offset: prepared, Array(value[prepared...].prefix(room)))
        case .configure(let attribute, let subscription):
            pdu = .configure(attribute, subscription, client: request.client)
        }
        send(.request(pdu), .up, on: link)
        watchTransactions(link)
        resume(link)
    }

    /// Takes the answer to the outstanding request: its next step follows, or it is finished.
    mutating func receive(_ response: Result<Outcome, ATTError>, on link: AirLink) {
        guard let request = link.requests.first, request.deadline != nil else { return }
        link.requests[0].deadline = nil
        switch (request.kind, response) {
        case (.exchangeMTU, .success):
            changeMTU(link, to: configuration.attMTU)
            finishRequest(link, .success(.done))
        case (.read(let attribute, var collected), .success(.value(let part))):
            collected += part.prefix(512 - collected.count)
            if part.count < link.attMTU - 1 || collected.count >= 512 {
                finishRequest(link, .success(.value(collected)))
            } else {
                link.requests[0].kind = .read(attribute, collected: collected)
            }
        case (.read(_, let collected), .failure(.attributeNotLong)) where !collected.isEmpty:
            finishRequest(link, .success(.value(collected)))
        case (.longWrite(let attribute, let value, let prepared), .success) where prepared < value.count:
            link.requests[0].kind = .longWrite(
                attribute, value, prepared: min(prepared + link.attMTU - 5, value.count))
        case (.longWrite, .failure(let error)):
            link.prepared = []
            finishRequest(link, .failure(.att(error, request.kind.description)))
        case (_, .failure(let error)):
            finishRequest(link, .failure(.att(error, request.kind.description)))
        case (_, .success(let outcome)):
            finishRequest(link, .success(outcome))
        }
        sendNextRequest(link)
    }

    private mutating func finishRequest(_ link: AirLink, _ result: Result<Outcome, BluetoothError>) {
        guard let request = link.requests.popFirst() else { return }
        finish(request, result)
    }

    /// Reports a request's result to the caller.
    mutating func finish(_ request: ClientRequest, _ result: Result<Outcome, BluetoothError>) {
        switch request.completion {
        case .none: break
        case .waiter(let waiter): events.append(.call { waiter.resume(result) })
        case .queuedWrite(let attribute):
            let result = result.map { _ in }
            events.append(.client(request.client) { $0.peripheralDidWrite(attribute, result: result) })
            guard let client = clients[request.client] else { return }
            client.hasWriteOutstanding = false
            signalReadyToWrite(client)
        }
    }

    mutating func signalReadyToWrite(_ client: Client) {
        guard client.wantsReady else { return }
        client.wantsReady = false
        signalReady(.readyToWrite(client: client.id))
    }

    /// Sets both sides' ATT_MTU and tells the central's owners.
    mutating func changeMTU(_ link: AirLink, to attMTU: Int) {
        let reported = reportedMTU(link)
        link.exchangedMTU = attMTU
        guard attMTU != reported else { return }
        for id in link.clients {
            clients[id]?.attMTU = attMTU
            events.append(.client(id) { $0.peripheralDidChangeMTU(attMTU) })
        }
    }

    // MARK: Writes that do not wait

    mutating func tryWrite(
        _ value: UnsafeRawBufferPointer, to attribute: AttributeID, type: WriteType, of id: Int
    ) throws(BluetoothError) -> Bool {
        let (client, link) = try connected(id)
        guard let characteristic = nodes[link.peripheral].database.characteristics[attribute] else {
            try known(attribute, on: link)
            throw BluetoothError(.notSupported, "the attribute \(attribute.rawValue) is not a characteristic")
        }
        try BluetoothError.checkWrite(
            value.count, type, maximum: link.maximumValueLength, to: attribute, characteristic.properties)
        guard type == .withoutResponse else { return tryWriteWithResponse(value, attribute, client, link) }
        let ring = ring(of: link.up)
        guard !ring.isFull else {
            client.wantsReady = true
            mayBeReadyEarly(.readyToWrite(client: id))
            return false
        }
        ring.push(
            value, length: value.count, attribute: attribute, order: link.up.takeOrder(), isIndication: false)
        announce(.attribute(pduLength: value.count + 3), .up, on: link)
        resume(link)
        wake()
        return true
    }

    private mutating func tryWriteWithResponse(
        _ value: UnsafeRawBufferPointer, _ attribute: AttributeID, _ client: Client, _ link: AirLink
    ) -> Bool {
        guard !client.hasWriteOutstanding else {
            client.wantsReady = true
            mayBeReadyEarly(.readyToWrite(client: client.id))
            return false
        }
        client.hasWriteOutstanding = true
        request(.write(attribute, Array(value)), of: client, on: link, completion: .queuedWrite(attribute))
        return true
    }

    func ring(of lane: Lane) -> ValueRing {
        if let ring = lane.ring { return ring }
        let ring = ValueRing(capacity: configuration.transmitQueueDepth, slotSize: 512)
        lane.ring = ring
        return ring
    }
}

extension ClientRequest.Kind: CustomStringConvertible {
    var description: String {
        switch self {
        case .exchangeMTU: "the MTU exchange"
        case .discover: "discovery"
        case .read(let attribute, _): "to read attribute \(attribute.rawValue)"
        case .write(let attribute, _), .longWrite(let attribute, _, _): "to write attribute \(attribute.rawValue)"
        case .configure(let attribute, _): "to change the subscription to \(attribute.rawValue)"
        }
    }
}
