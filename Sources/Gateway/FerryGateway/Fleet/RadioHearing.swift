#if NATS && Records
    import Ferry
    public import FerryBluetooth
    import Synchronization

    /// Scans for peripherals that offer a service, all the time, and tells whom it hears.
    public final class RadioHearing: CentralRoleEvents {
        private let service: BluetoothUUID
        private let heard: @Sendable (String, Int) -> Void
        private let role = Mutex<(any CentralRole)?>(nil)

        /// Begins to scan as soon as the adapter is on.
        ///
        /// - Parameters:
        ///   - adapter: the controller with its host.
        ///   - service: what peers advertise.
        ///   - heard: takes a peer's name, which is its identity's `description`, and its signal in dBm. Peers whose address does
        ///     not last cannot be told apart by several gateways, and are not heard.
        public init(
            _ adapter: any BluetoothAdapter, _ service: BluetoothUUID,
            heard: @escaping @Sendable (_ peer: String, _ signal: Int) -> Void
        ) {
            self.service = service
            self.heard = heard
            let role = adapter.openCentral(self)
            self.role.withLock { $0 = role }
            scan(role)
        }

        /// Ends the scan.
        public func close() {
            let role = role.withLock { role in
                defer { role = nil }
                return role
            }
            role?.close()
        }

        /// Scans whenever the adapter is on.
        public func centralAdapterDidChange(_ state: AdapterState) {
            guard state == .poweredOn, let role = role.withLock({ $0 }) else { return }
            scan(role)
        }

        /// Tells whom it hears.
        public func centralDidDiscover(_ discovery: Discovery) {
            guard discovery.identity.certainty > .connection else { return }
            heard(discovery.identity.description, discovery.rssi)
        }

        private func scan(_ role: any CentralRole) {
            // Refused while the adapter is off: it is begun when that changes.
            try? role.startScan(ScanRequest(services: [service], allowsDuplicates: true))
        }
    }
#endif
