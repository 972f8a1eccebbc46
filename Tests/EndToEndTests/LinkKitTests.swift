import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// GATT links pass the kit for links: by notifications and writes without response, and by indications and writes with it.
@Suite(.tags(.channel, .bluetooth), .timeLimit(.minutes(5))) struct LinkKitTests {
    @Test(arguments: LinkConformance.Requirement.allCases, [false, true])
    func gattLinksKeepTheContract(_ requirement: LinkConformance.Requirement, isAnswered: Bool) throws {
        let time = VirtualTime()
        var configuration = LoopbackRadio.Configuration()
        configuration.connectionInterval = .milliseconds(15)
        configuration.packetsPerEvent = 6
        let radio = try LoopbackRadio(time: time, configuration: configuration)
        let (server, client) = (radio.makeAdapter(), radio.makeAdapter())
        let layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16),
            subscription: isAnswered ? .indicate : .notify, writeType: isAnswered ? .withResponse : .withoutResponse)
        let setInReach = { @Sendable in radio.setInRange($0, between: server, and: client) }
        let kit = LinkConformance(time: .stepped(time), setInReach: setInReach) {
            let listener = try await GATTTransport(adapter: server, configuration: layout, time: time).listen()
            let near = try await GATTTransport(adapter: client, configuration: layout, time: time)
                .connect(timeout: .seconds(20))
            var links = listener.links.makeAsyncIterator()
            return (near, try #require(await links.next()))
        }
        try time.run { try await kit.check(requirement) }
    }
}
