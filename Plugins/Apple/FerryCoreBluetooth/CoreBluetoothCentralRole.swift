import CoreBluetooth
import Ferry
import FerryBluetooth

/// The central role: one `CBCentralManager`, on its own queue.
final class CoreBluetoothCentralRole: NSObject, CentralRole, @unchecked Sendable {
    let queue = DispatchQueue(label: "FerryCoreBluetooth central")
    private let adapter: CoreBluetoothAdapter

    private struct State {
        /// Nil once the role is closed.
        var events: (any CentralRoleEvents)?
        var manager: CBCentralManager?
        var power = AdapterState.unknown
        var scan: (request: ScanRequest, told: Scan<UUID>)?
        /// The one connection of each peripheral, from the call to its end. They keep their `CBPeripheral`.
        var links: [UUID: CoreBluetoothConnection] = [:]
        /// Peripherals of an earlier run of the app, until they are connected to.
        var restored: [UUID: CBPeripheral] = [:]
        /// Peripherals that were heard: the system forgets those without a reference.
        var heard: [UUID: CBPeripheral] = [:]
        var order: [UUID] = []

        var isClosed: Bool { events == nil }
    }
    private let state: Locked<State>
    private let power = PowerWait()

    /// Peripherals that were heard and are kept; a person with a radio can be any number of them.
    private static let mostHeard = 256

    init(_ adapter: CoreBluetoothAdapter, _ events: any CentralRoleEvents) {
        self.adapter = adapter
        state = Locked(State(events: events))
    }

    func start(_ make: CoreBluetoothAdapter.MakeCentral, _ options: [String: Any]?) {
        let delegate = CentralDelegate(self)
        let manager = make(delegate, queue, options)
        // The manager holds its delegate weakly, and the role goes when its owner lets it go.
        self.delegate { $0 = delegate }
        state { $0.manager = $0.isClosed ? nil : manager }
    }
    private let delegate = Locked<CentralDelegate?>(nil)

    deinit { close() }

    private func powered() throws(BluetoothError) -> CBCentralManager {
        let (manager, isClosed, power) = state { ($0.manager, $0.isClosed, $0.power) }
        guard !isClosed, let manager else { throw .roleClosed }
        guard power == .poweredOn else { throw .notPoweredOn(power) }
        return manager
    }

    // MARK: Finding

    func startScan(_ request: ScanRequest) throws(BluetoothError) {
        let isUnknown = state { !$0.isClosed && $0.power == .unknown }
        let manager = isUnknown ? nil : try powered()
        // The system looks for the services, also where what it hands over does not name them.
        var unfiltered = request
        unfiltered.services = []
        let told = try Scan<UUID>(unfiltered)
        state { $0.scan = (request, told) }
        if let manager { begin(request, manager) }
    }

    private func begin(_ request: ScanRequest, _ manager: CBCentralManager) {
        manager.scanForPeripherals(
            withServices: request.services.isEmpty ? nil : request.services.map { CBUUID($0) },
            // A window or a name may come to match later, when the system would not report the peripheral again.
            options: [
                CBCentralManagerScanOptionAllowDuplicatesKey: request.allowsDuplicates || request.rssi != nil
                    || request.name != nil
            ])
    }

    func stopScan() {
        let manager = state { state -> CBCentralManager? in
            defer { state.scan = nil }
            return state.scan != nil && state.power == .poweredOn ? state.manager : nil
        }
        manager?.stopScan()
    }

    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
        guard let manager = try? powered() else { return [] }
        let found = Set(manager.retrievePeripherals(withIdentifiers: identifiers.map(\.identifier)).map(\.identifier))
        return identifiers.filter { found.contains($0.identifier) }
    }

    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? {
        identity.identifier.flatMap { retrievePeripherals([PeerID($0)]).first }
    }

    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
        guard let manager = try? powered() else { return [] }
        return manager.retrieveConnectedPeripherals(withServices: services.map { CBUUID($0) }).map {
            PeerID($0.identifier)
        }
    }

    // MARK: Connecting

    func connect(
        to peripheral: PeerID, events: any PeripheralConnectionEvents
    ) async throws(BluetoothError) -> any PeripheralConnection {
        try await power.pass(queue)
        let manager = try powered()
        let identifier = peripheral.identifier
        let known = state { $0.restored.removeValue(forKey: identifier) ?? $0.heard[identifier] }
        guard let peer = known ?? manager.retrievePeripherals(withIdentifiers: [identifier]).first else {
            throw .unknownPeer(peripheral)
        }
        let link = CoreBluetoothConnection(self, peer, events)
        let isFree = state { state in
            guard state.links[identifier] == nil else { return false }
            state.links[identifier] = link
            return true
        }
        guard isFree else {
            throw BluetoothError(
                .connectionFailed,
                "This role has a connection to \(peripheral) already, or waits for one; end it first, or open another role."
            )
        }
        let box = Unchecked(manager)
        queue.async { link.begin(box.value) }
        let role = self
        try await link.connected.wait { role.cancel(link) }
        return link
    }

    /// Ends a connection, or the wait for it.
    func cancel(_ link: CoreBluetoothConnection) {
        queue.run { [self] in
            guard let manager = state({ $0.power == .poweredOn ? $0.manager : nil }) else { return }
            manager.cancelPeripheralConnection(link.peripheral_)
            // Whether the end of a wait is told is not documented.
            queue.run(after: 1) {
                if self.link(link.peripheral_) === link { self.end(link.peripheral_, .endedHere) }
            }
        }
    }

    private func link(_ peripheral: CBPeripheral) -> CoreBluetoothConnection? {
        state { $0.links[peripheral.identifier] }
    }

    /// Forget an ended connection before its owner hears of the end, since the owner may connect again at once.
    fileprivate func end(_ peripheral: CBPeripheral, _ reason: BluetoothError) {
        let link = state { $0.links.removeValue(forKey: peripheral.identifier) }
        link?.didEnd(reason)
    }

    // MARK: What the manager tells, on the queue

    fileprivate func didUpdateState(_ central: CBCentralManager) {
        let power = AdapterState(central.state)
        adapter.note(power)
        let (events, links, early) = state {
            state -> ((any CentralRoleEvents)?, [CoreBluetoothConnection], ScanRequest?) in
            // A scan that was asked for before the system had said anything.
            let early = state.power == .unknown ? state.scan?.request : nil
            state.power = power
            defer {
                if power != .poweredOn {
                    state.links = [:]
                    state.scan = nil
                    state.restored = [:]
                    state.heard = [:]
                    state.order = []
                }
            }
            return (state.events, power == .poweredOn ? [] : Array(state.links.values), early)
        }
        for link in links { link.didEnd(.notPoweredOn(power)) }
        if power == .poweredOn, let early { begin(early, central) }
        self.power.end()
        events?.centralAdapterDidChange(power)
    }

    fileprivate func willRestore(_ peripherals: [CBPeripheral]) {
        state { state in for peripheral in peripherals { state.restored[peripheral.identifier] = peripheral } }
    }

    fileprivate func didDiscover(_ peripheral: CBPeripheral, _ data: [String: Any], _ rssi: Int) {
        let advertisement = AdvertisementData(data)
        let events = state { state -> (any CentralRoleEvents)? in
            // 127 means that it is not known.
            let strength = rssi == 127 ? nil : rssi
            guard state.scan?.told.report(advertisement, rssi: strength, from: peripheral.identifier) == true else {
                return nil
            }
            if state.heard.updateValue(peripheral, forKey: peripheral.identifier) == nil {
                state.order.append(peripheral.identifier)
                if state.order.count > Self.mostHeard {
                    let oldest = state.order.removeFirst()
                    state.heard[oldest] = nil
                    state.scan?.told.forget(oldest)
                }
            }
            return state.events
        }
        events?.centralDidDiscover(
            Discovery(
                peripheral: PeerID(peripheral.identifier), identity: PeerIdentity(peripheral.identifier),
                advertisement: advertisement, rssi: rssi))
    }

    fileprivate func didConnect(_ peripheral: CBPeripheral) { link(peripheral)?.didConnect() }

    // MARK: The end

    func close() {
        let (manager, links, wasScanning) = state { state in
            defer {
                state.events = nil
                state.manager = nil
                state.links = [:]
                state.restored = [:]
                state.heard = [:]
                state.scan = nil
            }
            return (state.power == .poweredOn ? state.manager : nil, Array(state.links.values), state.scan != nil)
        }
        delegate { $0 = nil }
        power.end()
        guard let manager else { return }
        let queue = queue
        let box = Unchecked((manager, links))
        queue.async {
            let (manager, links) = box.value
            if wasScanning { manager.stopScan() }
            for link in links {
                manager.cancelPeripheralConnection(link.peripheral_)
                link.didEnd(.roleClosed, isSilent: true)
            }
            manager.delegate = nil
            // The pending request goes out first.
            queue.run(after: 0.5) { withExtendedLifetime(box) {} }
        }
    }
}

/// Passes on the manager's events; a separate class, because the manager's owner must not be kept alive by it.
private final class CentralDelegate: NSObject, CBCentralManagerDelegate {
    private weak var role: CoreBluetoothCentralRole?

    init(_ role: CoreBluetoothCentralRole) { self.role = role }

    func centralManagerDidUpdateState(_ central: CBCentralManager) { role?.didUpdateState(central) }

    func centralManager(_ central: CBCentralManager, willRestoreState dict: [String: Any]) {
        role?.willRestore(dict[CBCentralManagerRestoredStatePeripheralsKey] as? [CBPeripheral] ?? [])
    }

    func centralManager(
        _ central: CBCentralManager, didDiscover peripheral: CBPeripheral, advertisementData: [String: Any],
        rssi RSSI: NSNumber
    ) {
        role?.didDiscover(peripheral, advertisementData, RSSI.intValue)
    }

    func centralManager(_ central: CBCentralManager, didConnect peripheral: CBPeripheral) {
        role?.didConnect(peripheral)
    }

    func centralManager(_ central: CBCentralManager, didFailToConnect peripheral: CBPeripheral, error: (any Error)?) {
        role?.end(
            peripheral,
            error.map { BluetoothError($0, doing: "connecting") }
                ?? BluetoothError(.connectionFailed, "The connection could not be made."))
    }

    func centralManager(
        _ central: CBCentralManager, didDisconnectPeripheral peripheral: CBPeripheral, error: (any Error)?
    ) {
        role?.end(
            peripheral,
            error.map { BluetoothError($0, doing: "the connection ended", otherwise: .connectionTimeout) } ?? .endedHere
        )
    }
}
