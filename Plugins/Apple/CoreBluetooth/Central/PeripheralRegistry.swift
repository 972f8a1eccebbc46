import DequeModule
import Ferry
import FerryBluetooth
import Foundation

/// What the managers of a process know of peripherals, so that each has one identifier for all of them, and a manager can
/// retrieve what another has found.
///
/// Adapters name a peer each in their own way. It is the same one where its address lasts or a bond proves it.
final class PeripheralRegistry: Sendable {
    fileprivate struct State {
        var identifiers: [String: UUID] = [:]
        var identities: [UUID: PeerIdentity] = [:]
        /// Peers whose identifier is another adapter's name of them.
        var peers: [PeerID: UUID] = [:]
        var order: Deque<UUID> = []
    }
    private let state = Guarded(State())
    let memory = SystemMemory()

    /// Peripherals that are remembered at most; anybody can advertise under any number of addresses.
    static let most = 4096

    /// The identifier of a peer that was heard.
    func identifier(of peer: PeerID, _ identity: PeerIdentity) -> UUID {
        guard identity.certainty > .connection else { return UUID(peer) }
        return state { state in
            let identifier = state.identifiers[identity.name] ?? UUID(peer)
            state.note(identifier, identity)
            if identifier != UUID(peer) { state.peers[peer] = identifier }
            return identifier
        }
    }

    /// The identifier of a peer that may have been heard.
    func identifier(of peer: PeerID) -> UUID { state { $0.peers[peer] ?? UUID(peer) } }

    /// Who an identifier stands for, if that is known beyond one connection.
    func identity(of identifier: UUID) -> PeerIdentity? { state { $0.identities[identifier] } }

    /// What an earlier run of the program has known.
    func note(_ identifier: UUID, _ identity: PeerIdentity) { state { $0.note(identifier, identity) } }
}

extension PeripheralRegistry.State {
    mutating func note(_ identifier: UUID, _ identity: PeerIdentity) {
        if identities.updateValue(identity, forKey: identifier) == nil { order.append(identifier) }
        identifiers[identity.name] = identifier
        guard order.count > PeripheralRegistry.most, let oldest = order.popFirst() else { return }
        if let identity = identities.removeValue(forKey: oldest) { identifiers[identity.name] = nil }
        peers = peers.filter { $0.value != oldest }
    }
}

extension CBCentralManager {
    /// The object of a peripheral, which keeps its identifier when the adapter renames the peer.
    func peripheral(_ identifier: UUID, _ peer: PeerID) -> CBPeripheral {
        let peripheral = peripherals.object(identifier) {
            CBPeripheral(identifier: identifier, peer: peer, manager: self)
        }
        peripheral.peer.current = peer
        return peripheral
    }

    /// The object of a peripheral by the adapter's name of it.
    func peripheral(_ peer: PeerID) -> CBPeripheral { peripheral(registry.identifier(of: peer), peer) }

    /// What the adapter calls a peripheral, if it can connect to it without having heard it.
    func peer(_ identifier: UUID) -> PeerID? {
        let known = peripherals.object(identifier)?.peer.current ?? PeerID(identifier)
        if !role.retrievePeripherals([known]).isEmpty { return known }
        return registry.identity(of: identifier).flatMap { role.retrievePeripheral($0) }
    }
}
