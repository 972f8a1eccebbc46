#if HCI
    import Ferry
    import FerryBluetooth
    import FerryHCI
    import Foundation
    import Synchronization
    import TestSupport
    import Testing

    /// Beacons and their data, between two adapters over controllers in a process of their own.
    @Suite(.tags(.adapter), .serialized, .timeLimit(.minutes(5)))
    struct BeaconTests {
        private final class Listener: CentralRoleEvents, PeripheralRoleEvents, Sendable {
            let journal = Journal()
            let last = Mutex<Discovery?>(nil)

            func centralAdapterDidChange(_ state: AdapterState) {}
            func peripheralAdapterDidChange(_ state: AdapterState) {}
            func centralDidDiscover(_ discovery: Discovery) {
                last.withLock { $0 = discovery }
                journal.add("heard")
            }
        }

        @Test func beaconsAreHeardWithTheirData() async throws {
            let radio = try await Radio.start(.virtualControllers)
            defer { radio.stop() }
            let beacon = try await HCIAdapter.open(radio.channels[0])
            let ears = try await HCIAdapter.open(radio.channels[1])
            let listener = Listener()
            let peripheral = beacon.openPeripheral(listener)
            let central = ears.openCentral(listener)
            var advertisement = Advertisement(
                localName: "A name that is longer than the rest leaves room for", services: [.battery],
                manufacturerData: [0x34, 0x12, 1, 2, 3], serviceData: [.heartRate: [9, 9]], isConnectable: false,
                interval: .milliseconds(100) ... .milliseconds(200))
            let report = try await peripheral.startAdvertising(advertisement)
            #expect(report.isNameShortened)
            try central.startScan(ScanRequest(services: [.battery]))
            try await listener.journal.wait(for: "heard")
            let heard = try #require(listener.last.withLock { $0 })
            #expect(heard.advertisement == report.advertised)
            #expect(!heard.advertisement.isConnectable)
            #expect(heard.advertisement.manufacturerData == [0x34, 0x12, 1, 2, 3])
            #expect(heard.advertisement.serviceData == [.heartRate: [9, 9]])
            central.stopScan()

            // These controllers are of Bluetooth 4.
            advertisement.isExtended = true
            let extended = advertisement
            let error = await #expect(throws: BluetoothError.self) { try await peripheral.startAdvertising(extended) }
            #expect(error?.code == .advertisingFailed)
            advertisement.isExtended = false
            advertisement.interval = .milliseconds(1) ... .milliseconds(2)
            let often = advertisement
            let refusal = await #expect(throws: BluetoothError.self) { try await peripheral.startAdvertising(often) }
            #expect(refusal?.code == .invalidArgument)
            peripheral.close()
            central.close()
            beacon.close()
            ears.close()
        }
    }
#endif
