import Ferry
import Synchronization

/// The right of one link to a peripheral's service on one adapter.
///
/// Central roles of an adapter share its connection to a peripheral, and each hears every notification of it. Two links over
/// one service would so get each other's chunks, and the peripheral would take both for one.
final class LinkClaim: Sendable {
    private struct Key: Hashable {
        let adapter: ObjectIdentifier
        let peripheral: PeerID
        let service: BluetoothUUID
    }

    private struct Owner {
        let claim: ObjectIdentifier
        /// Another adapter may have come to the place in memory of one that is gone.
        weak var adapter: (any BluetoothAdapter)?
    }

    private static let owners = Mutex<[Key: Owner]>([:])
    private let key: Key

    /// - Throws: `transportUnavailable` while another link has the claim.
    init(
        _ adapter: any BluetoothAdapter, _ peripheral: PeerID, _ service: BluetoothUUID
    ) throws(FerryError) {
        key = Key(adapter: ObjectIdentifier(adapter), peripheral: peripheral, service: service)
        let isFree = Self.owners.withLock { [key] owners in
            guard owners[key]?.adapter == nil else { return false }
            owners[key] = Owner(claim: ObjectIdentifier(self), adapter: adapter)
            return true
        }
        guard isFree else {
            throw FerryError(
                .transportUnavailable,
                "\(adapter.name) has a link over service \(service) to peripheral \(peripheral) already. Send over that one, "
                    + "or close it first.")
        }
    }

    deinit { release() }

    /// Gives it up: the link has ended, or is on its way out.
    func release() {
        Self.owners.withLock { owners in
            if owners[key]?.claim == ObjectIdentifier(self) { owners[key] = nil }
        }
    }
}
