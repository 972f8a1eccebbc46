// swift-format-ignore-file
// In the style of the field's tutorials, Swift 6: a model of the main actor, Bluetooth on a queue of its own.
import CoreBluetooth
import Foundation

/// A heart rate strap: says a new rate whenever the last one could be sent.
public final class HeartRateStrap: NSObject, @unchecked Sendable {
    private let queue = DispatchQueue(label: "strap")
    private var manager: CBPeripheralManager!
    private let measurement = CBMutableCharacteristic(type: CBUUID(string: "2A37"), properties: [.notify], value: nil, permissions: [.readable])
    private let location = CBMutableCharacteristic(type: CBUUID(string: "2A38"), properties: [.read], value: Data([1]), permissions: [.readable])
    private var rates: [UInt8]

    public init(rates: [UInt8]) {
        self.rates = rates
        super.init()
        manager = CBPeripheralManager(delegate: self, queue: queue)
    }

    private func sendNext() {
        while let rate = rates.first {
            guard manager.updateValue(Data([0, rate]), for: measurement, onSubscribedCentrals: nil) else { return }
            rates.removeFirst()
        }
    }
}

extension HeartRateStrap: CBPeripheralManagerDelegate {
    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard case .poweredOn = peripheral.state else { return }
        let service = CBMutableService(type: CBUUID(string: "180D"), primary: true)
        service.characteristics = [measurement, location]
        peripheral.add(service)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
        peripheral.startAdvertising([CBAdvertisementDataLocalNameKey: "Strap", CBAdvertisementDataServiceUUIDsKey: [service.uuid]])
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, central: CBCentral, didSubscribeTo characteristic: CBCharacteristic) {
        sendNext()
    }

    public func peripheralManagerIsReady(toUpdateSubscribers peripheral: CBPeripheralManager) {
        sendNext()
    }
}

/// What a view would show.
@MainActor
public final class HeartRateModel: NSObject {
    public private(set) var rates: [Int] = []
    public private(set) var location = "unknown"
    public private(set) var status = "idle"
    private var manager: CBCentralManager!
    private var strap: CBPeripheral?
    private static let service = CBUUID(string: "180D")

    public override init() {
        super.init()
        manager = CBCentralManager(delegate: self, queue: DispatchQueue(label: "model"))
    }

    private func found(_ peripheral: CBPeripheral) {
        strap = peripheral
        status = "connecting to \(peripheral.name ?? "somebody")"
        peripheral.delegate = self
        manager.stopScan()
        manager.connect(peripheral, options: nil)
    }
}

extension HeartRateModel: CBCentralManagerDelegate {
    nonisolated public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [CBUUID(string: "180D")], options: nil) }
    }

    nonisolated public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any], rssi RSSI: NSNumber) {
        nonisolated(unsafe) let peripheral = peripheral
        Task { @MainActor in found(peripheral) }
    }

    nonisolated public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        Task { @MainActor in status = "connected" }
        peripheral.discoverServices([CBUUID(string: "180D")])
    }
}

extension HeartRateModel: CBPeripheralDelegate {
    nonisolated public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
    }

    nonisolated public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?) {
        for characteristic in service.characteristics ?? [] {
            if characteristic.properties.contains(.read) { peripheral.readValue(for: characteristic) }
            if characteristic.properties.contains(.notify) { peripheral.setNotifyValue(true, for: characteristic) }
        }
    }

    nonisolated public func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?) {
        guard let value = characteristic.value else { return }
        let isLocation = characteristic.uuid == CBUUID(string: "2A38")
        DispatchQueue.main.async {
            MainActor.assumeIsolated {
                if isLocation {
                    self.location = value.first == 1 ? "chest" : "elsewhere"
                } else if value.count == 2 {
                    self.rates.append(Int(value[1]))
                }
            }
        }
    }
}
