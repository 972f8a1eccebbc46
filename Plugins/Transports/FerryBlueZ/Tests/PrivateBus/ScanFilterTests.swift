#if BlueZ
    @testable import FerryBlueZ
    import FerryBluetooth
    import TestSupport
    import Testing

    /// What a scan's options become for bluetoothd (org.bluez.Adapter(5), "SetDiscoveryFilter").
    @Suite(
        .tags(.adapter, .advertising), .enabled(if: PrivateBus.isHere, "needs dbus-daemon; not in the virtual machine"),
        .timeLimit(.minutes(5)))
    struct ScanFilterTests {
        private final class Nobody: CentralRoleEvents, Sendable {}

        /// Waits until bluetoothd has been told so: of several scans each begins the discovery anew.
        private func expect(
            _ requests: [ScanRequest], _ isSo: @escaping @Sendable (ObjectTree.Properties) -> Bool
        ) async throws {
            let bus = try PrivateBus()
            let daemon = try await FakeDaemon(bus.address)
            defer { daemon.stop() }
            var configuration = BlueZConfiguration()
            configuration.busAddress = bus.address
            let adapter = try await BlueZAdapter.open("bluez", configuration: configuration)
            defer { adapter.close() }
            let roles = requests.map { _ in adapter.openCentral(Nobody()) }
            for (role, request) in zip(roles, requests) { try role.startScan(request) }
            try await until {
                guard daemon.called.last == "StartDiscovery" else { return false }
                return daemon.arguments(of: "SetDiscoveryFilter").first.map { isSo($0.properties) } ?? false
            }
            for role in roles { role.close() }
        }

        private static let battery = BluetoothUUID(0x180F as UInt16)
        private static let heart = BluetoothUUID(0x180D as UInt16)

        private static let everything: ObjectTree.Properties = [
            "Transport": .string("le"), "DuplicateData": .bool(false),
        ]

        @Test func everythingIsLookedFor() async throws { try await expect([ScanRequest()]) { $0 == Self.everything } }

        @Test func servicesStrengthAndDuplicates() async throws {
            let request = ScanRequest(services: [Self.battery], allowsDuplicates: true, rssi: -70 ... -30)
            try await expect([request]) {
                $0 == [
                    "Transport": .string("le"), "DuplicateData": .bool(true), "RSSI": .int16(-70),
                    "UUIDs": .strings(["0000180f-0000-1000-8000-00805f9b34fb"]),
                ]
            }
        }

        /// bluetoothd has one filter for all scans of a program: the widest.
        @Test func twoScansShareOneFilter() async throws {
            let battery = ScanRequest(services: [Self.battery], rssi: -70...0)
            try await expect([battery, ScanRequest(services: [Self.heart], rssi: -90...0)]) {
                $0["RSSI"] == .int16(-90) && Set($0["UUIDs"]?.texts ?? []).count == 2
            }
            try await expect([battery, ScanRequest()]) { $0 == Self.everything }
        }
    }
#endif
