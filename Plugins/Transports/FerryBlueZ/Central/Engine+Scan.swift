#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// What bluetoothd has been asked to look for, which takes several calls.
    struct DiscoveryState {
        var isRunning = false
        var isChanging = false
        var isDirty = false
        /// Whether devices that are known already have to be heard anew.
        var isAnew = false
        /// Devices with a waiter for a connection that bluetoothd has forgotten.
        var missing: Set<String> = []
    }

    extension BlueZEngine {
        private var scans: [ScanRequest] {
            shared.withLock { $0.centrals.all.compactMap(\.scan?.request) }
                + discovery.missing.map { _ in ScanRequest() }
        }

        /// An owner's scan has begun, changed or ended.
        func scanDidChange(isNew: Bool) {
            discovery.isDirty = true
            if isNew { discovery.isAnew = true }
            beginChange()
        }

        private func beginChange() {
            guard !discovery.isChanging else { return }
            discovery.isChanging = true
            Task { await self.changeDiscovery() }
        }

        private func changeDiscovery() async {
            while discovery.isDirty, let adapterPath {
                discovery.isDirty = false
                let adapter = "org.bluez.Adapter1"
                do throws(BusError) {
                    if discovery.isRunning {
                        discovery.isRunning = false
                        // A refusal tells that it has stopped already: see `startListening`.
                        _ = try? await call(adapterPath, adapter, "StopDiscovery")
                        _ = await isDiscovering(false, adapterPath)
                    }
                    let scans = scans
                    guard !scans.isEmpty else { continue }
                    if discovery.isAnew {
                        discovery.isAnew = false
                        await forgetUnheard(adapterPath)
                    }
                    _ = try await call(adapterPath, adapter, "SetDiscoveryFilter", [filter(for: scans)])
                    _ = try await call(adapterPath, adapter, "StartDiscovery")
                    discovery.isRunning = true
                    try await startListening(adapterPath, scans)
                } catch {
                    // Another process's discovery may be in the way, or the adapter has just been switched off.
                    guard error.isInProgress, !scans.isEmpty else { continue }
                    await pause(.milliseconds(200))
                    discovery.isDirty = true
                }
            }
            discovery.isChanging = false
        }

        /// When a device was connected to while it was to stop a discovery, bluetoothd 5.66 believes that it still listens,
        /// and does not begin again for the same filter. So it is given another one for a moment.
        private func startListening(_ adapter: String, _ scans: [ScanRequest]) async throws(BusError) {
            guard await !isDiscovering(true, adapter) else { return }
            let absent = BluetoothUUID(UInt128.random(in: 1 ... .max))
            for filter in [filter(for: scans, and: absent), filter(for: scans)] {
                _ = try await call(adapter, "org.bluez.Adapter1", "SetDiscoveryFilter", [filter])
                _ = await isDiscovering(true, adapter)
            }
        }

        /// Waits a moment for an adapter to listen or not: a discovery that begins while the last one ends finds nothing
        /// for seconds. Another process's may go on. Returns whether it came to that.
        private func isDiscovering(_ expected: Bool, _ adapter: String) async -> Bool {
            for _ in 0..<25 {
                if objects[adapter, "org.bluez.Adapter1"]?["Discovering"]?.bool == expected { return true }
                await pause(.milliseconds(20))
            }
            return false
        }

        /// Devices whose signal strength is known are reported when they are heard; of others bluetoothd tells only when
        /// they are new. So temporary ones are forgotten, as it would do itself after half a minute.
        private func forgetUnheard(_ adapter: String) async {
            for path in objects.paths(below: adapter, with: "org.bluez.Device1") {
                guard let device = objects[path, "org.bluez.Device1"], device.rssi == nil,
                    device["Connected"]?.bool == false, device["Paired"]?.bool != true, device["Trusted"]?.bool != true,
                    connecting[path] == nil
                else { continue }
                _ = try? await call(adapter, "org.bluez.Adapter1", "RemoveDevice", [.path(path)])
            }
        }

        private func filter(for scans: [ScanRequest], and another: BluetoothUUID? = nil) -> BusValue {
            var filter: [String: BusValue] = ["Transport": .string("le")]
            if another != nil || scans.allSatisfy({ !$0.services.isEmpty }) {
                let services = Set(scans.flatMap(\.services) + [another].compactMap { $0 })
                filter["UUIDs"] = .strings(services.map(\.longString))
            }
            filter["DuplicateData"] = .bool(scans.contains(where: \.allowsDuplicates))
            // With a threshold the kernel holds back devices of unknown strength, so set one only if requested.
            let thresholds = scans.map { $0.rssi?.lowerBound ?? -127 }
            if let lowest = thresholds.min(), lowest > -127 {
                filter["RSSI"] = .int16(Int16(clamping: min(lowest, 20)))
            }
            return .options(filter)
        }

        /// Tells scans of a device that was heard.
        func didHear(_ path: String, _ device: ObjectTree.Properties) {
            let (rssi, advertisement) = (device.rssi, AdvertisementData(device))
            let (peer, sinks) = shared.withLock { shared in
                let peer = shared.peer(path)
                var sinks: [any CentralRoleEvents] = []
                shared.centrals.update { owner in
                    if owner.scan?.report(advertisement, rssi: rssi, from: path) == true { sinks.append(owner.events) }
                }
                return (peer, sinks)
            }
            let identity = DeviceAddress(device)?.claimedIdentity
            let found = Discovery(
                peripheral: peer, identity: identity ?? PeerIdentity(peer.description, certainty: .connection),
                advertisement: advertisement, rssi: rssi ?? -127)
            for sink in sinks { sink.centralDidDiscover(found) }
        }
    }

    extension ObjectTree.Properties {
        /// The signal's strength in dBm; 127 stands for an unknown one (Core Specification 5.4, Vol 4, Part E, 7.7.65.2).
        fileprivate var rssi: Int? { self["RSSI"]?.number.flatMap { $0 == 127 ? nil : $0 } }
    }

    extension AdvertisementData {
        /// What `org.bluez.Device1` says of a device that was heard.
        init(_ device: ObjectTree.Properties) {
            var serviceData: [BluetoothUUID: [UInt8]] = [:]
            for (uuid, data) in device["ServiceData"]?.properties ?? [:] {
                if let uuid = try? BluetoothUUID(uuid), let bytes = data.bytes { serviceData[uuid] = bytes }
            }
            let manufacturer = device["ManufacturerData"]?.entries.first.flatMap { entry -> [UInt8]? in
                guard let company = entry.key.number, let bytes = entry.value.bytes else { return nil }
                return [UInt8(truncatingIfNeeded: company), UInt8(truncatingIfNeeded: company >> 8)] + bytes
            }
            self.init(
                localName: device["Name"]?.text,
                services: device["UUIDs"]?.texts.compactMap { try? BluetoothUUID($0) } ?? [],
                txPower: device["TxPower"]?.number, manufacturerData: manufacturer, serviceData: serviceData)
        }
    }

    extension BluetoothUUID {
        /// The 128-bit form in lower case, which BlueZ uses.
        var longString: String { uuidString.lowercased() }
    }
#endif
