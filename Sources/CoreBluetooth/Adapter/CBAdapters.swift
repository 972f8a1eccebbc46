public import FerryBluetooth
public import FerryLoopback
import Foundation

/// Which Bluetooth adapter stands behind managers that are not given one of their own. Not part of Apple's API.
///
/// In this order: what ``use(_:)`` has named; the adapter that the environment variable `COREBLUETOOTH_ADAPTER` names
/// among those that were registered; otherwise a new adapter on ``loopback`` for each manager, so that all managers of
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
    }
    private static let choice = Guarded(Choice())

    /// Names the adapter of every manager made from now on; nil for the environment's choice. Managers that exist keep
    /// theirs.
    public static func use(_ provider: Provider?) {
        choice { $0.explicit = provider }
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

    /// The adapter for a new manager. With a name that nobody has registered it is one whose state is `unsupported`.
    static func make() -> any BluetoothAdapter {
        let name = ProcessInfo.processInfo.environment[environmentVariable] ?? "loopback"
        let (provider, known) = choice { ($0.explicit ?? $0.registered[name], $0.registered.keys.sorted()) }
        if let provider { return provider() }
        Misuse.report(
            "\(environmentVariable) is \"\(name)\", which no adapter is registered as; known: "
                + known.joined(separator: ", ")
        )
        return loopback.makeAdapter(name: name, state: .unsupported)
    }
}

/// Defects that Apple's framework has shown in the field, to be switched on so that a program can be tested against
/// them. Not part of Apple's API.
public struct CBQuirks: OptionSet, Hashable, Sendable {
    /// The bits.
    public let rawValue: UInt
    /// Makes a set from its bits.
    public init(rawValue: UInt) { self.rawValue = rawValue }

    /// ``CBPeripheral/canSendWriteWithoutResponse`` is false on a new connection until something has been written
    /// without response, and nothing says that it is ready.
    public static let cannotSendBeforeFirstWrite = Self(rawValue: 1)
}
