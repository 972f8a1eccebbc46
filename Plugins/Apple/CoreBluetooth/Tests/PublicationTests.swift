import CoreBluetooth
import FerryBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// Services, advertisements and states of the peripheral role.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct PublicationTests {
    @Test func freezesAServiceWhilePublished() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let other = CBMutableCharacteristic(
            type: CBUUID(string: "2A19"), properties: .read, value: nil, permissions: [])
        let lines = MisuseLog.count("cannot be changed after the service has been added") {
            peripheral.service.characteristics = [other]
            peripheral.service.includedServices = []
            peripheral.characteristic.properties = .read
            peripheral.characteristic.permissions = []
            peripheral.characteristic.descriptors = []
        }
        #expect(lines == 5)
        #expect(peripheral.service.characteristics == [peripheral.characteristic])
        #expect(peripheral.characteristic.properties == [.read, .write, .notify])
        #expect(peripheral.characteristic.permissions == [.readable, .writeable])

        let again = MisuseLog.count("has been added already") { peripheral.manager.add(peripheral.service) }
        #expect(again == 1)

        peripheral.manager.remove(peripheral.service)
        // The next addition is carried out after it.
        peripheral.manager.add(CBMutableService(type: CBUUID(string: "180F"), primary: true))
        try await peripheral.journal.wait(for: "added Battery ok")
        peripheral.service.characteristics = [other]
        #expect(peripheral.service.characteristics == [other])
        peripheral.manager.add(peripheral.service)
        try await peripheral.journal.wait(for: "added \(testService) ok", 2)
    }

    @Test func tellsCentralsOfServicesThatAreWithdrawn() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.subscribe()
        peripheral.manager.removeAllServices()
        try await central.journal.wait(for: "modified [\(testService)]")
        #expect(peer.services == [])
        peer.readValue(for: characteristic)
        try await central.journal.wait(for: "value 0 CB")
    }

    @Test func includesServices() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        let battery = CBMutableService(type: CBUUID(string: "180F"), primary: false)
        peripheral.service.includedServices = [battery]
        try await peripheral.journal.wait(for: "state poweredOn")
        peripheral.manager.add(peripheral.service)
        try await peripheral.journal.wait(for: "added \(testService) CBError invalidParameters")
        peripheral.manager.add(battery)
        try await peripheral.journal.wait(for: "added Battery ok")
        try await peripheral.begin()

        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.connect()
        peer.discoverServices(nil)
        try await central.journal.wait(for: "services", 2)
        #expect(peer.services?.map(\.uuid) == [testService], "a secondary service is found where it is included only")
        peer.discoverIncludedServices(nil, for: try #require(peer.services?.first))
        try await central.journal.wait(for: "included [Battery] ok")
        #expect(peer.services?.first?.includedServices?.first?.isPrimary == false)
    }

    @Test(arguments: [
        // 28 bytes in the first packet, 2 of them for each structure's head; 12 in the scan response for the name.
        (50, 0, 26, 0), (50, 1, 10, 0), (8, 1, 8, 0), (50, 2, 10, 1), (4, 4, 4, 3),
    ]) func advertisesWithinTheBudget(name: Int, services: Int, heard: Int, overflow: Int) async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.journal.wait(for: "state poweredOn")
        let uuids = (0..<services).map { CBUUID(string: "0000000\($0)-0000-0000-0000-0000000000FE") }
        peripheral.manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: String(repeating: "n", count: name),
            CBAdvertisementDataServiceUUIDsKey: uuids,
            CBAdvertisementDataManufacturerDataKey: Data([1, 2, 3]),
        ])
        try await peripheral.journal.wait(for: "advertising ok")
        #expect(MisuseLog.count("key kCBAdvDataManufacturerData is not allowed") > 0)
        let central = CentralSide(on: pair.far)
        try await central.journal.wait(for: "state poweredOn")
        // Those in the overflow area are found too, by those who look for them.
        central.manager.scanForPeripherals(withServices: uuids.last.map { [$0] })
        try await central.journal.wait(for: "discovered")
        let data = central.found.withLock { $0.advertisement }
        #expect((data[CBAdvertisementDataLocalNameKey] as? String)?.count == heard)
        #expect((data[CBAdvertisementDataOverflowServiceUUIDsKey] as? [CBUUID])?.count ?? 0 == overflow)
        #expect((data[CBAdvertisementDataServiceUUIDsKey] as? [CBUUID])?.count ?? 0 == services - overflow)
        #expect(data[CBAdvertisementDataManufacturerDataKey] == nil)
        #expect(data[CBAdvertisementDataIsConnectable] as? Bool == true)
    }

    @Test func advertisesOneThingAtATime() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        #expect(peripheral.manager.isAdvertising)
        peripheral.manager.startAdvertising(nil)
        try await peripheral.journal.wait(for: "advertising CBError alreadyAdvertising")
        peripheral.manager.stopAdvertising()
        #expect(!peripheral.manager.isAdvertising)
        peripheral.manager.startAdvertising(nil)
        try await peripheral.journal.wait(for: "advertising ok", 2)
    }

    /// Everything needs poweredOn; until then commands are reported and ignored.
    @Test func refusesEverythingWithoutPower() async throws {
        let pair = try Pair()
        pair.near.setState(.poweredOff)
        let peripheral = PeripheralSide(on: pair.near)
        let central = CentralSide(on: pair.near)
        #expect(peripheral.manager.state == .unknown || peripheral.manager.state == .poweredOff)
        try await peripheral.journal.wait(for: "state poweredOff")
        try await central.journal.wait(for: "state poweredOff")
        let lines = MisuseLog.count("while in the powered on state") {
            peripheral.manager.add(peripheral.service)
            peripheral.manager.remove(peripheral.service)
            peripheral.manager.removeAllServices()
            peripheral.manager.startAdvertising(nil)
            peripheral.manager.stopAdvertising()
            peripheral.manager.publishL2CAPChannel(withEncryption: false)
            peripheral.manager.unpublishL2CAPChannel(128)
            #expect(
                !peripheral.manager.updateValue(
                    Data([1]), for: peripheral.characteristic, onSubscribedCentrals: nil))
            central.manager.scanForPeripherals(withServices: nil)
            central.manager.registerForConnectionEvents()
        }
        #expect(lines == 10)
        #expect(!central.manager.isScanning)

        pair.near.setState(.poweredOn)
        try await peripheral.begin()
        #expect(
            peripheral.journal.all == [
                "state poweredOff", "state poweredOn", "added \(testService) ok", "advertising ok",
            ])
        // Off again: the services are gone, and can be added again.
        pair.near.setState(.poweredOff)
        try await peripheral.journal.wait(for: "state poweredOff", 2)
        #expect(!peripheral.manager.isAdvertising)
        pair.near.setState(.poweredOn)
        try await peripheral.journal.wait(for: "state poweredOn", 2)
        peripheral.manager.add(peripheral.service)
        try await peripheral.journal.wait(for: "added \(testService) ok", 2)
    }

    /// What a program does wrong is reported and ignored.
    @Test func survivesMisuse() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let stray = CBMutableCharacteristic(
            type: testCharacteristic, properties: .notify, value: nil, permissions: .readable)
        let lines = MisuseLog.count("has not been added") {
            #expect(!peripheral.manager.updateValue(Data([1]), for: stray, onSubscribedCentrals: nil))
        }
        #expect(lines == 1)

        // A central of another radio, which this manager has never met.
        let elsewhere = try Pair()
        let strangers = PeripheralSide(on: elsewhere.near)
        try await strangers.begin()
        let stranger = CentralSide(on: elsewhere.far)
        _ = try await stranger.subscribe()
        try await strangers.journal.wait(for: "subscribed")
        #expect(
            peripheral.manager.updateValue(
                Data([1]), for: peripheral.characteristic,
                onSubscribedCentrals: strangers.centrals.withLock { $0 }))
        #expect(peripheral.manager.updateValue(Data(), for: peripheral.characteristic, onSubscribedCentrals: []))

        // A characteristic of the other manager.
        let foreign = MisuseLog.count("has not been added") {
            #expect(
                !peripheral.manager.updateValue(
                    Data([1]), for: strangers.characteristic, onSubscribedCentrals: nil))
        }
        #expect(foreign == 1)
        peripheral.manager.remove(strangers.service)
        peripheral.manager.remove(CBMutableService(type: testService, primary: true))
        peripheral.manager.setDesiredConnectionLatency(.low, for: strangers.centrals.withLock { $0[0] })

        let wrong = CBMutableService(type: CBUUID(string: "1234"), primary: true)
        let characteristic = CBMutableCharacteristic(
            type: testCharacteristic, properties: [.read, .broadcast], value: nil, permissions: .readable)
        wrong.characteristics = [characteristic]
        peripheral.manager.add(wrong)
        try await peripheral.journal.wait(for: "added 1234 CBError invalidParameters", 1)
        characteristic.properties = .read
        characteristic.descriptors = [CBMutableDescriptor(type: CBUUID(string: "2902"), value: Data([0, 0]))]
        peripheral.manager.add(wrong)
        try await peripheral.journal.wait(for: "added 1234 CBError invalidParameters", 2)
        characteristic.descriptors = nil
        peripheral.manager.add(wrong)
        try await peripheral.journal.wait(for: "added 1234 ok")

        for text in ["", "18", "zzzz", "12345", "E07F0AE8-00BB-47F5-94F4", "E07F0AE8+00BB-47F5-94F4-4A7174EA3032"] {
            let reported = MisuseLog.count("CBUUID(string:)") { _ = CBUUID(string: text) }
            #expect(reported == 1, "\(text)")
        }
        #expect(MisuseLog.count("CBUUID(data:)") { _ = CBUUID(data: Data(count: 3)) } == 1)
        // The managers work on.
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
    }
}
