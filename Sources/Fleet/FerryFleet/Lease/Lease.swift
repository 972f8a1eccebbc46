/// Orders the tenures of one peer: the holder of a lease under a newer token has taken over from that of an older one.
///
/// It is the revision that the bucket gave to the entry with which the tenure began, and stays the same while that tenure is
/// renewed. A bucket gives each revision once, to all of its keys, so that a token names one tenure of one peer.
public struct FencingToken: Sendable, Hashable, Comparable, CustomStringConvertible {
    /// The revision of the entry that began the tenure: 1 and more.
    public let revision: UInt64

    /// Makes a token of the revision that began a tenure.
    public init(revision: UInt64) { self.revision = revision }

    /// Orders by revision: the newer tenure is the greater.
    public static func < (a: FencingToken, b: FencingToken) -> Bool { a.revision < b.revision }

    /// The revision as a decimal number, as headers of records carry it.
    public var description: String { "\(revision)" }
}

/// A gateway, and which of its lives: what it held before a restart is not its own any more.
public struct GatewayID: Sendable, Hashable, CustomStringConvertible {
    /// Its name in the fleet: 1 to 64 letters, digits, hyphens and underscores of ASCII. No two gateways have the same.
    public let name: String
    /// Drawn at random each time that the gateway starts.
    public let incarnation: UInt64

    /// Makes the name of one life of a gateway. ``LeaseBook`` refuses names that are none.
    public init(_ name: String, incarnation: UInt64) {
        self.name = name
        self.incarnation = incarnation
    }

    /// The name, a full stop, and the incarnation in hexadecimal digits.
    public var description: String { "\(name).\(String(incarnation, radix: 16))" }

    /// Whether a text can be the name of a gateway.
    static func isName(_ text: some StringProtocol) -> Bool {
        (1...64).contains(text.utf8.count)
            && text.utf8.allSatisfy { byte in
                switch byte {
                case UInt8(ascii: "a")...UInt8(ascii: "z"), UInt8(ascii: "A")...UInt8(ascii: "Z"),
                    UInt8(ascii: "0")...UInt8(ascii: "9"), UInt8(ascii: "-"), UInt8(ascii: "_"):
                    true
                default: false
                }
            }
    }
}

/// What the bucket keeps about a peer, under the peer's key: who owns it, or that it was given up.
public struct Lease: Sendable, Hashable {
    /// Who has it; nil once it was given up, so that another may take it without waiting for its expiry.
    public var holder: GatewayID?
    /// The token of the tenure that this entry renews or ends; nil in the entry that begins one, whose revision is its token.
    public var term: FencingToken?
    /// How well the holder reaches the peer, as ``LeasePolicy`` scores it, when the entry was written.
    public var score: Int
    /// Of a lease that was given up: the gateway that it was given up for. Others leave it ``LeasePolicy/reservation``.
    public var successor: String?

    /// Makes the entry of a holder, or without one.
    public init(holder: GatewayID?, term: FencingToken? = nil, score: Int, successor: String? = nil) {
        self.holder = holder
        self.term = term
        self.score = score
        self.successor = successor
    }
}

extension Lease: LosslessStringConvertible {
    /// The value of the bucket's entry, in ASCII: `held NAME INCARNATION TERM SCORE` or `free TERM SCORE [SUCCESSOR]`, where
    /// INCARNATION is hexadecimal and TERM is 0 in the entry that begins a tenure.
    public var description: String {
        let term = term.map(\.revision) ?? 0
        guard let holder else { return "free \(term) \(score)" + (successor.map { " \($0)" } ?? "") }
        return "held \(holder.name) \(String(holder.incarnation, radix: 16)) \(term) \(score)"
    }

    /// Reads what ``description`` wrote; nil for anything else.
    public init?(_ description: String) {
        guard description.utf8.count <= 256 else { return nil }
        let words = description.split(separator: " ", omittingEmptySubsequences: false)
        let isHeld = words.first == "held"
        guard isHeld ? words.count == 5 : words.first == "free" && (3...4).contains(words.count) else { return nil }
        guard let term = UInt64(words[isHeld ? 3 : 1]), let score = Int(words[isHeld ? 4 : 2]),
            Self.scores.contains(score)
        else { return nil }
        self.init(holder: nil, term: term == 0 ? nil : FencingToken(revision: term), score: score)
        if isHeld {
            guard GatewayID.isName(words[1]), let incarnation = UInt64(words[2], radix: 16) else { return nil }
            holder = GatewayID(String(words[1]), incarnation: incarnation)
        } else if words.count == 4 {
            guard GatewayID.isName(words[3]) else { return nil }
            successor = String(words[3])
        }
    }

    /// The range of scores, in decibels.
    static let scores = -1000...1000
}

/// A lease as it stands in the bucket.
public struct LeaseEntry: Sendable, Hashable {
    /// What it says.
    public var lease: Lease
    /// The bucket's revision of it.
    public var revision: UInt64

    /// Makes an entry of what a bucket has told.
    public init(_ lease: Lease, revision: UInt64) {
        self.lease = lease
        self.revision = revision
    }

    /// The token of the tenure that it belongs to.
    public var token: FencingToken { lease.term ?? FencingToken(revision: revision) }
}
