import CoreBluetooth
import Ferry
import FerryLoopback
import Foundation
import Synchronization
import TestSupport
import Testing

/// Many centrals on one peripheral manager, sending as hard as the queue allows.
@Suite(.tags(.coreBluetooth, .slow), .serialized, .timeLimit(.minutes(10))) struct StressTests {
    /// How many updates are sent in all; `scripts/check updates` sends a million.
    private static let updates =
        ProcessInfo.processInfo.environment["COREBLUETOOTH_UPDATES"].flatMap { Int($0) } ?? 10_000

    /// One update to each central in turn: everybody receives its own, all of them, in order; each refusal is followed
    /// by a ready signal; every callback is on its queue.
    @Test(arguments: [1, 100]) func everybodyReceivesItsOwn(centralCount: Int) async throws {
        let count = Self.updates / (centralCount == 1 ? 1 : centralCount)
        let time = VirtualTime()
        let pair = try Pair(time: time) {
            $0.transmitQueueDepth = Self.updates > 10_000 ? 1000 : 100
            $0.connectionInterval = .milliseconds(1)
            $0.attMTU = 185
        }
        let peripheral = PeripheralSide(on: pair.near)
        let sender = Sender(peripheral, centralCount: centralCount, count: count)
        peripheral.onReady = { [weak sender] in sender?.ready() }
        let queue = CheckedQueue("centrals", concurrent: true)
        let receivers = (0..<centralCount).map { _ in
            Receiver(CentralSide(on: pair.radio.makeAdapter(), queue: queue))
        }
        try await time.passing {
            try await peripheral.begin()
            for receiver in receivers { _ = try await receiver.central.subscribe() }
            try await peripheral.journal.wait(for: "subscribed", centralCount)
        }
        // Time stands still until the queue is full.
        sender.start()
        try await until("a refusal") { sender.counts.refusals > 0 }
        var sum = 0
        try await time.passing {
            try await until("\(sum) of \(count * centralCount) values, sender \(sender.counts)") {
                sum = receivers.reduce(0) { $0 + $1.state.received }
                return sum >= count * centralCount
            }
        }

        #expect(Set(receivers.map(\.state.number)).count == centralCount, "nobody hears another's")
        for receiver in receivers {
            #expect(receiver.state.received == count)
            #expect(receiver.state.mistakes == 0, "in order, on the queue, and the same sender's number")
        }
        let (refusals, readies) = sender.counts
        #expect(refusals > 0)
        #expect(refusals == readies, "one ready signal for each refusal")
        #expect(peripheral.journal.count("WRONG QUEUE") == 0)
        #expect(receivers.allSatisfy { $0.central.journal.count("WRONG QUEUE") == 0 })
    }
}

/// Sends numbered values to each central in turn, on the manager's queue as programs do.
private final class Sender: Sendable {
    private struct State {
        var central = 0
        var number = 0
        var refusals = 0
        var readies = 0
    }
    private let state = Mutex(State())
    private let side: PeripheralSide
    private let centralCount: Int
    private let count: Int

    init(_ side: PeripheralSide, centralCount: Int, count: Int) {
        self.side = side
        self.centralCount = centralCount
        self.count = count
    }

    var counts: (refusals: Int, readies: Int) { state.withLock { ($0.refusals, $0.readies) } }

    func start() { side.checked.queue.async { self.send() } }

    func ready() {
        state.withLock { $0.readies += 1 }
        send()
    }

    private func send() {
        let centrals = side.centrals.withLock { $0 }
        while true {
            let next: (central: Int, number: Int)? = state.withLock { state in
                state.number < count ? (state.central, state.number) : nil
            }
            guard let next else { return }
            let value = Data([
                UInt8(truncatingIfNeeded: next.central), UInt8(truncatingIfNeeded: next.number),
                UInt8(truncatingIfNeeded: next.number >> 8), UInt8(truncatingIfNeeded: next.number >> 16),
            ])
            guard
                side.manager.updateValue(
                    value, for: side.characteristic, onSubscribedCentrals: [centrals[next.central]])
            else {
                state.withLock { $0.refusals += 1 }
                return
            }
            state.withLock { state in
                state.central = (next.central + 1) % centralCount
                if state.central == 0 { state.number += 1 }
            }
        }
    }
}

/// Checks what one central receives.
private final class Receiver: Sendable {
    struct State {
        var number: UInt8?
        var received = 0
        var mistakes = 0
    }
    private let guarded = Mutex(State())
    let central: CentralSide
    var state: State { guarded.withLock { $0 } }

    init(_ central: CentralSide) {
        self.central = central
        central.onValue = { [weak self] value in self?.take(value) }
    }

    private func take(_ value: Data) {
        let isOnQueue = central.checked.isCurrent
        guarded.withLock { state in
            let bytes = [UInt8](value)
            let number = bytes.count == 4 ? Int(bytes[1]) | Int(bytes[2]) << 8 | Int(bytes[3]) << 16 : -1
            if number != state.received || !isOnQueue || (state.number ?? bytes[0]) != bytes[0] { state.mistakes += 1 }
            state.number = bytes.first
            state.received += 1
        }
    }
}
