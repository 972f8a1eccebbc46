#if NATS && Records
    import FerryFleet
    import FerryNATS

    /// How leases and messages of a fleet are written in a bucket and on subjects; `Documentation/Gateway.md` has it.
    enum LeaseNames {
        /// What the keys of gateways' reports begin with; no peer's key has a full stop.
        static let reports = "gateway."

        /// A peer's key: letters, digits, `-` and `_` stay, and every other byte is `=` and two digits.
        static func key(_ peer: String) -> String {
            RecordNames.escaped(peer, with: UInt8(ascii: "="))
        }

        /// The peer of a key; nil for any other key.
        static func peer(_ key: some StringProtocol) -> String? {
            RecordNames.unescaped(key, with: UInt8(ascii: "="))
        }

        /// Where a gateway hears others.
        static func subject(_ bucket: String, _ gateway: String) -> String { "ferry.fleet.\(bucket).\(gateway)" }

        /// `sighting KEY GATEWAY SCORE`, or `offer KEY REVISION LEASE`.
        static func text(_ message: FleetMessage) -> String {
            switch message {
            case .sighting(let peer, let gateway, let score): "sighting \(key(peer)) \(gateway) \(score)"
            case .offer(let peer, let entry): "offer \(key(peer)) \(entry.revision) \(entry.lease)"
            }
        }

        static func message(_ bytes: [UInt8]) -> FleetMessage? {
            guard bytes.count <= 1024, let text = String(validating: bytes, as: UTF8.self) else { return nil }
            let words = text.split(separator: " ", maxSplits: 3, omittingEmptySubsequences: false)
            guard words.count == 4, let peer = peer(words[1]) else { return nil }
            switch words[0] {
            case "sighting":
                return Int(words[3]).map { .sighting(peer: peer, by: String(words[2]), score: $0) }
            case "offer":
                guard let revision = UInt64(words[2]), let lease = Lease(String(words[3])) else { return nil }
                return .offer(peer: peer, LeaseEntry(lease, revision: revision))
            default: return nil
            }
        }

        /// What a gateway says of a peer: `began` or `ended`, under the token of its lease.
        static func claim(
            _ what: String, of peer: String, under token: FencingToken, by gateway: String, _ prefix: String
        ) -> NATSMessage {
            NATSMessage(
                "\(prefix).\(key(peer))",
                headers: [
                    NATSMessage.Header("Ferry-Claim", what),
                    NATSMessage.Header("Ferry-Peer", RecordNames.escaped(peer)),
                    NATSMessage.Header("Ferry-Gateway", gateway),
                    NATSMessage.Header("Ferry-Token", "\(token)"),
                ], bytes: [])
        }
    }
#endif
