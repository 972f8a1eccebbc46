import CoreBluetooth
import FerryBluetooth
import FerryLoopback
import FerryTesting
import Foundation
import Synchronization
import TestSupport
import Testing

/// Calls in any order and any state, from several threads, while power and range come and go: nothing traps or hangs,
/// and everything works afterwards.
@Suite(.tags(.coreBluetooth, .hostility, .slow), .timeLimit(.minutes(5))) struct RandomCallTests {
    @Test(arguments: [1, 2, 3] as [UInt64]) func anythingAtAnyTime(seed: UInt64) async throws {
        let pair = try Pair {
            $0.supervisionTimeout = .milliseconds(5)
            $0.faults = .init(seed: seed, probabilities: [.readyEarly: 0.1])
        }
        // Between these two alone: the transfer at the end has an adapter of its own, whose values must arrive.
        try pair.radio.setFaults(
            .init(seed: seed, probabilities: [.disconnect: 0.01, .lose: 0.01]), between: pair.near, and: pair.far)
        let peripheral = PeripheralSide(on: pair.near, properties: [.read, .write, .writeWithoutResponse, .notify])
        let central = CentralSide(on: pair.far)
        let requests = Mutex<[CBATTRequest]>([])
        peripheral.onRead = { request in requests.withLock { $0.append(request) } }
        peripheral.onWrite = { group in requests.withLock { $0 += group } }
        peripheral.onChannel = { $0.outputStream.open() }

        async let first: Void = play(seed) { random in
            Self.act(on: peripheral, requests, pair, &random)
        }
        async let second: Void = play(seed &+ 100) { random in Self.act(on: central, &random) }
        async let third: Void = play(seed &+ 200, steps: 60, pause: 10) { random in Self.act(on: pair, &random) }
        _ = await (first, second, third)

        // All is well again: the same adapters carry a transfer.
        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        for adapter in [pair.near, pair.far] { adapter.setState(.poweredOn) }
        try pair.radio.setFaults(.init(), between: pair.near, and: pair.far)
        try await until("power again") { peripheral.manager.state == .poweredOn }
        peripheral.manager.removeAllServices()
        peripheral.manager.add(CBMutableService(type: CBUUID(string: "180F"), primary: true))
        try await peripheral.journal.wait(for: "added Battery ok")
        let server = PeripheralSide(on: pair.near)
        try await server.begin(name: "after")
        let client = CentralSide(on: pair.radio.makeAdapter())
        _ = try await client.subscribe()
        try await server.journal.wait(for: "subscribed")
        #expect(server.manager.updateValue(Data([1]), for: server.characteristic, onSubscribedCentrals: nil))
        try await client.journal.wait(for: "value 1 ok")
        #expect(peripheral.journal.count("WRONG QUEUE") + central.journal.count("WRONG QUEUE") == 0)
    }

    private func play(
        _ seed: UInt64, steps: Int = 600, pause: Double = 1, _ act: @escaping @Sendable (inout SplitMix64) -> Void
    ) async {
        await withCheckedContinuation { continuation in
            Thread {
                var random = SplitMix64(seed: seed)
                for _ in 0..<steps {
                    act(&random)
                    Thread.sleep(forTimeInterval: Double(random.next() % 3) * 0.000_3 * pause)
                }
                continuation.resume()
            }.start()
        }
    }

    private static func act(on pair: Pair, _ random: inout SplitMix64) {
        switch random.next() % 12 {
        case 0: pair.near.setState(.poweredOff)
        case 1: pair.far.setState(.resetting)
        case 2: pair.radio.setInRange(false, between: pair.near, and: pair.far)
        case 3, 4: pair.radio.setInRange(true, between: pair.near, and: pair.far)
        case 5, 6, 7: pair.near.setState(.poweredOn)
        default: pair.far.setState(.poweredOn)
        }
    }

    private static func act(
        on side: PeripheralSide, _ requests: borrowing Mutex<[CBATTRequest]>, _ pair: Pair,
        _ random: inout SplitMix64
    ) {
        let manager: CBPeripheralManager = side.manager
        switch random.next() % 16 {
        case 0, 1, 2: manager.add(side.service)
        case 3: manager.remove(side.service)
        case 4: manager.removeAllServices()
        case 5, 6: manager.startAdvertising([CBAdvertisementDataServiceUUIDsKey: [testService]])
        case 7: manager.stopAdvertising()
        case 8: manager.publishL2CAPChannel(withEncryption: random.next() % 2 == 0)
        case 9: manager.unpublishL2CAPChannel(CBL2CAPPSM(128 + random.next() % 4))
        case 10:
            side.service.characteristics = [side.characteristic]
            side.characteristic.properties = [.read, .write, .writeWithoutResponse, .notify]
        case 11, 12:
            let some = side.centrals.withLock { $0.last }
            manager.updateValue(
                Data(count: Int(random.next() % 600)), for: side.characteristic,
                onSubscribedCentrals: random.next() % 2 == 0 ? nil : some.map { [$0] })
        default:
            let some = requests.withLock { requests in
                defer { if requests.count > 3 { requests.removeFirst(2) } }
                return requests.first
            }
            guard let some else { return }
            some.value = Data(count: Int(random.next() % 700))
            manager.respond(to: some, withResult: random.next() % 3 == 0 ? .unlikelyError : .success)
        }
    }

    private static func act(on side: CentralSide, _ random: inout SplitMix64) {
        let manager: CBCentralManager = side.manager
        guard let peer = side.found.withLock({ $0.peripheral }) else {
            return manager.scanForPeripherals(withServices: random.next() % 2 == 0 ? nil : [testService])
        }
        peer.delegate = side
        let service = peer.services?.first
        let characteristic = service?.characteristics?.first
        switch random.next() % 20 {
        case 0: manager.scanForPeripherals(withServices: nil)
        case 1: manager.stopScan()
        case 2, 3, 4: manager.connect(peer)
        case 5: manager.cancelPeripheralConnection(peer)
        case 6, 7: peer.discoverServices(random.next() % 2 == 0 ? nil : [testService])
        case 8, 9: if let service { peer.discoverCharacteristics(nil, for: service) }
        case 10: if let service { peer.discoverIncludedServices(nil, for: service) }
        case 11: if let characteristic { peer.discoverDescriptors(for: characteristic) }
        case 12: if let characteristic { peer.readValue(for: characteristic) }
        case 13, 14:
            let value = Data(count: Int(random.next() % 600))
            if let characteristic {
                peer.writeValue(
                    value, for: characteristic, type: random.next() % 2 == 0 ? .withResponse : .withoutResponse)
            }
        case 15: if let characteristic { peer.setNotifyValue(random.next() % 4 > 0, for: characteristic) }
        case 16: peer.readRSSI()
        case 17: peer.openL2CAPChannel(CBL2CAPPSM(128 + random.next() % 4))
        case 18:
            if let descriptor = characteristic?.descriptors?.first {
                peer.readValue(for: descriptor)
                peer.writeValue(Data([1]), for: descriptor)
            }
        default:
            _ = manager.retrieveConnectedPeripherals(withServices: [testService])
            manager.registerForConnectionEvents(options: [.peripheralUUIDs: [peer.identifier]])
            side.channel.withLock { $0 = nil }
        }
    }
}
