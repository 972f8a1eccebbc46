import FerryVirtualBluetooth
import Synchronization
import TestSupport
import Testing

/// An app's code for a simulator: no other import than the virtual radio's.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(1))) struct VirtualBluetoothTests {
    private static let service = CBUUID(string: "FE01")
    private static let characteristic = CBUUID(string: "FE02")

    /// Offers a value.
    private final class Sensor: NSObject, CBPeripheralManagerDelegate, @unchecked Sendable {
        private var manager: CBPeripheralManager?

        func start() { manager = CBPeripheralManager(delegate: self, queue: DispatchQueue(label: "sensor")) }

        func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
            guard peripheral.state == .poweredOn else { return }
            let service = CBMutableService(type: VirtualBluetoothTests.service, primary: true)
            service.characteristics = [
                CBMutableCharacteristic(
                    type: VirtualBluetoothTests.characteristic, properties: .read, value: Data([42]),
                    permissions: .readable)
            ]
            peripheral.add(service)
        }

        func peripheralManager(_ peripheral: CBPeripheralManager, didAdd service: CBService, error: (any Error)?) {
            peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [VirtualBluetoothTests.service]])
        }
    }

    /// Reads it.
    private final class Reader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate, @unchecked Sendable {
        let value = Mutex<Data?>(nil)
        private var manager: CBCentralManager?
        private var sensor: CBPeripheral?

        func start() { manager = CBCentralManager(delegate: self, queue: DispatchQueue(label: "reader")) }

        func centralManagerDidUpdateState(_ central: CBCentralManager) {
            guard central.state == .poweredOn else { return }
            central.scanForPeripherals(withServices: [VirtualBluetoothTests.service])
        }

        func centralManager(
            _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
            rssi RSSI: NSNumber
        ) {
            sensor = peripheral
            peripheral.delegate = self
            central.connect(peripheral)
        }

        func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
            peripheral.discoverServices([VirtualBluetoothTests.service])
        }

        func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
            for service in peripheral.services ?? [] { peripheral.discoverCharacteristics(nil, for: service) }
        }

        func peripheral(
            _ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?
        ) {
            for characteristic in service.characteristics ?? [] { peripheral.readValue(for: characteristic) }
        }

        func peripheral(
            _ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?
        ) {
            value.withLock { $0 = characteristic.value }
        }
    }

    @Test func appMeetsItselfByOneImport() async throws {
        let (sensor, reader) = (Sensor(), Reader())
        sensor.start()
        reader.start()
        try await until("the value is read") { reader.value.withLock { $0 } == Data([42]) }
    }
}
