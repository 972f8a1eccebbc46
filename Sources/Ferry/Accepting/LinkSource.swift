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
}

extension Link {
    /// The peer's identity. A transport whose peers choose their own names, such as ports, tells what does not change with them.
    public var source: LinkSource { LinkSource(peer) }
}
