#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    // What bluetoothd asks this side's objects.
    extension BlueZEngine {
        private static let properties = "org.freedesktop.DBus.Properties"
        private static let failed = BusError(name: "org.freedesktop.DBus.Error.UnknownMethod", message: "")

        /// Answers a call. Returns whether it was for an object of this side.
        func answer(_ call: BusMessage) -> Bool {
            guard let export = exports[call.path] else { return false }
            guard let arguments = try? call.read() else { return false }
            switch (call.interface, call.member) {
            case ("org.freedesktop.DBus.ObjectManager", "GetManagedObjects"):
                bus?.reply(to: call, [managedObjects(below: call.path)])
            case (Self.properties, "GetAll"):
                let wanted = arguments.first?.text
                let own = interface(of: export, at: call.path).filter { $0.name == wanted }.first?.properties ?? [:]
                bus?.reply(to: call, [.options(own)])
            case (Self.properties, "Get"):
                let own = interface(of: export, at: call.path).filter { $0.name == arguments.first?.text }.first
                guard let value = arguments.last?.text.flatMap({ own?.properties[$0] }) else { return false }
                bus?.reply(to: call, [.variant(value)])
            default: return answer(call, arguments, export)
            }
            return true
        }

        private func answer(_ call: BusMessage, _ arguments: [BusValue], _ export: Export) -> Bool {
            switch (export, call.member) {
            case (.descriptor(let descriptor, _), "ReadValue"):
                let offset = arguments.first?.properties["offset"]?.number ?? 0
                replyValue(to: call, descriptor.value, from: offset)
            case (.characteristic(let local, _), "ReadValue"): read(local, call, arguments.first?.properties ?? [:])
            case (.characteristic(let local, _), "WriteValue"):
                write(local, call, arguments.first?.bytes ?? [], arguments.last?.properties ?? [:])
            case (.characteristic(let local, _), "AcquireNotify"):
                acquireNotify(local, call, arguments.first?.properties ?? [:])
            case (.characteristic(let local, _), "Confirm"):
                bus?.reply(to: call, [])
                confirmed(local)
            case (.advertisement(_, let owner), "Release"):
                bus?.reply(to: call, [])
                advertisementDidEnd(call.path, owner)
            case (.agent, _): return answerAgent(call, arguments)
            default: return false
            }
            return true
        }

        // MARK: Properties

        private func interface(of export: Export, at path: String) -> [(
            name: String, properties: ObjectTree.Properties
        )] {
            switch export {
            case .application, .agent: return []
            case .service(let service):
                let included = Set(service.definition.includedServices)
                let paths = exports.compactMap { path, export in
                    if case .service(let other) = export, included.contains(other.id) { path } else { nil }
                }
                return [
                    (
                        "org.bluez.GattService1",
                        [
                            "UUID": .string(service.definition.uuid.longString),
                            "Primary": .bool(service.definition.isPrimary), "Includes": .paths(paths.sorted()),
                        ]
                    )
                ]
            case .characteristic(let local, let service):
                var properties: ObjectTree.Properties = [
                    "UUID": .string(local.definition.uuid.longString), "Service": .path(service),
                    "Flags": .strings(local.flags),
                ]
                // With this property bluetoothd asks for a socket instead of StartNotify.
                if local.definition.properties.offersSubscription {
                    properties["NotifyAcquired"] = .bool(local.subscriber.withLock { $0 != nil })
                }
                return [("org.bluez.GattCharacteristic1", properties)]
            case .descriptor(let descriptor, let characteristic):
                return [
                    (
                        "org.bluez.GattDescriptor1",
                        [
                            "UUID": .string(descriptor.uuid.longString), "Characteristic": .path(characteristic),
                            "Flags": .strings(["read"]),
                        ]
                    )
                ]
            case .advertisement(let advertisement, _):
                return [("org.bluez.LEAdvertisement1", advertisement.bluezProperties)]
            }
        }

        private func managedObjects(below root: String) -> BusValue {
            let objects = exports.filter { $0.key.hasPrefix(root + "/") }.sorted { $0.key < $1.key }
            return .dictionary(
                "o", "a{sa{sv}}",
                objects.map { path, export in
                    BusEntry(
                        key: .path(path),
                        value: .dictionary(
                            "s", "a{sv}",
                            interface(of: export, at: path).map {
                                BusEntry(key: .string($0.name), value: .options($0.properties))
                            }))
                })
        }

        // MARK: Reading and writing

        private func replyValue(to call: BusMessage, _ value: [UInt8], from offset: Int) {
            guard offset <= value.count else { return bus?.fail(call, ATTError.invalidOffset.bluez) ?? () }
            bus?.reply(to: call, [.bytes(Array(value[offset...]))])
        }

        private func read(_ local: LocalCharacteristic, _ call: BusMessage, _ options: ObjectTree.Properties) {
            let offset = options["offset"]?.number ?? 0
            guard local.canRead else { return bus?.fail(call, ATTError.readNotPermitted.bluez) ?? () }
            if let value = local.definition.value { return replyValue(to: call, value, from: offset) }
            let central = central(options)
            let request = ReadRequest(
                id: hold(call, local.owner, central, isRead: true), central: central, characteristic: local.id,
                offset: offset)
            local.owner.events.peripheralDidReceive(request)
        }

        private func write(
            _ local: LocalCharacteristic, _ call: BusMessage, _ value: [UInt8], _ options: ObjectTree.Properties
        ) {
            guard local.canWrite else { return bus?.fail(call, ATTError.writeNotPermitted.bluez) ?? () }
            if options["prepare-authorize"]?.bool == true { return bus?.reply(to: call, []) ?? () }
            if local.hasUnansweredWrites {
                // At once: the bus keeps few calls of bluetoothd's waiting, and more than those are lost.
                bus?.reply(to: call, [])
                return local.owner.events.central(central(options), didWrite: value.span.bytes, to: local.id)
            }
            let part = WriteRequest.Part(
                characteristic: local.id, offset: options["offset"]?.number ?? 0, value: value)
            let central = central(options)
            let request = WriteRequest(
                id: hold(call, local.owner, central, isRead: false), central: central, parts: [part])
            local.owner.events.peripheralDidReceive(request)
        }

        private func central(_ options: ObjectTree.Properties) -> ConnectedCentral {
            let device = options["device"]?.text ?? "/"
            return shared.withLock { $0.central(device) }
        }

        private func hold(
            _ call: BusMessage, _ owner: PeripheralOwner, _ central: ConnectedCentral, isRead: Bool
        ) -> RequestID {
            let id = RequestID(rawValue: shared.withLock { $0.makeID() })
            requests.hold(id, for: owner.id, on: central.connection, PendingRequest(call: call, isRead: isRead))
            // bluetoothd itself waits no longer than that.
            thread.schedule(after: configuration.callTimeout) { [weak self] in
                self?.assumeIsolated { $0.requests.expire(id) }
            }
            return id
        }

        func respond(to id: RequestID, with response: Result<[UInt8], ATTError>, _ owner: PeripheralOwner) {
            guard let request = requests.answer(id, by: owner.id) else { return }
            switch response {
            case .success(let value): bus?.reply(to: request.call, request.isRead ? [.bytes(value)] : [])
            case .failure(let error): bus?.fail(request.call, error.bluez)
            }
        }
    }

    extension Advertisement {
        /// As `org.bluez.LEAdvertisement1` has them.
        var bluezProperties: ObjectTree.Properties {
            var properties: ObjectTree.Properties = [
                "Type": .string(isConnectable ? "peripheral" : "broadcast"),
                "ServiceUUIDs": .strings(services.map(\.longString)),
            ]
            if isConnectable { properties["Discoverable"] = .bool(true) }
            if let localName { properties["LocalName"] = .string(localName) }
            // It is longer than its company identifier: a shorter one has been refused.
            if let data = manufacturerData, data.count >= 2 {
                let company = UInt16(data[0]) | UInt16(data[1]) << 8
                let entry = BusEntry(key: .uint16(company), value: .variant(.bytes(Array(data[2...]))))
                properties["ManufacturerData"] = .dictionary("q", "v", [entry])
            }
            if !serviceData.isEmpty {
                properties["ServiceData"] = .dictionary(
                    "s", "v",
                    serviceData.sorted { $0.key.value < $1.key.value }.map {
                        BusEntry(key: .string($0.key.longString), value: .variant(.bytes($0.value)))
                    })
            }
            return properties
        }
    }
#endif
