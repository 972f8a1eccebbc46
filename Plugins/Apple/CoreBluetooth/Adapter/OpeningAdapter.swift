import Ferry
import FerryBluetooth

/// An adapter that takes a while to open, for managers that are made at once: their state is `unknown` until it is open, and
/// `unsupported` when it cannot be opened.
final class OpeningAdapter: BluetoothAdapter {
    typealias Outcome = Result<any BluetoothAdapter, BluetoothError>

    private enum Phase {
        /// With what the roles do at its end.
        case opening([@Sendable (Outcome) -> Void])
        case ended(Outcome)
    }

    let name: String
    private let phase = Guarded(Phase.opening([]))

    /// Begins to open it.
    init(name: String, open: @escaping @Sendable () async throws(BluetoothError) -> any BluetoothAdapter) {
        self.name = name
        Task.detached { [self] in
            do throws(BluetoothError) { end(.success(try await open())) } catch { end(.failure(error)) }
        }
    }

    private func end(_ outcome: Outcome) {
        if case .failure(let error) = outcome { Misuse.report("no adapter for managers: \(error.message)") }
        let waiting = phase { phase -> [@Sendable (Outcome) -> Void] in
            guard case .opening(let waiting) = phase else { return [] }
            phase = .ended(outcome)
            return waiting
        }
        for body in waiting { body(outcome) }
    }

    /// Calls `body` once it is known whether it is open, at once where it is known already.
    fileprivate func whenEnded(_ body: @escaping @Sendable (Outcome) -> Void) {
        let outcome = phase { phase -> Outcome? in
            switch phase {
            case .opening(let waiting):
                phase = .opening(waiting + [body])
                return nil
            case .ended(let outcome): return outcome
            }
        }
        if let outcome { body(outcome) }
    }

    /// Whether it could not be opened. It does not try again: a new one does.
    var hasFailed: Bool { if case .ended(.failure) = phase.current { true } else { false } }

    var state: AdapterState {
        switch phase.current {
        case .opening: .unknown
        case .ended(.success(let adapter)): adapter.state
        case .ended(.failure): .unsupported
        }
    }

    func openCentral(_ events: any CentralRoleEvents) -> any CentralRole { OpeningCentralRole(self, events) }

    func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
        OpeningPeripheralRole(self, events)
    }
}

/// The role of an adapter, or what stands for it until it is open. A manager asks nothing of a role before it is powered on.
private final class OpeningRole<Role: Sendable>: Sendable {
    private enum Phase {
        case opening
        case open(Role)
        case closed
    }

    private let name: String
    private let phase = Guarded(Phase.opening)

    init(_ name: String) { self.name = name }

    /// Opens the role, unless it has been closed. The lock is held meanwhile, so that an event of the new role finds it here: events
    /// go to the program's queue and do not call back.
    func begin(_ open: () -> Role) {
        phase { phase in if case .opening = phase { phase = .open(open()) } }
    }

    /// Closes it; the role that was open.
    func close() -> Role? {
        phase { phase in
            defer { phase = .closed }
            if case .open(let role) = phase { return role } else { return nil }
        }
    }

    var role: Role? { if case .open(let role) = phase.current { role } else { nil } }

    func whenOpen() throws(BluetoothError) -> Role {
        guard let role else {
            throw BluetoothError(
                .notPoweredOn, "The adapter \(name) is not open. Wait until the manager is powered on.")
        }
        return role
    }
}

private final class OpeningCentralRole: CentralRole {
    private let opening: OpeningRole<any CentralRole>

    init(_ adapter: OpeningAdapter, _ events: any CentralRoleEvents) {
        let opening = OpeningRole<any CentralRole>(adapter.name)
        self.opening = opening
        adapter.whenEnded { outcome in
            switch outcome {
            case .success(let adapter): opening.begin { adapter.openCentral(events) }
            case .failure: events.centralAdapterDidChange(.unsupported)
            }
        }
    }

    func startScan(_ request: ScanRequest) throws(BluetoothError) { try opening.whenOpen().startScan(request) }

    func stopScan() { opening.role?.stopScan() }

    func connect(to peripheral: PeerID, events: any PeripheralConnectionEvents) async throws(BluetoothError)
        -> any PeripheralConnection
    {
        try await opening.whenOpen().connect(to: peripheral, events: events)
    }

    func retrievePeripherals(_ identifiers: [PeerID]) -> [PeerID] {
        opening.role?.retrievePeripherals(identifiers) ?? []
    }

    func retrievePeripheral(_ identity: PeerIdentity) -> PeerID? { opening.role?.retrievePeripheral(identity) }

    func retrieveConnectedPeripherals(offering services: [BluetoothUUID]) -> [PeerID] {
        opening.role?.retrieveConnectedPeripherals(offering: services) ?? []
    }

    func close() { opening.close()?.close() }
}

private final class OpeningPeripheralRole: PeripheralRole {
    private let opening: OpeningRole<any PeripheralRole>

    init(_ adapter: OpeningAdapter, _ events: any PeripheralRoleEvents) {
        let opening = OpeningRole<any PeripheralRole>(adapter.name)
        self.opening = opening
        adapter.whenEnded { outcome in
            switch outcome {
            case .success(let adapter): opening.begin { adapter.openPeripheral(events) }
            case .failure: events.peripheralAdapterDidChange(.unsupported)
            }
        }
    }

    func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
        try await opening.whenOpen().publish(service)
    }

    func unpublish(_ service: AttributeID) { opening.role?.unpublish(service) }

    func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
        try await opening.whenOpen().startAdvertising(advertisement)
    }

    func stopAdvertising() { opening.role?.stopAdvertising() }

    func tryUpdateValue(_ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients)
        throws(BluetoothError) -> Bool
    {
        try opening.whenOpen().tryUpdateValue(value, of: characteristic, for: recipients)
    }

    func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? {
        opening.role?.maximumUpdateValueLength(for: central)
    }

    func identity(of central: ConnectedCentral) -> PeerIdentity? { opening.role?.identity(of: central) }

    func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
        opening.role?.respond(to: request, with: response)
    }

    func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {
        opening.role?.setReceiving(isReceiving, from: central)
    }

    func disconnect(_ central: ConnectedCentral) { opening.role?.disconnect(central) }

    func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
        try await opening.whenOpen().publishL2CAPChannel(encryptionRequired: encryptionRequired)
    }

    func unpublishL2CAPChannel(_ psm: PSM) { opening.role?.unpublishL2CAPChannel(psm) }

    func close() { opening.close()?.close() }
}
