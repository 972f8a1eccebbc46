import CoreBluetooth
import Ferry
import FerryBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport

/// A program in the peripheral role that writes down what it is told, and notes callbacks on a wrong queue.
final class PeripheralSide: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
    let journal = Journal()
    let checked: CheckedQueue
    // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
    private(set) var manager: CBPeripheralManager!
    let characteristic: CBMutableCharacteristic
    let service: CBMutableService
    /// Set before anything happens.
    var onRead: (@Sendable (CBATTRequest) -> Void)?
    var onWrite: (@Sendable ([CBATTRequest]) -> Void)?
    var onReady: (@Sendable () -> Void)?
    var onSubscribe: (@Sendable (CBCentral) -> Void)?
    var onChannel: (@Sendable (CBL2CAPChannel) -> Void)?
    let centrals = Mutex<[CBCentral]>([])

    init(
        on adapter: any BluetoothAdapter, properties: CBCharacteristicProperties = [.read, .write, .notify],
        permissions: CBAttributePermissions = [.readable, .writeable], value: Data? = nil,
        options: [String: Any]? = nil, queue: CheckedQueue = CheckedQueue("peripheral"), quirks: CBQuirks? = nil
    ) {
        checked = queue
        characteristic = CBMutableCharacteristic(
            type: testCharacteristic, properties: properties, value: value, permissions: permissions)
        service = CBMutableService(type: testService, primary: true)
        service.characteristics = [characteristic]
        super.init()
        MisuseLog.begin()
        manager = CBPeripheralManager(
            delegate: self, queue: queue.queue, options: options, adapter: adapter, quirks: quirks)
    }

    private func note(_ line: String) {
        journal.add(checked.isCurrent ? line : "WRONG QUEUE " + line)
    }

    /// Publishes the service and advertises it.
    func begin(name: String = "side") async throws {
        try await journal.wait(for: "state poweredOn")
        manager.add(service)
        try await journal.wait(for: "added \(testService) ok")
        manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: name, CBAdvertisementDataServiceUUIDsKey: [testService],
        ])
        try await journal.wait(for: "advertising ok")
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) { note("state \(peripheral.state)") }
    func peripheralManager(_ peripheral: CBPeripheralManager, willRestoreState dict: [String: Any]) {
        let services = dict[CBPeripheralManagerRestoredStateServicesKey] as? [CBMutableService] ?? []
        let data = dict[CBPeripheralManagerRestoredStateAdvertisementDataKey] as? [String: Any] ?? [:]
        note(
            "restore \(services.map(\.uuid)) \(data[CBAdvertisementDataLocalNameKey] ?? "-") "
                + "\(services.flatMap { $0.characteristics ?? [] }.map(\.uuid))")
    }
    func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: (any Error)?) {
        note("advertising \(text(error))")
    }
    func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
        note("added \(service.uuid) \(text(error))")
    }
    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic
    ) {
        centrals.withLock { $0.append(central) }
        note("subscribed \(characteristic.uuid)")
        onSubscribe?(central)
    }
    func peripheralManager(
        _ peripheral: CBPeripheralManager, central: CBCentral, didUnsubscribeFrom characteristic: CBCharacteristic
    ) { note("unsubscribed \(characteristic.uuid)") }
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        note("read at \(request.offset)")
        if let onRead { onRead(request) } else { peripheral.respond(to: request, withResult: .success) }
    }
    func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        if let onWrite { onWrite(requests) }
        note("write " + requests.map { "\($0.offset)+\($0.value?.count ?? -1)" }.joined(separator: " "))
        if onWrite == nil { peripheral.respond(to: requests[0], withResult: .success) }
    }
    func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        onReady?()
        note("ready")
    }
    func peripheralManager(
        _ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
    ) { note("published \(PSM) \(text(error))") }
    func peripheralManager(
        _ peripheral: CBPeripheralManager, didUnpublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?
    ) { note("unpublished \(PSM) \(text(error))") }
    func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        if let channel { onChannel?(channel) }
        note("channel \(text(error))")
    }
}

/// A program in the central role that writes down what it is told, and notes callbacks on a wrong queue.
final class CentralSide: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
    let journal = Journal()
    let checked: CheckedQueue
    // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
    private(set) var manager: CBCentralManager!
    let found = Mutex<(peripheral: CBPeripheral?, advertisement: Advertised, rssi: Int)>((nil, Advertised(), 0))
    let values = Mutex<[Data]>([])
    let restored = Mutex<[CBPeripheral]>([])
    let channel = Mutex<CBL2CAPChannel?>(nil)
    /// What the channels have called themselves; they are not kept.
    let psms = Mutex<[CBL2CAPPSM]>([])
    /// Set before anything happens.
    var onReady: (@Sendable (CBPeripheral) -> Void)?
    var onConnect: (@Sendable (CBPeripheral) -> Void)?
    var onUpdate: (@Sendable () -> Void)?
    /// Called in place of keeping the value.
    var onValue: (@Sendable (Data) -> Void)?

    init(
        on adapter: any BluetoothAdapter, options: [String: Any]? = nil, queue: CheckedQueue = CheckedQueue("central"),
        quirks: CBQuirks? = nil
    ) {
        checked = queue
        super.init()
        MisuseLog.begin()
        manager = CBCentralManager(
            delegate: self, queue: queue.queue, options: options, adapter: adapter, quirks: quirks)
    }

    private func note(_ line: String) {
        journal.add(checked.isCurrent ? line : "WRONG QUEUE " + line)
    }

    /// Finds the peripheral of the test's service.
    func find() async throws -> CBPeripheral {
        try await journal.wait(for: "state poweredOn")
        manager.scanForPeripherals(withServices: [testService])
        try await journal.wait(for: "discovered")
        manager.stopScan()
        let peripheral = try some(found.withLock { $0.peripheral })
        peripheral.delegate = self
        return peripheral
    }

    /// Finds it, connects, and discovers its characteristic.
    func connect() async throws -> (CBPeripheral, CBCharacteristic) {
        let peripheral = try await find()
        manager.connect(peripheral)
        try await journal.wait(for: "connected")
        return (peripheral, try await discover(peripheral))
    }

    func discover(_ peripheral: CBPeripheral) async throws -> CBCharacteristic {
        peripheral.discoverServices([testService])
        try await journal.wait(for: "services")
        let service = try some(peripheral.services?.first)
        peripheral.discoverCharacteristics([testCharacteristic], for: service)
        try await journal.wait(for: "characteristics")
        try await requestHasEnded(peripheral)
        return try some(service.characteristics?.first)
    }

    func subscribe() async throws -> (CBPeripheral, CBCharacteristic) {
        let (peripheral, characteristic) = try await connect()
        peripheral.setNotifyValue(true, for: characteristic)
        try await journal.wait(for: "notifying true")
        try await requestHasEnded(peripheral)
        return (peripheral, characteristic)
    }

    func centralManagerDidUpdateState(_ central: CBCentralManager) { note("state \(central.state)") }
    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        let peripherals = dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? []
        let services = dict[CBCentralManagerRestoredStateScanServicesKey] as? [CBUUID]
        restored.withLock { $0 = peripherals }
        for peripheral in peripherals { peripheral.delegate = self }
        note("restore \(peripherals.map { "\($0.name ?? "-") \($0.state)" }) \(services.map { "\($0)" } ?? "-")")
    }
    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        found.withLock { $0 = (peripheral, Advertised(data: advertisementData), RSSI.intValue) }
        note("discovered \(peripheral.name ?? "-")")
    }
    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        onConnect?(peripheral)
        note("connected")
    }
    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?) {
        note("failed \(text(error))")
    }
    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, timestamp: CFAbsoluteTime,
        isReconnecting: Bool, error: (any Error)?
    ) {
        note("disconnected \(text(error))\(isReconnecting ? " reconnecting" : "")")
    }
    func centralManager(
        _ central: CBCentralManager, connectionEventDidOccur event: CBConnectionEvent, for peripheral: CBPeripheral
    ) { note("event \(event)") }

    func peripheralDidUpdateName(_ peripheral: CBPeripheral) { note("name \(peripheral.name ?? "-")") }
    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        note("modified \(invalidatedServices.map(\.uuid))")
    }
    func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {
        note("rssi \(RSSI) \(text(error))")
    }
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        note("services \(text(error)) \(peripheral.services?.map(\.uuid) ?? [])")
    }
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
    ) { note("included \(service.includedServices?.map(\.uuid) ?? []) \(text(error))") }
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) { note("characteristics \(text(error))") }
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        let value = characteristic.value ?? Data()
        if let onValue { return onValue(value) }
        onUpdate?()
        if error == nil { values.withLock { $0.append(value) } }
        note("value \(value.count) \(text(error))")
    }
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?)
    {
        note("written \(text(error))")
    }
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic,
        error: (any Error)?
    ) { note("notifying \(characteristic.isNotifying) \(text(error))") }
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?
    ) { note("descriptors \(characteristic.descriptors?.map(\.uuid.uuidString) ?? []) \(text(error))") }
    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?) {
        note("descriptor \(descriptor.uuid.uuidString) \(descriptor.value ?? "nil") \(text(error))")
    }
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?) {
        note("descriptor written \(text(error))")
    }
    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) {
        onReady?(peripheral)
        note("ready")
    }
    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        self.channel.withLock { $0 = channel }
        if let channel { psms.withLock { $0.append(channel.psm) } }
        note("channel \(text(error))")
    }
}

/// Advertisement data, which nobody changes.
struct Advertised: @unchecked Sendable {
    var data: [String: Any] = [:]
    subscript(key: String) -> Any? { data[key] }
}

/// A radio with two adapters, as most tests need it.
struct Pair: Sendable {
    let radio: LoopbackRadio
    let near: LoopbackAdapter
    let far: LoopbackAdapter

    /// - Parameter time: the radio's, where a test has to stop it; nil for the system's.
    init(time: VirtualTime? = nil, _ configure: (inout LoopbackRadio.Configuration) -> Void = { _ in }) throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(2)
        configuration.requestTimeout = .unreached
        configure(&configuration)
        radio =
            if let time {
                try LoopbackRadio(time: time, configuration: configuration)
            } else {
                try LoopbackRadio(configuration: configuration)
            }
        near = radio.makeAdapter(name: "near")
        far = radio.makeAdapter(name: "far")
    }
}
