/// One Bluetooth LE controller with its host, seen as CoreBluetooth sees it: the two roles.
///
/// Several owners may open the same role; each sees only its own services and connections. Events of one role object
/// come one at a time and in order, on a thread of the adapter's choosing, never from within a call that the owner
/// makes and never with a lock held that those calls need. `FerryTesting.AdapterConformance` checks the contract.
public protocol BluetoothAdapter: AnyObject, Sendable {
    /// What to call the adapter in messages, such as `loopback:0`.
    var name: String { get }

    /// Whether it can be used now.
    var state: AdapterState { get }

    /// Opens the peripheral role. The first event is the adapter's state. The adapter keeps `events` alive until
    /// ``PeripheralRole/close()``.
    func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole

    /// Opens the central role. The first event is the adapter's state. The adapter keeps `events` alive until
    /// ``CentralRole/close()``.
    func openCentral(_ events: any CentralRoleEvents) -> any CentralRole
}

/// Whether an adapter can be used; cases and raw values as in `CBManagerState`.
public enum AdapterState: Int, Sendable, Hashable {
    /// Not known yet; an update follows.
    case unknown = 0
    /// The connection to the system service was lost; an update follows.
    case resetting = 1
    /// The machine has no Bluetooth LE.
    case unsupported = 2
    /// This process may not use Bluetooth.
    case unauthorized = 3
    /// Switched off.
    case poweredOff = 4
    /// Ready for use.
    case poweredOn = 5
}
