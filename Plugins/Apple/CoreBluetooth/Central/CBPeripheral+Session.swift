import FerryBluetooth
import Foundation

// What a session reports; all on the program's queue.
extension CBPeripheral {
    func sessionDidConnect(_ session: PeripheralSession) {
        let isCurrent = contents { contents in
            guard contents.session === session, contents.state == .connecting else { return false }
            contents.state = .connected
            contents.hasConnected = true
            return true
        }
        guard isCurrent, let manager = manager.object else { return }
        manager.peripheralDidConnect(self)
    }

    func sessionDidFail(_ session: PeripheralSession, _ error: BluetoothError) {
        guard finish(session), let manager = manager.object else { return }
        manager.peripheralDidFail(self, error)
    }

    /// The error is nil when the program has ended it.
    func sessionDidEnd(_ session: PeripheralSession, _ error: BluetoothError?) {
        let hadConnected = contents.current.hasConnected
        guard finish(session), let manager = manager.object else { return }
        manager.peripheralDidEnd(self, error, reconnects: error != nil && session.reconnects)
        if hadConnected { ConnectionEvents.shared.post(.peerDisconnected, self, from: manager) }
    }

    /// Forgets a session and its services.
    private func finish(_ session: PeripheralSession) -> Bool {
        contents { contents in
            guard contents.session === session else { return false }
            contents.session = nil
            contents.hasConnected = false
            contents.state = .disconnected
            contents.services = nil
            contents.channels = ChannelOpenings()
            return true
        }
    }

    /// The services that were shown from memory are outdated.
    func renewServices(_ session: PeripheralSession, _ outdated: [AttributeID]) {
        manager.object?.callbacks.run(after: 0.1) {
            if self.contents({ $0.session === session }) { self.sessionDidModifyServices(session, outdated) }
        }
    }

    func sessionDidModifyServices(_ session: PeripheralSession, _ ids: [AttributeID]) {
        let services = session.forget(ids).compactMap { $0 as? CBService }
        contents { contents in
            guard contents.session === session else { return }
            contents.services = contents.services?.filter { service in !services.contains { $0 === service } }
            if services.isEmpty, session.quirks.contains(.cachedServices) { contents.services = nil }
        }
        for service in services {
            let characteristics = service.characteristics ?? []
            let descriptors = characteristics.flatMap { $0.descriptors ?? [] }
            _ = session.forget(characteristics.compactMap(\.place?.id) + descriptors.compactMap(\.place?.id))
        }
        delegate?.peripheral(self, didModifyServices: services)
    }

    /// Notes the name of an advertisement, and tells when it has changed.
    func advertised(_ name: String?) {
        guard let name else { return }
        let isChanged = contents { contents in
            defer { contents.name = name }
            return contents.name != nil && contents.name != name
        }
        if isChanged { delegate?.peripheralDidUpdateName(self) }
    }
}
