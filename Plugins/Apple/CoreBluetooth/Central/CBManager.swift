import FerryBluetooth
public import Foundation

/// What central and peripheral managers have in common.
open class CBManager: NSObject {
    // swift-format-ignore: NeverUseImplicitlyUnwrappedOptionals
    /// Set by the managers' initializers. One here that takes it would keep subclasses from inheriting `init()`.
    final var callbacks: Callbacks!
    private let delivered = Guarded(CBManagerState.unknown)
    private let first = Guarded(FirstUpdate.none)
    private let wait = Guarded(1.0)

    /// The first update waits for a delegate.
    private enum FirstUpdate {
        case none
        case waiting(CBManagerState)
        /// It waits still, and ``CBManager/state`` says it already.
        case overdue(CBManagerState)
        case told

        var untold: CBManagerState? {
            switch self {
            case .none, .told: nil
            case .waiting(let state), .overdue(let state): state
            }
        }
    }

    /// How long ``state`` stays unknown where no delegate comes, in seconds.
    final var longestWait: Double {
        get { wait.current }
        set { wait.current = newValue }
    }
    /// Whether the first update is there, and waits for a delegate.
    final var hasUntoldState: Bool { first { $0.untold != nil } }

    /// Whether Bluetooth can be used now: `unknown` until the first callback, which waits for a delegate; where none comes,
    /// for a second.
    open var state: CBManagerState { delivered.current }

    /// Whether people have allowed the program to use Bluetooth: `allowedAlways` on Linux.
    open class var authorization: CBManagerAuthorization { .allowedAlways }

    /// As the class property.
    @available(*, deprecated, message: "Use the class property")
    open var authorization: CBManagerAuthorization { .allowedAlways }

    func setState(_ state: CBManagerState) { delivered.current = state }

    /// Whether an update is told now; on the program's queue. The first one is kept until there is a delegate.
    func isDue(_ state: CBManagerState, _ hasDelegate: @autoclosure () -> Bool) -> Bool {
        let before = first { first in
            let before = hasDelegate() ? .told : first
            first =
                switch before {
                case .told: .told
                case .none, .waiting: .waiting(state)
                case .overdue: .overdue(state)
                }
            return before
        }
        switch before {
        case .told: return true
        case .none: callbacks.run(after: longestWait) { [weak self] in self?.goOnUntold() }
        case .waiting: break
        case .overdue: setState(state)
        }
        return false
    }

    /// A delegate is set now: delivers the update that waited for one.
    func delegateDidCome(_ tell: @escaping (CBManagerState) -> Void) {
        guard hasUntoldState else { return }
        callbacks.run { [first] in
            // Only once, and of the latest state.
            if let state = first({ $0.untold }) { tell(state) }
        }
    }

    /// No delegate is set. Updates `state` anyway, and tells a delegate that is set later.
    private func goOnUntold() {
        let state = first { first -> CBManagerState? in
            guard case .waiting(let state) = first else { return nil }
            first = .overdue(state)
            return state
        }
        if let state { setState(state) }
    }

    /// Whether commands are taken; otherwise reports the misuse, as Apple's does.
    func requirePower(_ function: String = #function) -> Bool {
        guard state != .poweredOn else { return true }
        Misuse.report("\(type(of: self)).\(function) can only accept this command while in the powered on state")
        return false
    }
}

/// A remote device.
open class CBPeer: NSObject, NSCopying {
    let peerIdentifier: UUID

    init(identifier: UUID) { peerIdentifier = identifier }

    /// Names the device towards this process; it is not its Bluetooth address.
    ///
    /// Apple's stays the same between runs of a program; here that depends on the adapter, and the loopback radio's
    /// does not.
    open var identifier: UUID { peerIdentifier }

    /// The object itself.
    open func copy(with zone: NSZone? = nil) -> Any { self }
    /// As `description`.
    open override var debugDescription: String { description }
}

/// A remote device in the central role, as a ``CBPeripheralManager`` sees it.
open class CBCentral: CBPeer {
    private let longest: (ConnectedCentral) -> Int?
    private let last = Guarded(20)
    private let latest = Guarded<ConnectedCentral?>(nil)
    private let quirks: CBQuirks
    /// Updates on this connection, counted while that makes a difference.
    private let updates = Guarded(0)

    init(identifier: UUID, _ quirks: CBQuirks, longest: @escaping (ConnectedCentral) -> Int?) {
        self.quirks = quirks
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
            guard isNew else { return }
            updates.current = 0
            _ = maximumUpdateValueLength
        }
    }

    func countUpdate() { updates { $0 = min($0 + 1, CBQuirks.shortValues) } }

    /// The most bytes of a value that the central receives in one notification or indication: ATT_MTU - 3, at most 512.
    /// After the central has disconnected: the last one known.
    open var maximumUpdateValueLength: Int {
        let isShort = quirks.contains(.lateATTMTU) && updates.current < CBQuirks.shortValues
        let now = connection.flatMap(longest).map { isShort ? min($0, 20) : $0 }
        return last { last in
            last = now ?? last
            return last
        }
    }

    /// As Apple's prints.
    open override var description: String {
        printed("identifier = \(peerIdentifier), MTU = \(maximumUpdateValueLength)", separator: " ")
    }
    /// Whether the other object is the same central.
    open override func isEqual(_ object: Any?) -> Bool { (object as? CBCentral)?.peerIdentifier == peerIdentifier }
    /// Equal for the same central.
    open override var hash: Int { peerIdentifier.hashValue }
}
