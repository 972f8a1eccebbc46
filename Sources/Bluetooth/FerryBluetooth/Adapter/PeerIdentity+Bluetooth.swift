public import Ferry
import Synchronization

/// A Bluetooth LE peer by its device address (Core Specification 5.4, Vol 6, Part B, 1.3). Its name is the address as it is
/// printed, with its type: `C0:11:22:33:44:55/random`.
extension PeerIdentity {
    /// Made by adapters.
    ///
    /// - Parameters:
    ///   - bluetoothAddress: 48 bits; of a peer that is bonded its identity address.
    ///   - isRandom: whether it is a random address, of which only the static ones last (1.3.2.1).
    ///   - isProven: whether the connection is encrypted with the key of a bond with this peer.
    public init(bluetoothAddress: UInt64, isRandom: Bool, isProven: Bool) {
        let bytes = (0..<6).reversed().map { UInt8(truncatingIfNeeded: bluetoothAddress >> (8 * UInt64($0))) }
        let lasts = !isRandom || bluetoothAddress >> 46 & 3 == 3
        self.init(
            bytes.hexadecimal(separator: ":", uppercase: true) + (isRandom ? "/random" : "/public"),
            certainty: isProven ? .bond : lasts ? .address : .connection)
    }

    /// The device address that this is the identity of; nil when the name is not one.
    public var bluetoothAddress: (value: UInt64, isRandom: Bool)? {
        let parts = name.split(separator: "/", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[1] == "random" || parts[1] == "public" else { return nil }
        let pairs = parts[0].split(separator: ":", omittingEmptySubsequences: false)
        guard pairs.count == 6, pairs.allSatisfy({ $0.utf8.count == 2 }) else { return nil }
        let bytes = pairs.compactMap { UInt8($0, radix: 16) }
        guard bytes.count == 6 else { return nil }
        return (bytes.reduce(0) { $0 << 8 | UInt64($1) }, parts[1] == "random")
    }
}

/// Who a peer is, as it was known last: an adapter can tell only while the connection lives, and a link afterwards too.
package final class KnownIdentity: Sendable {
    private let latest: Mutex<PeerIdentity>

    /// - Parameter identity: nil when it is not known: good for this connection only.
    package init(_ peer: PeerID, _ identity: PeerIdentity?) {
        latest = Mutex(identity ?? PeerIdentity(peer.description, certainty: .connection))
    }

    /// What the adapter knows now; nil keeps what it knew before.
    package func update(_ identity: PeerIdentity?) -> PeerIdentity {
        latest.withLock { latest in
            if let identity { latest = identity }
            return latest
        }
    }
}
