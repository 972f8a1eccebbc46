public import Dispatch
public import FerryBluetooth
public import Foundation

/// Finds peripherals and connects to them.
///
/// The callbacks come one at a time on the queue that was given. The object may be used from any thread.
open class CBCentralManager: CBManager {
    /// Abilities that not every machine has.
    public struct Feature: OptionSet, Sendable {
        /// The bits.
        public let rawValue: UInt
        /// Makes a set from its bits.
        public init(rawValue: UInt) { self.rawValue = rawValue }
        /// Extended advertisements are received and connected to.
        public static let extendedScanAndConnect = Self(rawValue: 1)
    }

    private struct WeakDelegate { weak var delegate: (any CBCentralManagerDelegate)? }
    private let delegateReference: Guarded<WeakDelegate>
    private let events: CentralEvents
    let role: any CentralRole
    let adapter: any BluetoothAdapter
    let quirks: CBQuirks
    /// What the managers of the process know of peripherals.
    let registry: PeripheralRegistry
    let peripherals = WeakTable<UUID, CBPeripheral>()
    let progress = Guarded(CentralProgress())

    /// A manager without a delegate, on the main queue.
    public override convenience init() { self.init(delegate: nil, queue: nil, options: nil) }

    /// A manager on the process's adapter (see ``CBAdapters``).
    ///
    /// - Parameters:
    ///   - delegate: who is told of what happens; held weakly.
    ///   - queue: where callbacks come; nil for the main queue.
    public convenience init(delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?) {
        self.init(delegate: delegate, queue: queue, options: nil)
    }

    /// A manager on the process's adapter (see ``CBAdapters``).
    ///
    /// - Parameters:
    ///   - delegate: who is told of what happens; held weakly. The first update waits for one, a second at most.
    ///   - queue: where callbacks come; nil for the main queue.
    ///   - options: ``CBCentralManagerOptionRestoreIdentifierKey``; the others are ignored.
    public init(
        delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil
    ) {
        let callbacks = Callbacks(queue)
        let setup = ManagerSetup(options)
        adapter = setup.adapter
        quirks = setup.quirks
        registry = setup.registry
        delegateReference = Guarded(WeakDelegate(delegate: delegate))
        events = CentralEvents(callbacks)
        role = adapter.openCentral(events)
        super.init()
        self.callbacks = callbacks
        events.manager.object = self
        restore(options?[CBCentralManagerOptionRestoreIdentifierKey] as? String)
        ConnectionEvents.shared.join(self)
        callbacks.start()
    }

    /// A manager on an adapter of the program's choice. Not part of Apple's API.
    ///
    /// - Parameters:
    ///   - delegate: who is told of what happens; held weakly.
    ///   - queue: where callbacks come; nil for the main queue.
    ///   - options: as with Apple's initializer.
    ///   - adapter: what stands behind the manager.
    ///   - quirks: what its connections show; nil for ``CBAdapters/quirks``.
    public convenience init(
        delegate: (any CBCentralManagerDelegate)?, queue: DispatchQueue?, options: [String: Any]? = nil,
        adapter: any BluetoothAdapter, quirks: CBQuirks? = nil
    ) {
        self.init(delegate: delegate, queue: queue, options: ManagerSetup.options(options, adapter, quirks))
    }

    deinit {
        for peripheral in peripherals.all { peripheral.dropSession() }
        role.close()
    }

    /// Who is told of what happens; held weakly.
    open var delegate: (any CBCentralManagerDelegate)? {
        get { delegateReference { $0.delegate } }
        set {
            delegateReference { $0.delegate = newValue }
            if newValue != nil { delegateDidCome { [weak self] in self?.adapterDidChange($0) } }
        }
    }

    /// Whether it looks for peripherals.
    open var isScanning: Bool { progress { $0.scan != nil } }

    /// Whether the machine has some abilities: none of the listed ones, for adapters do not say.
    open class func supports(_ features: CBCentralManager.Feature) -> Bool { features.isEmpty }

    // MARK: Scanning

    /// Looks for peripherals, in place of an earlier scan.
    ///
    /// - Parameters:
    ///   - serviceUUIDs: services of which a peripheral must advertise one; nil for any peripheral.
    ///   - options: ``CBCentralManagerScanOptionAllowDuplicatesKey``.
    open func scanForPeripherals(withServices serviceUUIDs: [CBUUID]?, options: [String: Any]? = nil) {
        guard requirePower() else { return }
        let isQuiet = quirks.contains(.quietScans)
        let scan = ScanRequest(
            services: serviceUUIDs?.map(\.bluetooth) ?? [],
            allowsDuplicates: !isQuiet
                && (options?[CBCentralManagerScanOptionAllowDuplicatesKey] as? NSNumber)?.boolValue ?? false)
        if isQuiet, scan.services.isEmpty { return progress { $0.scan = scan } }
        // Noted first: the adapter may report a peripheral before the call has returned.
        let earlier = progress { progress in
            defer { progress.scan = scan }
            return progress.scan
        }
        do throws(BluetoothError) { try role.startScan(scan) } catch {
            progress { $0.scan = earlier }
            Misuse.report("scanForPeripherals: \(error.message)")
        }
        saveState()
    }

    /// Stops looking.
    open func stopScan() {
        role.stopScan()
        progress { $0.scan = nil }
        saveState()
    }

    /// Peripherals of these identifiers that this manager or another of the process knows, in their order; others are left
    /// out.
    open func retrievePeripherals(withIdentifiers identifiers: [UUID]) -> [CBPeripheral] {
        identifiers.compactMap { identifier in peer(identifier).map { peripheral(identifier, $0) } }
    }

    /// Peripherals that are connected to this machine, by any owner of the adapter, and offer one of the services.
    open func retrieveConnectedPeripherals(withServices serviceUUIDs: [CBUUID]) -> [CBPeripheral] {
        role.retrieveConnectedPeripherals(offering: serviceUUIDs.map(\.bluetooth)).map { peripheral($0) }
    }

    // MARK: Connecting

    /// Connects to a peripheral. The attempt does not expire; end it with ``cancelPeripheralConnection(_:)``. A peripheral
    /// that is connected already is reported again by ``CBCentralManagerDelegate/centralManager(_:didConnect:)``, as programs
    /// that await the answer of each call need.
    ///
    /// - Parameters:
    ///   - peripheral: one that this manager has discovered or retrieved.
    ///   - options: ``CBConnectPeripheralOptionStartDelayKey`` and ``CBConnectPeripheralOptionEnableAutoReconnect``;
    ///     the others are ignored.
    open func connect(_ peripheral: CBPeripheral, options: [String: Any]? = nil) {
        guard requirePower() else {
            return refuse(peripheral, .notConnected, "Bluetooth is not powered on: wait for the state's update.")
        }
        guard peripheral.manager.object === self else {
            Misuse.report("connect: the peripheral was not discovered or retrieved by this central manager")
            return refuse(
                peripheral, .unknownDevice,
                "The peripheral is another manager's: fetch it by retrievePeripherals(withIdentifiers:).")
        }
        let delay = (options?[CBConnectPeripheralOptionStartDelayKey] as? NSNumber)?.doubleValue ?? 0
        let reconnects = (options?[CBConnectPeripheralOptionEnableAutoReconnect] as? NSNumber)?.boolValue ?? false
        guard (0...86_400).contains(delay) else {
            return refuse(peripheral, .invalidParameters, "The start delay must be 0 to 86400 seconds.")
        }
        guard !peripheral.contents({ $0.state == .connected }) else { return answerAgain(peripheral) }
        begin(peripheral, delay: delay, reconnects: reconnects)
        saveState()
    }

    /// There is a connection. It may end before its turn on the queue comes: the delegate is told of that end alone.
    private func answerAgain(_ peripheral: CBPeripheral) {
        callbacks.run {
            guard peripheral.contents({ $0.state == .connected }) else { return }
            self.delegate?.centralManager(self, didConnect: peripheral)
        }
    }

    /// A connection that is refused is reported.
    private func refuse(_ peripheral: CBPeripheral, _ code: CBError.Code, _ reason: String) {
        callbacks.run {
            self.delegate?.centralManager(self, didFailToConnect: peripheral, error: CBError(code, reason))
        }
    }

    /// Begins a session, unless there is one; when that is about to end, after its end.
    func begin(_ peripheral: CBPeripheral, delay: Double = 0, reconnects: Bool) {
        let session: PeripheralSession? = peripheral.contents { contents in
            guard contents.session == nil else {
                if contents.state == .disconnecting { contents.next = (delay, reconnects) }
                return nil
            }
            let session = PeripheralSession(peripheral, callbacks, quirks, reconnects: reconnects)
            contents.session = session
            contents.state = .connecting
            return session
        }
        session?.start(role, to: peripheral.peer.current, delay: delay)
    }

    /// Ends a connection, or the wait for one; commands that are pending may not complete.
    open func cancelPeripheralConnection(_ peripheral: CBPeripheral) {
        guard requirePower() else { return }
        let session = peripheral.contents { contents in
            if contents.session != nil { contents.state = .disconnecting }
            contents.next = nil
            return contents.session
        }
        session?.cancel()
        saveState()
    }

    /// Asks for ``CBCentralManagerDelegate/centralManager(_:connectionEventDidOccur:for:)`` when managers of this
    /// process that share this one's adapter connect and disconnect peripherals that one of the options names; nil
    /// for no more.
    open func registerForConnectionEvents(options: [CBConnectionEventMatchingOption: Any]? = nil) {
        guard requirePower() else { return }
        progress {
            $0.connectionEvents = options.map {
                ConnectionEvents.Filter(
                    services: ($0[.serviceUUIDs] as? [CBUUID])?.map(\.bluetooth) ?? [],
                    identifiers: $0[.peripheralUUIDs] as? [UUID] ?? [])
            }
        }
    }
}

/// What a central manager is doing.
struct CentralProgress {
    var scan: ScanRequest?
    var connectionEvents: ConnectionEvents.Filter?
    /// Peripherals whose connection has been announced.
    var announced: Set<UUID> = []
    var restoration: RestorationFile?
    /// Its peripherals are held until the program has had the chance to keep them.
    var restoring = Restoring<CentralSnapshot, CBPeripheral>.nothing
}
