import Ferry
import FerryBluetooth

/// One owner's connection to a peripheral.
final class LoopbackConnection: PeripheralConnection {
    let peripheral: PeerID
    private let radio: LoopbackRadio
    private let id: Int
    private let knownIdentity: KnownIdentity

    init(radio: LoopbackRadio, id: Int, peripheral: PeerID) {
        self.radio = radio
        self.id = id
        self.peripheral = peripheral
        knownIdentity = KnownIdentity(peripheral, radio.identity(ofClient: id))
    }

    deinit { radio.locked { $0.disconnect(client: id) } }

    var identity: PeerIdentity { knownIdentity.update(radio.identity(ofClient: id)) }

    var attMTU: Int { radio.read { $0.clients[id]?.attMTU ?? 23 } }

    func maximumWriteLength(_ type: WriteType) -> Int { min(attMTU - 3, 512) }

    // MARK: Discovery

    func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
        guard case .services(let found) = try await request(.discover(.services(uuids))) else { return [] }
        return found
    }

    func discoverIncludedServices(
        _ uuids: [BluetoothUUID]?, of service: AttributeID
    ) async throws(BluetoothError) -> [RemoteService] {
        let outcome = try await request(.discover(.includedServices(uuids, of: service)), about: service)
        guard case .services(let found) = outcome else { return [] }
        return found
    }

    func discoverCharacteristics(
        _ uuids: [BluetoothUUID]?, of service: AttributeID
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        let outcome = try await request(.discover(.characteristics(uuids, of: service)), about: service)
        guard case .characteristics(let found) = outcome else { return [] }
        return found
    }

    func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor] {
        let outcome = try await request(.discover(.descriptors(of: characteristic)), about: characteristic)
        guard case .descriptors(let found) = outcome else { return [] }
        return found
    }

    // MARK: Values

    func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8] {
        guard case .value(let value) = try await request(.read(attribute, collected: []), about: attribute) else {
            return []
        }
        return value
    }

    func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError) {
        try BluetoothError.checkLength(value)
        let isLong = value.count > attMTU - 3
        let kind: ClientRequest.Kind =
            isLong ? .longWrite(attribute, value, prepared: 0) : .write(attribute, value)
        _ = try await request(kind, about: attribute)
    }

    func tryWriteValue(
        _ value: RawSpan, to characteristic: AttributeID, type: WriteType
    ) throws(BluetoothError) -> Bool {
        try value.withUnsafeBytes { (bytes) throws(BluetoothError) in
            try radio.locked { (radio) throws(BluetoothError) in
                try radio.tryWrite(bytes, to: characteristic, type: type, of: id)
            }
        }
    }

    func setSubscription(
        _ subscription: Subscription?, to characteristic: AttributeID
    ) async throws(BluetoothError) {
        try radio.locked { (radio) throws(BluetoothError) in
            let (_, link) = try radio.connected(id)
            guard let found = radio.nodes[link.peripheral].database.characteristics[characteristic] else {
                return try radio.known(characteristic, on: link)
            }
            guard subscription.map(found.properties.offers) ?? found.properties.offersSubscription else {
                throw .notOffered(subscription, by: characteristic)
            }
        }
        _ = try await request(.configure(characteristic, subscription), about: characteristic)
    }

    func readRSSI() async throws(BluetoothError) -> Int {
        try radio.locked { (radio) throws(BluetoothError) in
            let (_, link) = try radio.connected(id)
            return radio.rssi(link.central, link.peripheral)
        }
    }

    /// Makes a request and waits for its outcome. When the task is cancelled the wait ends; a request that has been sent
    /// still takes its course.
    private func request(
        _ kind: ClientRequest.Kind, about attribute: AttributeID? = nil
    ) async throws(BluetoothError) -> Outcome {
        let waiter = Waiter<Outcome>()
        try radio.locked { (radio) throws(BluetoothError) in
            let (client, link) = try radio.connected(id)
            if let attribute { try radio.known(attribute, on: link) }
            radio.request(kind, of: client, on: link, completion: .waiter(waiter))
        }
        return try await waiter.wait()
    }

    // MARK: Channels and the end

    func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel {
        let waiter = Waiter<Int>()
        try radio.locked { (radio) throws(BluetoothError) in
            let (client, link) = try radio.connected(id)
            radio.send(.openChannel(psm, client: client.id, waiter), .up, on: link)
            radio.resume(link)
            radio.wake()
        }
        return LoopbackChannel(radio: radio, id: try await waiter.wait(), role: .initiator)
    }

    func setReceiving(_ isReceiving: Bool) {
        radio.locked { radio in
            guard let client = radio.clients[id], let link = radio.links[client.link] else { return }
            client.isReceiving = isReceiving
            radio.updateReceiving(link)
        }
    }

    func disconnect() { radio.locked { $0.disconnect(client: id) } }
}

extension LoopbackRadio {
    /// Who a connection's peripheral is, while the connection lives.
    fileprivate func identity(ofClient id: Int) -> PeerIdentity? {
        read { radio in
            radio.clients[id].flatMap { radio.links[$0.link] }.map {
                RadioState.identity(ofNode: $0.peripheral, isProven: radio.isProven($0))
            }
        }
    }
}
