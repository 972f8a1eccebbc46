/// How strong a connection is now, and how surely it is known who is at its other end.
public struct LinkSecurity: Sendable, Hashable {
    /// Whether only the holders of the key can read the link.
    public internal(set) var isEncrypted = false
    /// Whether a person compared or entered a number when the key was made, so that there is no man in the middle.
    public internal(set) var isAuthenticated = false
    /// Whether the key was made by LE Secure Connections: who listened to the pairing does not have it.
    public internal(set) var isSecureConnections = false
    /// Whether the key is one that is kept: the peer is the one that this host has paired with, or is being bonded with.
    public internal(set) var isBonded = false

    /// Nothing of all that.
    public init() {}

    /// The level of LE security mode 1 (Core Specification 5.4, Vol 3, Part C, 10.2.1): 1 in the clear, 2 encrypted,
    /// 3 with an authenticated key, 4 with an authenticated key of Secure Connections.
    public var level: Int {
        if !isEncrypted { return 1 }
        if !isAuthenticated { return 2 }
        return isSecureConnections ? 4 : 3
    }
}

extension LEHost {
    /// How strong a connection is; nil when it has ended.
    public func security(of id: ConnectionID) -> LinkSecurity? { index(id).map { connections[$0].security.link } }

    /// Whether a connection is encrypted; nil when it has ended.
    public func isEncrypted(_ id: ConnectionID) -> Bool? { index(id).map { connections[$0].security.isEncrypted } }

    /// The address that a bonded peer keeps while its private address changes: the identity address of the bond that its
    /// address belongs to, or the address it was paired by where it has told none, or has not proven it. Nil without a bond, or when the
    /// connection has ended.
    ///
    /// Addresses can be taken over; it is the peer's for sure only while ``LinkSecurity/isBonded`` holds.
    public func identityAddress(of id: ConnectionID) -> Address? {
        index(id).flatMap { bond($0)?.lastingAddress }
    }

    /// The same for an address that was heard, of an advertisement say.
    public func identityAddress(of address: Address) -> Address? { keyring.bond(with: address)?.lastingAddress }
}

extension Bond {
    /// The address by which the peer can be known for as long as the bond is kept: its identity address where it has given
    /// the key that its private addresses are made of and the identity is believed, the address it was paired by otherwise.
    public var lastingAddress: Address {
        guard identityResolvingKey != nil, isIdentityBelieved, let identity else { return peer }
        return identity
    }

    /// Whether a key of that kind is no weaker than this bond's.
    func isMatched(byAuthenticated isAuthenticated: Bool, secureConnections: Bool) -> Bool {
        (isAuthenticated || !self.isAuthenticated) && (secureConnections || !isSecureConnections)
    }
}
