// swift-format-ignore-file
// In the style of wallets that read a document from a phone beside them: the reader writes one block for each call that says
// there is room, and never asks whether there is.
import CoreBluetooth

private let walletService = CBUUID(string: "00000001-A123-48CE-896B-4C76973373E6")
private let walletInbox = CBUUID(string: "00000002-A123-48CE-896B-4C76973373E6")

/// Takes a document in blocks: the first byte is 0 in the last one, otherwise 1.
public final class WalletHolder: NSObject, CBPeripheralManagerDelegate {
    private var manager: CBPeripheralManager!
    private let inbox = CBMutableCharacteristic(type: walletInbox, properties: [.writeWithoutResponse], value: nil, permissions: [.writeable])
    private var incoming = Data()
    public var onDocument: ((Data) -> Void)?

    public override init() {
        super.init()
        manager = CBPeripheralManager(delegate: nil, queue: nil)
        manager.delegate = self
    }

    public func peripheralManagerDidUpdateState(_ peripheral: CBPeripheralManager) {
        guard peripheral.state == .poweredOn else { return }
        let service = CBMutableService(type: walletService, primary: true)
        service.characteristics = [inbox]
        peripheral.add(service)
        peripheral.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [walletService]])
    }

    public func peripheralManager(_ peripheral: CBPeripheralManager, didReceiveWrite requests: [CBATTRequest]) {
        for request in requests {
            guard let value = request.value, let mark = value.first else { continue }
            incoming += value.dropFirst()
            if mark == 0 {
                onDocument?(incoming)
                incoming = Data()
            }
        }
    }
}

/// Sends a document, one block for each call.
public final class WalletReader: NSObject, CBCentralManagerDelegate, CBPeripheralDelegate {
    private var manager: CBCentralManager!
    private var holder: CBPeripheral?
    private var inbox: CBCharacteristic?
    private let document: Data
    private var sent = 0
    public private(set) var blocks = 0

    public init(document: Data) {
        self.document = document
        super.init()
        manager = CBCentralManager(delegate: nil, queue: nil)
        manager.delegate = self
    }

    private func sendBlock() {
        guard let holder = holder, let inbox = inbox, sent < document.count else { return }
        let most = holder.maximumWriteValueLength(for: .withoutResponse) - 1
        let block = document[sent..<min(sent + most, document.count)]
        sent += block.count
        blocks += 1
        holder.writeValue(Data([sent == document.count ? 0 : 1]) + block, for: inbox, type: .withoutResponse)
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [walletService]) }
    }
    public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any], rssi RSSI: NSNumber) {
        holder = peripheral
        peripheral.delegate = self
        central.stopScan()
        central.connect(peripheral)
    }
    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { peripheral.discoverServices([walletService]) }
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: Error?) {
        peripheral.services?.forEach { peripheral.discoverCharacteristics([walletInbox], for: $0) }
    }
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: Error?) {
        inbox = service.characteristics?.first
        sendBlock()
    }
    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { sendBlock() }

    /// In the style of a messenger: everything at once, whether there is room or not.
    public func flood() {
        while sent < document.count { sendBlock() }
    }
    public var isReady: Bool { inbox != nil }
}
