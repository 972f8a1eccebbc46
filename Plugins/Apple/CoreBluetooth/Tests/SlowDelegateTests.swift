import CoreBluetooth
import Ferry
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// A delegate that does not keep up stops its peer, and loses nothing.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct SlowDelegateTests {
    @Test func pausesASenderOfUpdates() async throws {
        let time = VirtualTime()
        let pair = try Pair(time: time)
        let peripheral = PeripheralSide(on: pair.near)
        let central = CentralSide(on: pair.far)
        try await time.passing {
            try await peripheral.begin()
            _ = try await central.subscribe()
            try await peripheral.journal.wait(for: "subscribed")
        }
        central.checked.hold()

        let sent = Mutex(0)
        let send: @Sendable () -> Void = { [weak peripheral] in
            guard let peripheral else { return }
            sent.withLock { sent in
                while sent < 5000,
                    peripheral.manager.updateValue(
                        Data([UInt8(truncatingIfNeeded: sent)]), for: peripheral.characteristic,
                        onSubscribedCentrals: nil)
                { sent += 1 }
            }
        }
        peripheral.onReady = send
        // Each step carries a value at least while there is room for it; then the queue stays full.
        for _ in 0..<5000 {
            peripheral.checked.queue.sync(execute: send)
            time.advance(by: .milliseconds(1))
        }
        let stopped = sent.withLock { $0 }
        #expect((256...256 + 32).contains(stopped), "256 wait for the delegate, and some are in queues")

        central.checked.queue.resume()
        try await time.passing { try await central.journal.wait(for: "value", 5000) }
        #expect(central.values.withLock { $0 } == (0..<5000).map { Data([UInt8(truncatingIfNeeded: $0)]) })
    }

    @Test func pausesASenderOfWrites() async throws {
        let time = VirtualTime()
        let pair = try Pair(time: time)
        let peripheral = PeripheralSide(on: pair.near, properties: [.writeWithoutResponse])
        let received = Mutex<[Data]>([])
        peripheral.onWrite = { requests in received.withLock { $0 += requests.compactMap(\.value) } }
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await time.passing {
            try await peripheral.begin()
            return try await central.connect()
        }
        peripheral.checked.hold()

        let sent = Mutex(0)
        let send: @Sendable (CBPeripheral) -> Void = { peer in
            sent.withLock { sent in
                while sent < 3000, peer.canSendWriteWithoutResponse {
                    peer.writeValue(
                        Data([UInt8(truncatingIfNeeded: sent)]), for: characteristic, type: .withoutResponse)
                    sent += 1
                }
            }
        }
        central.onReady = send
        for _ in 0..<3000 {
            central.checked.queue.sync { send(peer) }
            time.advance(by: .milliseconds(1))
        }
        let stopped = sent.withLock { $0 }
        #expect((256...256 + 32).contains(stopped))

        peripheral.checked.queue.resume()
        try await time.passing { try await peripheral.journal.wait(for: "write", 3000) }
        #expect(received.withLock { $0 } == (0..<3000).map { Data([UInt8(truncatingIfNeeded: $0)]) })
    }
}
