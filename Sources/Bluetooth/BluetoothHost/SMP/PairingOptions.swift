/// How a host pairs.
public struct PairingOptions: Sendable {
    /// What a person at this side can see and enter.
    public var capability = IOCapability.noInputNoOutput
    /// Whether a link must be protected against someone in the middle: pairing without a number to compare or to enter
    /// is refused then.
    public var requiresAuthentication = false
    /// Whether pairing of Bluetooth 4.0 and 4.1, whose key can be found by who listens, is refused.
    public var requiresSecureConnections = false
    /// Whether keys are kept for the next connection.
    public var bonds = true
    /// Most peers whose keys are kept. Further peers are paired for the connection only, so that a stranger can neither
    /// drive out a peer nor make the store grow. Nor can a stranger fill it soon: of keys that were made without a
    /// number and at the peer's request, at most a quarter (4 at least) are younger than an hour, and those whose peer
    /// has not come back by then make room for others.
    public var maximumBonds = 64
    /// Whether ``PairingQuestion/allow(_:)`` is asked before a pairing without a number, and before keys are replaced by such
    /// that are weaker or were made without a number. Otherwise the former go on, and the latter are refused.
    public var asksToAllow = false
    /// Cryptography and chance.
    public var cryptography: any PairingCryptography

    /// Just Works for everyone, with bonding.
    public init(cryptography: any PairingCryptography) { self.cryptography = cryptography }
}

/// What a person can see and enter (Core Specification 5.4, Vol 3, Part H, 3.5.1).
public enum IOCapability: UInt8, Sendable, CaseIterable {
    /// Can show six digits.
    case displayOnly = 0
    /// Can show six digits and take yes or no.
    case displayYesNo = 1
    /// Can take six digits.
    case keyboardOnly = 2
    /// Neither.
    case noInputNoOutput = 3
    /// Can show and take six digits.
    case keyboardDisplay = 4

    var canShow: Bool { self == .displayOnly || self == .displayYesNo || self == .keyboardDisplay }
    var canEnter: Bool { self == .keyboardOnly || self == .keyboardDisplay }
    var canCompare: Bool { self == .displayYesNo || self == .keyboardDisplay }
}

/// What a person is asked or told while two devices pair.
public enum PairingQuestion: Sendable, Hashable {
    /// Whether to pair at all: ``PairingAnswer/allow(_:)``.
    case allow(PairingProposal)
    /// Whether the other device shows the same six digits: ``PairingAnswer/confirm(_:)``.
    case compare(UInt32)
    /// The six digits that the other device shows: ``PairingAnswer/passkey(_:)``.
    case enterPasskey
    /// The six digits to enter on the other device; no answer.
    case show(UInt32)
}

/// What a person answers.
public enum PairingAnswer: Sendable, Hashable {
    /// Whether to pair.
    case allow(Bool)
    /// Whether the numbers are the same.
    case confirm(Bool)
    /// The number that the other device shows, 0 to 999 999.
    case passkey(UInt32)
}

/// What a pairing will come to, known as soon as the two sides have told each other what they can do.
public struct PairingProposal: Sendable, Hashable {
    /// Whether a person will compare or enter a number.
    public let isAuthenticated: Bool
    /// Whether the key will be one of LE Secure Connections.
    public let isSecureConnections: Bool
    /// The keys that it would replace with weaker ones, or with such that anybody could have made who uses the peer's
    /// address; nil for a peer without keys here, and where the new keys are worth as much.
    public let replaced: Bond?
}

/// Keys that two devices share since they paired.
public struct Bond: Sendable, Hashable {
    /// The address the peer was paired by.
    public let peer: Address
    /// The address that the peer calls its own, where it said so: a private address is not there for long. It is a claim:
    /// ``isIdentityBelieved`` says whether it counts.
    public internal(set) var identity: Address?
    /// Whether a link to ``identity`` has been encrypted with the key.
    public internal(set) var isIdentityProven = false
    /// The long term key, most significant octet first: 16 bytes.
    public let longTermKey: [UInt8]
    /// Names the key in legacy pairing (Core Specification 5.4, Vol 3, Part H, 2.4.2.3); 0 for Secure Connections.
    public let diversifier: UInt16
    /// The other half of the name; 0 for Secure Connections.
    public let random: UInt64
    /// Resolves the peer's private addresses, 16 bytes, if it has given one.
    public internal(set) var identityResolvingKey: [UInt8]?
    /// Whether a person has compared or entered a number.
    public let isAuthenticated: Bool
    /// Whether the key is one of LE Secure Connections.
    public let isSecureConnections: Bool
    /// Whether the peer was the central when the key was made: a legacy key serves in that direction only.
    public let peerIsCentral: Bool

    /// Puts a bond together, as it was stored.
    public init(
        peer: Address, identity: Address? = nil, longTermKey: [UInt8], diversifier: UInt16, random: UInt64,
        identityResolvingKey: [UInt8]?,
        isAuthenticated: Bool, isSecureConnections: Bool, peerIsCentral: Bool, isIdentityProven: Bool = false
    ) {
        self.peer = peer
        self.identity = identity
        self.longTermKey = longTermKey
        self.diversifier = diversifier
        self.random = random
        self.identityResolvingKey = identityResolvingKey
        self.isAuthenticated = isAuthenticated
        self.isSecureConnections = isSecureConnections
        self.peerIsCentral = peerIsCentral
        self.isIdentityProven = isIdentityProven
    }
}

/// Why two devices did not pair.
public enum PairingFailure: Error, Sendable, Hashable, CustomStringConvertible {
    /// This side ended it, for a reason of the specification (Core Specification 5.4, Vol 3, Part H, 3.5.5).
    case here(UInt8)
    /// The peer ended it.
    case peer(UInt8)
    /// Nothing came for 30 s (3.4).
    case timedOut
    /// The link could not be encrypted with the key.
    case notEncrypted(HCIErrorCode)
    /// Pairing is not part of this host's configuration, or the controller cannot encrypt.
    case notSupported
    /// The peer's keys are kept, and these would be weaker, or anybody could have made them: ``LEHost/forget(_:)`` the peer
    /// first to pair with it anew.
    case wouldReplaceKeys
    /// The peer gave itself out as the one with this address, whose keys are kept.
    case identityInUse(Address)

    /// Who, and the reason's name.
    public var description: String {
        switch self {
        case .here(let reason): "this side ended the pairing: \(Self.name(reason))"
        case .peer(let reason): "the peer ended the pairing: \(Self.name(reason))"
        case .timedOut: "the peer did not go on with the pairing for 30 s"
        case .notEncrypted(let code): "the link could not be encrypted: \(code)"
        case .notSupported: "this host does not pair"
        case .wouldReplaceKeys:
            "keys of this peer are kept, and new ones would be weaker or made without a number; forget the peer first"
        case .identityInUse(let address): "the peer gave itself out as \(address), whose keys are kept"
        }
    }

    private static func name(_ reason: UInt8) -> String {
        let names = [
            "", "passkey entry failed", "OOB not available", "authentication requirements", "confirm value failed",
            "pairing not supported", "encryption key size", "command not supported", "unspecified reason",
            "repeated attempts", "invalid parameters", "DHKey check failed", "numeric comparison failed",
            "BR/EDR pairing in progress", "cross-transport key derivation not allowed", "key rejected", "busy",
        ]
        let name = Int(reason) < names.count && reason > 0 ? names[Int(reason)] : "reserved reason"
        return "\(name) (0x\(String(reason, radix: 16)))"
    }
}
