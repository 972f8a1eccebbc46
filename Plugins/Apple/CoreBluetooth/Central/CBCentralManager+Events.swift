import FerryBluetooth
import Foundation

/// Takes the adapter's events and has them carried out on the program's queue.
final class CentralEvents: CentralRoleEvents {
    let manager = WeakReference<CBCentralManager>()
    private let callbacks: Callbacks
    private let waiting = Guarded(0)

    /// Discoveries that may wait for the delegate; later ones are dropped, so that advertisers cannot fill the memory.
    static let mostUndelivered = 1024

    init(_ callbacks: Callbacks) { self.callbacks = callbacks }

    func centralAdapterDidChange(_ state: AdapterState) {
        callbacks.run { [manager] in manager.object?.adapterDidChange(CBManagerState(state)) }
    }

    func centralDidDiscover(_ discovery: Discovery) {
        let isTaken = waiting { waiting in
            guard waiting < Self.mostUndelivered else { return false }
            waiting += 1
            return true
        }
        guard isTaken else { return }
        callbacks.run { [manager, waiting] in
            waiting { $0 -= 1 }
            manager.object?.didDiscover(discovery)
        }
    }
}

// All on the program's queue.
extension CBCentralManager {
    func adapterDidChange(_ state: CBManagerState) {
        guard isDue(state, delegate != nil) else { return }
        if let found = progress({ $0.restoring.found }) { handBack(found) }
        setState(state)
        if state != .poweredOn {
            progress { $0.scan = nil }
            // It may be on again already, and have taken a scan that was asked for before this was told.
            role.stopScan()
            // Connections have ended without a word, as Apple documents: their objects are to be fetched again.
            for peripheral in peripherals.all { peripheral.dropSession() }
        }
        delegate?.centralManagerDidUpdateState(self)
        if state == .poweredOn { resume() }
    }

    fileprivate func didDiscover(_ discovery: Discovery) {
        guard isScanning else { return }
        let found = peripheral(
            registry.identifier(of: discovery.peripheral, discovery.identity), discovery.peripheral)
        found.advertised(discovery.advertisement.localName)
        delegate?.centralManager(
            self, didDiscover: found, advertisementData: discovery.advertisement.dictionary,
            rssi: NSNumber(value: discovery.rssi))
    }

    func peripheralDidConnect(_ peripheral: CBPeripheral) {
        saveState()
        delegate?.centralManager(self, didConnect: peripheral)
        ConnectionEvents.shared.post(.peerConnected, peripheral, from: self)
    }

    func peripheralDidFail(_ peripheral: CBPeripheral, _ error: BluetoothError) {
        saveState()
        guard state == .poweredOn else { return }
        delegate?.centralManager(self, didFailToConnect: peripheral, error: error.asCoreBluetooth)
    }

    func peripheralDidEnd(_ peripheral: CBPeripheral, _ error: BluetoothError?, reconnects: Bool) {
        guard state == .poweredOn, error?.code != .notPoweredOn else { return saveState() }
        if reconnects { begin(peripheral, reconnects: true) }
        saveState()
        delegate?.centralManager(
            self, didDisconnectPeripheral: peripheral, timestamp: Date().timeIntervalSinceReferenceDate,
            isReconnecting: reconnects, error: error?.asCoreBluetooth)
        let next = peripheral.contents { contents in
            defer { contents.next = nil }
            return contents.next
        }
        if let next { begin(peripheral, delay: next.delay, reconnects: next.reconnects) }
    }
}

extension CBPeripheral {
    /// The adapter has gone off, or the manager away: all of its operations have ended, without a callback.
    func dropSession() {
        let session = contents { contents in
            defer {
                contents.session = nil
                contents.hasConnected = false
                contents.state = .disconnected
                contents.services = nil
                contents.next = nil
                contents.channels = ChannelOpenings()
            }
            return contents.session
        }
        session?.cancel()
    }
}

extension AdvertisementData {
    /// The advertisement as a delegate receives it.
    var dictionary: [String: Any] {
        var all: [String: Any] = [CBAdvertisementDataIsConnectable: NSNumber(value: isConnectable)]
        all[CBAdvertisementDataLocalNameKey] = localName
        if !services.isEmpty { all[CBAdvertisementDataServiceUUIDsKey] = services.map { CBUUID($0) } }
        if !overflowServices.isEmpty {
            all[CBAdvertisementDataOverflowServiceUUIDsKey] = overflowServices.map { CBUUID($0) }
        }
        all[CBAdvertisementDataTxPowerLevelKey] = txPower.map { NSNumber(value: $0) }
        all[CBAdvertisementDataManufacturerDataKey] = manufacturerData.map { Data($0) }
        if !serviceData.isEmpty {
            all[CBAdvertisementDataServiceDataKey] = Dictionary(
                uniqueKeysWithValues: serviceData.map { (CBUUID($0.key), Data($0.value)) })
        }
        return all
    }
}

/// Tells managers of connections that others of the same adapter make.
final class ConnectionEvents: Sendable {
    /// What a manager wants to be told of.
    struct Filter: Sendable {
        var services: [BluetoothUUID]
        var identifiers: [UUID]
    }

    static let shared = ConnectionEvents()
    private let managers = WeakTable<ObjectIdentifier, CBCentralManager>()

    func join(_ manager: CBCentralManager) { _ = managers.object(ObjectIdentifier(manager)) { manager } }

    func post(_ event: CBConnectionEvent, _ peripheral: CBPeripheral, from sender: CBCentralManager) {
        let identifier = peripheral.identifier
        let peer = peripheral.peer.current
        for manager in managers.all where manager.adapter === sender.adapter {
            guard let filter = manager.progress({ $0.connectionEvents }) else { continue }
            let offers = manager.retrieveConnectedPeripherals(withServices: filter.services.map { CBUUID($0) })
            // After a disconnection the services are not known any more, so the earlier ones decide.
            let wasAnnounced = manager.progress { $0.announced.contains(identifier) }
            guard
                filter.identifiers.contains(identifier) || wasAnnounced
                    || offers.contains(where: { $0.identifier == identifier })
            else { continue }
            manager.progress {
                if event == .peerConnected { $0.announced.insert(identifier) } else { $0.announced.remove(identifier) }
            }
            manager.callbacks.run { [weak manager] in
                guard let manager else { return }
                manager.delegate?.centralManager(
                    manager, connectionEventDidOccur: event, for: manager.peripheral(identifier, peer))
            }
        }
    }
}
