public import CoreBluetooth
public import FerryBluetooth

/// The machine's Bluetooth by Core Bluetooth: the system's framework on Apple's systems, elsewhere this project's module of
/// the same name. Nothing else of the system is used, and nothing of that module's that Apple's does not have.
///
/// Each opened role has its own manager and its own queue. Make the adapter when the app starts, so that a process that
/// the system has started again gets its state back.
///
/// ## What Core Bluetooth cannot do
///
/// - A receiver cannot pause the other side: `setReceiving` does nothing.
/// - A peripheral does not see connections, only subscriptions and requests: a central is taken for connected until its last
///   subscription has ended, and cannot be disconnected.
/// - Addresses and bonds are not shown: who a peer is, is the system's identifier of it (`PeerIdentity.Certainty.address`).
/// - The streams of an L2CAP channel do not keep the boundaries of chunks: use a framing that needs none, such as the
///   length prefix.
/// - A value that is read while the same characteristic notifies is taken for the answer.
/// - tvOS and watchOS let an app be a central only. There each call of a peripheral role fails with `notSupported`.
public final class CoreBluetoothAdapter: BluetoothAdapter {
    /// What to call the adapter in messages.
    public let name: String
    private let restorationIdentifier: String?
    private let makeCentral: MakeCentral
    #if !os(tvOS) && !os(watchOS)
        private let makePeripheral: MakePeripheral
    #endif
    private let known = Locked((state: AdapterState.unknown, centrals: 0, peripherals: 0))

    /// Makes a central manager with a delegate, a queue and options.
    public typealias MakeCentral =
        @Sendable ((any CBCentralManagerDelegate)?, DispatchQueue?, [String: Any]?) -> CBCentralManager
    #if os(tvOS) || os(watchOS)
        /// An adapter; nothing happens before a role is opened, when the person is asked to allow Bluetooth.
        ///
        /// - Parameters:
        ///   - name: what to call the adapter in messages.
        ///   - restorationIdentifier: under which the system keeps what the app is doing, so that it can start the app again
        ///     when a peer is heard; nil for no restoration. It needs the background mode `bluetooth-central` in Info.plist.
        ///     Further roles have the same identifier with a number, in the order in which they are opened.
        ///   - makeCentral: makes the manager of a central role: a subclass, for instance.
        public init(
            name: String = "corebluetooth", restorationIdentifier: String? = nil,
            makeCentral: @escaping MakeCentral = { CBCentralManager(delegate: $0, queue: $1, options: $2) }
        ) {
            self.name = name
            self.restorationIdentifier = restorationIdentifier
            self.makeCentral = makeCentral
        }
    #else
        /// Makes a peripheral manager with a delegate, a queue and options.
        public typealias MakePeripheral =
            @Sendable ((any CBPeripheralManagerDelegate)?, DispatchQueue?, [String: Any]?) -> CBPeripheralManager

        /// An adapter; nothing happens before a role is opened, when the person is asked to allow Bluetooth.
        ///
        /// - Parameters:
        ///   - name: what to call the adapter in messages.
        ///   - restorationIdentifier: under which the system keeps what the app is doing, so that it can start the app again
        ///     when a peer is heard; nil for no restoration. It needs the background modes `bluetooth-central` and
        ///     `bluetooth-peripheral` in Info.plist. Further roles of a kind have the same identifier with a number, in the
        ///     order in which they are opened.
        ///   - makeCentral: makes the manager of a central role: a subclass, for instance.
        ///   - makePeripheral: the same of a peripheral role.
        public init(
            name: String = "corebluetooth", restorationIdentifier: String? = nil,
            makeCentral: @escaping MakeCentral = { CBCentralManager(delegate: $0, queue: $1, options: $2) },
            makePeripheral: @escaping MakePeripheral = { CBPeripheralManager(delegate: $0, queue: $1, options: $2) }
        ) {
            self.name = name
            self.restorationIdentifier = restorationIdentifier
            self.makeCentral = makeCentral
            self.makePeripheral = makePeripheral
        }
    #endif

    /// Whether it can be used now: `unknown` until a role was opened and the system has answered.
    public var state: AdapterState { known { $0.state } }

    func note(_ state: AdapterState) { known { $0.state = state } }

    private func identifier(_ number: Int) -> String? {
        restorationIdentifier.map { number == 1 ? $0 : "\($0) \(number)" }
    }

    /// Opens the peripheral role. On tvOS and watchOS there is none: each of its calls fails with `notSupported`.
    public func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
        #if os(tvOS) || os(watchOS)
            return UnsupportedPeripheralRole(events)
        #else
            let number = known { known in
                known.peripherals += 1
                return known.peripherals
            }
            let role = CoreBluetoothPeripheralRole(self, events)
            role.start(makePeripheral, identifier(number).map { [CBPeripheralManagerOptionRestoreIdentifierKey: $0] })
            return role
        #endif
    }

    /// Opens the central role.
    public func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
        let number = known { known in
            known.centrals += 1
            return known.centrals
        }
        let role = CoreBluetoothCentralRole(self, events)
        role.start(makeCentral, identifier(number).map { [CBCentralManagerOptionRestoreIdentifierKey: $0] })
        return role
    }
}
