/// What a host knows of bonded peers besides their keys, to be stored and given back in another run: services that were
/// found on them, and what they know of this host's services.
public struct KnownPeers: Sendable, Hashable, Codable {
    var servers: [DiscoveryCache.Entry] = []
    var clients: [RememberedClient] = []

    /// Nothing.
    public init() {}
}

extension LEHost {
    /// Facts about bonded peers.
    public var knownPeers: KnownPeers {
        var known = KnownPeers()
        known.servers = discoveries.entries.filter { $0.isProven && keyring.bond(with: $0.address) != nil }
        // Those that are connected too: what they rely on is kept should this process end before the connection does.
        let connected = connections.compactMap { remembered($0) }
        known.clients = rememberedClients.filter { client in !connected.contains { $0.address == client.address } }
        known.clients += connected
        return known
    }

    /// Uses what another run knew, in place of what this one does. Bonds come first: ``setBonds(_:)``.
    public mutating func setKnownPeers(_ known: KnownPeers) {
        discoveries = DiscoveryCache(known.servers)
        rememberedClients = known.clients.suffix(Self.rememberedLimit).filter { client in
            bonds.contains { $0.peer == client.address }
        }
    }
}

extension UUID: Codable {
    /// Reads 32 hexadecimal digits.
    public init(from decoder: any Decoder) throws {
        let text = try decoder.singleValueContainer().decode(String.self)
        guard text.utf8.count == 32, let value = UInt128(text, radix: 16) else {
            throw DecodingError.dataCorrupted(
                .init(codingPath: decoder.codingPath, debugDescription: "A UUID is 32 hexadecimal digits."))
        }
        self.init(value)
    }

    /// Writes 32 hexadecimal digits.
    public func encode(to encoder: any Encoder) throws {
        let digits = String(value, radix: 16)
        var container = encoder.singleValueContainer()
        try container.encode(String(repeating: "0", count: 32 - digits.count) + digits)
    }
}
