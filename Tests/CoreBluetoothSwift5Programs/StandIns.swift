// swift-format-ignore-file
// What libraries take from Apple's other frameworks, in a few lines each. The guide CoreBluetoothOnLinux shows these.
import CoreBluetooth

// The framework os.
struct OSLogPrivacy { static let `public` = Self(), `private` = Self(), auto = Self() }
struct OSLogMessage: ExpressibleByStringInterpolation, CustomStringConvertible {
    struct StringInterpolation: StringInterpolationProtocol {
        var text = ""
        init(literalCapacity: Int, interpolationCount: Int) {}
        mutating func appendLiteral(_ literal: String) { text += literal }
        mutating func appendInterpolation<Value>(_ value: Value, privacy: OSLogPrivacy = .auto) { text += "\(value)" }
    }
    let description: String
    init(stringLiteral value: String) { description = value }
    init(stringInterpolation: StringInterpolation) { description = stringInterpolation.text }
}
struct Logger {
    let subsystem: String, category: String
    private func write(_ level: String, _ message: OSLogMessage) {
        FileHandle.standardError.write(Data("[\(subsystem)/\(category)] \(level): \(message)\n".utf8))
    }
    func debug(_ message: OSLogMessage) {}
    func info(_ message: OSLogMessage) { write("info", message) }
    func error(_ message: OSLogMessage) { write("error", message) }
}

// Objective-C's locks: one for each object that is locked.
private let objectLocksGuard = NSLock()
private var objectLocks: [ObjectIdentifier: (lock: NSRecursiveLock, users: Int)] = [:]
@discardableResult func objc_sync_enter(_ object: AnyObject) -> Int32 {
    objectLocksGuard.lock()
    var entry = objectLocks[ObjectIdentifier(object)] ?? (NSRecursiveLock(), 0)
    entry.users += 1
    objectLocks[ObjectIdentifier(object)] = entry
    objectLocksGuard.unlock()
    entry.lock.lock()
    return 0
}
@discardableResult func objc_sync_exit(_ object: AnyObject) -> Int32 {
    objectLocksGuard.lock()
    defer { objectLocksGuard.unlock() }
    guard var entry = objectLocks[ObjectIdentifier(object)] else { return -1 }
    entry.users -= 1
    objectLocks[ObjectIdentifier(object)] = entry.users == 0 ? nil : entry
    entry.lock.unlock()
    return 0
}

// Linux has no pools, and needs none.
func autoreleasepool<Result>(invoking body: () throws -> Result) rethrows -> Result { try body() }

// An optional requirement, asked whether it is there: as a closure that may be nil.
//     @objc optional func radioDidFind(_ name: String)      radio.delegate?.radioDidFind?(name)
final class RadioDelegate {
    var radioDidFind: ((_ name: String) -> Void)?
}

// A selector: as a closure.
//     Timer.scheduledTimer(timeInterval: 1, target: self, selector: #selector(tick), userInfo: nil, repeats: true)
func everySecond(_ tick: @escaping () -> Void) -> Timer {
    Timer.scheduledTimer(withTimeInterval: 1, repeats: true) { _ in tick() }
}

// Key-value observing of a state: in place of observe(\.state), the delegate says when it changes.
//     observation = peripheral.observe(\.state) { … }
final class StateObserver: NSObject, CBCentralManagerDelegate {
    var onChange: ((CBPeripheral) -> Void)?
    func centralManagerDidUpdateState(_ central: CBCentralManager) {}
    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) { onChange?(peripheral) }
    func centralManager(_ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: Error?) { onChange?(peripheral) }
}

/// All of the above, used.
public func usesStandIns() -> String {
    let log = Logger(subsystem: "stand-ins", category: "test")
    log.debug("at \(CFAbsoluteTimeGetCurrent(), privacy: .public)")
    let object = NSObject()
    objc_sync_enter(object)
    objc_sync_enter(object)
    defer { objc_sync_exit(object); objc_sync_exit(object) }
    let delegate = RadioDelegate()
    var found = ""
    delegate.radioDidFind = { found = $0 }
    autoreleasepool { delegate.radioDidFind?("strap") }
    let timer = everySecond {}
    timer.invalidate()
    return found
}
