// swift-format-ignore-file
import CoreBluetooth
import Foundation

/// A peripheral with a bit of everything, to be explored.
public class DemoPeripheral: NSObject, CBPeripheralManagerDelegate {
    private var peripheralManager: CBPeripheralManager!
    private var characteristic: CBMutableCharacteristic!
    public var received: [String] = []
    public var requestCounts: [Int] = []
    public var startError: Error?

    public override init() {
        super.init()
        peripheralManager = CBPeripheralManager(delegate: self, queue: nil)
    }

    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        let battery = CBMutableService(type: CBUUID(string: "180F"), primary: true)
        battery.characteristics = [
            CBMutableCharacteristic(type: CBUUID(string: "2A19"), properties: .read, value: Data([87]), permissions: .readable)
        ]
        peripheral.add(battery)
        let service = CBMutableService(type: CBUUID(string: "CDD1"), primary: true)
        characteristic = CBMutableCharacteristic(type: CBUUID(string: "CDD2"), properties: [.read, .write, .notify], value: nil, permissions: [.readable, .writeable])
        characteristic.descriptors = [CBMutableDescriptor(type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "A little of everything")]
        service.characteristics = [characteristic]
        peripheral.add(service)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: Error?) {
        guard error == nil, service.uuid == CBUUID(string: "CDD1") else { return }
        peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [CBUUID(string: "CDD1")], CBAdvertisementDataLocalNameKey: "Demo"])
    }

    public func peripheralManagerDidStartAdvertising(_ peripheral: CBPeripheralManager, error: Error?) {
        startError = error
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveRead request: CBATTRequest) {
        let value = "Hello from \(request.characteristic.uuid.uuidString)".data(using: .utf8)!
        if request.offset > value.count {
            peripheral.respond(to: request, withResult: .invalidOffset)
            return
        }
        request.value = value.subdata(in: request.offset..<value.count)
        peripheral.respond(to: request, withResult: .success)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        let request = requests[0]
        // A long value comes in several requests, which are answered as one.
        var value = Data()
        for part in requests {
            guard let bytes = part.value, part.offset == value.count else {
                peripheral.respond(to: request, withResult: CBATTError.invalidOffset)
                return
            }
            value.append(bytes)
        }
        guard let text = String(data: value, encoding: .utf8) else {
            peripheral.respond(to: request, withResult: CBATTError.invalidAttributeValueLength)
            return
        }
        requestCounts.append(requests.count)
        received.append(text)
        peripheral.respond(to: request, withResult: .success)
        // Property lists as dictionaries, as many samples send them.
        if let dict = try? PropertyListSerialization.propertyList(from: value, options: [], format: nil) as? [String: Any],
           let name = dict["name"] as? String, let age = dict["age"] as? Int {
            let answer: [String: Any] = ["greeting": "Hello \(name)", "age": age + 1]
            let data = try! PropertyListSerialization.data(fromPropertyList: answer, format: .binary, options: 0)
            _ = peripheral.updateValue(data, for: characteristic, onSubscribedCentrals: [request.central])
        }
    }
}

/// Lists everything that a peripheral offers, then talks to it.
public class Explorer: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    var manager: CBCentralManager!
    var peripheral: CBPeripheral!
    public var lines: [String] = []
    public var answer: [String: Any]?
    public var onDone: (() -> Void)?
    private var pending = 0

    public override init() {
        super.init()
        manager = CBCentralManager(delegate: self, queue: DispatchQueue.main)
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn {
            central.scanForPeripherals(withServices: [CBUUID(string: "CDD1")], options: nil)
        }
    }

    public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String : Any], rssi RSSI: NSNumber) {
        let name = advertisementData[CBAdvertisementDataLocalNameKey] as? String ?? "Unnamed"
        let uuids = advertisementData[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID] ?? []
        let connectable = advertisementData[CBAdvertisementDataIsConnectable] as? Bool ?? false
        lines.append("\(name) \(peripheral.name ?? "?") \(uuids) connectable \(connectable)")
        self.peripheral = peripheral
        peripheral.delegate = self
        central.stopScan()
        central.connect(peripheral)
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices(nil)
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        for service in peripheral.services! {
            pending += 1
            peripheral.discoverCharacteristics(nil, for: service)
        }
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        lines.append("service \(service.uuid) primary \(service.isPrimary)")
        for characteristic in service.characteristics! {
            var names: [String] = []
            if characteristic.properties.contains(.read) { names.append("read") }
            if characteristic.properties.contains(.write) { names.append("write") }
            if characteristic.properties.contains(.notify) { names.append("notify") }
            lines.append("  characteristic \(characteristic.uuid) \(names.joined(separator: ","))")
            peripheral.readValue(for: characteristic)
            peripheral.discoverDescriptors(for: characteristic)
        }
        pending -= 1
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverDescriptorsFor characteristic: CBCharacteristic, error: Error?) {
        for descriptor in characteristic.descriptors ?? [] {
            peripheral.readValue(for: descriptor)
        }
        if characteristic.uuid.uuidString == "CDD2" {
            peripheral.setNotifyValue(true, for: characteristic)
        }
    }

    public func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor descriptor: CBDescriptor, error: Error?) {
        lines.append("  descriptor \(descriptor.uuid) = \(descriptor.value ?? "nil")")
    }

    public func peripheral(_ peripheral: CBPeripheral, didUpdateNotificationStateFor characteristic: CBCharacteristic, error: Error?) {
        let info: [String: Any] = ["name": "Ada", "age": 36]
        let data = try! PropertyListSerialization.data(fromPropertyList: info, format: .xml, options: 0)
        peripheral.writeValue(data, for: characteristic, type: .withResponse)
    }

    public func peripheral(_ peripheral: CBPeripheral, didWriteValueFor characteristic: CBCharacteristic, error: Error?) {
        lines.append("written \(error == nil)")
    }

    public func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: Error?) {
        guard let value = characteristic.value else { return }
        if let dict = try? PropertyListSerialization.propertyList(from: value, options: [], format: nil) as? [String: Any] {
            answer = dict
            onDone?()
        } else if value.count == 1 {
            lines.append("  battery \(value[0])")
        } else {
            lines.append("  value \(String(data: value, encoding: .utf8) ?? "?")")
        }
    }
}

/// Connects again whenever the connection is lost.
public class ReconnectingClient: NSObject, CBCentralManagerDelegate {
    var central: CBCentralManager!
    var peripheral: CBPeripheral?
    public var connections = 0
    public var losses = 0
    public var lastError: Error?
    public var onConnect: ((Int) -> Void)?

    public init(service: CBUUID) {
        self.service = service
        super.init()
        central = CBCentralManager(delegate: self, queue: nil)
    }
    let service: CBUUID

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard central.state == .poweredOn else { return }
        central.scanForPeripherals(withServices: [service])
    }

    public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any], rssi RSSI: NSNumber) {
        self.peripheral = peripheral
        central.stopScan()
        central.connect(peripheral, options: nil)
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        connections += 1
        onConnect?(connections)
    }

    public func centralManager(_ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?) {
        lastError = error
        losses += 1
        if let error = error as? CBError, error.code == .connectionTimeout || error.code == .peripheralDisconnected {
            central.connect(peripheral, options: nil)
        }
    }
}
