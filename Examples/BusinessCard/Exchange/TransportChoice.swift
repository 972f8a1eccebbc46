import ArgumentParser
import Ferry
import FerryBluetooth
import FerryLoopback

/// A transport by the name that people type. The one place to add another to: a line in ``all``.
struct TransportChoice: Sendable {
    /// What `--transport` takes, up to the colon of an address if it has one.
    let name: String
    /// Whether another process can be met over it.
    let reachesOtherProcesses: Bool
    /// The words for a report.
    let title: @Sendable (RadioSettings) -> String
    /// Opens the radio. What it returns makes a transport for a role, each with an adapter of its own.
    let open: @Sendable (RadioSettings) throws -> @Sendable (_ role: String) -> any Transport

    /// The transports that need no address.
    static let all = [loopback]

    /// A virtual radio within this process.
    static let loopback = TransportChoice(
        name: "loopback", reachesOtherProcesses: false,
        title: { settings in
            let pause = settings.interval == .zero ? "no pause" : "\(settings.interval.forPeople)"
            return "loopback, \(pause) between connection events, \(RadioSettings.loopbackRSSI) dBm"
        },
        open: { settings in
            var configuration = LoopbackRadio.Configuration()
            configuration.connectionInterval = settings.interval
            configuration.packetsPerEvent = RadioSettings.packetsPerEvent
            configuration.rssi = RadioSettings.loopbackRSSI
            // A longer chunk than usual needs a longer ATT_MTU, of which a value leaves 3 bytes to ATT.
            configuration.attMTU = max(configuration.attMTU, min(517, settings.chunkSize + 3))
            let radio = try LoopbackRadio(configuration: configuration)
            let gatt = GATTConfiguration(
                service: CardService.service, characteristic: CardService.characteristic, rssi: settings.rssi)
            return { role in GATTTransport(adapter: radio.makeAdapter(name: role), configuration: gatt) }
        })

    /// What `--transport` takes, for messages.
    static let list = (all.map(\.name) + hciForms + bluezForms).joined(separator: ", ")

    /// The transport that an argument names.
    static func parse(_ text: String) throws -> TransportChoice {
        if let choice = all.first(where: { $0.name == text }) { return choice }
        if text == "bluez" || text.hasPrefix("bluez:") { return try bluez(text) }
        if text == "hci" || text.hasPrefix("hci:") { return try hci(text) }
        throw ValidationError("transport \(text.printable) is not part of this build; available: \(list).")
    }
}

/// What a transport is made with.
struct RadioSettings: Sendable {
    var interval = Duration.zero
    var chunkSize = 20
    var rssi: ClosedRange<Int>?
    /// Where to capture HCI packets.
    var capture: String?

    /// Two devices side by side.
    static let loopbackRSSI = -24
    /// Few enough that a short message takes several connection events, as it does with modest peripherals.
    static let packetsPerEvent = 2
}

/// The identifiers of the business-card service.
enum CardService {
    /// E07F0AE8-00BB-47F5-94F4-4A7174EA3032
    static let service = BluetoothUUID(0xE07F_0AE8_00BB_47F5_94F4_4A71_74EA_3032 as UInt128)
    /// 9D534E8B-2153-4F6D-B2B0-8C68665A7274
    static let characteristic = BluetoothUUID(0x9D53_4E8B_2153_4F6D_B2B0_8C68_665A_7274 as UInt128)
}
