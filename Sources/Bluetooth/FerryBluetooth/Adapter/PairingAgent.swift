/// A person, or who stands in for one, while two devices pair. Adapters that pair call it; each adapter says how.
///
/// A task that waits for an answer is cancelled when the peer gives up.
public protocol PairingAgent: Sendable {
    /// Shows six digits, which are to be entered on the other device.
    func show(_ number: Int, for peer: PeerID)
    /// Asks whether the other device shows the same six digits. The peer waits 30 s.
    func compare(_ number: Int, with peer: PeerID) async -> Bool
    /// Asks for the six digits that the other device shows, 0 to 999 999; nil to give up. The peer waits 30 s.
    func passkey(of peer: PeerID) async -> Int?
    /// Asks whether a peer may pair with which no number can be exchanged.
    func allowsPairing(with peer: PeerID) async -> Bool
    /// Asks whether a peer that is not trusted may use a service of the system's, not of this program's. Only adapters
    /// that answer for the system ask (BlueZ, mostly for BR/EDR profiles).
    func allowsService(_ service: BluetoothUUID, for peer: PeerID) async -> Bool
}

extension PairingAgent {
    /// Yes.
    public func allowsPairing(with peer: PeerID) async -> Bool { true }
    /// No.
    public func allowsService(_ service: BluetoothUUID, for peer: PeerID) async -> Bool { false }
}
