import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Synchronization

/// The virtual radio: GATT links between adapters, which connect, go out of range and come back.
final class RadioAir: ScheduleAir {
    private let radio: LoopbackRadio
    private let adapters: [Station: LoopbackAdapter]
    private let away = Mutex<Set<Station>>([])
    private let time: VirtualTime
    private let dice: Dice
    private let layout: GATTConfiguration

    init(_ time: VirtualTime, _ dice: Dice, isCalm: Bool) throws {
        var configuration = LoopbackRadio.Configuration()
        configuration.transmitQueueDepth = [1, 2, 8].randomElement(by: dice)
        configuration.connectionInterval = dice.chance(50) ? .zero : .milliseconds(15)
        configuration.attMTU = [23, 50, 185].randomElement(by: dice)
        configuration.advertisingInterval = .milliseconds(200)
        configuration.supervisionTimeout = .milliseconds(200)
        if !isCalm {
            configuration.faults = LoopbackRadio.Faults(
                seed: dice.seed,
                probabilities: [
                    .disconnect: dice.chance(50) ? 0.01 : 0, .changeMTU: 0.02, .readyLate: 0.1, .readyNever: 0.02,
                ])
        }
        radio = try LoopbackRadio(time: time, configuration: configuration)
        adapters = Dictionary(
            uniqueKeysWithValues: Station.allCases.map { [radio] in ($0, radio.makeAdapter(name: $0.rawValue)) })
        layout = GATTConfiguration(
            service: BluetoothUUID(0xFE01 as UInt16), characteristic: BluetoothUUID(0xFE02 as UInt16),
            subscription: dice.chance(20) ? .indicate : .notify,
            writeType: dice.chance(20) ? .withResponse : .withoutResponse)
        self.time = time
        self.dice = dice
    }

    private func adapter(_ station: Station) -> LoopbackAdapter { adapters[station] ?? radio.makeAdapter() }

    func transport(of station: Station) -> any Transport {
        GATTTransport(adapter: adapter(station), configuration: layout, time: time)
    }

    func station(named name: PeerIdentity) -> Station? {
        adapters.first { $0.value.identity.name == name.name }?.key
    }

    /// The radio's own tests count its connections.
    var openConnections: Int { 0 }

    func breakOne() {
        let client = [Station.me, .other].randomElement(by: dice)
        let server = [Station.peer, .stranger].randomElement(by: dice)
        radio.setInRange(false, between: adapter(client), and: adapter(server))
        time.schedule(at: time.now + .milliseconds(150 + dice.below(300))) { [self] in restore(client, server) }
    }

    func setAway(_ station: Station, _ isAway: Bool) {
        away.withLock { away in if isAway { away.insert(station) } else { away.remove(station) } }
        for other in Station.allCases where other.listens != station.listens { restore(other, station) }
    }

    private func restore(_ a: Station, _ b: Station) {
        let isInRange = away.withLock { !$0.contains(a) && !$0.contains(b) }
        radio.setInRange(isInRange, between: adapter(a), and: adapter(b))
    }
}
