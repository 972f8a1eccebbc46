// swift-format-ignore-file
// In the style of the field's tutorials, Swift 6: classes of the main actor, and L2CAP streams.
import CoreBluetooth
import Foundation

/// Publishes an L2CAP channel, names its PSM in a characteristic, and sends back what it receives in capitals.
@MainActor
public final class EchoServer: NSObject {
    private var manager: CBPeripheralManager?
    private var channel: CBL2CAPChannel?
    private let service = CBMutableService(type: CBUUID(string: "12E61727-B41A-436F-B64D-4777B35F2294"), primary: true)

    public override init() {
        super.init()
        manager = CBPeripheralManager(delegate: self, queue: nil)
    }
}

extension EchoServer: @preconcurrency CBPeripheralManagerDelegate {
    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        peripheral.publishL2CAPChannel(withEncryption: false)
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didPublishL2CAPChannel PSM: CBL2CAPPSM, error: (any Error)?) {
        guard error == nil else { return }
        var psm = PSM.littleEndian
        let data = Data(bytes: &psm, count: 2)
        service.characteristics = [
            CBMutableCharacteristic(type: CBUUID(string: CBUUIDL2CAPPSMCharacteristicString), properties: [.read], value: data, permissions: [.readable])
        ]
        peripheral.add(service)
        peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [service.uuid], CBAdvertisementDataLocalNameKey: "Echo"])
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        guard let channel else { return }
        self.channel = channel
        channel.inputStream.delegate = self
        channel.outputStream.delegate = self
        channel.inputStream.schedule(in: RunLoop.main, forMode: .default)
        channel.outputStream.schedule(in: RunLoop.main, forMode: .default)
        channel.inputStream.open()
        channel.outputStream.open()
    }
}

extension EchoServer: @preconcurrency StreamDelegate {
    public func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        guard eventCode == .hasBytesAvailable, let input = aStream as? InputStream else { return }
        var buffer = [UInt8](repeating: 0, count: 512)
        let count = input.read(&buffer, maxLength: buffer.count)
        guard count > 0 else { return }
        let answer = Array(String(decoding: buffer[..<count], as: UTF8.self).uppercased().utf8)
        _ = channel?.outputStream.write(answer, maxLength: answer.count)
    }
}

/// Finds the server, reads its PSM, opens the channel and sends a line.
@MainActor
public final class EchoClient: NSObject, @preconcurrency CBCentralManagerDelegate, @preconcurrency CBPeripheralDelegate {
    private var manager: CBCentralManager?
    private var peripheral: CBPeripheral?
    private var channel: CBL2CAPChannel?
    private var received = Data()
    private var waiter: CheckedContinuation<String, Never>?
    private let line: String

    public init(line: String) {
        self.line = line
        super.init()
    }

    /// Runs to the end and gives the answer.
    public func run() async -> String {
        await withCheckedContinuation { continuation in
            waiter = continuation
            manager = CBCentralManager(delegate: self, queue: .main)
        }
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        guard case .poweredOn = central.state else { return }
        central.scanForPeripherals(withServices: [CBUUID(string: "12E61727-B41A-436F-B64D-4777B35F2294")])
    }

    public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any], rssi RSSI: NSNumber) {
        self.peripheral = peripheral
        peripheral.delegate = self
        central.stopScan()
        central.connect(peripheral)
    }

    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        peripheral.discoverServices(nil)
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        peripheral.services?.forEach { peripheral.discoverCharacteristics([CBUUID(string: CBUUIDL2CAPPSMCharacteristicString)], for: $0) }
    }

    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?) {
        service.characteristics?.forEach(peripheral.readValue(for:))
    }

    public func peripheral(_ peripheral: CBPeripheral, didUpdateValueFor characteristic: CBCharacteristic, error: (any Error)?) {
        guard let value = characteristic.value, value.count == 2 else { return }
        peripheral.openL2CAPChannel(CBL2CAPPSM(value[0]) | CBL2CAPPSM(value[1]) << 8)
    }

    public func peripheral(_ peripheral: CBPeripheral, didOpen channel: CBL2CAPChannel?, error: (any Error)?) {
        guard let channel else { return }
        self.channel = channel
        for stream in [channel.inputStream, channel.outputStream] as [Stream?] {
            stream?.delegate = self
            stream?.schedule(in: .main, forMode: .default)
            stream?.open()
        }
    }

    private var sent = false
}

extension EchoClient: @preconcurrency StreamDelegate {
    public func stream(_ aStream: Stream, handle eventCode: Stream.Event) {
        switch eventCode {
        case .hasSpaceAvailable where !sent:
            sent = true
            let bytes = Array(line.utf8)
            _ = (aStream as? OutputStream)?.write(bytes, maxLength: bytes.count)
        case .hasBytesAvailable:
            var buffer = [UInt8](repeating: 0, count: 64)
            guard let input = aStream as? InputStream else { return }
            while input.hasBytesAvailable {
                let count = input.read(&buffer, maxLength: buffer.count)
                guard count > 0 else { break }
                received.append(contentsOf: buffer[..<count])
            }
            guard received.count >= line.utf8.count else { return }
            channel?.inputStream.close()
            channel?.outputStream.close()
            waiter?.resume(returning: String(decoding: received, as: UTF8.self))
            waiter = nil
        default: break
        }
    }
}
