import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySequenced
import FerrySocket
import FerryTesting
import TestSupport
import Testing

/// GATT over the virtual radio passes the kit for whole transports, plain and reconnecting; so do reconnecting sockets.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct TransportKitTests {
    private static let layout = GATTConfiguration(
        service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16))

    @Test(arguments: TransportConformance.Requirement.allCases)
    func overTheRadio(_ requirement: TransportConformance.Requirement) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        @Sendable func transport() -> GATTTransport {
            GATTTransport(adapter: radio.makeAdapter(), configuration: Self.layout, time: time)
        }
        let kit = TransportConformance(time: .stepped(time, timeout: .seconds(10))) {
            .init(listening: transport()) { transport() }
        }
        try time.run { try await kit.check(requirement) }
    }

    @Test(arguments: TransportConformance.Requirement.allCases)
    func reconnecting(_ requirement: TransportConformance.Requirement) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        @Sendable func transport() -> ReconnectingTransport<GATTTransport> {
            ReconnectingTransport(
                over: GATTTransport(adapter: radio.makeAdapter(), configuration: Self.layout, time: time), time: time)
        }
        let kit = TransportConformance(time: .stepped(time, timeout: .seconds(10)), deviations: .releasedLinksStay) {
            .init(listening: transport()) { transport() }
        }
        try time.run { try await kit.check(requirement) }
    }

    @Test(arguments: TransportConformance.Requirement.allCases)
    func reconnectingSockets(_ requirement: TransportConformance.Requirement) async throws {
        let transport = ReconnectingTransport(over: try SocketTransport(.tcp("127.0.0.1", 0)))
        try await TransportConformance(time: .system, deviations: .releasedLinksStay) {
            .init(listening: transport) { transport }
        }.check(requirement)
    }
}
