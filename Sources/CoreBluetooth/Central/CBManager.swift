import FerryBluetooth
public import Foundation

/// What central and peripheral managers have in common.
open class CBManager: NSObject, @unchecked Sendable {
    let callbacks: Callbacks
    private let delivered = Guarded(CBManagerState.unknown)

    init(callbacks: Callbacks) {
        self.callbacks = callbacks
        super.init()
    }

    /// Whether Bluetooth can be used now: `unknown` until the first callback.
    open var state: CBManagerState { delivered.current }

    /// Whether people have allowed the program to use Bluetooth: `allowedAlways` on Linux.
    open class var authorization: CBManagerAuthorization { .allowedAlways }

    /// As the class property.
    @available(*, deprecated, message: "Use the class property")
    open var authorization: CBManagerAuthorization { .allowedAlways }

    func setState(_ state: CBManagerState) { delivered.current = state }

    /// Whether commands are taken; otherwise reports the misuse, as Apple's does.
    func requirePower(_ function: String = #function) -> Bool {
        guard state != .poweredOn else { return true }
        Misuse.report("\(type(of: self)).\(function) can only accept this command while in the powered on state")
        return false
    }
}

/// A remote device.
open class CBPeer: NSObject, NSCopying, @unchecked Sendable {
    let peerIdentifier: UUID

    init(identifier: UUID) { peerIdentifier = identifier }

    /// Names the device towards this process; it is not its Bluetooth address.
    ///
    /// Apple's stays the same between runs of a program; here that depends on the adapter, and the loopback radio's
    /// does not.
    open var identifier: UUID { peerIdentifier }

    /// The object itself.
    open func copy(with zone: NSZone? = nil) -> Any { self }
}

/// A remote device in the central role, as a ``CBPeripheralManager`` sees it.
open class CBCentral: CBPeer, @unchecked Sendable {
    private let longest: @Sendable (ConnectedCentral) -> Int?
    private let last = Guarded(20)
    private let latest = Guarded<ConnectedCentral?>(nil)

    init(identifier: UUID, longest: @escaping @Sendable (ConnectedCentral) -> Int?) {
        self.longest = longest
        super.init(identifier: identifier)
    }

    /// The connection that was heard of last, which the object stands for.
    var connection: ConnectedCentral? {
        get { latest.current }
        set {
            let isNew = latest { latest in
                defer { latest = newValue }
                return latest != newValue
            }
            if isNew { _ = maximumUpdateValueLength }
        }
    }

    /// The most bytes of a value that the central receives in one notification or indication: ATT_MTU - 3, at most 512.
    /// After the central has disconnected: the last one known.
    open var maximumUpdateValueLength: Int {
        let now = connection.flatMap(longest)
        return last { last in
            last = now ?? last
            return last
        }
    }

    /// Whether the other object is the same central.
    open override func isEqual(_ object: Any?) -> Bool { (object as? CBCentral)?.peerIdentifier == peerIdentifier }
    /// Equal for the same central.
    open override var hash: Int { peerIdentifier.hashValue }
}
