import FerryBluetooth
import Foundation

/// What Apple's system keeps of peripherals over their connections, where a program is to see it (``CBQuirks``).
final class SystemMemory: Sendable {
    private struct State {
        var services: [UUID: [RemoteService]] = [:]
        /// The session on which a channel was opened to a PSM.
        var channels: [UUID: [CBL2CAPPSM: UUID]] = [:]
    }
    private let state = Guarded(State())

    /// Peripherals that are kept at most.
    private static let most = 1024

    /// What a connection's first discovery found.
    struct Discovery: Sendable {
        var services: [RemoteService]
        /// Services that are shown and are not there, once something has changed.
        var outdated: [AttributeID]?
    }

    /// The part of a peripheral's services to show on a new connection; from now on these are known.
    func discover(_ wanted: [BluetoothUUID]?, _ found: [RemoteService], at identifier: UUID) -> Discovery {
        let known = state { state in
            if state.services.count >= Self.most { state.services = [:] }
            return state.services.updateValue(found, forKey: identifier)
        }
        func isWanted(_ service: RemoteService) -> Bool { wanted?.contains(service.uuid) ?? true }
        guard let known, known.map(\.uuid) != found.map(\.uuid) else {
            return Discovery(services: found.filter(isWanted))
        }
        var shown: [RemoteService] = []
        var outdated: [AttributeID] = []
        for (place, service) in known.enumerated() {
            if let alive = found.first(where: { $0.uuid == service.uuid }) {
                shown.append(alive)
            } else {
                let gone = AttributeID(rawValue: .max - UInt32(place))
                shown.append(RemoteService(id: gone, uuid: service.uuid, isPrimary: service.isPrimary))
                outdated.append(gone)
            }
        }
        return Discovery(services: shown.filter(isWanted), outdated: outdated)
    }

    /// The services have changed.
    func forgetServices(of identifier: UUID) { state { $0.services[identifier] = nil } }

    /// Whether no channel to this PSM was opened on an earlier session.
    func mayOpen(_ psm: CBL2CAPPSM, at identifier: UUID, on session: UUID) -> Bool {
        state { $0.channels[identifier]?[psm].map { $0 == session } ?? true }
    }

    func didOpen(_ psm: CBL2CAPPSM, at identifier: UUID, on session: UUID) {
        state { state in
            if state.channels.count >= Self.most { state.channels = [:] }
            state.channels[identifier, default: [:]][psm] = session
        }
    }
}
