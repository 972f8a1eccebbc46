// swift-format-ignore-file
// In the style of a firmware updater: a transport for a peripheral that the app has found, with a manager of its own. And in
// the style of mocks: subclasses with initializers of their own, objects out of nothing.
import CoreBluetooth

public final class Transport: NSObject, CBCentralManagerDelegate {
    private let manager: CBCentralManager
    private let identifier: UUID
    private var peripheral: CBPeripheral?
    public private(set) var lines: [String] = []

    /// The app's peripheral is another manager's, so only its identifier is taken.
    public init(_ target: CBPeripheral) {
        manager = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "transport", target: .main))
        identifier = target.identifier
        super.init()
        manager.delegate = self
        open()
    }

    private func open() {
        guard manager.state == .poweredOn else {
            lines.append("waits")
            return
        }
        guard let found = manager.retrievePeripherals(withIdentifiers: [identifier]).first else {
            lines.append("unknown")
            return
        }
        peripheral = found
        lines.append("connects")
        manager.connect(found)
    }

    public func centralManagerDidUpdateState(_ central: CBCentralManager) { open() }
    public func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        lines.append(peripheral.identifier == identifier ? "connected" : "somebody else")
    }
    public func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: Error?) {
        lines.append("failed")
    }
}

/// Finds what the demo peripheral is.
public final class Finder: NSObject, CBCentralManagerDelegate {
    private var manager: CBCentralManager!
    private let service: CBUUID
    public private(set) var peripheral: CBPeripheral?

    public init(service: CBUUID) {
        self.service = service
        super.init()
        manager = CBCentralManager(delegate: self, queue: nil)
    }
    public func centralManagerDidUpdateState(_ central: CBCentralManager) {
        if central.state == .poweredOn { central.scanForPeripherals(withServices: [service]) }
    }
    public func centralManager(_ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any], rssi RSSI: NSNumber) {
        self.peripheral = peripheral
        central.stopScan()
    }
}

/// A manager that notes what it was made with.
public final class NotingCentralManager: CBCentralManager {
    public let notes: [String]
    public override init(delegate: CBCentralManagerDelegate?, queue: DispatchQueue?, options: [String: Any]? = nil) {
        notes = (options ?? [:]).keys.sorted()
        super.init(delegate: delegate, queue: queue, options: options)
    }
}
public final class NotingPeripheralManager: CBPeripheralManager {
    public private(set) var isMade = false
    public override init(delegate: CBPeripheralManagerDelegate?, queue: DispatchQueue?, options: [String: Any]? = nil) {
        super.init(delegate: delegate, queue: queue, options: options)
        isMade = true
    }
}
public final class MockChannel: CBL2CAPChannel {
    public override var psm: CBL2CAPPSM { 0x99 }
}
public final class MockUUID: CBUUID {}

public func makeMocks() -> (CBUUID, CBL2CAPChannel, Timer) {
    (CBUUID(), CBL2CAPChannel(), Timer(timeInterval: 1, repeats: false) { _ in })
}

/// What an error means to a program: by its own numbers too.
public func explain(_ error: Error) -> String {
    switch error {
    case CBATTError.insufficientEncryption: return "pair first"
    case let error as CBATTError where error.code == CBATTError.Code(rawValue: 0x80): return "the device is busy"
    case let error as CBATTError:
        switch error.code {
        case .success, .invalidHandle, .readNotPermitted: return "no"
        default: return "ATT \(error.code.rawValue)"
        }
    case let error as CBError:
        switch error.code {
        case .connectionTimeout, .peripheralDisconnected: return "gone"
        default: return "CB \(error.errorCode)"
        }
    default: return "other"
    }
}
