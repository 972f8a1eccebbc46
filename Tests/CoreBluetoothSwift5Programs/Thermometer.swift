// swift-format-ignore-file
// The program that the guide CoreBluetoothOnLinux begins with.
import CoreBluetooth

class Thermometer: NSObject, CBPeripheralManagerDelegate {
    var manager: CBPeripheralManager!
    let temperature = CBMutableCharacteristic(
        type: CBUUID(string: "2A6E"), properties: [.read, .notify], value: nil, permissions: [.readable])

    override init() {
        super.init()
        manager = CBPeripheralManager(delegate: self, queue: nil)
    }

    func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        let service = CBMutableService(type: CBUUID(string: "181A"), primary: true)
        service.characteristics = [temperature]
        peripheral.add(service)
        peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service.uuid]])
    }
}

func runThermometer() {  // not shown
    let thermometer = Thermometer()
    RunLoop.main.run()
    _ = thermometer  // not shown
}  // not shown
