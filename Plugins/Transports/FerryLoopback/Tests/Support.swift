import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport

func bytes(_ span: RawSpan) -> [UInt8] { span.withUnsafeBytes { Array($0) } }

/// A peripheral's owner that writes down what it is told.
final class PeripheralOwner: PeripheralRoleEvents {
    let journal = Journal()
    let actions = Mutex<Actions>(Actions())

    struct Actions: Sendable {
        var onReady: (@Sendable () -> Void)?
        var onRead: (@Sendable (ReadRequest) -> Void)?
        var onWriteRequest: (@Sendable (WriteRequest) -> Void)?
        var onWrite: (@Sendable (ConnectedCentral, [UInt8]) -> Void)?
        var onChannel: (@Sendable (any L2CAPChannel) -> Void)?
        var onSubscribe: (@Sendable (ConnectedCentral) -> Void)?
    }

    private(set) var centrals: [ConnectedCentral] {
        get { subscribers.withLock { $0 } }
        set { subscribers.withLock { $0 = newValue } }
    }
    private let subscribers = Mutex<[ConnectedCentral]>([])

    func peripheralAdapterDidChange(_ state: AdapterState) { journal.add("state \(state)") }
    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        subscribers.withLock { $0.append(central) }
        journal.add("subscribed \(characteristic.rawValue) \(subscription)")
        actions.withLock { $0.onSubscribe }?(central)
    }
    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        journal.add("unsubscribed \(characteristic.rawValue)")
    }
    func peripheralDidReceive(_ request: ReadRequest) {
        journal.add("read \(request.characteristic.rawValue) at \(request.offset)")
        actions.withLock { $0.onRead }?(request)
    }
    func peripheralDidReceive(_ request: WriteRequest) {
        let parts = request.parts.map { "\($0.offset)+\($0.value.count)" }.joined(separator: " ")
        journal.add("write request \(parts)")
        actions.withLock { $0.onWriteRequest }?(request)
    }
    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        journal.add("written \(bytes(value))")
        actions.withLock { $0.onWrite }?(central, bytes(value))
    }
    func peripheralIsReadyToUpdate() {
        journal.add("ready")
        actions.withLock { $0.onReady }?()
    }
    func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
        journal.add("disconnected \(reason.code)")
    }
    func peripheralDidOpen(_ channel: any L2CAPChannel) {
        journal.add("channel \(channel.psm.rawValue)")
        if let action = actions.withLock({ $0.onChannel }) { action(channel) } else { channel.close() }
    }
    func peripheralDidStopAdvertising(_ reason: BluetoothError) { journal.add("advertising stopped \(reason.code)") }
}

/// A central's owner that writes down what it is told.
final class CentralOwner: CentralRoleEvents {
    let journal = Journal()
    let found = Mutex<[Discovery]>([])

    func centralAdapterDidChange(_ state: AdapterState) { journal.add("state \(state)") }
    func centralDidDiscover(_ discovery: Discovery) {
        found.withLock { $0.append(discovery) }
        journal.add("discovered \(discovery.advertisement.localName ?? "-") \(discovery.rssi)")
    }
}

/// A connection's owner that writes down what it is told.
final class ConnectionOwner: PeripheralConnectionEvents {
    let journal = Journal()
    let values = Mutex<[[UInt8]]>([])
    let actions = Mutex(Actions())

    struct Actions: Sendable {
        var onReady: (@Sendable () -> Void)?
        var onValue: (@Sendable ([UInt8]) -> Void)?
    }

    func peripheralDidUpdate(_ characteristic: AttributeID, value: RawSpan) {
        let value = bytes(value)
        values.withLock { $0.append(value) }
        journal.add("value \(value.count)")
        actions.withLock { $0.onValue }?(value)
    }
    func peripheralIsReadyToWrite() {
        journal.add("ready")
        actions.withLock { $0.onReady }?()
    }
    func peripheralDidWrite(_ characteristic: AttributeID, result: Result<Void, BluetoothError>) {
        switch result {
        case .success: journal.add("write answered")
        case .failure(let error): journal.add("write refused \(error.code)")
        }
    }
    func peripheralDidChangeMTU(_ attMTU: Int) { journal.add("mtu \(attMTU)") }
    func peripheralDidModifyServices(_ services: [AttributeID]) {
        journal.add("modified \(services.map(\.rawValue))")
    }
    func peripheralDidDisconnect(_ reason: BluetoothError) { journal.add("disconnected \(reason.code)") }
}
