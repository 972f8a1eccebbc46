public import FerryBluetooth
public import FerryLoopback
import Foundation

#if HCI
    import FerryHCI
#endif

/// Which Bluetooth adapter stands behind managers that are not given one of their own. Not part of Apple's API.
///
/// In this order: what ``use(_:)`` has named; the adapter that the environment variable `COREBLUETOOTH_ADAPTER` names
/// among those that were registered; an LE controller that it names as `hci:tcp:HOST:PORT` or `hci:unix:PATH`, where this package is
/// built with the trait `HCI`; otherwise a new adapter on ``loopback`` for each manager, so that all managers of
/// the process hear one another.
public enum CBAdapters {
    /// Makes, or hands out, the adapter of one manager; called once for each manager.
    public typealias Provider = @Sendable () -> any BluetoothAdapter

    /// The process-wide virtual radio on which managers meet when nothing else is said.
    public static let loopback = LoopbackRadio()

    /// The environment variable that names the adapter: `COREBLUETOOTH_ADAPTER`.
    public static let environmentVariable = "COREBLUETOOTH_ADAPTER"

    private struct Choice {
        var explicit: Provider?
        var registered: [String: Provider] = ["loopback": { CBAdapters.loopback.makeAdapter() }]
        #if HCI
            /// By the controller: it has one host, which all managers share.
            var controllers: [String: OpeningAdapter] = [:]
        #endif
        var registry = PeripheralRegistry()
    }
    private static let choice = Guarded(Choice())

    /// Names the adapter of every manager made from now on; nil for the environment's choice. Managers that exist keep
    /// theirs.
    public static func use(_ provider: Provider?) {
        choice {
            $0.explicit = provider
            $0.registry = PeripheralRegistry()
        }
    }

    /// Makes an adapter known by a name that the environment variable can then give. `loopback` is known from the
    /// start.
    public static func register(_ name: String, _ provider: @escaping Provider) {
        choice { $0.registered[name] = provider }
    }

    private static let chosenQuirks = Guarded<CBQuirks>([])

    /// Defects of Apple's framework that connections show from now on; none by default.
    public static var quirks: CBQuirks {
        get { chosenQuirks.current }
        set { chosenQuirks.current = newValue }
    }

    /// What managers share that have their adapters from here.
    static var registry: PeripheralRegistry { choice { $0.registry } }

    /// The adapter for a new manager. An unregistered name gives one whose state is `unsupported`.
    static func make() -> any BluetoothAdapter {
        let name = ProcessInfo.processInfo.environment[environmentVariable] ?? "loopback"
        let (provider, known) = choice { ($0.explicit ?? $0.registered[name], $0.registered.keys.sorted()) }
        if let provider { return provider() }
        #if HCI
            if name.hasPrefix("hci:") { return controller(name) }
            let others = ", and hci:tcp:HOST:PORT or hci:unix:PATH for a controller"
        #else
            let others = "; controllers need the trait HCI"
        #endif
        Misuse.report(
            "\(environmentVariable) is \"\(name)\", which no adapter is registered as; known: "
                + known.joined(separator: ", ") + others
        )
        return loopback.makeAdapter(name: name, state: .unsupported)
    }

    #if HCI
        /// The host on a controller, in another process as a rule. One that could not be reached is tried anew by the next manager.
        private static func controller(_ name: String) -> any BluetoothAdapter {
            choice { choice in
                if let known = choice.controllers[name], !known.hasFailed { return known }
                let adapter = OpeningAdapter(name: name) { () async throws(BluetoothError) -> any BluetoothAdapter in
                    try await HCIAdapter.open(HCIChannel(name))
                }
                choice.controllers[name] = adapter
                return adapter
            }
        }
    #endif
}

/// What a new manager stands on.
struct ManagerSetup {
    let adapter: any BluetoothAdapter
    let quirks: CBQuirks
    let registry: PeripheralRegistry

    private static let adapterKey = "CoreBluetooth adapter"
    private static let quirksKey = "CoreBluetooth quirks"
    /// What managers share that were given the same adapter.
    private static let registries = WeakTable<ObjectIdentifier, PeripheralRegistry>()

    /// Options of a manager with a private adapter: they pass through the designated initializer, which a subclass may
    /// override.
    static func options(_ options: [String: Any]?, _ adapter: any BluetoothAdapter, _ quirks: CBQuirks?)
        -> [String: Any]
    {
        var options = options ?? [:]
        options[adapterKey] = adapter
        options[quirksKey] = quirks
        return options
    }

    init(_ options: [String: Any]?) {
        quirks = options?[Self.quirksKey] as? CBQuirks ?? CBAdapters.quirks
        if let given = options?[Self.adapterKey] as? any BluetoothAdapter {
            adapter = given
            registry = Self.registries.object(ObjectIdentifier(given)) { PeripheralRegistry() }
        } else {
            registry = CBAdapters.registry
            adapter = CBAdapters.make()
        }
    }
}
