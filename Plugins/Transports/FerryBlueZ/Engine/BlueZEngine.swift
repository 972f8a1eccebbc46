#if BlueZ
    import Ferry
    import FerryBluetooth
    import Synchronization

    /// One process's dealings with org.bluez about one adapter. Lives on its ``BusThread``: what sd-bus calls and what
    /// owners ask for meet there, and owners' events are delivered there, one at a time.
    actor BlueZEngine {
        static let service = "org.bluez"

        /// What owners' calls read from any thread.
        struct Shared {
            let name: String
            var adapterState = AdapterState.unknown
            /// Why the adapter is not powered on, and what to do.
            var trouble = "It is not known yet whether it is switched on."
            /// How many ATT bearers bluetoothd may use for one connection.
            var bearers = 1
            var peripherals = OpenRoles<PeripheralOwner>()
            var centrals = OpenRoles<CentralOwner>()
            /// By the paths of their objects.
            var peers = PeerTable<String>()
            var attempts = ConnectionAttempts<String, BlueZConnection>()
            /// Devices that are connected, with the numbers of their connections.
            var connections: [String: UInt64] = [:]
            /// Who the devices are that bluetoothd has, and which of them have shown on their present connection that they
            /// have the key of their bond. It does not tell which connections are encrypted.
            var identities: [String: PeerIdentity] = [:]
            var proven: Set<String> = []
            var bonded: Set<String> = []
            var adapterPath: String?
            /// The services that connected devices are known to offer.
            var offers: [String: [BluetoothUUID]] = [:]
            var nextID: UInt64 = 1

            init(_ name: String) { self.name = name }

            /// The name of a peer, the same for one object path while it is in use, and among the last that were.
            mutating func peer(_ path: String) -> PeerID {
                if let known = peers.name(of: path) { return known }
                let held = Set(connections.keys).union(bonded).union(attempts.keys)
                let (name, forgotten) = peers.name(path, held: held)
                for path in forgotten { centrals.update { $0.scan?.forget(path) } }
                return name
            }

            /// Throws unless the adapter is powered on.
            func requirePower() throws(BluetoothError) {
                guard adapterState == .poweredOn else { throw .notPoweredOn(name, adapterState, trouble) }
            }

            /// Who a device is that is connected.
            func identity(ofConnected path: String) -> PeerIdentity? {
                connections[path] != nil ? identities[path] : nil
            }

            /// The number of a device's connection, which may be news.
            mutating func connection(_ path: String) -> UInt64 {
                if let known = connections[path] { return known }
                let made = makeID()
                connections[path] = made
                return made
            }

            /// A device that is connected, as a central.
            mutating func central(_ path: String) -> ConnectedCentral {
                ConnectedCentral(peer: peer(path), connection: connection(path))
            }

            /// The device of a central while that connection lasts.
            func path(_ central: ConnectedCentral) -> String? {
                guard let path = peers.key(of: central.peer), connections[path] == central.connection else {
                    return nil
                }
                return path
            }

            /// The object of the device with this identity, or the one that bluetoothd will make.
            func path(_ identity: PeerIdentity) -> String? {
                guard identity.certainty > .connection, let adapterPath,
                    let (value, isRandom) = identity.bluetoothAddress
                else { return nil }
                return identities.first { $0.value.name == identity.name }?.key
                    ?? "\(adapterPath)/\(DeviceAddress(value, isRandom: isRandom).objectName)"
            }

            mutating func makeID() -> UInt64 {
                defer { nextID += 1 }
                return nextID
            }
        }

        nonisolated let name: String
        nonisolated let thread: BusThread
        /// Takes values out of sockets while the thread is busy.
        nonisolated let standIn: BusThread
        nonisolated let shared: Mutex<Shared>
        nonisolated let configuration: BlueZConfiguration
        /// `hci1`, or nil for the first adapter there is.
        nonisolated let wanted: String?
        nonisolated var unownedExecutor: UnownedSerialExecutor { thread.asUnownedSerialExecutor() }

        var bus: Bus?
        /// The unique name of bluetoothd's connection.
        var owner: String?
        var objects = ObjectTree()
        var adapterPath: String? { didSet { shared.withLock { $0.adapterPath = adapterPath } } }
        var connections: [BlueZConnection] = []
        /// Pending connections, by object path.
        var connecting: [String: Connecting] = [:]
        var exports: [String: Export] = [:]
        var applications: [Application] = []
        /// Advertisements that bluetoothd has been asked to end.
        var withdrawing: Task<Void, Never>?
        /// Advertisements of owners with a subscribed central, by their owners' IDs.
        var heldBack: [UInt64: Advertisement] = [:]
        var requests = HeldRequests<PendingRequest>()
        var discovery = DiscoveryState()
        var agent: PairingAgentExport?
        var channels = L2CAPChannels()
        /// Devices that bluetoothd has been asked to disconnect, and until when that may take.
        var disconnectDeadlines: [String: UInt64] = [:]
        /// Connected devices that have new services, of which their connections have not been told yet.
        var gaining: Set<String> = []
        /// Centrals that this side is disconnecting.
        var leaving: Set<String> = []
        /// While a role is open the engine lives, whether or not anybody refers to it.
        private var keptAlive: BlueZEngine?
        private var isOpening: Waiter<Void>?
        private var isClosed = false
        /// How many times bluetoothd has been asked for its objects: starting it by asking it makes two, of which the last one counts.
        private var daemonStarts = 0
        private var reconnectDelay = Duration.milliseconds(250)

        init(name: String, wanted: String?, _ configuration: BlueZConfiguration) throws(BluetoothError) {
            self.name = name
            shared = Mutex(Shared(name))
            self.wanted = wanted
            self.configuration = configuration
            do throws(BusError) { thread = try BusThread() } catch { throw error.bluetooth("\(name) cannot be opened") }
            do throws(BusError) { standIn = try BusThread() } catch {
                thread.stop()
                throw error.bluetooth("\(name) cannot be opened")
            }
        }

        deinit {
            thread.stop()
            standIn.stop()
        }

        // MARK: Opening

        /// Connects to the bus and waits until it is known what the adapter is like.
        func open() async throws(BluetoothError) {
            let waiter = Waiter<Void>()
            isOpening = waiter
            connectToBus()
            try await waiter.wait()
        }

        private func opened(_ outcome: Result<Void, BluetoothError>) { isOpening.take()?.resume(outcome) }

        private func connectToBus() {
            guard !isClosed else { return }
            let address = configuration.busAddress ?? Bus.systemAddress
            do throws(BusError) {
                let bus = try Bus(address, on: thread)
                self.bus = bus
                bus.onMessage = { [weak self] message in
                    nonisolated(unsafe) let message = message  // this is the engine's thread
                    return self?.assumeIsolated { $0.handle(message) } ?? false
                }
                bus.onClose = { [weak self] in self?.assumeIsolated { $0.busDidClose() } }
                thread.beforeWaiting = { bus.process() }
                Task { await self.greet() }
            } catch {
                noBus(error)
            }
        }

        private func noBus(_ error: BusError) {
            let text =
                "\(error). Is D-Bus running there? Install and start it (apt-get install dbus), or name another bus with "
                + "DBUS_SYSTEM_BUS_ADDRESS."
            change(to: .resetting, text)
            opened(.failure(BluetoothError(.notPoweredOn, "\(name) cannot be opened: \(text)")))
            guard !isClosed else { return }
            let delay = reconnectDelay
            reconnectDelay = min(reconnectDelay * 2, .seconds(5))
            thread.schedule(after: delay) { [weak self] in self?.assumeIsolated { $0.connectToBus() } }
        }

        /// Asks for signals, then for the state of things, so that nothing in between is missed.
        private func greet() async {
            do throws(BusError) {
                let bus = "org.freedesktop.DBus"
                for rule in [
                    "type='signal',sender='org.bluez'",
                    "type='signal',sender='\(bus)',member='NameOwnerChanged',arg0='org.bluez'",
                ] {
                    try await call(to: bus, "/org/freedesktop/DBus", bus, "AddMatch", [.string(rule)]) { _ in }
                }
                reconnectDelay = .milliseconds(250)
            } catch {
                bus?.close()
                bus = nil
                return noBus(error)
            }
            await readObjects()
        }

        /// Learns what bluetoothd has; starts it where the bus can.
        private func readObjects() async {
            daemonStarts += 1
            let start = daemonStarts
            do throws(BusError) {
                try await call("/", "org.freedesktop.DBus.ObjectManager", "GetManagedObjects") {
                    [self] message throws(BusError) in
                    let managed = try message.read()
                    owner = message.sender
                    objects.replace(managed.first ?? .bool(false))
                    findAdapter()
                    for path in objects.paths(with: "org.bluez.Device1") where isOurs(path) { note(path) }
                }
                guard start == daemonStarts else { return }
                await registerAgent()
                opened(.success(()))
            } catch {
                guard bus != nil, start == daemonStarts else { return }
                let advice =
                    error.isAccessDenied
                    ? BusError.accessAdvice
                    : "bluetoothd does not answer on the bus (\(error)). Install and start it: apt-get install bluez; "
                        + "systemctl start bluetooth"
                change(to: error.isAccessDenied ? .unauthorized : .resetting, advice)
                opened(.failure(BluetoothError(.notPoweredOn, "\(name) cannot be opened: \(advice)")))
            }
        }

        // MARK: Calls

        func call(
            _ path: String, _ interface: String, _ member: String, _ arguments: [BusValue] = [],
            timeout: Duration? = nil
        ) async throws(BusError) -> [BusValue] {
            try await call(path, interface, member, arguments, timeout: timeout) { message throws(BusError) in
                try message.read()
            }
        }

        /// Calls, and takes the reply the moment that it comes: after an `await` it may be older than a signal that was
        /// sent later and has been handled meanwhile.
        func call<Value: Sendable>(
            to destination: String = service, _ path: String, _ interface: String, _ member: String,
            _ arguments: [BusValue] = [], timeout: Duration? = nil,
            taking take: @escaping (BusMessage) throws(BusError) -> Value
        ) async throws(BusError) -> Value {
            let result: Result<Value, BusError> = await withCheckedContinuation { continuation in
                guard let bus else { return continuation.resume(returning: .failure(.closed)) }
                bus.call(
                    destination, path, interface, member, arguments, timeout: timeout ?? configuration.callTimeout
                ) { reply in
                    continuation.resume(
                        returning: reply.flatMap { message in Result { () throws(BusError) in try take(message) } })
                }
            }
            return try result.get()
        }

        /// Calls without waiting, and without looking at the answer.
        func tell(_ path: String, _ interface: String, _ member: String, _ arguments: [BusValue] = []) {
            bus?.call(Self.service, path, interface, member, arguments, timeout: configuration.callTimeout) { _ in }
        }

        func pause(_ duration: Duration) async {
            await withCheckedContinuation { continuation in
                thread.schedule(after: duration) { continuation.resume() }
            }
        }

        /// Runs on the thread, after what owners asked for before.
        nonisolated func perform(_ body: @escaping @Sendable (isolated BlueZEngine) -> Void) {
            thread.execute { self.assumeIsolated { body($0) } }
        }

        // MARK: Messages

        private func handle(_ message: BusMessage) -> Bool {
            if message.isCall {
                guard message.sender == owner else { return false }
                return answer(message)
            }
            guard message.isSignal, let values = try? message.read() else { return false }
            if message.sender == "org.freedesktop.DBus", message.member == "NameOwnerChanged", values.count == 3 {
                ownerDidChange(to: values[2].text ?? "")
                return true
            }
            guard message.sender == owner else { return false }
            switch (message.member, values.count) {
            case ("InterfacesAdded", 2): interfacesAdded(values[0].text ?? "", values[1])
            case ("InterfacesRemoved", 2): interfacesRemoved(values[0].text ?? "", values[1].texts)
            case ("PropertiesChanged", 3):
                propertiesChanged(message.path, values[0].text ?? "", values[1].properties, values[2].texts)
            default: return false
            }
            return true
        }

        private func ownerDidChange(to new: String) {
            guard new != owner else { return }
            if owner != nil {
                owner = nil
                daemonDidLeave("bluetoothd has gone away. It is started again by: systemctl start bluetooth")
            }
            guard !new.isEmpty else { return }
            owner = new
            Task { await self.readObjects() }
        }

        private func busDidClose() {
            bus = nil
            owner = nil
            daemonDidLeave("The connection to the system bus was lost.")
            noBus(.closed)
        }

        private func daemonDidLeave(_ why: String) {
            objects.removeAll()
            shared.withLock { shared in
                shared.identities = [:]
                shared.bonded = []
            }
            adapterPath = nil
            change(to: .resetting, why)
        }

        // MARK: Objects

        private func interfacesAdded(_ path: String, _ interfaces: BusValue) {
            objects.add(path, interfaces)
            if adapterPath == nil { findAdapter() } else if path == adapterPath { powerDidChange() }
            guard isOurs(path) else { return }
            deviceDidChange(path, heard: objects[path, "org.bluez.Device1"])
            if objects[path, "org.bluez.GattService1"] != nil { serviceDidCome(path) }
        }

        private func interfacesRemoved(_ path: String, _ interfaces: [String]) {
            objects.remove(path, interfaces)
            if path == adapterPath, interfaces.contains("org.bluez.Adapter1") {
                adapterPath = nil
                let which = path.split(separator: "/").last ?? ""
                change(to: .unsupported, "The adapter \(which) has been removed.")
                findAdapter()
            }
            guard isOurs(path) else { return }
            if interfaces.contains("org.bluez.Device1") { deviceDidLeave(path) }
            if interfaces.contains("org.bluez.GattService1") { serviceDidLeave(path) }
        }

        private func propertiesChanged(
            _ path: String, _ interface: String, _ changed: ObjectTree.Properties, _ invalidated: [String]
        ) {
            objects.change(path, interface, changed, invalidated: invalidated)
            if path == adapterPath, interface == "org.bluez.Adapter1" { powerDidChange() }
            guard isOurs(path) else { return }
            switch interface {
            case "org.bluez.Device1": deviceDidChange(path, heard: changed)
            case "org.bluez.GattCharacteristic1": characteristicDidChange(path, changed)
            default: break
            }
        }

        private func isOurs(_ path: String) -> Bool { adapterPath.map { path.hasPrefix($0 + "/") } ?? false }

        /// The adapter's object, when it is there.
        private func findAdapter() {
            let all = objects.paths(with: "org.bluez.Adapter1")
            adapterPath = wanted.map { "/org/bluez/\($0)" }.flatMap { all.contains($0) ? $0 : nil }
            if wanted == nil { adapterPath = all.first }
            guard adapterPath != nil else {
                let there = all.compactMap { $0.split(separator: "/").last }.joined(separator: ", ")
                change(
                    to: .unsupported,
                    there.isEmpty
                        ? "bluetoothd has no adapter. Plug one in, or look at `rfkill list` and `dmesg`."
                        : "bluetoothd has no adapter \(wanted ?? ""); there is \(there).")
                return
            }
            let bearers = Bearers.count(
                configuration: Bearers.read(configuration.daemonConfiguration),
                modalias: adapterPath.flatMap { objects[$0, "org.bluez.Adapter1"]?["Modalias"]?.text })
            shared.withLock { $0.bearers = bearers }
            powerDidChange()
        }

        private func powerDidChange() {
            guard let adapterPath, let adapter = objects[adapterPath, "org.bluez.Adapter1"] else { return }
            guard adapter["Powered"]?.bool == true else {
                return change(
                    to: .poweredOff, "It is switched off. Switch it on: rfkill unblock bluetooth; bluetoothctl power on"
                )
            }
            guard objects[adapterPath, "org.bluez.GattManager1"] != nil else {
                return change(to: .unsupported, "bluetoothd has no GATT for it. Is it an LE controller?")
            }
            change(to: .poweredOn, "")
        }

        // MARK: State

        private func change(to state: AdapterState, _ trouble: String) {
            let isNew = shared.withLock { shared in
                shared.trouble = trouble
                defer { shared.adapterState = state }
                return shared.adapterState != state
            }
            guard isNew else { return }
            if state != .poweredOn {
                let why = "Adapter \(name) cannot be used any more: \(trouble)"
                endEverything(BluetoothError(.notConnected, why))
            }
            let (peripherals, centrals) = shared.withLock { ($0.peripherals.all, $0.centrals.all) }
            for owner in peripherals { owner.events.peripheralAdapterDidChange(state) }
            for owner in centrals { owner.events.centralAdapterDidChange(state) }
        }

        /// Throws unless the adapter is powered on.
        nonisolated func requirePower() throws(BluetoothError) {
            try shared.withLock { (shared) throws(BluetoothError) in try shared.requirePower() }
        }

        // MARK: Owners

        /// Its first event is the adapter's state.
        func roleDidOpen(_ tell: (AdapterState) -> Void) {
            keptAlive = self
            tell(shared.withLock { $0.adapterState })
        }

        /// A role was closed; with the last one the engine lets go of itself.
        func roleDidClose() {
            let isUnused = shared.withLock { $0.peripherals.isEmpty && $0.centrals.isEmpty }
            if isUnused { keptAlive = nil }
        }

        /// Ends everything for good.
        func close() {
            guard !isClosed else { return }
            isClosed = true
            for connection in connections { endSubscriptions(of: connection) }
            // Only this adapter ends them: they are bluetoothd's.
            for path in Set(connections.map(\.path)).union(connecting.keys) {
                tell(path, "org.bluez.Device1", "Disconnect")
            }
            change(to: .unsupported, "The adapter object has been closed.")
            endChannels(of: nil)
            // The owners' objects are let go outside the lock: their end may call back.
            var (peripherals, centrals) = (OpenRoles<PeripheralOwner>(), OpenRoles<CentralOwner>())
            shared.withLock { shared in
                swap(&peripherals, &shared.peripherals)
                swap(&centrals, &shared.centrals)
            }
            bus?.close()
            bus = nil
            thread.beforeWaiting = { nil }
            keptAlive = nil
        }
    }
#endif
