#if NATS && Records
    import Ferry
    import Foundation
    import Synchronization

    /// Answers `GET /metrics` on a port of this machine, one client after another.
    ///
    /// A thread of its own waits in `poll`: what is asked for once in 15 s needs no more. A client that says or takes nothing for 5 s
    /// is let go.
    final class MetricsEndpoint: Sendable {
        private let descriptor: Int32
        private let isOver = Atomic(false)
        private let text: @Sendable () -> String
        /// The port that it listens on.
        let port: UInt16

        /// Listens.
        ///
        /// - Parameters:
        ///   - address: `HOST:PORT` with an IPv4 address, such as `127.0.0.1:9469`; port 0 for any that is free.
        ///   - text: what is answered at the time.
        /// - Throws: `invalidConfiguration` for what is no address, or one that cannot be listened on.
        init(_ address: String, _ text: @escaping @Sendable () -> String) throws(FerryError) {
            let parts = address.split(separator: ":", omittingEmptySubsequences: false)
            var place = sockaddr_in()
            place.sin_family = sa_family_t(AF_INET)
            guard parts.count == 2, let number = UInt16(parts[1]),
                inet_pton(AF_INET, String(parts[0]), &place.sin_addr) == 1
            else {
                throw FerryError(
                    .invalidConfiguration,
                    "\(address.debugDescription) is no place for metrics: give an IPv4 address and a port, such as 127.0.0.1:9469."
                )
            }
            place.sin_port = number.bigEndian
            let descriptor = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
            var yes: Int32 = 1
            setsockopt(descriptor, SOL_SOCKET, SO_REUSEADDR, &yes, socklen_t(MemoryLayout<Int32>.size))
            let size = socklen_t(MemoryLayout<sockaddr_in>.size)
            let isBound = withUnsafePointer(to: &place) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { bind(descriptor, $0, size) == 0 }
            }
            guard isBound, listen(descriptor, 8) == 0 else {
                let reason = String(cString: strerror(errno))
                close(descriptor)
                throw FerryError(.invalidConfiguration, "Metrics cannot be served at \(address): \(reason).")
            }
            var found = sockaddr_in(), length = size
            _ = withUnsafeMutablePointer(to: &found) {
                $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
            }
            port = UInt16(bigEndian: found.sin_port)
            self.descriptor = descriptor
            self.text = text
            Thread.detachNewThread { self.serve() }
        }

        /// Listens no longer; the thread ends within half a second.
        func end() { isOver.store(true, ordering: .relaxed) }

        private func serve() {
            while !isOver.load(ordering: .relaxed) {
                guard Self.waits(descriptor, POLLIN, 500) else { continue }
                let client = accept(descriptor, nil, nil)
                guard client >= 0 else { continue }
                answer(client)
                close(client)
            }
            close(descriptor)
        }

        private static func waits(_ descriptor: Int32, _ events: Int32, _ milliseconds: Int32) -> Bool {
            var polled = pollfd(fd: descriptor, events: Int16(events), revents: 0)
            return poll(&polled, 1, milliseconds) > 0
        }

        private func answer(_ client: Int32) {
            // The first line is all that matters; the rest of the head is read as far as it comes with it.
            var head: [UInt8] = [], buffer = [UInt8](repeating: 0, count: 4096)
            while head.count < 8192, !head.contains(UInt8(ascii: "\n")) {
                guard Self.waits(client, POLLIN, 5000) else { return }
                let count = recv(client, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                guard count > 0 else { return }
                head += buffer[..<count]
            }
            let line = String(decoding: head.prefix { $0 != UInt8(ascii: "\n") }, as: UTF8.self)
            let isKnown = line.hasPrefix("GET /metrics ") || line.hasPrefix("GET /metrics?")
            let body = isKnown ? text() : "There is GET /metrics.\n"
            let status = isKnown ? "200 OK" : "404 Not Found"
            let type = isKnown ? "text/plain; version=0.0.4; charset=utf-8" : "text/plain; charset=utf-8"
            var rest = Array(
                "HTTP/1.1 \(status)\r\nContent-Type: \(type)\r\nContent-Length: \(body.utf8.count)\r\nConnection: close\r\n\r\n\(body)"
                    .utf8)[...]
            while !rest.isEmpty {
                guard Self.waits(client, POLLOUT, 5000) else { return }
                let count = rest.withUnsafeBytes {
                    send(client, $0.baseAddress, $0.count, Int32(MSG_DONTWAIT) | Int32(MSG_NOSIGNAL))
                }
                guard count > 0 else { return }
                rest = rest.dropFirst(count)
            }
            shutdown(client, Int32(SHUT_WR))
        }
    }
#endif
