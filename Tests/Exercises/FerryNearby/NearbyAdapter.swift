import Ferry
public import FerryBluetooth

/// A radio with a short reach: another adapter, of which it hears only what is loud enough. The third exercise of
/// CONTRIBUTING.md.
public final class NearbyAdapter: BluetoothAdapter {
    private let adapter: any BluetoothAdapter
    private let loudness: Int

    /// Hears what `adapter` hears with `loudness` dBm or more.
    public init(_ adapter: any BluetoothAdapter, loudness: Int) {
        self.adapter = adapter
        self.loudness = loudness
    }

    /// The other's, and how far it hears.
    public var name: String { "\(adapter.name), from \(loudness) dBm" }
    /// The other's.
    public var state: AdapterState { adapter.state }
    /// The other's.
    public func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
        adapter.openPeripheral(events)
    }
    /// The other's, that scans for what is loud enough.
    public func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
        NearbyCentral(adapter.openCentral(events), loudness)
    }
}

private final class NearbyCentral: CentralRole {
    private let role: any CentralRole
    private let loudness: Int

    init(_ role: any CentralRole, _ loudness: Int) {
        self.role = role
        self.loudness = loudness
    }

    func startScan(_ request: ScanRequest) throws(BluetoothError) {
        var request = request
        let wanted = request.rssi ?? -127...20
        request.rssi = max(wanted.lowerBound, loudness)...max(wanted.upperBound, loudness)
        try role.startScan(request)
    }

    func stopScan() { role.stopScan() }
    func connect(
        to peripheral: PeerID, events: any PeripheralConnectionEvents
    ) async throws(BluetoothError) -> any PeripheralConnection {
        try await role.connect(to: peripheral, events: events)
    }
    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] { role.retrievePeripherals(identifiers) }
    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? { role.retrievePeripheral(identity) }
    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
        role.retrieveConnectedPeripherals(offering: services)
    }
    func close() { role.close() }
}
