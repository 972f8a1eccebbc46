import CoreBluetooth
import Ferry
import FerryBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// Scans and connections.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct CentralTests {
    @Test func reportsOnceUnlessDuplicatesAreAskedFor() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin(name: "one")
        let once = CentralSide(on: pair.far)
        let often = CentralSide(on: pair.far)
        let never = CentralSide(on: pair.far)
        for central in [once, often, never] { try await central.journal.wait(for: "state poweredOn") }
        once.manager.scanForPeripherals(withServices: [testService])
        never.manager.scanForPeripherals(withServices: [CBUUID(string: "180D")])
        often.manager.scanForPeripherals(
            withServices: nil, options: [CBCentralManagerScanOptionAllowDuplicatesKey: true])
        #expect(once.manager.isScanning)
        try await often.journal.wait(for: "discovered one", 5)
        try await once.journal.wait(for: "discovered")
        #expect(once.journal.count("discovered") == 1)
        #expect(never.journal.count("discovered") == 0)
        #expect(often.found.withLock { $0.rssi } == -40)
        often.manager.stopScan()
        #expect(!often.manager.isScanning)
        let first = try #require(often.found.withLock { $0.peripheral })
        #expect(first.name == "one")

        // Known by now, without a scan; always the same object; strangers are left out.
        let known = often.manager.retrievePeripherals(withIdentifiers: [UUID(), first.identifier])
        #expect(known.count == 1)
        #expect(known.first === first)
        #expect(often.manager.retrieveConnectedPeripherals(withServices: [testService]).isEmpty)
    }

    /// A program that awaits the answer of each call waits for ever without one.
    @Test func connectedPeripheralIsReportedAgain() async throws {
        let pair = try Pair()
        let far = PeripheralSide(on: pair.near)
        try await far.begin()
        let central = CentralSide(on: pair.far)
        let peripheral = try await central.find()
        // The second call finds the first under way, and has its answer.
        central.manager.connect(peripheral)
        central.manager.connect(peripheral)
        try await central.journal.wait(for: "connected")
        let characteristic = try await central.discover(peripheral)
        #expect(central.journal.count("connected") == 1)
        central.manager.connect(peripheral)
        try await central.journal.wait(for: "connected", 2)
        #expect(peripheral.state == .connected && characteristic.service?.peripheral === peripheral)
        #expect(peripheral.services != nil, "the connection is the same")
        central.manager.cancelPeripheralConnection(peripheral)
        try await central.journal.wait(for: "disconnected")
        #expect(central.journal.count("disconnected") == 1)
    }

    @Test func findsWhatOthersHaveConnected() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let one = CentralSide(on: pair.far)
        let other = CentralSide(on: pair.far)
        try await other.journal.wait(for: "state poweredOn")
        other.manager.registerForConnectionEvents(options: [.serviceUUIDs: [testService]])
        let (peer, _) = try await one.connect()
        try await other.journal.wait(for: "event peerConnected")
        let found = other.manager.retrieveConnectedPeripherals(withServices: [testService])
        #expect(found.map(\.identifier) == [peer.identifier])
        #expect(other.manager.retrieveConnectedPeripherals(withServices: [CBUUID(string: "180D")]).isEmpty)
        // Connected to the machine, not by this manager yet.
        let shared = try #require(found.first)
        #expect(shared.state == .disconnected)
        shared.delegate = other
        other.manager.connect(shared)
        try await other.journal.wait(for: "connected")
        _ = try await other.discover(shared)
        one.manager.cancelPeripheralConnection(peer)
        try await one.journal.wait(for: "disconnected ok")
        try await other.journal.wait(for: "event peerDisconnected")
        #expect(shared.state == .connected, "each manager has a connection of its own")
    }

    /// A pending connection does not expire, and is made when the peripheral is heard again.
    @Test func waitsForAPeripheralThatIsAway() async throws {
        let time = VirtualTime()
        let pair = try Pair(time: time)
        let peripheral = PeripheralSide(on: pair.near)
        let central = CentralSide(on: pair.far)
        let peer = try await time.passing {
            try await peripheral.begin()
            return try await central.find()
        }
        pair.radio.setInRange(false, between: pair.near, and: pair.far)
        central.manager.connect(peer)
        #expect(peer.state == .connecting)
        // Another central of the same adapter connects to another peripheral meanwhile.
        let others = (PeripheralSide(on: pair.radio.makeAdapter()), CentralSide(on: pair.far))
        try await time.passing {
            try await others.0.begin()
            _ = try await others.1.connect()
        }
        time.advance(by: .seconds(60))
        central.checked.queue.sync {}
        #expect(peer.state == .connecting)
        #expect(central.journal.all == ["state poweredOn", "discovered side"])
        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        try await time.passing { try await central.journal.wait(for: "connected") }
        #expect(peer.state == .connected)
    }

    @Test func cancelsAPendingConnection() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let peer = try await central.find()
        pair.radio.setInRange(false, between: pair.near, and: pair.far)
        central.manager.connect(peer)
        central.manager.cancelPeripheralConnection(peer)
        try await central.journal.wait(for: "disconnected ok")
        #expect(peer.state == .disconnected)
        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        central.manager.connect(peer, options: [CBConnectPeripheralOptionStartDelayKey: 0.01])
        try await central.journal.wait(for: "connected")
        central.manager.connect(peer, options: [CBConnectPeripheralOptionStartDelayKey: -1])
        try await central.journal.wait(for: "failed CBError invalidParameters")
    }

    /// Cancelled and asked for again in one breath.
    @Test func connectsAgainAfterACancellation() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, stale) = try await central.connect()
        for round in 1...3 {
            central.manager.cancelPeripheralConnection(peer)
            central.manager.connect(peer)
            try await central.journal.wait(for: "disconnected ok", round)
            try await central.journal.wait(for: "connected", round + 1)
        }
        // What was found on the first connection names nothing any more.
        peer.readValue(for: stale)
        try await central.journal.wait(for: "value 0 CBError invalidHandle")
        #expect(stale.service?.peripheral == nil || stale.service?.peripheral === peer)
    }

    @Test func reportsWhyAConnectionHasEnded() async throws {
        let pair = try Pair { $0.supervisionTimeout = .milliseconds(20) }
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.subscribe()
        pair.radio.setInRange(false, between: pair.near, and: pair.far)
        try await central.journal.wait(for: "disconnected CBError connectionTimeout")
        try await peripheral.journal.wait(for: "unsubscribed")
        #expect(peer.state == .disconnected)
        #expect(peer.services == nil)

        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        central.manager.connect(peer, options: [CBConnectPeripheralOptionEnableAutoReconnect: true])
        try await central.journal.wait(for: "connected", 2)
        pair.radio.setInRange(false, between: pair.near, and: pair.far)
        try await central.journal.wait(for: "disconnected CBError connectionTimeout reconnecting")
        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        try await central.journal.wait(for: "connected", 3)
        central.manager.cancelPeripheralConnection(peer)
        try await central.journal.wait(for: "disconnected ok")
        #expect(central.journal.count("disconnected") == 3, "one that was asked for is not made again")
    }

    /// Without power connections have ended, without a word for each.
    @Test func losesEverythingWithThePower() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        pair.far.setState(.poweredOff)
        try await central.journal.wait(for: "state poweredOff")
        #expect(peer.state == .disconnected)
        #expect(!central.manager.isScanning)
        let lines = MisuseLog.count("while in the connected state") {
            peer.readValue(for: characteristic)
            peer.discoverServices(nil)
        }
        #expect(lines == 2)
        pair.far.setState(.poweredOn)
        try await central.journal.wait(for: "state poweredOn", 2)
        central.manager.connect(peer)
        try await central.journal.wait(for: "connected", 2)
        #expect(central.journal.count("disconnected") == 0)
    }

    @Test func readsTheSignalAndNoticesANewName() async throws {
        let pair = try Pair()
        pair.radio.setRSSI(-67, between: pair.near, and: pair.far)
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin(name: "before")
        let central = CentralSide(on: pair.far)
        let (peer, _) = try await central.connect()
        peer.readRSSI()
        try await central.journal.wait(for: "rssi -67 ok")
        peripheral.manager.stopAdvertising()
        peripheral.manager.startAdvertising([
            CBAdvertisementDataLocalNameKey: "after", CBAdvertisementDataServiceUUIDsKey: [testService],
        ])
        central.manager.scanForPeripherals(withServices: [testService])
        try await central.journal.wait(for: "name after")
        #expect(peer.name == "after")
    }

    /// A peripheral that nobody keeps is let go of, and a manager takes its connections with it.
    @Test func letsGoOfWhatNobodyKeeps() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        do {
            let central = CentralSide(on: pair.far)
            _ = try await central.subscribe()
            try await peripheral.journal.wait(for: "subscribed", 1)
            central.found.withLock { $0.peripheral = nil }
            try await peripheral.journal.wait(for: "unsubscribed", 1)
        }
        weak var gone: CBCentralManager?
        var kept: CBPeripheral?
        do {
            let central = CentralSide(on: pair.far)
            gone = central.manager
            kept = try await central.subscribe().0
            try await peripheral.journal.wait(for: "subscribed", 2)
            central.found.withLock { $0.peripheral = nil }
        }
        try await peripheral.journal.wait(for: "unsubscribed", 2)
        #expect(gone == nil)
        #expect(kept?.state == .disconnected)
        weak var manager: CBPeripheralManager?
        do {
            let side = PeripheralSide(on: pair.far)
            try await side.begin()
            manager = side.manager
        }
        try await until("the end of the manager") { manager == nil }
    }

    /// On a concurrent queue callbacks still come one at a time and in order.
    @Test func keepsTheOrderOnAConcurrentQueue() async throws {
        let pair = try Pair { $0.transmitQueueDepth = 256 }
        let peripheral = PeripheralSide(on: pair.near, queue: CheckedQueue("many", concurrent: true))
        try await peripheral.begin()
        let central = CentralSide(on: pair.far, queue: CheckedQueue("many", concurrent: true))
        _ = try await central.subscribe()
        for byte in 0..<200 {
            try await until("room for \(byte)") {
                peripheral.manager.updateValue(
                    Data([UInt8(byte)]), for: peripheral.characteristic, onSubscribedCentrals: nil)
            }
        }
        try await central.journal.wait(for: "value", 200)
        #expect(central.values.withLock { $0 } == (0..<200).map { Data([UInt8($0)]) })
        #expect(peripheral.journal.count("WRONG QUEUE") + central.journal.count("WRONG QUEUE") == 0)
    }

    @Test func sharesErrorsWithFoundation() throws {
        let error: any Error = CBError(.connectionTimeout, userInfo: [NSLocalizedDescriptionKey: "too long"])
        let native = error as NSError
        #expect(native.domain == CBErrorDomain)
        #expect(native.code == 6)
        #expect(error.localizedDescription == "too long")
        #expect((error as? CBError)?.code == .connectionTimeout)
        do { throw error } catch CBError.connectionTimeout {} catch { Issue.record("not matched by its code") }
        do { throw CBATTError(.invalidOffset) } catch let error as CBATTError where error.code == .invalidOffset {}
    }
}
