import Ferry
import FerryBluetooth
import Foundation

/// What a central manager was doing.
struct CentralSnapshot: Codable, Sendable {
    struct Peripheral: Codable, Sendable {
        var identifier: UUID
        var name: String?
        /// Who it is, if that is known beyond one connection.
        var identity: String?
        var reconnects: Bool
    }
    var peripherals: [Peripheral] = []
    /// Nil when there was no scan.
    var scanServices: [String]?
    var scanAllowsDuplicates = false

    var isEmpty: Bool { peripherals.isEmpty && scanServices == nil }
}

extension CBCentralManager {
    /// Takes up what an earlier run has left, and keeps what this one does.
    func restore(_ identifier: String?) {
        guard let identifier else { return }
        let file = RestorationFile(identifier: identifier, role: "central")
        let snapshot = file.read(CentralSnapshot.self)
        progress {
            $0.restoration = file
            if let snapshot, !snapshot.isEmpty { $0.restoring = .found(snapshot) }
        }
    }

    func saveState() {
        // Restored state stays in the file until it is resumed.
        let file = progress { $0.restoring.isUnderWay ? nil : $0.restoration }
        file?.write { snapshot }
    }

    private var snapshot: CentralSnapshot {
        var snapshot = CentralSnapshot()
        for peripheral in peripherals.all {
            let contents = peripheral.contents.current
            guard let session = contents.session, contents.state != .disconnecting else { continue }
            snapshot.peripherals.append(
                CentralSnapshot.Peripheral(
                    identifier: peripheral.identifier, name: contents.name,
                    identity: registry.identity(of: peripheral.identifier)?.description,
                    reconnects: session.reconnects))
        }
        let scan = progress { $0.scan }
        snapshot.scanServices = scan?.services.map(\.description)
        snapshot.scanAllowsDuplicates = scan?.allowsDuplicates ?? false
        return snapshot
    }

    /// Tells the delegate about the restored operations; connections and the scan resume by themselves at power on.
    func handBack(_ snapshot: CentralSnapshot) {
        let kept = snapshot.peripherals.map { saved in
            if let identity = saved.identity.flatMap({ PeerIdentity($0) }) {
                registry.note(saved.identifier, identity)
            }
            let peripheral = peripheral(saved.identifier, peer(saved.identifier) ?? PeerID(saved.identifier))
            peripheral.contents {
                $0.name = saved.name
                $0.state = .connecting
            }
            return peripheral
        }
        var dictionary: [String: Any] = [:]
        if !kept.isEmpty { dictionary[CBCentralManagerRestoredStatePeripheralsKey] = kept }
        if let services = snapshot.scanServices {
            dictionary[CBCentralManagerRestoredStateScanServicesKey] = services.map { CBUUID(string: $0) }
            dictionary[CBCentralManagerRestoredStateScanOptionsKey] =
                [CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: snapshot.scanAllowsDuplicates)]
                as [String: Any]
        }
        progress { $0.restoring = .handed(snapshot, kept) }
        delegate?.centralManager(self, willRestoreState: dictionary)
    }

    /// Resumes the restored operations, except those that the program has replaced.
    func resume() {
        let restoring = progress { progress in
            let restoring = progress.restoring
            if case .handed = restoring { progress.restoring = .nothing }
            return restoring
        }
        guard case .handed(let snapshot, let kept) = restoring else { return }
        for (peripheral, saved) in zip(kept, snapshot.peripherals) where !quirks.contains(.restoredStaysConnecting) {
            begin(peripheral, reconnects: saved.reconnects)
        }
        if let services = snapshot.scanServices, !isScanning {
            scanForPeripherals(
                withServices: services.map { CBUUID(string: $0) },
                options: [
                    CBCentralManagerScanOptionAllowDuplicatesKey: NSNumber(value: snapshot.scanAllowsDuplicates)
                ])
        }
        saveState()
    }
}
