#if HCI && BlueZ
    import FerryBlueZ
    import FerryBluetooth
    import FerryHCI
    import FerryTesting
    import Foundation
    import Synchronization

    /// The virtual machine that these tests run in: two LE controllers that hear each other. hci0 is down, for Ferry's own
    /// host by the user channel; the kernel's host and bluetoothd have hci1.
    enum Guest {
        static var isHere: Bool { ProcessInfo.processInfo.environment["FERRY_VIRTUAL_MACHINE"] != nil }

        /// Waits for a processor that is emulated.
        static let time = ConformanceTime(timeout: .seconds(30)) { try? await Task.sleep(for: $0) }

        static func wait(for what: String, until condition: () -> Bool) async throws {
            try await time.wait("mixed transports", for: what, until: condition)
        }

        private static let shared = Task {
            try await BlueZAdapter.open("bluez:hci1", pairing: BlueZPairing())
        }

        /// The one on bluetoothd, which all tests share.
        static func bluez() async throws -> BlueZAdapter {
            let adapter = try await shared.value
            try await wait(for: "bluez:hci1 to be powered on") { adapter.state == .poweredOn }
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
            configuration.capture = "/results/host-\(number).btsnoop"
            change(&configuration)
            for _ in 0..<50 {
                if let adapter = try? await HCIAdapter.open(.user(device: 0), configuration) { return adapter }
                try await Task.sleep(for: .milliseconds(100))
            }
            return try await HCIAdapter.open(.user(device: 0), configuration)
        }

        /// Runs one of BlueZ's programs to its end, and returns what it printed.
        @discardableResult
        static func run(_ arguments: String...) async throws -> String {
            try await Self.output("/usr/sbin/chroot", ["/guest"] + arguments)
        }

        /// Runs a program to its end, and returns what it printed.
        static func output(_ program: String, _ arguments: [String]) async throws -> String {
            let process = Process()
            let output = Pipe()
            process.executableURL = URL(filePath: program)
            process.arguments = arguments
            process.standardInput = FileHandle.nullDevice
            process.standardOutput = output
            process.standardError = output
            try process.run()
            return await withTaskCancellationHandler {
                await Task.detached {
                    String(decoding: output.fileHandleForReading.readDataToEndOfFile(), as: UTF8.self)
                }.value
            } onCancel: {
                process.terminate()
            }
        }

        /// Ends bluetoothd without a word.
        static func killBluetoothd() async throws { try await run("killall", "-9", "bluetoothd") }

        /// Starts bluetoothd again. It must not keep what Foundation knows this process's children by.
        static func startBluetoothd() async throws {
            let commands = """
                for file in /proc/$$/fd/*; do number=${file##*/}; [ $number -le 2 ] || eval "exec $number>&-"; done
                . /guest/root/bluez.sh
                start_bluetoothd 1 </dev/null >/dev/null 2>&1
                """
            _ = try await output("/bin/bash", ["-c", commands])
            try await run("btmgmt", "--index", "1", "power", "on")
        }
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
