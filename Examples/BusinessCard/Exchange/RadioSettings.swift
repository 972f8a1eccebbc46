import Ferry
import FerryBluetooth
import FerryLoopback
import FerryTransports

/// What a transport is made with.
struct RadioSettings: Sendable {
    /// The virtual radio's connection interval.
    var interval = Duration.zero
    var chunkSize = 20
    var rssi: ClosedRange<Int>?
    /// Where to capture HCI packets.
    var capture: String?

    /// Two devices side by side.
    static let virtualRSSI = -24

    /// Makes transports of what was named, each for a role's name.
    func open(_ transport: NamedTransport) throws(FerryError) -> @Sendable (_ role: String) -> any Transport {
        var options = RadioOptions()
        options.capture = capture
        options.onAdvice = Console.complain
        options.virtualRadio.connectionInterval = interval
        // Few enough that a short message takes several connection events, as it does with modest peripherals.
        options.virtualRadio.packetsPerEvent = 2
        options.virtualRadio.rssi = Self.virtualRSSI
        // A longer chunk than usual needs a longer ATT_MTU, of which a value leaves 3 bytes to ATT.
        options.virtualRadio.attMTU = max(options.virtualRadio.attMTU, min(517, chunkSize + 3))
        return try transport.open(
            GATTConfiguration(service: CardService.service, characteristic: CardService.characteristic, rssi: rssi),
            options)
    }

    /// The words for a report.
    func title(_ transport: NamedTransport) -> String {
        guard !transport.reachesOtherProcesses else { return transport.description }
        let pause = interval == .zero ? "no pause" : "\(interval.forPeople)"
        return "\(transport), \(pause) between connection events, \(Self.virtualRSSI) dBm"
    }
}

/// The identifiers of the business-card service.
enum CardService {
    /// E07F0AE8-00BB-47F5-94F4-4A7174EA3032
    static let service = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
    /// 9D534E8B-2153-4F6D-B2B0-8C68665A7274
    static let characteristic = BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)
}
