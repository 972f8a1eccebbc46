import CoreBluetooth
import CoreBluetoothRig
import FerryLoopback
import FerryTesting
import TestSupport
import Testing

/// The adapter seam's contract, over Core Bluetooth over the virtual radio, on the system's time.
@Suite(.tags(.adapter, .coreBluetooth), .timeLimit(.minutes(10))) struct KitTests {
    private static func radio() throws -> LoopbackRadio {
        var configuration = LoopbackRadio.Configuration()
        configuration.advertisingInterval = .milliseconds(10)
        configuration.connectionInterval = .milliseconds(2)
        return try LoopbackRadio(configuration: configuration)
    }

    @Test(arguments: AdapterConformance.Requirement.allCases)
    func keepsTheContract(_ requirement: AdapterConformance.Requirement) async throws {
        let radio = try Self.radio()
        let kit = conformance(peripheral: radio.makeAdapter(), central: radio.makeAdapter())
        try await kit.check(requirement)
    }

    /// Whatever Apple's framework does beyond its documentation: one at a time, and all at once.
    @Test(arguments: everyQuirk)
    func keepsTheContractUnderQuirks(_ quirks: CBQuirks) async throws {
        let radio = try Self.radio()
        let kit = conformance(peripheral: radio.makeAdapter(), central: radio.makeAdapter(), quirks)
        for requirement in AdapterConformance.Requirement.allCases where !Self.isExcused(requirement, quirks) {
            try await kit.check(requirement)
        }
    }

    /// An app in the background advertises no name, and its adapter cannot mend that.
    private static func isExcused(_ requirement: AdapterConformance.Requirement, _ quirks: CBQuirks) -> Bool {
        requirement == .scansFilterByNameAndRSSI && quirks.contains(.namelessAdvertising)
    }
}
