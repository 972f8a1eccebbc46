#if MQTT
    import FerryTesting
    import Foundation
    import Synchronization
    import TestSupport

    /// A mosquitto of the test's own, with a subscriber that survives it. Both end with the test.
    final class MosquittoServer: Sendable {
        private static func find(_ name: String) -> String? {
            ["/usr/sbin/", "/usr/bin/", "/usr/local/sbin/", "/usr/local/bin/"].map { $0 + name }.first {
                FileManager.default.isExecutableFile(atPath: $0)
            }
        }
        /// Whether broker and clients are on this machine.
        static var isHere: Bool { find("mosquitto") != nil && find("mosquitto_sub") != nil }

        struct Failure: Error { let text: String }

        let folder: URL
        /// Another one until it has started, should somebody else take it first.
        private let number: Mutex<Int>
        private let hasStarted = Mutex(false)
        var port: Int { number.withLock { $0 } }
        private let extra: String
        private let broker = Mutex<ChildProcess?>(nil)
        private let subscriber = Mutex<ChildProcess?>(nil)

        /// - Parameter extra: more lines of its configuration, in which FOLDER is its folder.
        init(_ extra: String = "allow_anonymous true") throws {
            folder = FileManager.default.temporaryDirectory.appending(path: "ferry-mqtt-\(UUID().uuidString)")
            self.extra = extra
            try FileManager.default.createDirectory(at: folder, withIntermediateDirectories: true)
            number = Mutex(try Self.freePort())
        }

        /// An address of this machine that no other process has, so that no other process has its ports.
        let host = OwnAddress.text

        private static func freePort() throws -> Int {
            let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
            defer { close(number) }
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_addr.s_addr = inet_addr(OwnAddress.text)
            var size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafeMutablePointer(to: &address) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(number, $0, size) == 0 && getsockname(number, $0, &size) == 0
                }
            }
            guard isBound else { throw Failure(text: "no port is free") }
            return Int(UInt16(bigEndian: address.sin_port))
        }

        var path: String { folder.path() }
        private var log: String { (try? String(contentsOfFile: "\(path)/log", encoding: .utf8)) ?? "no log" }

        /// Starts it, and waits until it listens.
        func start() async throws {
            for _ in 0..<5 {
                do { return try await launch() } catch {
                    let isTaken = log.contains("Address already in use")
                    guard isTaken, !hasStarted.withLock({ $0 }) else { throw error }
                    let other = try Self.freePort()
                    number.withLock { $0 = other }
                }
            }
            throw Failure(text: "five free ports were taken by others")
        }

        private func launch() async throws {
            let configuration = """
                listener \(port) \(host)
                user root
                persistence true
                persistence_location \(path)/
                autosave_on_changes true
                autosave_interval 1
                max_packet_size 100000
                max_queued_messages 0
                log_dest file \(path)/log
                log_type all
                \(extra.replacingOccurrences(of: "FOLDER", with: path))
                """
            try configuration.write(toFile: "\(path)/mosquitto.conf", atomically: true, encoding: .utf8)
            try? FileManager.default.removeItem(atPath: "\(path)/log")
            let process = try run("mosquitto", ["-c", "\(path)/mosquitto.conf"], .none)
            broker.withLock { $0 = process }
            try await until("mosquitto's port") {
                guard process.isRunning else { throw Failure(text: "mosquitto did not start: \(log)") }
                return log.contains(" running")
            }
            hasStarted.withLock { $0 = true }
        }

        private func run(_ name: String, _ arguments: [String], _ output: ChildProcess.Stream) throws -> ChildProcess {
            guard let program = Self.find(name) else { throw Failure(text: "there is no \(name)") }
            return try ChildProcess(program, arguments, output: output, errors: .none)
        }

        /// Subscribes to all topics below `out`, in a session that lasts.
        func subscribe() async throws {
            let file = "\(path)/heard"
            try Data().write(to: URL(filePath: file))
            guard let output = FileHandle(forWritingAtPath: file) else { throw Failure(text: "no \(file)") }
            let process = try run(
                "mosquitto_sub",
                [
                    "-V", "5", "-h", host, "-p", "\(port)", "-i", "kit", "-c", "-x", "3600", "-q", "1", "-k", "5", "-t",
                    "out/#", "-F", "%t|%P|%x",
                ], .file(output))
            subscriber.withLock { $0 = process }
            try await until("the subscription") { log.contains("Sending SUBACK to kit") }
        }

        /// All that the subscriber has had.
        var deliveries: [OutletConformance.Delivery] {
            let text = (try? String(contentsOfFile: "\(path)/heard", encoding: .utf8)) ?? ""
            // A line that is being written is left for the next time.
            return text.split(separator: "\n", omittingEmptySubsequences: false).dropLast().compactMap { line in
                let parts = line.split(separator: "|", omittingEmptySubsequences: false)
                guard parts.count == 3 else { return nil }
                let key = parts[1].split(separator: " ").first { $0.hasPrefix("Ferry-Record:") }
                let digits = Array(parts[2].utf8)
                let bytes = stride(from: 0, to: digits.count - 1, by: 2).compactMap {
                    UInt8(String(decoding: digits[$0...($0 + 1)], as: UTF8.self), radix: 16)
                }
                return .init(address: String(parts[0]), key: String(key?.dropFirst(13) ?? ""), bytes: bytes)
            }
        }

        /// Sends the broker a signal.
        func signal(_ signal: Int32) {
            broker.withLock { $0?.signal(signal) }
        }

        /// Halts the broker, which has one thread; it has stopped when this returns.
        func halt() async throws {
            signal(SIGSTOP)
            let number = broker.withLock { $0?.identifier ?? 0 }
            try await until("the broker to halt") {
                let state = try String(contentsOfFile: "/proc/\(number)/stat", encoding: .utf8)
                return state.split(separator: ")").last?.hasPrefix(" T") == true
            }
        }

        /// Ends the broker at once, as a loss of power would end the process.
        func kill() async {
            signal(SIGKILL)
            let ending = broker.withLock { process in
                defer { process = nil }
                return process
            }
            await ending?.ended()
        }

        deinit {
            signal(SIGKILL)
            subscriber.withLock { $0?.signal(SIGKILL) }
            try? FileManager.default.removeItem(at: folder)
        }
    }
#endif
