import Ferry
import FerryBluetooth
import FerryLoopback
import FerryNearby
import FerryTesting
import Synchronization
import TestSupport
import Testing

@Suite(.tags(.adapter), .timeLimit(.minutes(5))) struct NearbyAdapterTests {
    @Test(arguments: AdapterConformance.Requirement.allCases)
    func keepsTheContract(_ requirement: AdapterConformance.Requirement) throws {
        let time = VirtualTime()
        let radio = LoopbackRadio(time: time)
        let kit = AdapterConformance(
            peripheral: NearbyAdapter(radio.makeAdapter(), loudness: -100),
            central: NearbyAdapter(radio.makeAdapter(), loudness: -100),
            time: .stepped(time))
        try time.run { try await kit.check(requirement) }
    }

    private final class Listener: CentralRoleEvents, Sendable {
        let journal = Journal()
        func centralDidDiscover(_ discovery: Discovery) { journal.add("found at \(discovery.rssi)") }
    }

    private final class Nobody: PeripheralRoleEvents {}

    /// Somebody who hears everything tells when there is something to be heard.
    @Test func whatIsFartherIsNotHeard() async throws {
        let radio = LoopbackRadio()
        let (near, all) = (Listener(), Listener())
        let deaf = NearbyAdapter(radio.makeAdapter(), loudness: 20).openCentral(near)
        let hearing = NearbyAdapter(radio.makeAdapter(), loudness: -127).openCentral(all)
        defer {
            deaf.close()
            hearing.close()
        }
        try deaf.startScan(ScanRequest(allowsDuplicates: true))
        try hearing.startScan(ScanRequest(allowsDuplicates: true))
        let peripheral = radio.makeAdapter().openPeripheral(Nobody())
        defer { peripheral.close() }
        _ = try await peripheral.startAdvertising(Advertisement(localName: "far"))
        try await all.journal.wait(for: "found")
        #expect(near.journal.all.isEmpty)
    }
}
