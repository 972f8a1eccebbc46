// swift-format-ignore-file
// In the style of libraries that wrap the framework for async code, Swift 6: what is not sendable is said not to matter, as
// it has to be said of Apple's.
@preconcurrency import CoreBluetooth

extension CBDescriptor: @unchecked Sendable {}

/// Compiles only while the classes are no more sendable than Apple's: the second function would be the better fit.
private func sendability<T>(_: T.Type) -> String { "not sendable" }
private func sendability<T: Sendable>(_: T.Type) -> String { "sendable" }
public func sendabilities() -> [String: String] {
    [
        "CBUUID": sendability(CBUUID.self), "CBPeripheral": sendability(CBPeripheral.self),
        "CBCentralManager": sendability(CBCentralManager.self), "CBPeripheralManager": sendability(CBPeripheralManager.self),
        "CBCharacteristic": sendability(CBCharacteristic.self), "CBMutableCharacteristic": sendability(CBMutableCharacteristic.self),
        "CBService": sendability(CBService.self), "CBMutableService": sendability(CBMutableService.self),
        "CBCentral": sendability(CBCentral.self), "CBATTRequest": sendability(CBATTRequest.self),
        "CBL2CAPChannel": sendability(CBL2CAPChannel.self),
        "CBManagerState": sendability(CBManagerState.self), "CBError": sendability(CBError.self),
        "CBATTError.Code": sendability(CBATTError.Code.self), "CBCharacteristicProperties": sendability(CBCharacteristicProperties.self),
    ]
}

public actor AsyncCentral {
    private let delegate = Delegate()
    private let manager: CBCentralManager

    public init() {
        manager = CBCentralManager(delegate: nil, queue: DispatchQueue(label: "async central"))
        manager.delegate = delegate
    }

    /// Waits for the state that was told.
    public func waitUntilReady() async -> CBManagerState {
        for await state in delegate.states where state != .unknown { return state }
        return .unknown
    }

    public func state() -> CBManagerState { manager.state }

    private final class Delegate: NSObject, CBCentralManagerDelegate, Sendable {
        let states: AsyncStream<CBManagerState>
        private let told: AsyncStream<CBManagerState>.Continuation

        override init() {
            (states, told) = AsyncStream.makeStream()
        }
        func centralManagerDidUpdateState(_ central: CBCentralManager) { told.yield(central.state) }
    }
}
