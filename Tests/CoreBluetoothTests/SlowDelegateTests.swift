import CoreBluetooth
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// A delegate that does not keep up stops its peer, and loses nothing.
@Suite(.tags(.coreBluetooth), .timeLimit(.minutes(5))) struct SlowDelegateTests {
    @Test func pausesASenderOfUpdates() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near)
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        _ = try await central.subscribe()
        try await peripheral.journal.wait(for: "subscribed")
        central.checked.hold()

        // Sends until no ready signal comes any more; the queue then stays full.
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
        peripheral.checked.queue.async(execute: send)
        try await settled(central.checked.queue) { sent.withLock { $0 } }
        let stopped = sent.withLock { $0 }
        #expect((256...256 + 32).contains(stopped), "256 wait for the delegate, and some are in queues")

        central.checked.queue.resume()
        try await central.journal.wait(for: "value", 5000)
        #expect(central.values.withLock { $0 } == (0..<5000).map { Data([UInt8(truncatingIfNeeded: $0)]) })
    }

    @Test func pausesASenderOfWrites() async throws {
        let pair = try Pair()
        let peripheral = PeripheralSide(on: pair.near, properties: [.writeWithoutResponse])
        let received = Mutex<[Data]>([])
        peripheral.onWrite = { requests in received.withLock { $0 += requests.compactMap(\.value) } }
        try await peripheral.begin()
        let central = CentralSide(on: pair.far)
        let (peer, characteristic) = try await central.connect()
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
        central.checked.queue.async { send(peer) }
        try await settled(peripheral.checked.queue) { sent.withLock { $0 } }
        #expect((256...256 + 32).contains(sent.withLock { $0 }))

        peripheral.checked.queue.resume()
        try await peripheral.journal.wait(for: "write", 3000)
        #expect(received.withLock { $0 } == (0..<3000).map { Data([UInt8(truncatingIfNeeded: $0)]) })
    }

    /// Waits until a count above 256 has not changed for a while. A queue that is held does not outlive its test.
    private func settled(_ held: DispatchQueue, _ count: () -> Int) async throws {
        var (last, since) = (0, ContinuousClock.now)
        let deadline = since + .seconds(60)
        while last < 256 || ContinuousClock.now - since < .milliseconds(100) {
            let now = count()
            if now != last { (last, since) = (now, ContinuousClock.now) }
            // Also when the test is cancelled.
            try? await Task.sleep(for: .milliseconds(2))
            guard !Task.isCancelled, ContinuousClock.now < deadline else {
                held.resume()
                throw NotInTime(what: "a pause at \(now)")
            }
        }
    }
}
