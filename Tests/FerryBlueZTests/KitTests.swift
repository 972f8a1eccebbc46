#if BlueZ
    import FerryBlueZ
    import FerryBluetooth
    import FerryTesting
    import Testing

    /// The adapter seam's contract over a real bluetoothd, as far as BlueZ allows (Documentation/BlueZ.md).
    @Suite(
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/virtual-machine"), .serialized,
        .timeLimit(.minutes(2)))
    struct KitTests {
        @Test(arguments: AdapterConformance.Requirement.allCases)
        func keepsTheContract(_ requirement: AdapterConformance.Requirement) async throws {
            let (peripheral, central) = try await Machine.adapters()
            let kit = AdapterConformance(
                peripheral: peripheral, central: central,
                deviations: [.cannotPause, .noRSSIFilter, .shorterValues, .writesAreCommands],
                time: Machine.time)
            try await kit.check(requirement)
        }
    }
#endif
