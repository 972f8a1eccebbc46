#if BlueZ
    import Foundation
    import TestSupport
    import Testing

    /// A bus of the test's own (dbus-daemon(1)), which ends with it.
    final class PrivateBus: Sendable {
        private static let program = "/usr/bin/dbus-daemon"
        static var isHere: Bool { !Machine.isHere && FileManager.default.isExecutableFile(atPath: program) }

        let address: String
        private let process: ChildProcess
        private let folder = FileManager.default.temporaryDirectory.appending(path: "ferry-bus-\(UUID().uuidString)")
        private let note: URL

        /// Whether somebody called org.bluez while it was not there.
        var startsBluetoothd: Bool { FileManager.default.fileExists(atPath: note.path()) }

        init() throws {
            note = folder.appending(path: "asked")
            let configuration = """
                <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
                 "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
                <busconfig><type>session</type><listen>unix:tmpdir=\(folder.path())</listen><policy context="default">
                <allow send_destination="*" eavesdrop="true"/><allow eavesdrop="true"/><allow own="*"/>
                </policy><servicedir>\(folder.path())</servicedir></busconfig>
                """
            let service = """
                [D-BUS Service]
                Name=org.bluez
                Exec=/usr/bin/touch \(note.path())

                """
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            let file = folder.appending(path: "bus.conf")
            try configuration.write(to: file, atomically: true, encoding: .utf8)
            try service.write(to: folder.appending(path: "org.bluez.service"), atomically: true, encoding: .utf8)
            let output = Pipe()
            process = try ChildProcess(
                Self.program, ["--config-file=\(file.path())", "--nofork", "--print-address"], output: .pipe(output))
            var line = Data()
            while !line.contains(UInt8(ascii: "\n")) {
                let more = output.fileHandleForReading.availableData
                try #require(!more.isEmpty, "dbus-daemon ended without telling its address")
                line += more
            }
            address = String(decoding: line, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
        }

        deinit {
            process.signal(SIGKILL)
            try? FileManager.default.removeItem(at: folder)
        }
    }
#endif
