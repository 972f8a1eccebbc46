import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization
import TestSupport
import Testing

/// The loopback passes the conformance kits, with and without a connection interval.
@Suite(.tags(.adapter), .timeLimit(.minutes(5))) struct KitTests {
    private static func rig(_ isTimed: Bool) throws -> (VirtualTime, LoopbackRadio) {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        if isTimed {
            configuration.connectionInterval = .milliseconds(15)
            configuration.packetsPerEvent = 6
        }
        return (time, try LoopbackRadio(time: time, configuration: configuration))
    }

    @Test(arguments: AdapterConformance.Requirement.allCases, [false, true])
    func adapters(_ requirement: AdapterConformance.Requirement, isTimed: Bool) throws {
        let (time, radio) = try Self.rig(isTimed)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        let kit = AdapterConformance(
            peripheral: server, central: client, time: .stepped(time),
            setInReach: { radio.setInRange($0, between: server, and: client) })
        try time.run(within: .seconds(100_000)) { try await kit.check(requirement) }
    }

    @Test func adaptersOnTheSystemsTimeAndTwice() async throws {
        // However slow the machine, the queue must fill before it is emptied.
        var configuration = LoopbackRadio.Configuration()
        configuration.connectionInterval = .milliseconds(5)
        let radio = try LoopbackRadio(configuration: configuration)
        let kit = AdapterConformance(
            peripheral: radio.makeAdapter(), central: radio.makeAdapter(), time: .patient)
        for requirement in [AdapterConformance.Requirement.notificationsArriveInOrder, .eventsComeFromOutside] {
            try await kit.check(requirement)
            try await kit.check(requirement)
        }
    }

    @Test(arguments: LinkConformance.Requirement.allCases, [false, true])
    func channels(_ requirement: LinkConformance.Requirement, isTimed: Bool) throws {
        let (time, radio) = try Self.rig(isTimed)
        let rig = ChannelRig(radio)
        let kit = LinkConformance(
            time: .stepped(time), setInReach: { radio.setInRange($0, between: rig.server, and: rig.client) },
            makePair: { try await rig.makePair() })
        try time.run(within: .seconds(100_000)) { try await kit.check(requirement) }
    }
}

/// Two adapters that open L2CAP channels to each other.
struct ChannelRig: Sendable {
    let server: LoopbackAdapter
    let client: LoopbackAdapter

    init(_ radio: LoopbackRadio) {
        server = radio.makeAdapter()
        client = radio.makeAdapter()
    }

    /// Both ends of a new channel on a new connection: the central's and the peripheral's.
    func makePair() async throws -> (any Link, any Link) {
        let owner = PeripheralOwner()
        let (channels, offer) = AsyncStream<any L2CAPChannel>.makeStream()
        owner.actions.withLock { $0.onChannel = { offer.yield($0) } }
        let peripheral = server.openPeripheral(owner)
        let psm = try await peripheral.publishL2CAPChannel(encryptionRequired: false)
        _ = try await peripheral.startAdvertising(Advertisement())
        let central = client.openCentral(CentralOwner())
        let keeper = Keeper()
        let connection = try await central.connect(to: client.identifier(of: server), events: keeper)
        keeper.kept.withLock { $0 = [peripheral, central, connection] }
        let near = try await connection.openL2CAPChannel(psm)
        for await far in channels { return (near, far) }
        throw BluetoothError(.channelRefused, "the peripheral's end did not come")
    }
}

/// Keeps a connection for as long as the radio tells it of events.
private final class Keeper: PeripheralConnectionEvents {
    let kept = Mutex<[any Sendable]>([])
    func peripheralDidDisconnect(_ reason: BluetoothError) {}
}
