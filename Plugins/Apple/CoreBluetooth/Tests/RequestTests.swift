import CoreBluetooth
import Ferry
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// Reads and writes, from both sides.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct RequestTests {
    @Test func readsALongValueInPieces() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        let long = Data((0..<500).map { UInt8(truncatingIfNeeded: $0) })
        peripheral.onRead = { [weak peripheral] request in
            guard request.offset <= long.count else {
                peripheral?.manager.respond(to: request, withResult: .invalidOffset)
                return
            }
            request.value = long.subdata(in: request.offset..<long.count)
            peripheral?.manager.respond(to: request, withResult: .success)
        }
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        peer.readValue(for: characteristic)
        try await central.journal.wait(for: "value 500 ok")
        #expect(characteristic.value == long)
        #expect(peripheral.journal.all.filter { $0.hasPrefix("read") } == ["read at 0", "read at 184", "read at 368"])
    }

    @Test func refusesReads() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        let codes = Mutex<[CBATTError.Code]>([.invalidOffset, .readNotPermitted, .insufficientResources])
        peripheral.onRead = { [weak peripheral] request in
            peripheral?.manager.respond(to: request, withResult: codes.withLock { $0.removeFirst() })
        }
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        for code in ["invalidOffset", "readNotPermitted", "insufficientResources"] {
            peer.readValue(for: characteristic)
            try await central.journal.wait(for: "value 0 CBATTError \(code)")
        }
    }

    /// Long writes come as several requests: answered once, for the first, all or nothing.
    @Test func answersAGroupOfWritesOnce() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        let twice = Mutex(0)
        peripheral.onWrite = { [weak peripheral] requests in
            peripheral?.manager.respond(
                to: requests[0], withResult: requests.count > 1 ? .success : .writeNotPermitted)
            let lines = MisuseLog.count("answered already") {
                peripheral?.manager.respond(to: requests[requests.count - 1], withResult: .unlikelyError)
            }
            twice.withLock { $0 += lines }
        }
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        #expect(peer.maximumWriteValueLength(for: .withResponse) == 512)
        peer.writeValue(Data(count: 512), for: characteristic, type: .withResponse)
        try await central.journal.wait(for: "written ok")
        try await peripheral.journal.wait(for: "write 0+180 180+180 360+152")
        peer.writeValue(Data(count: 10), for: characteristic, type: .withResponse)
        try await central.journal.wait(for: "written CBATTError writeNotPermitted")
        try await peripheral.journal.wait(for: "write ", 2)
        peer.writeValue(Data(count: 513), for: characteristic, type: .withResponse)
        try await central.journal.wait(for: "written CBATTError invalidAttributeValueLength")
        #expect(twice.withLock { $0 } == 2, "both second answers were reported")
        #expect(central.journal.count("written") == 3)
    }

    @Test func answersReadsOfACachedValueByItself() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(
            on: pair.near, properties: [.read], permissions: [.readable], value: Data("cached".utf8))
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        peer.readValue(for: characteristic)
        try await central.journal.wait(for: "value 6 ok")
        #expect(characteristic.value == Data("cached".utf8))
        peer.writeValue(Data([1]), for: characteristic, type: .withResponse)
        try await central.journal.wait(for: "written CBATTError writeNotPermitted")
        #expect(peripheral.journal.count("read") == 0)
        #expect(peripheral.journal.count("write") == 0)
    }

    @Test(.serialized, arguments: [CBCharacteristicProperties.write, .writeWithoutResponse, .notify])
    func refusesToCacheAValueThatCanChange(property: CBCharacteristicProperties) async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near, properties: [.read, property], value: Data([1]))
        try await peripheral.journal.wait(for: "state poweredOn")
        let lines = MisuseLog.count("cached values must be read-only") { peripheral.manager.add(peripheral.service) }
        #expect(lines == 1)
        try await peripheral.journal.wait(for: "added \(testService) CBError invalidParameters")
    }

    /// Writes without response: the queue fills, says so, and says when it is ready; a value too long is dropped.
    @Test func writesWithoutResponse() async throws {
        let time = VirtualTime()
        let pair = try Pair(time: time) {
            $0.transmitQueueDepth = 4
            $0.connectionInterval = .milliseconds(5)
        }
        let peripheral = PeripheralSide(on: pair.near, properties: [.writeWithoutResponse])
        let received = Mutex<[Data]>([])
        peripheral.onWrite = { requests in received.withLock { $0 += requests.compactMap(\.value) } }
        let central = CentralSide(on: pair.far, quirks: .readyOnlyAfterFullQueue)
        let (peer, characteristic) = try await time.passing {
            try await peripheral.begin()
            return try await central.connect()
        }
        #expect(peer.maximumWriteValueLength(for: .withoutResponse) == 182)
        #expect(peer.canSendWriteWithoutResponse)

        var refusals = 0
        for byte in 0..<40 {
            if !peer.canSendWriteWithoutResponse {
                refusals += 1
                try await time.passing { try await central.journal.wait(for: "ready", refusals) }
            }
            #expect(peer.canSendWriteWithoutResponse)
            peer.writeValue(Data([UInt8(byte)]), for: characteristic, type: .withoutResponse)
        }
        try await time.passing { try await peripheral.journal.wait(for: "write", 40) }
        #expect(received.withLock { $0 } == (0..<40).map { Data([UInt8($0)]) })
        // First five are taken, of which one waits for a place. After the signal it has one of the four, so that four more are taken;
        // five, when it has left as well before the test goes on.
        #expect((7...9).contains(refusals), "\(refusals)")

        let lines = MisuseLog.count("more than maximumWriteValueLength") {
            peer.writeValue(Data(count: 183), for: characteristic, type: .withoutResponse)
        }
        #expect(lines == 1)
    }

    /// Whoever does not heed the queue loses what is above its depth and the twenty that are kept, and is told of it.
    @Test func dropsWritesThatOverflowTheQueue() async throws {
        let pair = try Pair {
            $0.transmitQueueDepth = 4
            $0.supervisionTimeout = .seconds(32)
        }
        let peripheral = PeripheralSide(on: pair.near, properties: [.writeWithoutResponse])
        let received = Mutex<[Data]>([])
        peripheral.onWrite = { requests in received.withLock { $0 += requests.compactMap(\.value) } }
        try await peripheral.begin()
        let central = CentralSide(on: pair.far, quirks: [.shallowWriteQueue, .readyOnlyAfterFullQueue])
        let (peer, characteristic) = try await central.connect()
        // Nothing leaves the queue meanwhile.
        pair.radio.setInRange(false, between: pair.near, and: pair.far)
        let lines = MisuseLog.count("the queue is full") {
            for byte in 0..<60 {
                peer.writeValue(Data([UInt8(byte)]), for: characteristic, type: .withoutResponse)
            }
        }
        pair.radio.setInRange(true, between: pair.near, and: pair.far)
        try await central.journal.wait(for: "ready")
        peer.writeValue(Data([99]), for: characteristic, type: .withoutResponse)
        try await peripheral.journal.wait(for: "write", 60 - lines + 1)
        #expect(lines == 60 - 4 - 20)
        let values = received.withLock { $0 }
        #expect(values.count == 60 - lines + 1)
        #expect(values.last == Data([99]))
        #expect(values.map { $0[0] } == values.map { $0[0] }.sorted(), "what arrives is in order")
    }

    /// A peripheral that asks for nothing loses no command to a request before it.
    @Test func keepsTheOrderOfRequestsAndCommands() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near, properties: [.read, .write, .writeWithoutResponse])
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        peer.writeValue(Data(count: 1), for: characteristic, type: .withResponse)
        peer.writeValue(Data(count: 2), for: characteristic, type: .withoutResponse)
        peer.readValue(for: characteristic)
        peer.writeValue(Data(count: 3), for: characteristic, type: .withoutResponse)
        peer.writeValue(Data(count: 4), for: characteristic, type: .withResponse)
        try await central.journal.wait(for: "written", 2)
        #expect(
            peripheral.journal.all.filter { $0.hasPrefix("read") || $0.hasPrefix("write") }
                == ["write 0+1", "write 0+2", "read at 0", "write 0+3", "write 0+4"])
        #expect(
            central.journal.all.filter { $0.hasPrefix("written") || $0.hasPrefix("value") }
                == ["written ok", "value 0 ok", "written ok"])
    }

    @Test func readsAndWritesDescriptors() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        peripheral.characteristic.descriptors = [
            CBMutableDescriptor(
                type: CBUUID(string: CBUUIDCharacteristicUserDescriptionString), value: "what it is"),
            CBMutableDescriptor(
                type: CBUUID(string: CBUUIDCharacteristicFormatString), value: Data([4, 0, 0, 0x27, 1, 0, 0])),
        ]
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
        peer.discoverDescriptors(for: characteristic)
        try await central.journal.wait(for: "descriptors")
        let found = Dictionary(
            uniqueKeysWithValues: (characteristic.descriptors ?? []).map { ($0.uuid.uuidString, $0) })
        #expect(Set(found.keys) == ["2901", "2902", "2904"])
        for descriptor in found.values { peer.readValue(for: descriptor) }
        try await central.journal.wait(for: "descriptor ", 3)
        #expect(found["2901"]?.value as? String == "what it is")
        #expect(found["2902"]?.value as? NSNumber == 0)
        #expect(found["2904"]?.value as? Data == Data([4, 0, 0, 0x27, 1, 0, 0]))
        #expect(found["2901"]?.characteristic === characteristic)

        let lines = MisuseLog.count("must be configured using setNotifyValue") {
            peer.writeValue(Data([1, 0]), for: found["2902"]!)
        }
        #expect(lines == 1)
        peer.writeValue(Data([1]), for: found["2901"]!)
        try await central.journal.wait(for: "descriptor written CBATTError")
    }
}
