package import Foundation
import Synchronization

/// A nats-server of the test's own, on a free port and with a folder of its own. It ends with the test.
package final class NATSServer: Sendable {
    /// FERRY_NATS_SERVER names another one.
    private static let program =
        ProcessInfo.processInfo.environment["FERRY_NATS_SERVER"]
        ?? ["/usr/sbin/nats-server", "/usr/bin/nats-server", "/usr/local/bin/nats-server"].first {
            FileManager.default.isExecutableFile(atPath: $0)
        }
    /// Whether there is one on this machine.
    package static var isHere: Bool { program != nil }

    package let folder: URL
    private let extra: String
    private let process = Mutex<ChildProcess?>(nil)
    private let number = Mutex(-1)

    /// Its port, which it keeps when it is started again.
    package var port: Int { number.withLock { $0 } }
    package var url: String { "nats://127.0.0.1:\(port)" }

    package struct Failure: Error { let text: String }

    /// - Parameter extra: more lines of its configuration, in which FOLDER is its folder.
    package init(_ extra: String = "") throws {
        folder = FileManager.default.temporaryDirectory.appending(path: "ferry-nats-\(UUID().uuidString)")
        self.extra = extra
        try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
    }

    /// Starts it, and waits until it listens.
    package func start() async throws {
        guard let program = Self.program else { throw Failure(text: "there is no nats-server") }
        let path = folder.path()
        let configuration = """
            listen: "127.0.0.1:\(port)"
            ports_file_dir: "\(path)"
            jetstream { store_dir: "\(path)/store", max_file: 1GB, max_mem: 64MB }
            \(extra.replacingOccurrences(of: "FOLDER", with: path.hasSuffix("/") ? String(path.dropLast()) : path))
            """
        let file = folder.appending(path: "server.conf")
        try configuration.write(to: file, atomically: true, encoding: .utf8)
        let process = try ChildProcess(program, ["-c", file.path(), "-l", folder.appending(path: "log").path()])
        self.process.withLock { $0 = process }
        let ports = folder.appending(path: "nats-server_\(process.identifier).ports")
        try await until("nats-server's port in \(ports.path())") {
            if let text = try? String(contentsOf: ports, encoding: .utf8), text.contains("}"),
                let colon = text.range(of: "127.0.0.1:"),
                let found = Int(text[colon.upperBound...].prefix { $0.isNumber })
            {
                number.withLock { $0 = found }
                return true
            }
            guard process.isRunning else { throw Failure(text: "nats-server did not start: \(log)") }
            return false
        }
    }

    /// For its TLS: FOLDER/certificate.pem, which is its own authority, and FOLDER/key.pem.
    package func makeCertificate() async throws {
        try await OwnCertificate.make(in: folder)
    }

    /// Its certificate's file.
    package var certificate: String { folder.appending(path: "certificate.pem").path() }

    package var log: String {
        (try? String(contentsOf: folder.appending(path: "log"), encoding: .utf8)) ?? "no log"
    }

    /// Sends it a signal. One that is to stop (SIGSTOP) has stopped when this returns: its threads go on for a moment.
    package func signal(_ signal: Int32) {
        process.withLock { process in
            guard let process, process.isRunning else { return }
            process.signal(signal)
            guard signal == SIGSTOP else { return }
            while process.isRunning, !Self.isStopped(process.identifier) { usleep(1000) }
        }
    }

    /// Whether each of a process' threads has the state T (proc(5)), which follows the name in parentheses.
    private static func isStopped(_ process: Int32) -> Bool {
        let tasks = "/proc/\(process)/task"
        let threads = (try? FileManager.default.contentsOfDirectory(atPath: tasks)) ?? []
        return threads.allSatisfy { thread in
            guard let line = try? String(contentsOfFile: "\(tasks)/\(thread)/stat", encoding: .utf8) else {
                return true
            }
            return line.split(separator: ")").last?.hasPrefix(" T") == true
        }
    }

    /// Ends it as a loss of power would end the process: at once.
    package func kill() async {
        signal(SIGKILL)
        let ending = process.withLock { process in
            defer { process = nil }
            return process
        }
        await ending?.ended()
    }

    deinit {
        signal(SIGKILL)
        try? FileManager.default.removeItem(at: folder)
    }
}
