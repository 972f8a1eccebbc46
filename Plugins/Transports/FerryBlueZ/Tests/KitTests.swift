#if BlueZ
    import FerryBlueZ
    import FerryBluetooth
    import FerryTesting
    import Glibc
    import TestSupport
    import Testing

    /// The adapter seam's contract over a real bluetoothd, as far as BlueZ allows (Documentation/BlueZ.md).
    @Suite(
        .tags(.adapter), .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"),
        .serialized,
        .timeLimit(.minutes(5)))
    struct KitTests {
        /// All, or what `FERRY_REQUIREMENT` names (with commas between), as often as `FERRY_TIMES` says: to look into one.
        static let requirements: [AdapterConformance.Requirement] = {
            let all = AdapterConformance.Requirement.allCases
            guard let names = getenv("FERRY_REQUIREMENT").map({ String(cString: $0).split(separator: ",") }) else {
                return all
            }
            return all.filter { names.contains(Substring($0.rawValue)) }
        }()
        static let times = getenv("FERRY_TIMES").flatMap { Int(String(cString: $0)) } ?? 1

        @Test(arguments: 1...max(1, times), requirements)
        func keepsTheContract(run: Int, _ requirement: AdapterConformance.Requirement) async throws {
            let (peripheral, central) = try await Machine.adapters()
            let kit = AdapterConformance(
                peripheral: peripheral, central: central,
                deviations: [.cannotPause, .fewErrors, .noRSSIFilter, .shorterValues, .writesAreCommands],
                time: Machine.time)
            try await kit.check(requirement)
        }
    }
#endif
