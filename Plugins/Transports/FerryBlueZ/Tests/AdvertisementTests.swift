#if BlueZ && os(Linux)
    import FerryBluetooth
    import FerryTesting
    import Synchronization
    import TestSupport
    import Testing

    @testable import FerryBlueZ

    /// Advertisements in bluetoothd's words (doc/org.bluez.LEAdvertisement.rst).
    @Suite(.tags(.adapter)) struct AdvertisementTests {
        @Test func propertiesAreBluetoothds() {
            var advertisement = Advertisement(localName: "card", services: [.battery])
            #expect(
                advertisement.bluezProperties == [
                    "Type": .string("peripheral"), "Discoverable": .bool(true), "LocalName": .string("card"),
                    "ServiceUUIDs": .strings(["0000180f-0000-1000-8000-00805f9b34fb"]),
                ])
            advertisement = Advertisement(
                manufacturerData: [0x34, 0x12, 1, 2], serviceData: [.battery: [99]], isConnectable: false)
            #expect(
                advertisement.bluezProperties == [
                    "Type": .string("broadcast"), "ServiceUUIDs": .strings([]),
                    "ManufacturerData": .dictionary(
                        "q", "v", [.init(key: .uint16(0x1234), value: .variant(.bytes([1, 2])))]),
                    "ServiceData": .dictionary(
                        "s", "v",
                        [
                            .init(
                                key: .string("0000180f-0000-1000-8000-00805f9b34fb"), value: .variant(.bytes([99])))
                        ]),
                ])
        }

        private final class Ears: CentralRoleEvents, Sendable {
            let found = Mutex<[AdvertisementData]>([])

            func centralAdapterDidChange(_ state: AdapterState) {}
            func centralDidDiscover(_ discovery: Discovery) {
                found.withLock { $0.append(discovery.advertisement) }
            }
        }

        /// bluetoothd takes them, and the other one hears them.
        @Test(
            .enabled(if: Machine.isHere, "runs in the virtual machine: scripts/interop bluez"), .timeLimit(.minutes(5)))
        func aBeaconGoesOnTheAir() async throws {
            let (serving, asking) = try await Machine.adapters()
            let (peripheral, ears) = (serving.openPeripheral(Deaf()), Ears())
            let service = BluetoothUUID(0xFE77 as UInt16)
            _ = try await peripheral.startAdvertising(
                Advertisement(
                    services: [service], manufacturerData: [0x34, 0x12, 1, 2], serviceData: [.battery: [99]],
                    isConnectable: false))
            let central = asking.openCentral(ears)
            try central.startScan(ScanRequest(services: [service], allowsDuplicates: true))
            try await Machine.time.wait("beacon", for: "its data") {
                ears.found.withLock {
                    $0.contains { $0.manufacturerData == [0x34, 0x12, 1, 2] && $0.serviceData == [.battery: [99]] }
                }
            }
            central.close()
            peripheral.close()
        }
    }
#endif
