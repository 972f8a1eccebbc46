#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    final class BlueZPeripheralRole: PeripheralRole {
        private let engine: BlueZEngine
        private let owner: PeripheralOwner

        init(_ engine: BlueZEngine, _ owner: PeripheralOwner) {
            self.engine = engine
            self.owner = owner
        }

        private func requireOpen() throws(BluetoothError) {
            try engine.shared.withLock { (shared) throws(BluetoothError) in
                _ = try shared.peripherals.required(owner.id)
                try shared.requirePower()
            }
        }

        func publish(_ service: ServiceDefinition) async throws(BluetoothError) -> PublishedService {
            try requireOpen()
            return try await engine.publish(service, owner)
        }

        func unpublish(_ service: AttributeID) {
            let owner = owner
            engine.perform { $0.unpublish(service, owner) }
        }

        func startAdvertising(_ advertisement: Advertisement) async throws(BluetoothError) -> AdvertisingReport {
            try requireOpen()
            return try await engine.advertise(advertisement, owner)
        }

        func stopAdvertising() {
            let owner = owner
            engine.perform { $0.stopAdvertising(owner) }
        }

        func tryUpdateValue(
            _ value: RawSpan, of characteristic: AttributeID, for recipients: UpdateRecipients
        ) throws(BluetoothError) -> Bool {
            try requireOpen()
            guard let local = owner.state.withLock({ $0.characteristics[characteristic] }) else {
                throw .notPublished(characteristic)
            }
            guard local.definition.properties.offersSubscription else { throw .notOffered(nil, by: characteristic) }
            guard value.byteCount > 0 else {
                throw BluetoothError(.invalidArgument, "BlueZ cannot send an empty value.")
            }
            let subscriber = local.subscriber.withLock { $0 }
            switch recipients {
            case .all: break
            case .one(let central):
                if central == subscriber?.central { break }
                guard engine.shared.withLock({ $0.path(central) }) != nil else { throw .notConnected(central) }
                return true
            case .some(let centrals):
                guard let subscriber, centrals.contains(subscriber.central) else { return true }
            }
            guard let subscriber else { return true }
            // A socket that has ended takes nothing: the subscription's end is told next, and then that there is space.
            return subscriber.pipe.trySend(value) == .taken
        }

        func maximumUpdateValueLength(for central: ConnectedCentral) -> Int? {
            // Asked for with every chunk, so without an array.
            owner.state.withLock { state in
                var least: Int?
                for local in state.characteristics.values {
                    let limit = local.subscriber.withLock { $0?.central == central ? $0?.pipe.limit : nil }
                    if let limit { least = min(limit, least ?? limit) }
                }
                return least
            }
        }

        func identity(of central: ConnectedCentral) -> PeerIdentity? {
            engine.shared.withLock { shared in shared.path(central).flatMap { shared.identity(ofConnected: $0) } }
        }

        func respond(to request: RequestID, with response: Result<[UInt8], ATTError>) {
            let owner = owner
            engine.perform { $0.respond(to: request, with: response, owner) }
        }

        func setReceiving(_ isReceiving: Bool, from central: ConnectedCentral) {}

        func disconnect(_ central: ConnectedCentral) { engine.perform { $0.disconnect(central) } }

        func publishL2CAPChannel(encryptionRequired: Bool) async throws(BluetoothError) -> PSM {
            try requireOpen()
            return try await engine.publishChannel(encryptionRequired: encryptionRequired, owner)
        }

        func unpublishL2CAPChannel(_ psm: PSM) {
            // At once: later requests are refused.
            guard let listener = owner.state.withLock({ $0.listeners.removeValue(forKey: psm) }) else { return }
            L2CAPSocket.end(listener)
            let owner = owner
            engine.perform { $0.unpublishChannel(psm, owner) }
        }

        func close() {
            guard let owner = engine.shared.withLock({ [id = owner.id] in $0.peripherals.close(id) }) else { return }
            engine.perform { $0.close(owner) }
        }
    }

    extension BlueZEngine {
        func close(_ owner: PeripheralOwner) {
            stopAdvertising(owner)
            endChannels(of: owner.id)
            for request in requests.roleDidClose(owner.id) { bus?.fail(request.call, ATTError.unlikelyError.bluez) }
            // What includes one another has one owner.
            let mine = applications.filter { $0.services.contains { $0.owner === owner } }
            applications.removeAll { application in mine.contains { $0.path == application.path } }
            for application in mine {
                for service in application.services {
                    forget(service, .roleClosed)
                }
                withdraw(application)
            }
            roleDidClose()
        }

        /// The adapter or the daemon has gone: nothing is published any more.
        func withdrawEverything(_ reason: BluetoothError) {
            let gone = applications
            applications = []
            for owner in shared.withLock({ $0.peripherals.all }) where heldBack.removeValue(forKey: owner.id) != nil {
                owner.events.peripheralDidStopAdvertising(reason)
            }
            for application in gone {
                if application.isRegistered, let adapterPath {
                    tell(adapterPath, "org.bluez.GattManager1", "UnregisterApplication", [.path(application.path)])
                }
                for service in application.services { forget(service, reason) }
            }
            for (path, export) in exports {
                guard case .advertisement(_, let owner) = export else { continue }
                if let adapterPath {
                    tell(adapterPath, "org.bluez.LEAdvertisingManager1", "UnregisterAdvertisement", [.path(path)])
                }
                owner.events.peripheralDidStopAdvertising(reason)
            }
            exports = exports.filter { if case .agent = $0.value { true } else { false } }
            requests = HeldRequests()
        }
    }
#endif
