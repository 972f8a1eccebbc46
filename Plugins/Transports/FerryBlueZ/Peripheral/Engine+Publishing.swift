#if BlueZ
    import FerryBluetooth
    import Synchronization

    // Services and advertisements, as objects that bluetoothd asks for.
    extension BlueZEngine {
        private static let manager = "org.bluez.GattManager1"
        private static let advertiser = "org.bluez.LEAdvertisingManager1"

        // MARK: Services

        /// A service that no other includes is an application by itself. One that includes others is registered
        /// together with them, since bluetoothd looks for included services within an application only; secondary
        /// services wait for the first that includes them.
        func publish(
            _ definition: ServiceDefinition, _ owner: PeripheralOwner
        ) async throws(BluetoothError) -> PublishedService {
            let included = Set(definition.includedServices)
            let known = applications.flatMap(\.services).filter { $0.owner === owner }.map(\.id)
            try definition.check { known.contains($0) }
            let service = makeService(definition, owner)
            let merged = applications.filter { $0.services.contains { included.contains($0.id) } }
            for application in merged { await unregister(application) }
            applications.removeAll { application in merged.contains { $0.path == application.path } }

            let path = "/ferry/app\(shared.withLock { $0.makeID() })"
            let application = Application(path: path, services: merged.flatMap(\.services) + [service])
            applications.append(application)
            export(application)
            owner.state.withLock { state in
                for local in service.characteristics { state.characteristics[local.id] = local }
            }
            if application.services.contains(where: \.definition.isPrimary) {
                do throws(BluetoothError) { try await register(path) } catch {
                    unpublish(service.id, owner)
                    throw error
                }
            }
            return PublishedService(id: service.id, characteristics: service.characteristics.map(\.id))
        }

        private func makeService(_ definition: ServiceDefinition, _ owner: PeripheralOwner) -> LocalService {
            func makeID() -> AttributeID {
                AttributeID(rawValue: UInt32(truncatingIfNeeded: shared.withLock { $0.makeID() }))
            }
            return LocalService(
                id: makeID(), owner: owner, definition: definition,
                characteristics: definition.characteristics.map {
                    LocalCharacteristic(id: makeID(), $0, owner: owner)
                })
        }

        private func register(_ path: String) async throws(BluetoothError) {
            guard let adapterPath else { return try requirePower() }
            do throws(BusError) {
                _ = try await call(
                    adapterPath, Self.manager, "RegisterApplication", [.path(path), .options([:])])
            } catch {
                try requirePower()
                let plain = error.bluetooth("bluetoothd does not take the service")
                throw BluetoothError(
                    error.isTimeout ? .timedOut : plain.code == .notSupported ? .notSupported : .invalidArgument,
                    plain.message)
            }
            guard let place = applications.firstIndex(where: { $0.path == path }) else {
                throw BluetoothError(.notPoweredOn, "The service was withdrawn while it was being published.")
            }
            applications[place].isRegistered = true
        }

        private func unregister(_ application: Application) async {
            if let adapterPath, application.services.contains(where: \.definition.isPrimary) {
                _ = try? await call(adapterPath, Self.manager, "UnregisterApplication", [.path(application.path)])
            }
            unexport(application)
        }

        /// The same without waiting, also while the registration is under way.
        func withdraw(_ application: Application) { Task { await self.unregister(application) }.forget() }

        func unpublish(_ id: AttributeID, _ owner: PeripheralOwner) {
            guard
                let place = applications.firstIndex(where: { application in
                    application.services.contains { $0.id == id && $0.owner === owner }
                })
            else { return }
            let application = applications.remove(at: place)
            let rest = application.services.filter { $0.id != id }
            for service in application.services where service.id == id {
                forget(service, BluetoothError(.unknownAttribute, "The service was withdrawn."))
            }
            let isNeeded = rest.contains(where: \.definition.isPrimary)
            guard isNeeded || !rest.isEmpty else {
                return withdraw(application)
            }
            // Services registered together are registered again without it.
            let path = "/ferry/app\(shared.withLock { $0.makeID() })"
            let remaining = Application(path: path, services: rest)
            applications.append(remaining)
            Task {
                await self.unregister(application)
                guard self.applications.contains(where: { $0.path == path }) else { return }
                self.export(remaining)
                if isNeeded { try? await self.register(path) }
            }.forget()
        }

        /// No central is subscribed to a withdrawn service.
        func forget(_ service: LocalService, _ reason: BluetoothError) {
            for local in service.characteristics {
                service.owner.state.withLock { $0.characteristics[local.id] = nil }
                endSubscription(of: local, tells: false)
            }
        }

        private func export(_ application: Application) {
            exports[application.path] = .application
            for (index, service) in application.services.enumerated() {
                let path = "\(application.path)/service\(index)"
                var placed = service
                placed.path = path
                exports[path] = .service(placed)
                for (index, local) in service.characteristics.enumerated() {
                    let own = "\(path)/char\(index)"
                    exports[own] = .characteristic(local, service: path)
                    for (index, descriptor) in local.definition.descriptors.enumerated() {
                        exports["\(own)/desc\(index)"] = .descriptor(descriptor, characteristic: own)
                    }
                }
            }
        }

        private func unexport(_ application: Application) {
            exports = exports.filter { $0.key != application.path && !$0.key.hasPrefix(application.path + "/") }
        }

        // MARK: Advertising

        func advertise(
            _ advertisement: Advertisement, _ owner: PeripheralOwner
        ) async throws(BluetoothError) -> AdvertisingReport {
            // BlueZ puts services into the advertising packet and the name into the scan response.
            let budget = AdvertisingBudget(
                advertisingBytes: 31, scanResponseBytes: 31, scanResponseIsForName: true)
            guard !advertisement.isExtended, advertisement.interval == nil else {
                throw BluetoothError(
                    .notSupported,
                    "bluetoothd chooses advertising intervals and the kind of packets itself; leave `interval` and `isExtended` out."
                )
            }
            let report = advertisement.fitted(to: budget)
            _ = try report.encoded(for: budget)
            // A service being withdrawn still has its place.
            await withdrawing?.value
            heldBack[owner.id] = nil
            await withdrawAdvertisement(owner)
            var shown = advertisement
            shown.localName = report.advertised.localName
            shown.services = report.advertised.services
            try await place(shown, owner)
            reviewAdvertising(of: owner)
            return report
        }

        private func place(_ advertisement: Advertisement, _ owner: PeripheralOwner) async throws(BluetoothError) {
            guard let adapterPath else { return try failToAdvertise() }
            try requirePower()
            let path = "/ferry/advertisement\(shared.withLock { $0.makeID() })"
            exports[path] = .advertisement(advertisement, owner)
            do throws(BusError) {
                _ = try await call(
                    adapterPath, Self.advertiser, "RegisterAdvertisement", [.path(path), .options([:])])
            } catch {
                exports[path] = nil
                try requirePower()
                let advice =
                    error.name == "org.bluez.Error.NotPermitted"
                    ? " All of the adapter's advertising sets are in use; stop another one." : ""
                throw BluetoothError(.advertisingFailed, "bluetoothd refuses to advertise: \(error).\(advice)")
            }
        }

        private func failToAdvertise() throws(BluetoothError) {
            try requirePower()
            throw BluetoothError(.advertisingFailed, "The adapter has gone.")
        }

        private func withdrawAdvertisement(_ owner: PeripheralOwner) async {
            for (path, export) in exports {
                guard case .advertisement(_, let other) = export, other === owner else { continue }
                exports[path] = nil
                guard let adapterPath else { continue }
                _ = try? await call(adapterPath, Self.advertiser, "UnregisterAdvertisement", [.path(path)])
            }
        }

        func stopAdvertising(_ owner: PeripheralOwner) {
            let earlier = withdrawing
            heldBack[owner.id] = nil
            withdrawing = Task {
                await earlier?.value
                await self.withdrawAdvertisement(owner)
            }
        }

        /// How long after a central has gone others are invited.
        private static var pauseBeforeInviting: Duration { .milliseconds(500) }

        /// Stops advertising while a central is subscribed, and continues afterwards: BlueZ 5.66 has one socket for all
        /// centrals, so that a second one would receive the first one's values.
        func reviewAdvertising(of owner: PeripheralOwner) {
            let earlier = withdrawing
            withdrawing = Task {
                await earlier?.value
                if !self.hasSubscriber(owner), self.heldBack[owner.id] != nil {
                    // The central may have gone because the adapter is being switched off, which is told a moment later. Asked
                    // to advertise in between, bluetoothd 5.66 is refused by the kernel, and ends itself (`free(): invalid pointer`).
                    try? await Task.sleep(for: Self.pauseBeforeInviting)
                }
                let isTaken = self.hasSubscriber(owner)
                if isTaken {
                    for case .advertisement(let advertisement, let other) in self.exports.values where other === owner {
                        self.heldBack[owner.id] = advertisement
                    }
                    await self.withdrawAdvertisement(owner)
                } else if let advertisement = self.heldBack.removeValue(forKey: owner.id) {
                    do throws(BluetoothError) { try await self.place(advertisement, owner) } catch {
                        owner.events.peripheralDidStopAdvertising(error)
                    }
                }
            }
        }

        /// bluetoothd has let go of an advertisement.
        func advertisementDidEnd(_ path: String, _ owner: PeripheralOwner) {
            exports[path] = nil
            owner.events.peripheralDidStopAdvertising(
                BluetoothError(.advertisingFailed, "bluetoothd has stopped advertising."))
        }
    }

    extension Task {
        /// Removes the waiter.
        func forget() {}
    }
#endif
