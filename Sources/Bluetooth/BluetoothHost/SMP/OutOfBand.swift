// Data for pairing that travel by another way than this radio (Core Specification 5.4, Vol 3, Part H, 2.3.5.4 and 2.3.5.6.4).

/// Data that one device gives another by a tamper-proof way, such as NFC or a scanned code, so that the two need no
/// numbers to pair: LE Secure Connections' out-of-band data.
public struct OutOfBandData: Sendable, Hashable, Codable {
    /// What the device is called on the air.
    public var address: Address
    /// Commits the device to its public key: 16 bytes, most significant octet first (Core Specification Supplement, Part A, 1.6).
    public var confirm: [UInt8]
    /// Chosen by chance: 16 bytes, most significant octet first.
    public var random: [UInt8]

    /// Puts data together as they came.
    public init(address: Address, confirm: [UInt8], random: [UInt8]) {
        self.address = address
        self.confirm = confirm
        self.random = random
    }
}

/// What this side has given away and been given.
struct OutOfBand: Sendable {
    /// Peers whose data are kept, at most; the oldest go first.
    static let limit = 16

    /// What belongs to the data that this side has made last.
    var own: (keys: PairingKeyPair, random: [UInt8])?
    var peers: [OutOfBandData] = []
    /// For peers that know legacy pairing only.
    var temporaryKeys: [TemporaryKey] = []

    struct TemporaryKey {
        let address: Address
        let key: [UInt8]
    }

    /// What concerns one pairing.
    func with(_ addresses: [Address]) -> OutOfBand {
        OutOfBand(
            own: own, peers: peers.last { addresses.contains($0.address) }.map { [$0] } ?? [],
            temporaryKeys: temporaryKeys.last { addresses.contains($0.address) }.map { [$0] } ?? [])
    }

    /// The key of one legacy pairing.
    var temporaryKey: [UInt8]? { temporaryKeys.first?.key }
    /// As a request and its response say it (Core Specification 5.4, Vol 3, Part H, 3.5.1).
    var flag: UInt8 { peers.isEmpty && temporaryKeys.isEmpty ? 0 : 1 }
}

extension LEHost {
    /// Makes data for a peer to pair with this host, in place of those made before. They serve for one pairing, and while the
    /// host is called by the same address.
    ///
    /// - Returns: nil when the host does not pair.
    public mutating func makeOutOfBandData() -> OutOfBandData? {
        guard let cryptography = configuration.pairing?.cryptography else { return nil }
        let (keys, random) = (cryptography.makeKeyPair(), cryptography.random(16))
        outOfBand.own = (keys, random)
        let confirm = PairingFunctions(cryptography: cryptography).f4(keys.x, keys.x, random, 0)
        return OutOfBandData(address: address, confirm: confirm, random: random)
    }

    /// Takes a peer's data, for the next pairing with it. Of 16 peers at most they are kept.
    ///
    /// - Returns: false when they are not 16 bytes each.
    public mutating func useOutOfBandData(_ data: OutOfBandData) -> Bool {
        guard data.confirm.count == 16, data.random.count == 16 else { return false }
        forgetOutOfBandData(of: data.address)
        outOfBand.peers = outOfBand.peers.suffix(OutOfBand.limit - 1) + [data]
        return true
    }

    /// Takes the temporary key of legacy pairing (Core Specification Supplement, Part A, 1.8), which both sides have by another
    /// way: for the next pairing with a peer from before Bluetooth 4.2, to which no Secure Connections are offered then. Who
    /// knows the key and listens learns the keys of the bond. Of 16 peers at most it is kept.
    ///
    /// - Returns: false when it has not 16 bytes, most significant octet first.
    public mutating func useTemporaryKey(_ key: [UInt8], of peer: Address) -> Bool {
        guard key.count == 16 else { return false }
        forgetOutOfBandData(of: peer)
        let entry = OutOfBand.TemporaryKey(address: peer, key: key)
        outOfBand.temporaryKeys = outOfBand.temporaryKeys.suffix(OutOfBand.limit - 1) + [entry]
        return true
    }

    private mutating func forgetOutOfBandData(of peer: Address) {
        outOfBand.peers.removeAll { $0.address == peer }
        outOfBand.temporaryKeys.removeAll { $0.address == peer }
    }

    /// They have served.
    mutating func outOfBandDidServe(_ pairing: Pairing) {
        guard pairing.method == .outOfBand else { return }
        if pairing.isSecureConnections { outOfBand.own = nil }
        for address in pairing.outOfBand.peers.map(\.address) + pairing.outOfBand.temporaryKeys.map(\.address) {
            forgetOutOfBandData(of: address)
        }
    }
}
