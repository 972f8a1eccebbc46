#if BlueZ
    import FerryBlueZ
    import FerryBluetooth
    import FerryTesting
    import Glibc
    import Testing

    /// The adapter seam's contract over a real bluetoothd, as far as BlueZ allows (Documentation/BlueZ.md).
    @Suite(
        .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/virtual-machine"), .serialized,
        .timeLimit(.minutes(2)))
    struct KitTests {
        /// All, or what `FERRY_REQUIREMENT` names, as often as `FERRY_TIMES` says: to look into one.
        static let requirements: [AdapterConformance.Requirement] = {
            let all = AdapterConformance.Requirement.allCases
            guard let name = getenv("FERRY_REQUIREMENT").map({ String(cString: $0) }) else { return all }
            return all.filter { $0.rawValue == name }
        }()
        static let times = getenv("FERRY_TIMES").flatMap { Int(String(cString: $0)) } ?? 1

        @Test(arguments: requirements, 1...max(1, times))
        func keepsTheContract(_ requirement: AdapterConformance.Requirement, run: Int) async throws {
            let (peripheral, central) = try await Machine.adapters()
            let kit = AdapterConformance(
                peripheral: peripheral, central: central,
                deviations: [.cannotPause, .fewErrors, .noRSSIFilter, .shorterValues, .writesAreCommands],
                time: Machine.time)
            try await kit.check(requirement)
        }
    }
#endif
