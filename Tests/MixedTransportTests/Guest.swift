#if HCI && BlueZ
    import FerryBlueZ
    import FerryBluetooth
    import FerryHCI
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// The virtual machine that these tests run in: two LE controllers that hear each other. hci0 is down, for Ferry's own
    /// host by the user channel; the kernel's host and bluetoothd have hci1. Scripts that have it otherwise say so.
    enum Guest {
        private static func setting(_ name: String, _ otherwise: String) -> String {
            ProcessInfo.processInfo.environment[name] ?? otherwise
        }

        static var isHere: Bool { ProcessInfo.processInfo.environment["FERRY_VIRTUAL_MACHINE"] != nil }
        /// Where captures and the output of programs go.
        static let results = setting("FERRY_RESULTS", "/results")
        /// Where Ferry's own host finds its controller.
        static let channel = setting("FERRY_CHANNEL", "hci:user:0")

        /// Waits for a processor that is emulated.
        static let time = ConformanceTime.patient

        private static let shared = Task {
            try await BlueZAdapter.open(setting("FERRY_BLUEZ", "bluez:hci1"), pairing: BlueZPairing())
        }

        /// The one on bluetoothd, which all tests share.
        static func bluez() async throws -> BlueZAdapter {
            let adapter = try await shared.value
            try await until("\(adapter.name) is powered on") { adapter.state == .poweredOn }
            return adapter
        }

        private static let captures = Mutex(0)

        /// Ferry's own host. The kernel takes a moment to have an adapter back from the one before.
        static func host(
            mtu: Int = 517, _ change: (inout HCIConfiguration) -> Void = { _ in }
        ) async throws -> HCIAdapter {
            var configuration = HCIConfiguration()
            configuration.maximumMTU = mtu
            let number = captures.withLock { count in
                count += 1
                return count
            }
            configuration.capture = "\(results)/host-\(number).btsnoop"
            change(&configuration)
            let channel = try HCIChannel(channel)
            var adapter: HCIAdapter?, problem = ""
            try await until("Ferry's own host: \(problem)") {
                do { adapter = try await HCIAdapter.open(channel, configuration) } catch { problem = "\(error)" }
                return adapter != nil
            }
            return try #require(adapter)
        }

        /// Runs commands of the guest's `bluez.sh`, and requires that they succeed.
        static func shell(_ script: String) async throws {
            let command = "/bin/bash -c '. /guest/root/bluez.sh; \(script)' </dev/null"
            let status = await withCheckedContinuation { continuation in
                Thread.detachNewThread { continuation.resume(returning: system(command)) }
            }
            try #require(status == 0, "\(script) ended with status \(status)")
        }
    }

    /// A program that runs beside a test. It prints into a file, so that nobody waits for it who does not want to.
    final class Program: Sendable {
        private static let count = Mutex(0)
        private let process: ChildProcess
        private let output: URL

        init(_ program: String, _ arguments: [String]) throws {
            let number = Self.count.withLock { count in
                count += 1
                return count
            }
            output = URL(filePath: "\(Guest.results)/program-\(number).log")
            try Data().write(to: output)
            let handle = try FileHandle(forWritingTo: output)
            process = try ChildProcess(program, arguments, output: .file(handle), errors: .file(handle))
        }

        deinit { end() }

        /// What it has printed so far.
        var text: String { (try? String(contentsOf: output, encoding: .utf8)) ?? "" }
        var isRunning: Bool { process.isRunning }
        func end() { process.signal(SIGKILL) }
    }

    /// Who serves; the other one visits.
    enum Way: String, CaseIterable, Sendable {
        case hostServes, bluezServes

        /// What is due to the one on bluetoothd, in the role that it has (Documentation/BlueZ.md), and that neither side
        /// can have a peer pause (Documentation/HCI.md).
        var deviations: AdapterConformance.Deviations {
            switch self {
            case .hostServes: [.cannotPause, .noRSSIFilter, .shorterValues]
            case .bluezServes: [.cannotPause, .shorterValues, .writesAreCommands, .fewErrors]
            }
        }

        /// Both adapters, and how to end the one that is of this test only.
        func open(mtu: Int = 517) async throws -> (
            peripheral: any BluetoothAdapter, central: any BluetoothAdapter, host: HCIAdapter
        ) {
            let bluez = try await Guest.bluez()
            let host = try await Guest.host(mtu: mtu)
            return self == .hostServes ? (host, bluez, host) : (bluez, host, host)
        }
    }
#endif
