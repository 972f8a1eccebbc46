/// Who is at the other end of a link, and how surely that is known.
///
/// A transport makes it; an app may keep it, as its ``description``, and pass it to
/// ``Transport/connect(to:timeout:)`` another day. Names are a transport's own: of two identities of different
/// transports nothing can be said.
public struct PeerIdentity: Sendable, Hashable {
    /// How surely a peer is known, weakest first.
    public enum Certainty: Int, Sendable, Hashable, Comparable, CaseIterable {
        /// By this connection only: the next peer to connect under this name may be a different one. Bluetooth LE's
        /// private addresses of peers without a bond have this certainty (Core Specification 5.4, Vol 6, Part B,
        /// 1.3.2.2).
        case connection = 0
        /// By an address that lasts. Any peer can claim it.
        case address = 1
        /// By a key that both sides keep from pairing, which has encrypted this connection.
        case bond = 2
        /// By a static key that the peer has proven to have in this channel's handshake (``SealedFraming``). The name
        /// is the key's fingerprint, over every transport.
        case key = 3

        /// Orders by certainty.
        public static func < (a: Certainty, b: Certainty) -> Bool { a.rawValue < b.rawValue }
    }

    /// The transport's name of the peer, such as an address. Equal names of one transport mean one peer, as surely as
    /// ``certainty`` says.
    public let name: String
    /// How surely it is this peer.
    public let certainty: Certainty

    /// Made by transports.
    public init(_ name: String, certainty: Certainty) {
        self.name = name
        self.certainty = certainty
    }

    /// Whether `other`, met now, is the peer that this identity was kept for: the same name, known no less surely than
    /// before. Never true of an identity that is good for one connection only.
    public func recognizes(_ other: PeerIdentity) -> Bool {
        certainty > .connection && other.certainty >= certainty && other.name == name
    }
}

extension PeerIdentity: LosslessStringConvertible {
    /// The certainty and the name, such as `address:C0:11:22:33:44:55`.
    public var description: String { "\(certainty):\(name)" }

    /// Reads what ``description`` wrote; nil for anything else.
    public init?(_ description: String) {
        guard let colon = description.firstIndex(of: ":"),
            let certainty = Certainty.allCases.first(where: { "\($0)" == description[..<colon] })
        else { return nil }
        self.init(String(description[description.index(after: colon)...]), certainty: certainty)
    }
}
