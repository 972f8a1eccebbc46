import Ferry
import FerryBluetooth
import Synchronization

/// A central role that hands on everything, but for values that come while its owner still waits for a subscription: of those
/// it keeps 64.
final class ForgetfulCentral: CentralRole {
    private let role: any CentralRole

    init(_ role: any CentralRole) { self.role = role }

    func startScan(_ request: ScanRequest) throws(BluetoothError) { try role.startScan(request) }
    func stopScan() { role.stopScan() }
    func connect(
        to peripheral: PeerID, events: any PeripheralConnectionEvents
    ) async throws(BluetoothError) -> any PeripheralConnection {
        let kept = EarlyValues(events)
        return ForgetfulConnection(try await role.connect(to: peripheral, events: kept), kept)
    }
    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] { role.retrievePeripherals(identifiers) }
    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? { role.retrievePeripheral(identity) }
    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
        role.retrieveConnectedPeripherals(offering: services)
    }
    func close() { role.close() }
}

private final class EarlyValues: PeripheralConnectionEvents {
    private let events: any PeripheralConnectionEvents
    /// How many more are handed on while a subscription is waited for.
    private let left = Mutex<Int?>(nil)
    private let dropped = Atomic(false)
    var hasDropped: Bool { dropped.load(ordering: .relaxed) }

    init(_ events: any PeripheralConnectionEvents) { self.events = events }

    func wait(_ isWaiting: Bool) { left.withLock { $0 = isWaiting ? 64 : nil } }

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        let isKept = left.withLock { left in
            guard let count = left else { return true }
            left = max(0, count - 1)
            return count > 0
        }
        guard isKept else { return dropped.store(true, ordering: .relaxed) }
        events.peripheralDidUpdate(characteristic, value: value)
    }
    func peripheralIsReadyToWrite() { events.peripheralIsReadyToWrite() }
    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {
        events.peripheralDidWrite(characteristic, result: result)
    }
    func peripheralDidChangeMTU(_ attMTU: Int) { events.peripheralDidChangeMTU(attMTU) }
    func peripheralDidModifyServices(_ services: [AttributeID]) { events.peripheralDidModifyServices(services) }
    func peripheralDidDisconnect(_ reason: BluetoothError) { events.peripheralDidDisconnect(reason) }
}

private final class ForgetfulConnection: PeripheralConnection {
    private let connection: any PeripheralConnection
    private let kept: EarlyValues

    init(_ connection: any PeripheralConnection, _ kept: EarlyValues) {
        self.connection = connection
        self.kept = kept
    }

    var peripheral: PeerID { connection.peripheral }
    var identity: PeerIdentity { connection.identity }
    var attMTU: Int { connection.attMTU }
    func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
        try await connection.discoverServices(uuids)
    }
    func discoverIncludedServices(
        _ uuids: [BluetoothUUID]?, of service: AttributeID
    ) async throws(BluetoothError) -> [RemoteService] {
        try await connection.discoverIncludedServices(uuids, of: service)
    }
    func discoverCharacteristics(
        _ uuids: [BluetoothUUID]?, of service: AttributeID
    ) async throws(BluetoothError) -> [RemoteCharacteristic] {
        try await connection.discoverCharacteristics(uuids, of: service)
    }
    func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor] {
        try await connection.discoverDescriptors(of: characteristic)
    }
    func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8] {
        try await connection.readValue(of: attribute)
    }
    func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError) {
        try await connection.writeValue(value, to: attribute)
    }
    func tryWriteValue(
        _ value: RawSpan, to characteristic: AttributeID, type: WriteType
    ) throws(BluetoothError) -> Bool {
        try connection.tryWriteValue(value, to: characteristic, type: type)
    }
    func maximumWriteLength(_ type: WriteType) -> Int { connection.maximumWriteLength(type) }
    func setSubscription(
        _ subscription: Subscription?, to characteristic: AttributeID
    ) async throws(BluetoothError) {
        kept.wait(true)
        try await connection.setSubscription(subscription, to: characteristic)
        // The owner hears of it late, so that it is not the machine's pace that decides whether the defect shows.
        for _ in 0..<1_000_000 where subscription != nil && !kept.hasDropped { await Task.yield() }
        kept.wait(false)
    }
    func readRSSI() async throws(BluetoothError) -> Int { try await connection.readRSSI() }
    func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel {
        try await connection.openL2CAPChannel(psm)
    }
    func setReceiving(_ isReceiving: Bool) { connection.setReceiving(isReceiving) }
    func disconnect() { connection.disconnect() }
}
