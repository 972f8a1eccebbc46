#if BlueZ
    public import FerryBluetooth
    import Synchronization

    /// A Bluetooth adapter that bluetoothd serves, used over the system bus (org.bluez(5)): no privileges are needed.
    ///
    /// It lives as long as it is referenced or a role of it is open. When bluetoothd or the bus goes away, connections end
    /// with `notConnected`, the state becomes `resetting`, and `poweredOn` again once both are back; services and
    /// advertisements have to be published again then, as after a loss of power.
    ///
    /// `Documentation/BlueZ.md` has the limits, each with its reason.
    public final class BlueZAdapter: BluetoothAdapter {
        let engine: BlueZEngine

        /// What to call the adapter in messages, such as `bluez:hci0`.
        public var name: String { engine.name }
        /// Whether it can be used now.
        public var state: AdapterState { engine.shared.withLock { $0.adapterState } }

        private init(_ engine: BlueZEngine) { self.engine = engine }

        /// Opens an adapter.
        ///
        /// - Parameters:
        ///   - specification: `bluez` for the first adapter, or `bluez:hci1`.
        ///   - configuration: how to use it.
        ///   - pairing: how to pair; nil leaves that to the system's agent, if there is one (see ``pair(with:)``).
        /// - Throws: `invalidArgument` when the specification is neither; `notPoweredOn` with the missing part and the
        ///   remedy: no bus, no bluetoothd, no permission. An adapter that is off or missing can be opened: see
        ///   ``state`` and ``trouble``.
        public static func open(
            _ specification: String = "bluez", configuration: BlueZConfiguration = BlueZConfiguration(),
            pairing: BlueZPairing? = nil
        ) async throws(BluetoothError) -> BlueZAdapter {
            let engine = try BlueZEngine(
                name: specification, wanted: try adapterName(in: specification), configuration)
            await engine.setPairing(pairing)
            try await engine.open()
            return BlueZAdapter(engine)
        }

        /// Checks a specification without opening anything.
        ///
        /// - Throws: `invalidArgument` with the accepted forms.
        public static func check(_ specification: String) throws(BluetoothError) {
            _ = try adapterName(in: specification)
        }

        /// The adapter's name in a specification, nil for any.
        ///
        /// - Throws: `invalidArgument` with the accepted forms.
        static func adapterName(in specification: String) throws(BluetoothError) -> String? {
            let parts = specification.split(separator: ":", omittingEmptySubsequences: false)
            if parts == ["bluez"] { return nil }
            if parts.count == 2, parts[0] == "bluez", parts[1].hasPrefix("hci"),
                let number = UInt16(parts[1].dropFirst(3))
            {
                return "hci\(number)"
            }
            throw BluetoothError(
                .invalidArgument, "\"\(specification)\" is no BlueZ adapter; use bluez, or bluez:hci1 for another one.")
        }

        /// Why the adapter is not powered on and what to do about it; nil when it is.
        public var trouble: String? {
            engine.shared.withLock { $0.adapterState == .poweredOn ? nil : $0.trouble }
        }

        /// What could be better and how; nil when there is nothing to say.
        ///
        /// bluetoothd with several ATT bearers does not keep the order of values, see
        /// ``BlueZConfiguration/allowsReordering``.
        public var advice: String? {
            let bearers = engine.shared.withLock { $0.bearers }
            guard bearers > 1, !engine.configuration.allowsReordering else { return nil }
            return
                "bluetoothd may use \(bearers) ATT bearers for one connection, over which it does not keep the order of "
                + "values. So one value at a time is sent, which is slow, and what a program that does not do so sends may "
                + "arrive out of order. Set Channels = 1 under [GATT] in \(engine.configuration.daemonConfiguration) and "
                + "restart bluetoothd (systemctl restart bluetooth)."
        }

        /// Switches the adapter on.
        ///
        /// - Throws: `notPoweredOn` with the reason: it is blocked by rfkill, missing, or this user may not.
        public func powerOn() async throws(BluetoothError) { try await engine.powerOn() }

        /// Opens the peripheral role.
        public func openPeripheral(_ events: any PeripheralRoleEvents) -> any PeripheralRole {
            let owner = engine.shared.withLock { shared in
                let owner = PeripheralOwner(id: shared.makeID(), events)
                shared.peripherals.open(owner.id, owner)
                return owner
            }
            engine.perform { $0.roleDidOpen { owner.events.peripheralAdapterDidChange($0) } }
            return BlueZPeripheralRole(engine, owner)
        }

        /// Opens the central role.
        public func openCentral(_ events: any CentralRoleEvents) -> any CentralRole {
            let id = engine.shared.withLock { shared in
                let id = shared.makeID()
                shared.centrals.open(id, CentralOwner(events: events))
                return id
            }
            engine.perform { $0.roleDidOpen { events.centralAdapterDidChange($0) } }
            return BlueZCentralRole(engine, id)
        }

        /// Ends every role and connection, and leaves the bus.
        public func close() { engine.perform { $0.close() } }
    }

    extension BlueZEngine {
        func powerOn() async throws(BluetoothError) {
            guard let adapterPath else { return try requirePower() }
            do throws(BusError) {
                _ = try await call(
                    adapterPath, "org.freedesktop.DBus.Properties", "Set",
                    [.string("org.bluez.Adapter1"), .string("Powered"), .variant(.bool(true))])
            } catch  where error.name == "org.bluez.Error.Busy" || error.isInProgress {
                // It is being switched on already: bluetoothd does so itself when rfkill's block is lifted.
            } catch {
                let advice =
                    error.message.contains("rfkill") || error.name == "org.bluez.Error.Failed"
                    ? "It may be blocked: rfkill unblock bluetooth"
                    : "This user may need to be in the group bluetooth, or a polkit rule."
                throw BluetoothError(.notPoweredOn, "Adapter \(name) cannot be switched on: \(error). \(advice)")
            }
            for _ in 0..<50 where shared.withLock({ $0.adapterState }) != .poweredOn { await pause(.milliseconds(100)) }
            try requirePower()
        }
    }
#endif
