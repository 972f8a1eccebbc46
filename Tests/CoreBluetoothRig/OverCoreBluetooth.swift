package import CoreBluetooth
package import FerryBluetooth
package import FerryCoreBluetooth
package import FerryTesting
import TestSupport

/// An adapter for apps, over Core Bluetooth over another adapter.
package func overCoreBluetooth(
    _ adapter: any BluetoothAdapter, _ quirks: CBQuirks = [], restorationIdentifier: String? = nil
) -> CoreBluetoothAdapter {
    CoreBluetoothAdapter(
        name: "corebluetooth over \(adapter.name)", restorationIdentifier: restorationIdentifier,
        makeCentral: { CBCentralManager(delegate: $0, queue: $1, options: $2, adapter: adapter, quirks: quirks) },
        makePeripheral: { CBPeripheralManager(delegate: $0, queue: $1, options: $2, adapter: adapter, quirks: quirks) })
}

/// The adapter seam's contract, on the system's time, with two adapters for apps over two that hear each other. What Apple's
/// interface does not have is excused; `CoreBluetoothAdapter` says why.
package func conformance(
    peripheral: any BluetoothAdapter, central: any BluetoothAdapter, _ quirks: CBQuirks = []
) -> AdapterConformance {
    AdapterConformance(
        peripheral: overCoreBluetooth(peripheral, quirks), central: overCoreBluetooth(central, quirks),
        deviations: [.cannotPause, .centralsBySubscription, .writesAreCommands], time: .patient)
}
