/// Names a central or a peripheral towards this process, as CoreBluetooth's `CBPeer.identifier` does.
///
/// Stable for one peer on one adapter while the process runs; it is not the peer's Bluetooth address.
public struct PeerID: Sendable, Hashable {
    /// 128 bits, printed as a UUID.
    public let rawValue: UInt128

    /// Makes an identifier from 128 bits.
    public init(rawValue: UInt128) { self.rawValue = rawValue }

    /// A random identifier, which no other peer has.
    public static func random() -> PeerID { PeerID(rawValue: UInt128.random(in: 1 ... .max)) }
}

extension PeerID: CustomStringConvertible {
    /// The identifier in the 8-4-4-4-12 form.
    public var description: String { BluetoothUUID(rawValue).uuidString }
}
