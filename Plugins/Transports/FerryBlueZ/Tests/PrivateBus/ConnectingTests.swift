#if BlueZ
    @testable import FerryBlueZ
    import FerryBluetooth
    import Synchronization
    import TestSupport
    import Testing

    /// What bluetoothd says of a device while it is connected to, in every order that it may come in.
    @Suite(
        .tags(.adapter), .enabled(if: PrivateBus.isHere, "needs dbus-daemon; not in the virtual machine"),
        .timeLimit(.minutes(5)))
    struct ConnectingTests {
        private final class Nobody: CentralRoleEvents, Sendable {}

        private final class Owner: PeripheralConnectionEvents {
            let modified = Mutex<[[AttributeID]]>([])
            func peripheralDidModifyServices(_ services: [AttributeID]) { modified.withLock { $0.append(services) } }
            func peripheralDidDisconnect(_ reason: BluetoothError) {}
        }

        private static let battery = "0000180f-0000-1000-8000-00805f9b34fb"
        private static let connected: ObjectTree.Properties = ["Connected": .bool(true)]
        private static let resolved: ObjectTree.Properties = [
            "Connected": .bool(true), "ServicesResolved": .bool(true),
        ]
        private static let away: ObjectTree.Properties = ["Connected": .bool(false), "ServicesResolved": .bool(false)]

        /// A device that is not connected, and a central that would like it to be.
        private struct Setting {
            let bus: PrivateBus
            let daemon: FakeDaemon
            let adapter: BlueZAdapter
            let central: any CentralRole

            init() async throws {
                bus = try PrivateBus()
                daemon = try await FakeDaemon(bus.address)
                daemon.change(away)
                var configuration = BlueZConfiguration()
                configuration.busAddress = bus.address
                adapter = try await BlueZAdapter.open("bluez", configuration: configuration)
                central = adapter.openCentral(Nobody())
            }

            func connect(_ owner: Owner = Owner()) -> Task<any PeripheralConnection, any Error> {
                let peer = adapter.engine.shared.withLock { $0.peer(FakeDaemon.device) }
                return Task { try await central.connect(to: peer, events: owner) }
            }

            func untilCalled(_ member: String, times: Int = 1) async throws {
                try await until("\(times) x \(member) among \(daemon.called)") {
                    daemon.called.count { $0 == member } >= times
                }
            }

            /// bluetoothd finds a service, and says that there are no others.
            func findService() {
                daemon.addService("service0001", battery)
                daemon.change(resolved)
            }

            /// Waits until the device is disconnected for the so-many-th time, and connected to anew.
            func untilConnectedAnew(time: Int = 1) async throws {
                try await untilCalled("Disconnect", times: time)
                daemon.change(away)
                try await untilCalled("Connect", times: time + 1)
            }

            func close() {
                central.close()
                adapter.close()
                daemon.stop()
            }
        }

        @Test func servicesThatCouldNotBeFoundAreLookedForAgain() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let connecting = setting.connect()
            try await setting.untilCalled("Connect")
            setting.daemon.change(Self.resolved)
            try await setting.untilConnectedAnew()
            setting.findService()
            #expect(try await connecting.value.discoverServices(nil).count == 1)
        }

        @Test func aPeerWithoutServicesIsConnectedToInTheEnd() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let connecting = setting.connect()
            try await setting.untilCalled("Connect")
            for time in 1...2 {
                setting.daemon.change(Self.resolved)
                try await setting.untilConnectedAnew(time: time)
            }
            setting.daemon.change(Self.resolved)
            #expect(try await connecting.value.discoverServices(nil).isEmpty)
        }

        /// bluetoothd 5.66 tells what has changed in the device before it tells of the services.
        @Test func servicesThatAreToldLateAreThere() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let connecting = setting.connect()
            try await setting.untilCalled("Connect")
            setting.daemon.addService("service0001", Self.battery, isLate: true)
            setting.daemon.change(Self.resolved)
            #expect(try await connecting.value.discoverServices(nil).count == 1)
            #expect(!setting.daemon.called.contains("Disconnect"))
        }

        /// Its services may be older than the wait.
        @Test func aConnectionThatNobodyWaitedForIsNotGivenToWhoComesNext() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let calledOff = setting.connect()
            try await setting.untilCalled("Connect")
            setting.daemon.change(Self.connected)
            calledOff.cancel()
            await #expect(throws: BluetoothError.self) { try await calledOff.value }
            let connecting = setting.connect()
            setting.daemon.change(Self.resolved)
            try await setting.untilConnectedAnew()
            setting.findService()
            #expect(try await connecting.value.discoverServices(nil).count == 1)
        }

        @Test func aWaitThatIsCalledOffLeavesTheConnectionOfAnother() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let connecting = setting.connect()
            try await setting.untilCalled("Connect")
            setting.findService()
            let connection = try await connecting.value
            setting.daemon.answer(
                "Connect", with: .failure(BusError(name: "org.bluez.Error.InProgress", message: "In Progress")))
            let calledOff = setting.connect()
            try await setting.untilCalled("Connect", times: 2)
            calledOff.cancel()
            await #expect(throws: BluetoothError.self) { try await calledOff.value }
            try await until("the end of the wait") { await setting.adapter.engine.connecting.isEmpty }
            setting.daemon.answer("Connect", with: .success([]))
            _ = try await setting.connect().value
            #expect(!setting.daemon.called.contains("Disconnect"))
            #expect(try await connection.discoverServices(nil).count == 1)
        }

        /// bluetoothd 5.66 may crash when it is to disconnect while it finds the services, and may not tell that it does.
        @Test func aDeviceThatSeemsAwayIsNotDisconnectedAmidItsDiscovery() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let calledOff = setting.connect()
            try await setting.untilCalled("GetAll")
            setting.daemon.change(Self.connected, silently: true)
            calledOff.cancel()
            await #expect(throws: BluetoothError.self) { try await calledOff.value }
            try await until {
                setting.daemon.called.contains("Disconnect") || setting.daemon.called.suffix(2) == ["GetAll", "GetAll"]
            }
            setting.daemon.change(Self.resolved)
            try await setting.untilCalled("Disconnect")
            #expect(!setting.daemon.wasBusy(at: "Disconnect"))
        }

        @Test func newServicesAreTold() async throws {
            let setting = try await Setting()
            defer { setting.close() }
            let owner = Owner()
            let connecting = setting.connect(owner)
            try await setting.untilCalled("Connect")
            setting.findService()
            let connection = try await connecting.value
            setting.daemon.addService("service0002", Self.battery)
            try await until { owner.modified.withLock { $0 } == [[]] }
            #expect(try await connection.discoverServices(nil).count == 2)
        }
    }
#endif
