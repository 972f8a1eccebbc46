#if NATS
    import Ferry

    /// How to reach a NATS server, or a cluster of them.
    public struct NATSConfiguration: Sendable, Hashable {
        /// Addresses: `nats://host:4222`, `tls://host`, `nats://user:password@host`. One of them is enough to find a cluster.
        public var servers: [String]
        /// The connection's name, for the server's log and monitoring.
        public var name = "ferry"
        /// A file with the user's JWT and seed, as `nsc` writes it (`.creds`).
        public var credentialsFile: String?
        /// A PEM file with the authorities that may sign the server's certificate; the system's unless given. Turns TLS on.
        public var authoritiesFile: String?
        /// A PEM file with this client's certificate, and one with its key, where the server asks for them. Turns TLS on.
        public var certificateFile: String?
        /// The key's file; with ``certificateFile``.
        public var keyFile: String?
        /// How long setting up a connection may take. Default 5 s.
        public var connectTimeout = Duration.seconds(5)
        /// How long an answer may take. Default 5 s.
        public var requestTimeout = Duration.seconds(5)
        /// How long to wait before each attempt to connect again after a loss, which goes on for ever. Default 500 ms.
        public var reconnectDelay = Duration.milliseconds(500)
        /// A connection on which nothing is heard for twice this long is lost. Default 10 s.
        public var pingInterval = Duration.seconds(10)

        /// - Parameter servers: their addresses.
        public init(servers: [String]) { self.servers = servers }

        /// The addresses without users and passwords, for messages.
        public var publicServers: String {
            servers.map { server in
                guard let at = server.lastIndex(of: "@") else { return server }
                let scheme = server.range(of: "://").map { String(server[..<$0.upperBound]) } ?? ""
                return scheme + server[server.index(after: at)...]
            }.joined(separator: ", ")
        }

        func check() throws(FerryError) {
            func refuse(_ text: String) -> FerryError { FerryError(.invalidConfiguration, text) }
            guard !servers.isEmpty, servers.allSatisfy({ !$0.isEmpty && !$0.contains("\0") }) else {
                throw refuse("No NATS server is named. Give an address such as nats://localhost:4222.")
            }
            for (what, time) in [
                ("connectTimeout", connectTimeout), ("requestTimeout", requestTimeout),
                ("reconnectDelay", reconnectDelay), ("pingInterval", pingInterval),
            ] where time < .milliseconds(1) || time > .seconds(86_400) {
                throw refuse("NATSConfiguration.\(what) is \(time); it must be 1 ms to a day.")
            }
            guard (certificateFile == nil) == (keyFile == nil) else {
                throw refuse("A client certificate needs certificateFile and keyFile; one of them is missing.")
            }
        }
    }

    extension String {
        fileprivate func range(of text: String) -> Range<String.Index>? {
            var start = startIndex
            while start < endIndex {
                if self[start...].hasPrefix(text) { return start..<index(start, offsetBy: text.count) }
                start = index(after: start)
            }
            return nil
        }
    }
#endif
