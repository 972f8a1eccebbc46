#if BlueZ
    @testable import FerryBlueZ
    import FerryBluetooth
    import TestSupport
    import Testing

    /// bluetoothd is met while it starts: it answers that it has no adapter, and has one the next moment.
    @Suite(
        .tags(.adapter), .enabled(if: PrivateBus.isHere, "needs dbus-daemon; not in the virtual machine"),
        .timeLimit(.minutes(5)))
    struct DaemonStartTests {
        private func open(_ bus: PrivateBus) async throws -> BlueZAdapter {
            var configuration = BlueZConfiguration()
            configuration.busAddress = bus.address
            return try await BlueZAdapter.open("bluez", configuration: configuration, pairing: BlueZPairing())
        }

        @Test func anAdapterThatComesRightAfterTheAnswerIsFound() async throws {
            let bus = try PrivateBus()
            let daemon = try await FakeDaemon(bus.address, adapterComesLate: true)
            defer { daemon.stop() }
            let adapter = try await open(bus)
            defer { adapter.close() }
            try await until { adapter.state == .poweredOn }
        }

        @Test func soIsOneAfterBluetoothdWasStartedAgain() async throws {
            let bus = try PrivateBus()
            let first = try await FakeDaemon(bus.address)
            let adapter = try await open(bus)
            defer { adapter.close() }
            #expect(adapter.state == .poweredOn)
            first.stop()
            try await until { adapter.state == .resetting }
            let second = try await FakeDaemon(bus.address, adapterComesLate: true)
            defer { second.stop() }
            try await until { adapter.state == .poweredOn }
        }

        /// The answer comes, and the news that there is a bluetoothd; it takes a program's agent once only.
        @Test func oneThatIsStartedByAskingIsGivenTheAgentOnce() async throws {
            let bus = try PrivateBus()
            let opening = Task { try await open(bus) }
            try await until { bus.startsBluetoothd }
            let daemon = try await FakeDaemon(bus.address)
            defer { daemon.stop() }
            let adapter = try await opening.value
            defer { adapter.close() }
            #expect(adapter.state == .poweredOn)
            #expect(daemon.called.filter { $0.hasSuffix("Agent") } == ["RegisterAgent", "RequestDefaultAgent"])
        }
    }
#endif
