/// Where a link that came to a listener comes from: what a listener counts by, so that one machine or one user cannot take
/// every place. It is no proof of who the peer is.
public enum LinkSource: Sendable, Hashable {
    /// A host of a network: an IPv4 address, or the first 64 bits of an IPv6 address.
    case address(String)
    /// A user of this machine, by number, and its process: the other end of a Unix socket, as the kernel tells it.
    case user(UInt32, process: Int32? = nil)
    /// A peer as its link knows it, by ``PeerIdentity/description``.
    case peer(String)
    /// A key that the peer has proven to have, by its fingerprint.
    case key(String)

    /// The source of a peer by its identity alone.
    public init(_ identity: PeerIdentity) {
        self = identity.certainty == .key ? .key(identity.name) : .peer(identity.description)
    }

    /// Whose places are limited together: all processes of a user are one.
    var account: LinkSource { if case .user(let user, _) = self { .user(user) } else { self } }

    /// The link that gives way when links run out: the oldest of the source that has the most, and of such sources the oldest.
    ///
    /// - Parameter links: the links' numbers, in the order of arrival, and their sources.
    /// - Returns: its number, and how many links its source has; nil for no links.
    static func oldestOfLargest(
        _ links: some Sequence<(number: Int, source: LinkSource)>
    ) -> (number: Int, count: Int)? {
        var sources: [LinkSource: (number: Int, count: Int)] = [:]
        for (number, source) in links {
            let known = sources[source] ?? (.max, 0)
            sources[source] = (min(known.number, number), known.count + 1)
        }
        return sources.values.max { ($0.count, -$0.number) < ($1.count, -$1.number) }
    }
}

extension Link {
    /// The peer's identity. A transport whose peers choose their own names, such as ports, tells what does not change with them.
    public var source: LinkSource { LinkSource(peer) }
}
