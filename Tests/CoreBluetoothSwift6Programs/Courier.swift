// swift-format-ignore-file
// In the style of libraries that queue what they write, Swift 6: a class of the main actor, a manager of its own kind for the
// peripheral that another has found, delegates that are set late, and one block for each call that says there is room.
import CoreBluetooth

@MainActor private let courierService = CBUUID(string: "00000001-A123-48CE-896B-4C76973373E6")
@MainActor private let courierInbox = CBUUID(string: "00000002-A123-48CE-896B-4C76973373E6")

/// A manager that knows what it is for.
public final class PurposefulManager: CBCentralManager {
    public private(set) var purpose = ""
    public override init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil) {
        super.init(delegate: delegate, queue: queue, options: options)
        purpose = options?[CBCentralManagerOptionShowPowerAlertKey] == nil ? "courier" : "alerts"
    }
}

@MainActor
public final class Courier: NSObject, @preconcurrency CBCentralManagerDelegate, @preconcurrency CBPeripheralDelegate {
    private let finder = CBCentralManager(delegate: nil, queue: nil)
    private let carrier = PurposefulManager(delegate: nil, queue: nil)
    private var found: UUID?
    private var peer: CBPeripheral?
    private var inbox: CBCharacteristic?
    private var blocks: ArraySlice<Data> = []
    public private(set) var problems: [String] = []
    public var purpose: String { carrier.purpose }

    public override init() {
        super.init()
        finder.delegate = self
        carrier.delegate = self
    }

    /// What an error says, by numbers without a name too.
    public nonisolated static func text(_ error: any Error) -> String {
        switch error {
        case let error as CBATTError where error.code.rawValue >= 0x80: "the device's own error \(error.code.rawValue)"
        case CBATTError.insufficientAuthentication: "pair first"
        case let error as CBError: "CB \(error.code.rawValue)"
        default: "\(error)"
        }
    }

    public func send(_ document: Data, atOnce: Bool) {
        let most = (peer?.maximumWriteValueLength(for: .withoutResponse) ?? 20) - 1
        blocks = stride(from: 0, to: document.count, by: most).map { start in
            let end = min(start + most, document.count)
            return Data([end == document.count ? 0 : 1]) + document[start..<end]
        }[...]
        repeat { sendBlock() } while atOnce && !blocks.isEmpty
    }
    public var isReady: Bool { inbox != nil }

    private func sendBlock() {
        guard let peer, let inbox, let block = blocks.popFirst() else { return }
        peer.writeValue(block, for: inbox, type: .withoutResponse)
    }

    private func carry() {
        guard finder.state == .poweredOn, carrier.state == .poweredOn else { return }
        guard let found else { return finder.scanForPeripherals(withServices: [courierService]) }
        guard peer == nil, let known = carrier.retrievePeripherals(withIdentifiers: [found]).first else { return }
        peer = known
        known.delegate = self
        carrier.connect(known)
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) { carry() }
    public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any], rssi RSSI: NSNumber) {
        found = peripheral.identifier
        central.stopScan()
        carry()
    }
    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { peripheral.discoverServices([courierService]) }
    public func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?) {
        problems.append(error.map(Self.text) ?? "not connected")
    }
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverServices error: (any Error)?) {
        for service in peripheral.services ?? [] { peripheral.discoverCharacteristics([courierInbox], for: service) }
    }
    public func peripheral(_ peripheral: CBPeripheral, didDiscoverCharacteristicsFor service: CBService, error: (any Error)?) {
        inbox = service.characteristics?.first
    }
    public func peripheralIsReady(toSendWriteWithoutResponse peripheral: CBPeripheral) { sendBlock() }
}
