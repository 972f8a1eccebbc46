import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// The adapter kit notices adapters that keep their books badly.
@Suite(.tags(.adapter)) struct BrokenAdapterTests {
    enum Defect: String, CaseIterable, Sendable {
        /// What is asked of an ended connection goes to the same central's next one.
        case addressesCentralsByName
        /// A central is somebody else each time it connects.
        case forgetsIdentities
        /// What a role was asked stays unanswered when it is closed.
        case keepsClosedRoles
        /// Of what comes before a subscription has returned only the beginning is handed on.
        case dropsEarlyValues
        /// A peripheral that has ended a connection is told what ended it in the end.
        case tellsTheLastReason

        var requirement: AdapterConformance.Requirement {
            switch self {
            case .addressesCentralsByName: .endedConnectionsAreInert
            case .forgetsIdentities: .peersAreIdentified
            case .keepsClosedRoles: .closedRolesLeaveNobodyWaiting
            case .dropsEarlyValues: .earlyValuesArrive
            case .tellsTheLastReason: .theFirstReasonWins
            }
        }
    }

    @Test(arguments: Defect.allCases) func theKitNotices(_ defect: Defect) throws {
        for planted in [defect, nil] {
            let time = VirtualTime()
            let radio = LoopbackRadio(time: time)
            let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
            let reach = Reach()
            let kit = AdapterConformance(
                peripheral: DefectiveAdapter(server, planted, reach), central: DefectiveAdapter(client, planted, reach),
                time: .stepped(time),
                setInReach: { isInReach in
                    radio.setInRange(isInReach, between: server, and: client)
                    reach.isInReach.store(isInReach, ordering: .relaxed)
                })
            guard planted != nil else {
                try time.run(within: .seconds(100_000)) { try await kit.check(defect.requirement) }
                continue
            }
            #expect(throws: ConformanceFailure.self) {
                try time.run(within: .seconds(100_000)) { try await kit.check(defect.requirement) }
            }
        }
    }
}

/// Whether the two adapters hear each other.
private final class Reach: Sendable {
    let isInReach = Atomic(true)
}

/// An adapter that hands on everything but for one defect.
private final class DefectiveAdapter: BluetoothAdapter {
    private let adapter: LoopbackAdapter
    private let defect: BrokenAdapterTests.Defect?
    private let reach: Reach

    init(_ adapter: LoopbackAdapter, _ defect: BrokenAdapterTests.Defect?, _ reach: Reach) {
        self.adapter = adapter
        self.defect = defect
        self.reach = reach
    }

    var name: String { adapter.name }
    var state: AdapterState { adapter.state }
    func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
        let role = adapter.openCentral(events)
        return defect == .dropsEarlyValues ? ForgetfulCentral(role) : role
    }
    func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
        let centrals = Centrals(events, defect == .tellsTheLastReason ? reach : nil)
        return DefectiveRole(adapter.openPeripheral(centrals), centrals, defect)
    }
}

/// Knows the latest connection of each central.
private final class Centrals: PeripheralRoleEvents {
    private let events: any PeripheralRoleEvents
    private let latest = Mutex<[PeerID: ConnectedCentral]>([:])
    /// What decides of the reason that is told, in place of who ended the connection.
    private let reach: Reach?

    init(_ events: any PeripheralRoleEvents, _ reach: Reach?) {
        self.events = events
        self.reach = reach
    }

    func latest(of central: ConnectedCentral) -> ConnectedCentral { latest.withLock { $0[central.peer] } ?? central }

    func peripheralAdapterDidChange(_ state: AdapterState) { events.peripheralAdapterDidChange(state) }
    func central(
        _ central: ConnectedCentral, didSubscribeTo characteristic: AttributeID, as subscription: Subscription
    ) {
        latest.withLock { $0[central.peer] = central }
        events.central(central, didSubscribeTo: characteristic, as: subscription)
    }
    func central(_ central: ConnectedCentral, didUnsubscribeFrom characteristic: AttributeID) {
        events.central(central, didUnsubscribeFrom: characteristic)
    }
    func peripheralDidReceive(_ request: ReadRequest) { events.peripheralDidReceive(request) }
    func peripheralDidReceive(_ request: WriteRequest) { events.peripheralDidReceive(request) }
    func central(_ central: ConnectedCentral, didWrite value: RawSpan, to characteristic: AttributeID) {
        events.central(central, didWrite: value, to: characteristic)
    }
    func peripheralIsReadyToUpdate() { events.peripheralIsReadyToUpdate() }
    func central(_ central: ConnectedCentral, didDisconnect reason: BluetoothError) {
        let isLost = reach.map { !$0.isInReach.load(ordering: .relaxed) } ?? false
        events.central(central, didDisconnect: isLost ? BluetoothError(.connectionTimeout, "lost") : reason)
    }
    func peripheralDidOpen(_ channel: any L2CAPChannel) { events.peripheralDidOpen(channel) }
    func peripheralDidStopAdvertising(_ reason: BluetoothError) { events.peripheralDidStopAdvertising(reason) }
}

private final class DefectiveRole: PeripheralRole {
    private let role: any PeripheralRole
    private let centrals: Centrals
    private let defect: BrokenAdapterTests.Defect?

    init(_ role: any PeripheralRole, _ centrals: Centrals, _ defect: BrokenAdapterTests.Defect?) {
        self.role = role
        self.centrals = centrals
        self.defect = defect
    }

    private func addressed(_ central: ConnectedCentral) -> ConnectedCentral {
        defect == .addressesCentralsByName ? centrals.latest(of: central) : central
    }

    func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
        try await role.publish(service)
    }
    func unpublish(_ service: AttributeID) { role.unpublish(service) }
    func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
        try await role.startAdvertising(advertisement)
    }
    func stopAdvertising() { role.stopAdvertising() }
    func tryUpdateValue(
        _ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients
    ) throws(BluetoothError) -> Bool {
        let addressed: UpdateRecipients =
            switch recipients {
            case .all: .all
            case .one(let central): .one(addressed(central))
            case .some(let centrals): .some(centrals.map(addressed))
            }
        return try role.tryUpdateValue(value, of: characteristic, for: addressed)
    }
    func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? {
        role.maximumUpdateValueLength(for: addressed(central))
    }
    func identity(of central: ConnectedCentral) -> PeerIdentity? {
        guard let identity = role.identity(of: addressed(central)) else { return nil }
        guard defect == .forgetsIdentities else { return identity }
        return PeerIdentity("\(identity.name)#\(central.connection)", certainty: identity.certainty)
    }
    func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
        role.respond(to: request, with: response)
    }
    func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {
        role.setReceiving(isReceiving, from: addressed(central))
    }
    func disconnect(_ central: ConnectedCentral) { role.disconnect(addressed(central)) }
    func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
        try await role.publishL2CAPChannel(encryptionRequired: encryptionRequired)
    }
    func unpublishL2CAPChannel(_ psm: PSM) { role.unpublishL2CAPChannel(psm) }
    func close() { if defect != .keepsClosedRoles { role.close() } }
}
