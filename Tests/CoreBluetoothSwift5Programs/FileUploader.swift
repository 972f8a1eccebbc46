// swift-format-ignore-file
// In the style of device managers: a queue that blocks, locks that the delegate opens, answers found by their sequence
// numbers, requests cut by maximumWriteValueLength and held back by canSendWriteWithoutResponse. Written after what such
// libraries use, with none of their code.
import CoreBluetooth

private let smpService = CBUUID(string: "8D53DC1D-1DB7-4CD3-868B-8A527460AA84")
private let smpCharacteristic = CBUUID(string: "DA2E7828-FBCE-4E01-AE9E-261174997C48")

public enum UploadError: Error, Equatable {
    case timeout(String)
    case disconnected
    case bluetooth(CBError.Code)
    case attribute(CBATTError.Code)
    case badAnswer
}

/// Opened once, with a result, by another thread.
private final class ResultLock {
    private let semaphore = DispatchSemaphore(value: 0)
    private let mutex = NSLock()
    private var result: Result<Data, Error>?

    func open(_ result: Result<Data, Error> = .success(Data())) {
        mutex.lock()
        defer { mutex.unlock() }
        guard self.result == nil else { return }
        self.result = result
        semaphore.signal()
    }

    func wait(_ what: String, _ timeout: TimeInterval) throws -> Data {
        guard semaphore.wait(timeout: .now() + timeout) == .success else { throw UploadError.timeout(what) }
        mutex.lock()
        defer { mutex.unlock() }
        return try result!.get()
    }
}

private extension Data {
    func bigEndian(at index: Int) -> Int { Int(self[startIndex + index]) << 8 | Int(self[startIndex + index + 1]) }
}

public final class FileUploader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    private let operations = DispatchQueue(label: "uploader.operations")
    private let callbacks = DispatchQueue(label: "uploader.callbacks")
    private let target: UUID
    private var manager: CBCentralManager!
    private var peripheral: CBPeripheral?
    private var characteristic: CBCharacteristic?

    private let lock = NSRecursiveLock()
    private var setup: ResultLock?
    private var room: ResultLock?
    private var answers: [UInt8: ResultLock] = [:]
    private var assembled = Data()
    private var sequence: UInt8 = 0

    public private(set) var requests = 0
    /// How often the queue was full.
    public private(set) var waits = 0
    public private(set) var duration: CFTimeInterval = 0

    public init(_ found: CBPeripheral) {
        target = found.identifier
        super.init()
        manager = CBCentralManager(delegate: self, queue: callbacks, options: [CBCentralManagerOptionShowPowerAlertKey: false])
    }

    /// Uploads in the background; calls back on the main queue.
    public func upload(_ data: Data, as name: String, timeout: TimeInterval, completion: @escaping (Result<Int, Error>) -> Void) {
        operations.async {
            let began = CFAbsoluteTimeGetCurrent()
            let result = Result { try self.upload(data, name, timeout) }
            self.duration = CFAbsoluteTimeGetCurrent() - began
            DispatchQueue.main.async { completion(result) }
        }
    }

    public func close() {
        operations.async {
            if let peripheral = self.peripheral { self.manager.cancelPeripheralConnection(peripheral) }
        }
    }

    // MARK: On the queue that blocks

    private func upload(_ data: Data, _ name: String, _ timeout: TimeInterval) throws -> Int {
        try connect(timeout)
        guard let peripheral = peripheral else { throw UploadError.disconnected }
        let longest = peripheral.maximumWriteValueLength(for: .withoutResponse)
        var offset = 0
        while offset < data.count {
            var head = Data([offset == 0 ? 0xA4 : 0xA3])
            head.text("off")
            head.number(0, offset)
            if offset == 0 {
                head.text("len")
                head.number(0, data.count)
            }
            head.text("name")
            head.text(name)
            head.text("data")
            let count = min(longest - 8 - head.count - 3, data.count - offset)
            guard count > 0 else { throw UploadError.badAnswer }
            head.number(2, count)
            head += data[data.startIndex + offset..<data.startIndex + offset + count]
            let answer = try ask(group: 8, command: 0, head, timeout)
            guard let next = answer.value(of: "off"), next > offset else { throw UploadError.badAnswer }
            offset = next
        }
        return offset
    }

    private func connect(_ timeout: TimeInterval) throws {
        guard characteristic == nil else { return }
        let setup = ResultLock()
        synchronized { self.setup = setup }
        callbacks.async { if self.manager.state == .poweredOn { self.open() } }
        _ = try setup.wait("setup", timeout)
    }

    private func ask(group: UInt8, command: UInt8, _ body: Data, _ timeout: TimeInterval) throws -> Data {
        let number = sequence
        sequence = sequence &+ 1
        let answer = ResultLock()
        synchronized { answers[number] = answer }
        defer { synchronized { answers[number] = nil } }
        var request = Data([2, 0, UInt8(body.count >> 8), UInt8(body.count & 0xFF), 0, group, number, command])
        request += body
        requests += 1
        try write(request, timeout)
        return try answer.wait("answer \(number)", timeout)
    }

    private func write(_ value: Data, _ timeout: TimeInterval) throws {
        guard let peripheral = peripheral, let characteristic = characteristic else { throw UploadError.disconnected }
        let room = ResultLock()
        synchronized { self.room = room }
        if !peripheral.canSendWriteWithoutResponse {
            waits += 1
            _ = try room.wait("room", timeout)
        }
        peripheral.writeValue(value, for: characteristic, type: .withoutResponse)
    }

    private func synchronized<T>(_ body: () -> T) -> T {
        lock.lock()
        defer { lock.unlock() }
        return body()
    }

    // MARK: On the delegate's queue

    private func open() {
        guard let found = manager.retrievePeripherals(withIdentifiers: [target]).first else {
            return fail(UploadError.disconnected)
        }
        peripheral = found
        found.delegate = self
        switch found.state {
        case .connected: found.discoverServices([smpService])
        case .connecting: break
        case .disconnected, .disconnecting: manager.connect(found, options: [CBConnectPeripheralOptionNotifyOnDisconnectionKey: true])
        @unknown default: break
        }
    }

    private func fail(_ error: Error) {
        let known: Error
        switch error {
        case let error as CBATTError: known = UploadError.attribute(error.code)
        case let error as CBError: known = UploadError.bluetooth(error.code)
        default: known = error
        }
        let waiting = synchronized { [setup, room] + Array(answers.values) }
        for lock in waiting { lock?.open(.failure(known)) }
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        switch central.state {
        case .poweredOn: if synchronized({ setup != nil }), peripheral == nil { open() }
        case .unknown, .resetting: break
        case .unsupported, .unauthorized, .poweredOff: fail(UploadError.disconnected)
        @unknown default: break
        }
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices([smpService])
    }

    public func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        fail(error ?? UploadError.disconnected)
    }

    public func centralManager(_ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?) {
        fail(error ?? UploadError.disconnected)
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        guard let service = peripheral.services?.first(where: { $0.uuid == smpService }) else {
            return fail(error ?? UploadError.badAnswer)
        }
        peripheral.discoverCharacteristics([smpCharacteristic], for: service)
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        guard let found = service.characteristics?.first(where: { $0.uuid == smpCharacteristic }),
            found.properties.contains(.writeWithoutResponse), found.properties.contains(.notify)
        else { return fail(error ?? UploadError.badAnswer) }
        peripheral.setNotifyValue(true, for: found)
    }

    public func peripheral(_ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?) {
        guard error == nil, characteristic.isNotifying else { return fail(error ?? UploadError.badAnswer) }
        self.characteristic = characteristic
        synchronized { setup }?.open()
    }

    public func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        guard error == nil, let value = characteristic.value else { return fail(error ?? UploadError.badAnswer) }
        assembled += value
        while assembled.count >= 8, assembled.count >= 8 + assembled.bigEndian(at: 2) {
            let message = assembled.prefix(8 + assembled.bigEndian(at: 2))
            assembled = Data(assembled.dropFirst(message.count))
            synchronized { answers[message[message.startIndex + 6]] }?.open(.success(Data(message.dropFirst(8))))
        }
    }

    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { synchronized { room }?.open() }
}

// As much of CBOR as the requests and answers need.
private extension Data {
    mutating func number(_ type: UInt8, _ value: Int) {
        switch value {
        case ..<24: append(type << 5 | UInt8(value))
        case ..<256: append(contentsOf: [type << 5 | 24, UInt8(value)])
        case ..<65536: append(contentsOf: [type << 5 | 25, UInt8(value >> 8), UInt8(value & 0xFF)])
        default: append(contentsOf: [type << 5 | 26] + (0..<4).map { UInt8(truncatingIfNeeded: value >> (24 - 8 * $0)) })
        }
    }

    mutating func text(_ text: String) {
        number(3, text.utf8.count)
        append(contentsOf: text.utf8)
    }

    /// The number behind a key.
    func value(of key: String) -> Int? {
        var encoded = Data()
        encoded.text(key)
        guard let place = range(of: encoded)?.upperBound, place < endIndex else { return nil }
        let head = self[place]
        guard head >> 5 == 0 else { return nil }
        let length = head < 24 ? 0 : 1 << Int(head - 24)
        guard head < 28, endIndex - place > length else { return nil }
        return length == 0 ? Int(head) : self[place + 1...place + length].reduce(0) { $0 << 8 | Int($1) }
    }
}
