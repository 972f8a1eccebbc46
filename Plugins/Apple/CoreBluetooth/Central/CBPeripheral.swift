import FerryBluetooth
public import Foundation

/// A remote device in the peripheral role. Keep it while it is in use: when the last reference goes, its connection
/// ends.
open class CBPeripheral: CBPeer {
    struct Contents {
        var name: String?
        var state = CBPeripheralState.disconnected
        var services: [CBService]?
        var session: PeripheralSession?
        /// Whether the session has been reported as connected.
        var hasConnected = false
        /// A connection that was asked for while the one before was being ended.
        var next: (delay: Double, reconnects: Bool)?
        var channels = ChannelOpenings()
    }
    let contents = Guarded(Contents())
    private let delegateReference = Guarded(WeakDelegate())
    let manager: WeakReference<CBCentralManager>
    /// What the manager's adapter calls it.
    let peer: Guarded<PeerID>

    private struct WeakDelegate { weak var delegate: (any CBPeripheralDelegate)? }

    /// - Parameter peer: what the manager's adapter calls it.
    init(identifier: UUID, peer: PeerID, manager: CBCentralManager) {
        self.manager = WeakReference(manager)
        self.peer = Guarded(peer)
        super.init(identifier: identifier)
    }

    deinit {
        guard let session = contents.current.session else { return }
        Misuse.report("Cancelling connection for unused peripheral, Did you forget to keep a reference to it?")
        session.cancel()
    }

    /// Who is told of what happens; held weakly.
    open var delegate: (any CBPeripheralDelegate)? {
        get { delegateReference { $0.delegate } }
        set { delegateReference { $0.delegate = newValue } }
    }

    /// As Apple's prints. The ATT_MTU is 0 without a connection.
    open override var description: String {
        let contents = contents.current
        let mtu = contents.session?.connectedMTU ?? 0
        return printed(
            "identifier = \(peerIdentifier), name = \(contents.name ?? "(null)"), mtu = \(mtu), "
                + "state = \(contents.state)")
    }

    /// The name that the peripheral advertised last.
    open var name: String? { contents.current.name }
    /// The former form of ``readRSSI()``: always nil.
    @available(*, deprecated, message: "Use readRSSI()")
    open var rssi: NSNumber? { nil }
    /// How far it is connected.
    open var state: CBPeripheralState { contents.current.state }
    /// Its services, as far as they have been discovered; nil when it is not connected.
    open var services: [CBService]? { contents.current.services }
    /// Whether a write without response is taken now. When false,
    /// ``CBPeripheralDelegate/peripheralIsReady(toSendWriteWithoutResponse:)`` follows.
    open var canSendWriteWithoutResponse: Bool { contents.current.session?.canWriteWithoutResponse ?? false }
    /// Whether the peripheral may receive notifications of the system: always false.
    open var ancsAuthorized: Bool { false }

    /// The most bytes of one write: 512 with response, ATT_MTU - 3 and at most 512 without.
    open func maximumWriteValueLength(for type: CBCharacteristicWriteType) -> Int {
        guard type == .withoutResponse else { return 512 }
        return min((contents.current.session?.attMTU ?? 23) - 3, 512)
    }

    /// The session, if commands are taken; otherwise reports the misuse, as Apple's does.
    private func connected(_ function: String = #function) -> PeripheralSession? {
        let contents = contents.current
        if contents.state == .connected, let session = contents.session { return session }
        Misuse.report("CBPeripheral.\(function) can only accept commands while in the connected state")
        return nil
    }

    /// The session, if an attribute was found on it and is valid still; otherwise `refuse` is told on the program's
    /// queue.
    private func connected(
        _ place: RemotePlace?, _ function: String = #function, refuse: @escaping (any Error) -> Void
    ) -> (PeripheralSession, AttributeID)? {
        guard let session = connected(function) else { return nil }
        guard let place, place.session.object === session else {
            manager.object?.callbacks.run {
                refuse(
                    CBError(.invalidHandle, "The attribute was not discovered on this connection; discover it again."))
            }
            return nil
        }
        return (session, place.id)
    }

    // MARK: Discovery

    /// Asks for the signal's strength.
    open func readRSSI() {
        connected()?.request {
            (connection) async throws(BluetoothError) in
            try await connection.readRSSI()
        } then: { peripheral, result in
            let rssi = (try? result.get()) ?? 0
            peripheral.delegate?.peripheral(peripheral, didReadRSSI: NSNumber(value: rssi), error: result.error)
        }
    }

    /// Finds primary services; nil for all.
    open func discoverServices(_ serviceUUIDs: [CBUUID]?) {
        guard let session = connected() else { return }
        let wanted = serviceUUIDs?.map(\.bluetooth)
        let memory = session.isFirstDiscovery() ? manager.object?.registry.memory : nil
        let identifier = peerIdentifier
        session.request { (connection) async throws(BluetoothError) in
            guard let memory else {
                return SystemMemory.Discovery(services: try await connection.discoverServices(wanted))
            }
            return memory.discover(wanted, try await connection.discoverServices(nil), at: identifier)
        } then: { peripheral, result in
            if case .success(let found) = result {
                let services = found.services.map { peripheral.service($0, session) }
                peripheral.contents { $0.services = merge($0.services, services, replacing: wanted == nil) }
            }
            peripheral.delegate?.peripheral(peripheral, didDiscoverServices: result.error)
            if let outdated = (try? result.get())?.outdated { peripheral.renewServices(session, outdated) }
        }
    }

    private func service(_ found: RemoteService, _ session: PeripheralSession) -> CBService {
        session.attribute(found.id) {
            CBService(
                type: CBUUID(found.uuid), isPrimary: found.isPrimary, owner: self,
                place: RemotePlace(session: session, id: found.id))
        }
    }

    /// Finds the services that a service includes; nil for all.
    open func discoverIncludedServices(_ includedServiceUUIDs: [CBUUID]?, for service: CBService) {
        guard
            let (session, id) = connected(
                service.place,
                refuse: { self.delegate?.peripheral(self, didDiscoverIncludedServicesFor: service, error: $0) })
        else { return }
        let wanted = includedServiceUUIDs?.map(\.bluetooth)
        session.request { (connection) async throws(BluetoothError) in
            try await connection.discoverIncludedServices(wanted, of: id)
        } then: { peripheral, result in
            if case .success(let found) = result {
                let services = found.map { peripheral.service($0, session) }
                service.contents { $0.included = merge($0.included, services, replacing: wanted == nil) }
            }
            peripheral.delegate?.peripheral(peripheral, didDiscoverIncludedServicesFor: service, error: result.error)
        }
    }

    /// Finds a service's characteristics; nil for all.
    open func discoverCharacteristics(_ characteristicUUIDs: [CBUUID]?, for service: CBService) {
        guard
            let (session, id) = connected(
                service.place,
                refuse: { self.delegate?.peripheral(self, didDiscoverCharacteristicsFor: service, error: $0) })
        else { return }
        let wanted = characteristicUUIDs?.map(\.bluetooth)
        session.request { (connection) async throws(BluetoothError) in
            try await connection.discoverCharacteristics(wanted, of: id)
        } then: { peripheral, result in
            if case .success(let found) = result {
                let characteristics = found.map { found in
                    session.attribute(found.id) {
                        CBCharacteristic(
                            type: CBUUID(found.uuid),
                            properties: CBCharacteristicProperties(rawValue: UInt(found.properties.rawValue)),
                            owner: service, place: RemotePlace(session: session, id: found.id))
                    }
                }
                service.contents {
                    $0.characteristics = merge($0.characteristics, characteristics, replacing: wanted == nil)
                }
            }
            peripheral.delegate?.peripheral(peripheral, didDiscoverCharacteristicsFor: service, error: result.error)
        }
    }

    /// Finds a characteristic's descriptors.
    open func discoverDescriptors(for characteristic: CBCharacteristic) {
        guard
            let (session, id) = connected(
                characteristic.place,
                refuse: { self.delegate?.peripheral(self, didDiscoverDescriptorsFor: characteristic, error: $0) })
        else { return }
        session.request { (connection) async throws(BluetoothError) in
            try await connection.discoverDescriptors(of: id)
        } then: { peripheral, result in
            if case .success(let found) = result {
                let descriptors = found.map { found in
                    session.attribute(found.id) {
                        CBDescriptor(
                            type: CBUUID(found.uuid), owner: characteristic,
                            place: RemotePlace(session: session, id: found.id))
                    }
                }
                characteristic.contents { $0.descriptors = descriptors }
            }
            peripheral.delegate?.peripheral(
                peripheral, didDiscoverDescriptorsFor: characteristic, error: result.error)
        }
    }

    // MARK: Values

    /// Reads a characteristic's whole value, in several steps when it is long.
    open func readValue(for characteristic: CBCharacteristic) {
        guard
            let (session, id) = connected(
                characteristic.place,
                refuse: { self.delegate?.peripheral(self, didUpdateValueFor: characteristic, error: $0) })
        else { return }
        session.request { (connection) async throws(BluetoothError) in
            try await connection.readValue(of: id)
        } then: { peripheral, result in
            if case .success(let value) = result { characteristic.contents { $0.value = Data(value) } }
            peripheral.delegate?.peripheral(peripheral, didUpdateValueFor: characteristic, error: result.error)
        }
    }

    /// Reads a descriptor's value.
    open func readValue(for descriptor: CBDescriptor) {
        guard
            let (session, id) = connected(
                descriptor.place,
                refuse: { self.delegate?.peripheral(self, didUpdateValueFor: descriptor, error: $0) })
        else { return }
        session.request { (connection) async throws(BluetoothError) in
            try await connection.readValue(of: id)
        } then: { peripheral, result in
            if case .success(let value) = result { descriptor.contents.current = descriptor.interpret(value) }
            peripheral.delegate?.peripheral(peripheral, didUpdateValueFor: descriptor, error: result.error)
        }
    }

    /// Writes a characteristic's value. With response: at most 512 bytes, long ones as prepared writes, and the answer
    /// comes as ``CBPeripheralDelegate/peripheral(_:didWriteValueFor:error:)-(_,CBCharacteristic,_)``. Without: dropped
    /// when it is too long, when the characteristic does not offer it, or when the queue is full and
    /// ``canSendWriteWithoutResponse`` was not heeded.
    open func writeValue(_ data: Data, for characteristic: CBCharacteristic, type: CBCharacteristicWriteType) {
        guard
            let (session, id) = connected(
                characteristic.place,
                refuse: {
                    guard type == .withResponse else { return }
                    self.delegate?.peripheral(self, didWriteValueFor: characteristic, error: $0)
                })
        else { return }
        guard type == .withResponse else {
            guard characteristic.properties.contains(.writeWithoutResponse) else {
                return Misuse.report(
                    "Characteristic \(characteristic.uuid) does not specify the \"Write Without Response\" property - "
                        + "ignoring response-less write")
            }
            return session.writeWithoutResponse(data, to: id)
        }
        write(data, to: id, session) { peripheral, error in
            peripheral.delegate?.peripheral(peripheral, didWriteValueFor: characteristic, error: error)
        }
    }

    /// Writes a descriptor's value. The Client Characteristic Configuration is set by ``setNotifyValue(_:for:)`` only.
    open func writeValue(_ data: Data, for descriptor: CBDescriptor) {
        guard
            let (session, id) = connected(
                descriptor.place,
                refuse: { self.delegate?.peripheral(self, didWriteValueFor: descriptor, error: $0) })
        else { return }
        guard descriptor.uuid.uuidString != CBUUIDClientCharacteristicConfigurationString else {
            return Misuse.report(
                "Client Characteristic Configuration descriptors must be configured using setNotifyValue(_:for:)")
        }
        write(data, to: id, session) { peripheral, error in
            peripheral.delegate?.peripheral(peripheral, didWriteValueFor: descriptor, error: error)
        }
    }

    private func write(
        _ data: Data, to id: AttributeID, _ session: PeripheralSession,
        then finish: @escaping (CBPeripheral, (any Error)?) -> Void
    ) {
        let bytes = [UInt8](data)
        session.countWrite()
        session.request { (connection) async throws(BluetoothError) in
            guard bytes.count <= 512 else {
                throw BluetoothError(
                    .att(.invalidAttributeValueLength), "a value of \(bytes.count) bytes is longer than 512")
            }
            try await connection.writeValue(bytes, to: id)
        } then: {
            finish($0, $1.error)
        }
    }

    /// Subscribes to a characteristic's changes, or ends that. Notifications go before indications where both are
    /// offered.
    open func setNotifyValue(_ enabled: Bool, for characteristic: CBCharacteristic) {
        guard
            let (session, id) = connected(
                characteristic.place,
                refuse: { self.delegate?.peripheral(self, didUpdateNotificationStateFor: characteristic, error: $0) })
        else { return }
        let offered: Subscription? =
            characteristic.properties.contains(.notify)
            ? .notify : characteristic.properties.contains(.indicate) ? .indicate : nil
        session.request { (connection) async throws(BluetoothError) in
            guard let offered else {
                throw BluetoothError(.att(.requestNotSupported), "the characteristic does not offer it")
            }
            if enabled { session.hold(id) }
            try await connection.setSubscription(enabled ? offered : nil, to: id)
        } then: { peripheral, result in
            if case .success = result { characteristic.contents { $0.isNotifying = enabled } }
            peripheral.delegate?.peripheral(
                peripheral, didUpdateNotificationStateFor: characteristic, error: result.error)
            session.release(id)
        }
    }

    /// Opens an L2CAP channel to a PSM that the peripheral has published.
    open func openL2CAPChannel(_ PSM: CBL2CAPPSM) {
        guard let session = connected() else { return }
        contents { $0.channels.ask(PSM) }
        let memory = session.quirks.contains(.stalePSMs) ? manager.object?.registry.memory : nil
        let identifier = peerIdentifier
        session.request { (connection) async throws(BluetoothError) in
            guard memory?.mayOpen(PSM, at: identifier, on: session.identifier) ?? true else {
                throw BluetoothError(.channelRefused, "PSM \(PSM) is connected already.")
            }
            let channel = try await connection.openL2CAPChannel(FerryBluetooth.PSM(rawValue: PSM))
            memory?.didOpen(PSM, at: identifier, on: session.identifier)
            return channel
        } then: { peripheral, result in
            let answers = peripheral.contents { $0.channels.answer(result, session.quirks) }
            for (result, psm) in answers {
                let channel = (try? result.get()).map { CBL2CAPChannel($0, peer: peripheral, psm: psm) }
                peripheral.delegate?.peripheral(peripheral, didOpen: channel, error: result.error)
            }
        }
    }
}

/// Channels that were asked for and are not open yet.
struct ChannelOpenings {
    typealias Answer = Result<any L2CAPChannel, BluetoothError>
    private var asked = 0
    private var last: CBL2CAPPSM = 0
    private var held: [Answer] = []

    mutating func ask(_ psm: CBL2CAPPSM) {
        asked += 1
        last = psm
    }

    /// What the program is told now, and the PSM that it is shown where that is not the channel's own.
    mutating func answer(_ answer: Answer, _ quirks: CBQuirks) -> [(Answer, CBL2CAPPSM?)] {
        asked -= 1
        guard quirks.contains(.confusesChannels) else { return [(answer, nil)] }
        held.insert(answer, at: 0)
        guard asked == 0 else { return [] }
        defer { held = [] }
        return held.map { ($0, last) }
    }
}

/// Adds what a search for some has found, or takes it alone when all were asked for; in the order of the peer's
/// attributes.
private func merge<Attribute: CBAttribute>(_ old: [Attribute]?, _ new: [Attribute], replacing: Bool) -> [Attribute] {
    guard let old, !replacing else { return new }
    return old + new.filter { found in !old.contains { $0 === found } }
}

extension Result where Failure == BluetoothError {
    /// The error as a delegate receives it.
    var error: (any Error)? {
        if case .failure(let error) = self { error.asCoreBluetooth } else { nil }
    }
}
