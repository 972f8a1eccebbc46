@testable import CoreBluetooth
import Ferry
import FerryBluetooth
import Foundation
import Synchronization
import TestSupport

/// An adapter without a radio: it writes down what it is asked for, answers at once unless the test holds it, and reports
/// what the test has it report.
final class ScriptedAdapter: BluetoothAdapter {
    let name = "scripted"
    let state = AdapterState.poweredOn
    let journal = Journal()
    let peripheral: ScriptedPeripheralRole
    let central: ScriptedCentralRole

    init() {
        peripheral = ScriptedPeripheralRole(journal)
        central = ScriptedCentralRole(journal)
    }

    func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
        peripheral.events.current = events
        events.peripheralAdapterDidChange(.poweredOn)
        return peripheral
    }

    func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
        central.events.current = events
        events.centralAdapterDidChange(.poweredOn)
        return central
    }

    static let peer = PeerID(rawValue: 7)
    static let identity = PeerIdentity("peer", certainty: .connection)
}

/// Where work waits while the test holds it.
final class Gate: Sendable {
    private let state = Mutex<(isHeld: Bool, waiting: [CheckedContinuation<Void, Never>])>((false, []))

    func hold() { state.withLock { $0.isHeld = true } }

    func release() {
        let waiting = state.withLock { state in
            defer { state = (false, []) }
            return state.waiting
        }
        for continuation in waiting { continuation.resume() }
    }

    func pass() async {
        await withCheckedContinuation { continuation in
            let isFree = state.withLock { state in
                if state.isHeld { state.waiting.append(continuation) }
                return !state.isHeld
            }
            if isFree { continuation.resume() }
        }
    }
}

final class ScriptedPeripheralRole: PeripheralRole {
    let events = Guarded<(any PeripheralRoleEvents)?>(nil)
    let journal: Journal
    let gate = Gate()
    let isAdvertising = Guarded(false)
    /// What the next publication or advertisement fails with.
    let failure = Guarded<BluetoothError?>(nil)
    private let published = Guarded(UInt32(0))
    private let channels = Guarded(UInt16(0x80))

    init(_ journal: Journal) { self.journal = journal }

    private func fail() throws(BluetoothError) {
        let failure = failure { failure in
            defer { failure = nil }
            return failure
        }
        if let failure { throw failure }
    }

    /// Services are numbered 100, 200 and so on, and their characteristics from there.
    func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
        journal.add("publish")
        await gate.pass()
        try fail()
        let number = published { number in
            number += 100
            return number
        }
        return PublishedService(
            id: AttributeID(rawValue: number),
            characteristics: service.characteristics.indices.map { AttributeID(rawValue: number + 1 + UInt32($0)) })
    }

    func unpublish(_ service: AttributeID) { journal.add("unpublish \(service.rawValue)") }

    func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
        journal.add("start advertising")
        await gate.pass()
        try fail()
        isAdvertising.current = true
        return AdvertisingReport(advertised: AdvertisementData())
    }

    func stopAdvertising() {
        isAdvertising.current = false
        journal.add("stop advertising")
    }

    func tryUpdateValue(_ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients)
        throws(BluetoothError) -> Bool
    {
        journal.add("update \(characteristic.rawValue) \(value.byteCount)")
        return true
    }

    func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? { 100 }
    func identity(of central: ConnectedCentral) -> PeerIdentity? { ScriptedAdapter.identity }

    func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
        switch response {
        case .success(let value): journal.add("respond \(request.rawValue) \(value)")
        case .failure(let error): journal.add("respond \(request.rawValue) error \(error.rawValue)")
        }
    }

    func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) { journal.add("receiving \(isReceiving)") }
    func disconnect(_ central: ConnectedCentral) { journal.add("disconnect") }

    func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
        try fail()
        return PSM(
            rawValue: channels { number in
                number += 1
                return number
            })
    }

    func unpublishL2CAPChannel(_ psm: PSM) { journal.add("unpublish channel \(psm.rawValue)") }
    func close() { journal.add("close") }
}

final class ScriptedCentralRole: CentralRole {
    let events = Guarded<(any CentralRoleEvents)?>(nil)
    let journal: Journal
    let gate = Gate()
    let connections = Guarded<[ScriptedConnection]>([])
    /// What each connection ends with before it is handed over.
    let end = Guarded<BluetoothError?>(nil)
    /// What the next scan or connection fails with.
    let failure = Guarded<BluetoothError?>(nil)

    init(_ journal: Journal) { self.journal = journal }

    private func fail() throws(BluetoothError) {
        let failure = failure { failure in
            defer { failure = nil }
            return failure
        }
        if let failure { throw failure }
    }

    /// Finds the peer at once.
    func startScan(_ request: ScanRequest) throws(BluetoothError) {
        journal.add("scan")
        try fail()
        discover()
    }

    func discover(_ peer: PeerID = ScriptedAdapter.peer) {
        events.current?.centralDidDiscover(
            Discovery(
                peripheral: peer, identity: ScriptedAdapter.identity, advertisement: AdvertisementData(), rssi: -50))
    }

    func stopScan() { journal.add("stop scan") }

    func connect(to peripheral: PeerID, events: any PeripheralConnectionEvents) async throws(BluetoothError)
        -> any PeripheralConnection
    {
        journal.add("connect")
        await gate.pass()
        try fail()
        let connection = ScriptedConnection(journal, events)
        connections { $0.append(connection) }
        if let end = end.current { events.peripheralDidDisconnect(end) }
        return connection
    }

    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] { identifiers }
    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? { ScriptedAdapter.peer }
    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] { [] }
    func close() { journal.add("close") }
}

/// A connection to a peripheral with the test's service, 1, and its characteristic, 2.
final class ScriptedConnection: PeripheralConnection {
    let peripheral = ScriptedAdapter.peer
    let identity = ScriptedAdapter.identity
    let journal: Journal
    let events: Guarded<(any PeripheralConnectionEvents)?>
    let gate = Gate()
    /// How many writes are taken before one is refused.
    let space = Guarded(Int.max)
    /// What is reported while a subscription is being made.
    let early = Guarded<[[UInt8]]>([])

    init(_ journal: Journal, _ events: (any PeripheralConnectionEvents)?) {
        self.journal = journal
        self.events = Guarded(events)
    }

    static let characteristic = AttributeID(rawValue: 2)

    let attMTU = 185

    func discoverServices(_ uuids: [BluetoothUUID]?) async throws(BluetoothError) -> [RemoteService] {
        [RemoteService(id: AttributeID(rawValue: 1), uuid: testService.bluetooth, isPrimary: true)]
    }

    func discoverIncludedServices(_ uuids: [BluetoothUUID]?, of service: AttributeID)
        async throws(BluetoothError) -> [RemoteService]
    { [] }

    func discoverCharacteristics(_ uuids: [BluetoothUUID]?, of service: AttributeID)
        async throws(BluetoothError) -> [RemoteCharacteristic]
    {
        [
            RemoteCharacteristic(
                id: Self.characteristic, uuid: testCharacteristic.bluetooth,
                properties: [.read, .write, .writeWithoutResponse, .notify])
        ]
    }

    func discoverDescriptors(of characteristic: AttributeID) async throws(BluetoothError) -> [RemoteDescriptor] { [] }

    func readValue(of attribute: AttributeID) async throws(BluetoothError) -> [UInt8] {
        journal.add("read")
        await gate.pass()
        return [9]
    }

    func writeValue(_ value: [UInt8], to attribute: AttributeID) async throws(BluetoothError) {
        journal.add("request \(value)")
        await gate.pass()
    }

    func tryWriteValue(_ value: RawSpan, to characteristic: AttributeID, type: WriteType)
        throws(BluetoothError) -> Bool
    {
        let isTaken = space { space in
            space -= 1
            return space >= 0
        }
        let bytes = value.withUnsafeBytes { Array($0) }
        journal.add("\(isTaken ? "command" : "refused") \(bytes)")
        return isTaken
    }

    func maximumWriteLength(_ type: WriteType) -> Int { 182 }

    func setSubscription(_ subscription: Subscription?, to characteristic: AttributeID) async throws(BluetoothError) {
        for value in early.current { notify(value) }
        await gate.pass()
    }

    func readRSSI() async throws(BluetoothError) -> Int { -40 }

    func openL2CAPChannel(_ psm: PSM) async throws(BluetoothError) -> any L2CAPChannel {
        throw BluetoothError(.channelRefused, "not in the script")
    }

    func setReceiving(_ isReceiving: Bool) { journal.add("receiving \(isReceiving)") }
    func disconnect() { journal.add("disconnect") }

    func notify(_ value: [UInt8]) {
        events.current?.peripheralDidUpdate(Self.characteristic, value: value.span.bytes)
    }
}

/// A channel that takes as many chunks as the test lets it.
final class ScriptedChannel: L2CAPChannel {
    let peer = ScriptedAdapter.identity
    let peerID = ScriptedAdapter.peer
    let psm = PSM(rawValue: 0x81)
    let maximumChunkSize = 100
    let journal = Journal()
    let space = Guarded(Int.max)
    let receiver = Guarded<(any LinkReceiver)?>(nil)

    func activate(_ receiver: any LinkReceiver) { self.receiver.current = receiver }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        let isTaken = space { space in
            space -= 1
            return space >= 0
        }
        if isTaken { journal.add("sent \(chunk.byteCount)") }
        return isTaken
    }

    func setReceiving(_ isReceiving: Bool) { journal.add("receiving \(isReceiving)") }
    func close() { journal.add("close") }
}
