#if HCI
    import FerryBluetooth
    import FerryHCI
    import FerryTesting
    import Testing

    /// The adapter seam's contract, over two controllers. ATT_MTU is 185, for the kit takes 400 bytes to be a long value.
    @Suite(
        .enabled(if: Interop.isInstalled, "runs in scripts/interop hosts"), .serialized,
        .timeLimit(.minutes(1)))
    struct KitTests {
        @Test(arguments: AdapterConformance.Requirement.allCases)
        func keepsTheContract(_ requirement: AdapterConformance.Requirement) async throws {
            let (controllers, paths) = try await Interop.controllers(2)
            defer { controllers.stop() }
            var configuration = HCIConfiguration()
            configuration.maximumMTU = 185
            let peripheral = try await HCIAdapter.open(.unix(path: paths[0]), configuration)
            let central = try await HCIAdapter.open(.unix(path: paths[1]))
            let kit = AdapterConformance(
                peripheral: peripheral, central: central, deviations: .cannotPause, time: .system)
            try await kit.check(requirement)
            #expect(!controllers.output.contains("!!"), "\(controllers.output)")
        }
    }
#endif
