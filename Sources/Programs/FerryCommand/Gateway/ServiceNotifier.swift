#if NATS && Records
    import Ferry
    import Foundation
    import Glibc
    import Synchronization

    /// Tells the service manager that started this process how it is: systemd's protocol (sd_notify(3), "Notes"), one datagram for
    /// each message. Where no manager asks for it, nothing is sent.
    final class ServiceNotifier: Sendable {
        private struct State {
            /// Whether the manager knows that it is ready.
            var isReady = false
            var lastAlive: Timestamp?
            var lastStatus = ""
        }

        /// A path, or a name in the abstract namespace that begins with `@`; nil where no manager asks.
        private let address: String?
        /// How often the manager must hear of it; nil where it watches nothing.
        let watchdog: Duration?
        private let state = Mutex(State())

        /// - Parameters:
        ///   - environment: has `NOTIFY_SOCKET`, and `WATCHDOG_USEC` and `WATCHDOG_PID` where the manager watches.
        ///   - process: this process's number.
        init(
            _ environment: [String: String] = ProcessInfo.processInfo.environment,
            process: Int32 = ProcessInfo.processInfo.processIdentifier
        ) {
            address = environment["NOTIFY_SOCKET"].flatMap { $0.hasPrefix("/") || $0.hasPrefix("@") ? $0 : nil }
            let isWatched = environment["WATCHDOG_PID"].map { $0 == "\(process)" } ?? true
            let micros = environment["WATCHDOG_USEC"].flatMap { Int64($0) }
            watchdog = isWatched ? micros.flatMap { $0 > 0 ? .microseconds($0) : nil } : nil
        }

        /// It works: ready the first time, and from then on alive, as often as the manager wants to hear it.
        ///
        /// - Parameter status: a line for `systemctl status`; sent when it has changed.
        func works(_ status: String, at now: Timestamp = SystemTime().now) {
            guard address != nil else { return }
            let lines = state.withLock { state in
                var lines: [String] = []
                if !state.isReady { lines.append("READY=1") }
                state.isReady = true
                if let watchdog, state.lastAlive.map({ now - $0 >= watchdog / 3 }) ?? true {
                    state.lastAlive = now
                    lines.append("WATCHDOG=1")
                }
                if state.lastStatus != status { lines.append("STATUS=\(status)") }
                state.lastStatus = status
                return lines
            }
            if !lines.isEmpty { send(lines.joined(separator: "\n")) }
        }

        /// It cannot begin yet: the manager waits for a minute more.
        ///
        /// - Parameter reason: a line for `systemctl status`.
        func waits(_ reason: String) {
            let line = reason.replacing("\n", with: " ")
            state.withLock { $0.lastStatus = line }
            send("STATUS=\(line)\nEXTEND_TIMEOUT_USEC=60000000")
        }

        /// It reads its configuration again, and says ``works(_:at:)`` when it has.
        func reloads() {
            state.withLock { $0 = State() }
            var time = timespec()
            clock_gettime(CLOCK_MONOTONIC, &time)
            send("RELOADING=1\nMONOTONIC_USEC=\(Int64(time.tv_sec) * 1_000_000 + Int64(time.tv_nsec) / 1000)")
        }

        /// It ends.
        func ends() { send("STOPPING=1") }

        /// A manager that does not listen is no reason to fail, nor to wait.
        private func send(_ text: String) {
            guard let address else { return }
            var place = sockaddr_un()
            place.sun_family = sa_family_t(AF_UNIX)
            var name = Array(address.utf8)
            if name.first == UInt8(ascii: "@") { name[0] = 0 }
            guard name.count < MemoryLayout.size(ofValue: place.sun_path) else { return }
            withUnsafeMutableBytes(of: &place.sun_path) { $0.copyBytes(from: name) }
            let socket = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            guard socket >= 0 else { return }
            defer { close(socket) }
            // A path ends with a zero; an abstract name has just its bytes.
            let size = MemoryLayout<sa_family_t>.size + name.count + (name.first == 0 ? 0 : 1)
            let text = Array(text.utf8)
            _ = withUnsafePointer(to: &place) { place in
                place.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    sendto(socket, text, text.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL), $0, socklen_t(size))
                }
            }
        }
    }
#endif
