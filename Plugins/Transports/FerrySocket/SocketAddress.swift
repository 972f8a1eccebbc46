public import Ferry

/// Where a socket waits, or connects to: `unix:PATH` or `tcp:HOST:PORT`.
public struct SocketAddress: Sendable, Hashable {
    enum Kind: Sendable, Hashable {
        case unix(path: String)
        case tcp(host: String, port: UInt16)
    }

    let kind: Kind

    /// A socket in the file system. On Linux a path that begins with `@` is a name in the abstract namespace, which has no
    /// file and no permissions.
    public static func unix(_ path: String) -> SocketAddress { SocketAddress(kind: .unix(path: path)) }

    /// A port of a host. An empty host is every interface to a listener, and this machine to a connecting side. With port 0 a
    /// listener takes a free one (``SocketTransport/port``).
    public static func tcp(_ host: String, _ port: UInt16) -> SocketAddress {
        SocketAddress(kind: .tcp(host: host, port: port))
    }

    private init(kind: Kind) { self.kind = kind }

    /// Reads `unix:PATH`, `tcp:HOST:PORT` or `tcp:[IPv6]:PORT`.
    ///
    /// - Throws: `invalidConfiguration` with the problem.
    public init(_ text: String) throws(FerryError) {
        func invalid(_ reason: String) -> FerryError {
            FerryError(
                .invalidConfiguration, "'\(text)' is no address of a socket: \(reason). Use unix:PATH or tcp:HOST:PORT."
            )
        }
        if text.hasPrefix("unix:") {
            let path = String(text.dropFirst(5))
            guard !path.isEmpty, path != "@" else { throw invalid("the path is missing") }
            guard !path.utf8.contains(0) else { throw invalid("the path holds a zero byte") }
            self = .unix(path)
            return
        }
        guard text.hasPrefix("tcp:") else { throw invalid("it begins with neither unix: nor tcp:") }
        let rest = text.dropFirst(4)
        guard let colon = rest.lastIndex(of: ":") else { throw invalid("the port is missing") }
        let digits = rest[rest.index(after: colon)...]
        guard let port = UInt16(digits), digits.utf8.allSatisfy({ (48...57).contains($0) }) else {
            throw invalid("the port is a number from 0 to 65535")
        }
        var host = rest[..<colon]
        if host.hasPrefix("["), host.hasSuffix("]") {
            host = host.dropFirst().dropLast()
        } else if host.contains(":") {
            throw invalid("an IPv6 address stands in brackets, as in tcp:[::1]:7000")
        }
        guard !host.utf8.contains(0) else { throw invalid("the host holds a zero byte") }
        self = .tcp(String(host), port)
    }
}

extension SocketAddress {
    /// Whether bytes can reach another machine there. A name is believed to be this machine only when it is `localhost`, and an address
    /// when it is 127.0.0.0/8 or ::1: what a resolver says of other names is an attacker's to choose.
    ///
    /// - Parameter isListening: an empty host is every interface to a listener, and this machine to who connects.
    package func leavesMachine(isListening: Bool) -> Bool {
        guard case .tcp(let host, _) = kind else { return false }
        guard !host.isEmpty else { return isListening }
        if ["localhost", "::1"].contains(host.lowercased()) { return false }
        let parts = host.split(separator: ".", omittingEmptySubsequences: false)
        let isNumeric = parts.allSatisfy { UInt8($0) != nil && $0.utf8.allSatisfy { (48...57).contains($0) } }
        return !(parts.count == 4 && isNumeric && parts[0] == "127")
    }
}

extension SocketAddress {
    /// The TCP port; nil for a Unix socket.
    package var port: UInt16? {
        guard case .tcp(_, let port) = kind else { return nil }
        return port
    }

    /// Whether it is a file, whose rights say who may connect.
    package var isFile: Bool {
        guard case .unix(let path) = kind else { return false }
        return !path.hasPrefix("@")
    }

    /// The same host at another TCP port; a Unix socket as it is.
    package func at(port: UInt16) -> SocketAddress {
        guard case .tcp(let host, _) = kind else { return self }
        return .tcp(host, port)
    }
}

extension SocketAddress: CustomStringConvertible {
    /// As ``init(_:)`` reads it.
    public var description: String {
        switch kind {
        case .unix(let path): "unix:\(path)"
        case .tcp(let host, let port): host.contains(":") ? "tcp:[\(host)]:\(port)" : "tcp:\(host):\(port)"
        }
    }
}
