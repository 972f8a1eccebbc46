#if BlueZ
    import Ferry
    import FerryBlueZ
    import FerryBluetooth
    import FerryTesting
    import Foundation
    import TestSupport
    import Testing

    /// The virtual machine that these tests run in: two LE controllers that hear each other, one bluetoothd.
    enum Machine {
        static var isHere: Bool { getenv("FERRY_VIRTUAL_MACHINE") != nil }

        /// The kit's waits, for a processor that is emulated.
        static let time = ConformanceTime.patient

        /// The same two for all tests, so that what one test ends has ended when the next one begins.
        private static let shared = Task { try await open() }

        static func adapters() async throws -> (peripheral: BlueZAdapter, central: BlueZAdapter) {
            try await shared.value
        }

        /// Two of a test's own, which closes them.
        static func open(
            _ configuration: BlueZConfiguration = BlueZConfiguration()
        ) async throws -> (peripheral: BlueZAdapter, central: BlueZAdapter) {
            let peripheral = try await BlueZAdapter.open("bluez:hci0", configuration: configuration)
            return (peripheral, try await BlueZAdapter.open("bluez:hci1", configuration: configuration))
        }

        /// Runs commands of the guest's `bluez.sh`, and requires that they succeed.
        static func shell(_ script: String) async throws {
            // Not Foundation's Process: it waits for the daemons that the script starts, too.
            let command = "/bin/bash -c '. /guest/root/bluez.sh; \(script.replacing("'", with: "'\\''"))' </dev/null"
            let status = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: system(command)) }
            }
            try #require(status == 0, "\(script) ended with status \(status)")
        }

        /// What a channel still delivers until it ends, whether or not with a reason.
        static func rest(of channel: MessageChannel<[UInt8], [UInt8]>) async -> [[UInt8]] {
            var rest: [[UInt8]] = []
            var messages = channel.messages.makeAsyncIterator()
            while let message = try? await messages.next() { rest.append(message) }
            return rest
        }

        /// Waits until an adapter is in a state.
        static func wait(for state: AdapterState, of adapter: BlueZAdapter) async throws {
            try await time.wait("state", for: "\(adapter.name) to be \(state); it is \(adapter.state)") {
                adapter.state == state
            }
        }
    }
#endif
