import CoreBluetooth
import FerryBluetooth
import FerryCoreBluetooth
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// The adapter seam's contract, over Core Bluetooth over the virtual radio, on the system's time.
@Suite(.tags(.adapter, .coreBluetooth), .timeLimit(.minutes(10))) struct KitTests {
    /// With the reason that Apple's interface gives; see ``CoreBluetoothAdapter``.
    static let deviations: AdapterConformance.Deviations = [.cannotPause, .centralsBySubscription, .writesAreCommands]

    private static func radio() throws -> LoopbackRadio {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(10)
        configuration.connectionInterval = .milliseconds(2)
        return try LoopbackRadio(configuration: configuration)
    }

    @Test(arguments: AdapterConformance.Requirement.allCases)
    func keepsTheContract(_ requirement: AdapterConformance.Requirement) async throws {
        let radio = try Self.radio()
        let kit = AdapterConformance(
            peripheral: overCoreBluetooth(radio.makeAdapter()), central: overCoreBluetooth(radio.makeAdapter()),
            deviations: Self.deviations, time: .system)
        try await kit.check(requirement)
    }

    /// Whatever Apple's framework does beyond its documentation: one at a time, and all at once.
    @Test(arguments: everyQuirk)
    func keepsTheContractUnderQuirks(_ quirks: CBQuirks) async throws {
        let radio = try Self.radio()
        let kit = AdapterConformance(
            peripheral: overCoreBluetooth(radio.makeAdapter(), quirks),
            central: overCoreBluetooth(radio.makeAdapter(), quirks), deviations: Self.deviations, time: .system)
        for requirement in AdapterConformance.Requirement.allCases where !Self.isExcused(requirement, quirks) {
            try await kit.check(requirement)
        }
    }

    /// An app in the background advertises no name, and its adapter cannot mend that.
    private static func isExcused(_ requirement: AdapterConformance.Requirement, _ quirks: CBQuirks) -> Bool {
        requirement == .scansFilterByNameAndRSSI && quirks.contains(.namelessAdvertising)
    }
}
