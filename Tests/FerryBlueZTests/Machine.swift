#if BlueZ
    import FerryBlueZ
    import FerryTesting
    import Glibc

    /// The virtual machine that these tests run in: two LE controllers that hear each other, one bluetoothd.
    enum Machine {
        static var isHere: Bool { getenv("FERRY_VIRTUAL_MACHINE") != nil }

        /// The kit's waits, for a processor that is emulated.
        static let time = ConformanceTime(timeout: .seconds(30)) { try? await Task.sleep(for: $0) }

        /// The same two for all tests, so that what one test ends has ended when the next one begins.
        private static let shared = Task {
            var configuration = BlueZConfiguration()
            configuration.window = 32
            let peripheral = try await BlueZAdapter.open("bluez:hci0", configuration: configuration)
            return (peripheral, try await BlueZAdapter.open("bluez:hci1", configuration: configuration))
        }

        static func adapters() async throws -> (peripheral: BlueZAdapter, central: BlueZAdapter) {
            try await shared.value
        }
    }
#endif
