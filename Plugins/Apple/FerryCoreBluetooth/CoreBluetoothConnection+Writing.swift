import CoreBluetooth
import Ferry
import FerryBluetooth

extension CoreBluetoothConnection {
    var attMTU: Int {
        guard state({ $0.life.isConnected }) else { return state { $0.attMTU } }
        return attMTUNow
    }

    /// The framework shows what one write carries: ATT_MTU - 3, at most 512.
    var attMTUNow: Int { max(peripheral_.maximumWriteValueLength(for: .withoutResponse), 20) + 3 }

    func maximumWriteLength(_ type: WriteType) -> Int { min(attMTU - 3, 512) }

    /// Nothing tells that ATT_MTU has changed; on the queue.
    func noteMTU() {
        let now = attMTUNow
        let events = state { state -> (any PeripheralConnectionEvents)? in
            guard state.life.isConnected, state.attMTU != now else { return nil }
            state.attMTU = now
            return state.life.events
        }
        events?.peripheralDidChangeMTU(now)
    }

    func tryWriteValue(_ value: RawSpan, to characteristic: AttributeID, type: WriteType) throws(BluetoothError) -> Bool
    {
        let found = try state { (state) throws(BluetoothError) in
            try state.life.requireOpen()
            return state.attributes[characteristic]
        }
        guard let object = found as? CBCharacteristic else {
            throw BluetoothError(
                .unknownAttribute,
                "Characteristic \(characteristic.rawValue) was not discovered on this connection; discover it again.")
        }
        let needed: CBCharacteristicProperties = type == .withResponse ? .write : .writeWithoutResponse
        guard object.properties.contains(needed) else {
            throw BluetoothError(
                .notSupported, "The characteristic \(object.uuid.uuidString) does not take writes \(type).")
        }
        let most = maximumWriteLength(type)
        guard value.byteCount <= most else {
            throw BluetoothError(
                .valueTooLong, "A value of \(value.byteCount) bytes is above \(most), the most at once.")
        }
        return type == .withResponse
            ? try tryRequest(value.data, object, characteristic) : tryCommand(value.data, object)
    }

    private func tryCommand(_ data: Data, _ characteristic: CBCharacteristic) -> Bool {
        // Room is asked for and taken in one step, so that two senders do not share it.
        let decision = state { state in
            let decision = state.pace.mayWrite(peripheral_.canSendWriteWithoutResponse, .now)
            if case .goes = decision { peripheral_.writeValue(data, for: characteristic, type: .withoutResponse) }
            return decision
        }
        switch decision {
        case .goes: return true
        case .waits(let watch): if watch { look(characteristic) }
        case .asks: role.queue.run { [weak self] in self?.askPeer(of: characteristic) }
        }
        return false
    }

    /// The call that there is room may be lost, or never come.
    private func look(_ characteristic: CBCharacteristic) {
        role.queue.run(after: 0.02) { [weak self] in
            guard let self, self.state({ !$0.life.hasEnded }) else { return }
            let hasRoom = self.peripheral_.canSendWriteWithoutResponse
            let (next, events) = self.state { ($0.pace.look(hasRoom, .now), $0.life.events) }
            if next.tell { events?.peripheralIsReadyToWrite() }
            if next.again { self.look(characteristic) }
            if next.asks { self.askPeer(of: characteristic) }
        }
    }

    /// Reads a Client Characteristic Configuration; on the queue. It needs no permission, the peer's app does not see
    /// it (Core Specification, Vol 3, Part G, 3.3.3.3), and its answer shows that earlier writes have gone out.
    private func askPeer(of characteristic: CBCharacteristic, afterDiscovery: Bool = false) {
        let notifying = ([characteristic] + (characteristic.service?.characteristics ?? [])).first {
            !$0.properties.isDisjoint(with: [.notify, .indicate])
        }
        let configuration = notifying?.descriptors?.first { $0.uuid.bluetooth == .clientCharacteristicConfiguration }
        if let configuration {
            request(.read(id(configuration)), { $0.readValue(for: configuration) }) { [weak self] isAnswered in
                self?.peerDidAnswer(isAnswered)
            }
        } else if let notifying, !afterDiscovery {
            request(.descriptors(id(notifying)), { $0.discoverDescriptors(for: notifying) }) { [weak self] _ in
                self?.role.queue.run { self?.askPeer(of: characteristic, afterDiscovery: true) }
            }
        } else {
            peerDidAnswer(false)
        }
    }

    private func request(
        _ key: Key, _ start: @escaping (CBPeripheral) -> Void, then finish: @escaping (Bool) -> Void
    ) {
        // One that has ended needs nothing more.
        try? enqueue(
            Request(key: key, start: start) { result in
                if case .success = result { finish(true) } else { finish(false) }
            })
    }

    private func peerDidAnswer(_ isAnswered: Bool) {
        guard isAnswered else {
            return role.queue.run(after: WritePace.step) { [weak self] in self?.mayWrite(WritePace.mostUnasked) }
        }
        mayWrite(WritePace.most)
    }

    private func mayWrite(_ count: Int) {
        let events = state { state in
            state.pace.proofDidEnd(allows: count) && state.life.reason == nil ? state.life.events : nil
        }
        events?.peripheralIsReadyToWrite()
    }

    /// CoreBluetooth has room; on the queue.
    func isReady() {
        let events = state { $0.pace.hasRoom() ? $0.life.events : nil }
        events?.peripheralIsReadyToWrite()
        noteMTU()
    }

    private func tryRequest(_ data: Data, _ characteristic: CBCharacteristic, _ id: AttributeID) throws(BluetoothError)
        -> Bool
    {
        let isTaken = state { state in
            guard state.waitingWrites == 0 else { return false }
            state.waitingWrites = 1
            return true
        }
        guard isTaken else { return false }
        do throws(BluetoothError) {
            try enqueue(
                Request(key: .write(id), start: { $0.writeValue(data, for: characteristic, type: .withResponse) }) {
                    [weak self] result in
                    guard let self else { return }
                    let events = self.state { state in
                        state.waitingWrites = 0
                        return state.life.events
                    }
                    events?.peripheralDidWrite(id, result: result)
                    events?.peripheralIsReadyToWrite()
                })
        } catch {
            state { $0.waitingWrites = 0 }
            throw error
        }
        return true
    }

    // MARK: Values, on the queue

    func didUpdate(_ characteristic: CBCharacteristic, _ error: (any Error)?) {
        let id = id(characteristic)
        // An answer goes before a notification: nothing tells them apart.
        if answer(.read(id), error) || error != nil { return }
        let events = state { $0.life.events }
        characteristic.value?.lend { events?.peripheralDidUpdate(id, value: $0) }
    }
}

/// Passes on what a peripheral tells; on the role's queue.
final class PeripheralDelegate: NSObject, CBPeripheralDelegate {
    private weak var connection: CoreBluetoothConnection?

    init(_ connection: CoreBluetoothConnection) { self.connection = connection }

    func peripheral(_ peripheral: CBPeripheral, didModifyServices invalidatedServices: [CBService]) {
        connection?.forget(invalidatedServices)
    }
    func peripheral(_ peripheral: CBPeripheral, didReadRSSI RSSI: NSNumber, error: (any Error)?) {
        connection?.lastRSSI { $0 = RSSI.intValue }
        connection?.answer(.rssi, error)
    }
    func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        connection?.answer(.services, error)
    }
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverIncludedServicesFor service: CBService, error: (any Error)?
    ) {
        if let connection { connection.answer(.included(connection.id(service)), error) }
    }
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
    ) {
        if let connection { connection.answer(.characteristics(connection.id(service)), error) }
    }
    func peripheral(
        _ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        if let connection { connection.answer(.descriptors(connection.id(characteristic)), error) }
    }
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        connection?.didUpdate(characteristic, error)
    }
    func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: (any Error)?) {
        if let connection { connection.answer(.read(connection.id(descriptor)), error) }
    }
    func peripheral(
        _ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        if let connection { connection.answer(.write(connection.id(characteristic)), error) }
    }
    func peripheral(_ peripheral: CBPeripheral, didWriteValueFor descriptor: CBDescriptor, error: (any Error)?) {
        if let connection { connection.answer(.write(connection.id(descriptor)), error) }
    }
    func peripheral(
        _ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: (any Error)?
    ) {
        if let connection { connection.answer(.subscription(connection.id(characteristic)), error) }
    }
    func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { connection?.isReady() }
    func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        connection?.lastChannel { $0 = channel }
        connection?.answer(.channel, error)
    }
}
