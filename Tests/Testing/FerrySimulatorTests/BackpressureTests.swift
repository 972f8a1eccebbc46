import Ferry
import FerryBluetooth
import FerryLoopback
import FerrySimulator
import Synchronization
import TestSupport
import Testing

/// What a link that is full, or that signals wrongly, costs real channels, measured in virtual time.
@Suite("Backpressure over simulated air", .tags(.simulator)) struct BackpressureTests {
    // MARK: A central that takes nothing

    @Test("A central of ten that reads nothing costs the others less than 5 %") func stuckCentral() throws {
        let alone = try delivered(stuck: nil)
        let beside = try delivered(stuck: 4)
        #expect(alone.allSatisfy { $0 > 20 }, "\(alone)")
        #expect(beside[4] == 0)
        let others = (alone.reduce(0, +) - alone[4], beside.reduce(0, +))
        print("nine centrals got \(others.0) messages beside a tenth that reads, \(others.1) beside one that does not")
        #expect(Double(others.1) > 0.95 * Double(others.0), "\(beside) against \(alone)")
    }

    /// Messages that each of ten centrals gets in ten seconds.
    private func delivered(stuck: Int?) throws -> [Int] {
        let rig = try LoopbackTests.Rig(
            link(interval: 50, dataLength: 251, attMTU: 247), queueDepth: 40, seed: 1, centrals: 10)
        return try VirtualRun.run(under: rig.time) {
            let time = rig.time
            var limits = Limits()
            limits.maximumInboundMessages = 8
            var pairs: [(MessageChannel<[UInt8], [UInt8]>, MessageChannel<[UInt8], [UInt8]>)] = []
            for (outbound, inbound) in try await rig.allLinks() {
                pairs.append(
                    (
                        try MessageChannel(over: outbound, codec: BytesCodec(), time: time),
                        try MessageChannel(over: inbound, codec: BytesCodec(), limits: limits, time: time)
                    ))
            }
            let counts = Counts(pairs.count)
            try await withThrowingTaskGroup(of: Void.self) { group in
                for (index, (sender, receiver)) in pairs.enumerated() {
                    group.addTask {
                        while !Task.isCancelled { try await sender.send([UInt8](repeating: 1, count: 1_000)) }
                    }
                    guard index != stuck else { continue }
                    group.addTask {
                        for try await _ in receiver.messages { counts.add(index) }
                    }
                }
                try await time.sleep(for: .seconds(10))
                group.cancelAll()
                for (sender, _) in pairs { sender.close() }
                while await group.nextResult() != nil {}
            }
            return counts.all
        }
    }

    private final class Counts: Sendable {
        private let counts: Mutex<[Int]>
        init(_ count: Int) { counts = Mutex(Array(repeating: 0, count: count)) }
        var all: [Int] { counts.withLock { $0 } }
        func add(_ index: Int) { counts.withLock { $0[index] += 1 } }
    }

    // MARK: Ready signals that go wrong for a while

    /// Messages a second before, while and after a hundred ready signals go wrong.
    private struct Rates {
        var before: Double
        var during: Double
        var after: Double
    }

    @Test(
        "Throughput falls while ready signals go wrong, and recovers",
        arguments: [LoopbackRadio.Faults.Kind.readyLate, .readyEarly, .readyNever])
    func recovers(kind: LoopbackRadio.Faults.Kind) throws {
        let rates = try rates(kind)
        print(
            "\(kind): \(Int(rates.before)) messages a second before, \(Int(rates.during)) during, \(Int(rates.after)) after"
        )
        #expect(abs(rates.after / rates.before - 1) < 0.05, "\(rates)")
        #expect(rates.during <= 1.05 * rates.before, "\(rates)")
        // A signal that is early costs nothing; where none comes, the channel's own probe goes on, every 15 ms.
        if kind != .readyEarly { #expect(rates.during < 0.9 * rates.before, "\(rates)") }
        #expect(rates.during > 0.02 * rates.before, "\(rates)")
    }

    private func rates(_ kind: LoopbackRadio.Faults.Kind) throws -> Rates {
        let faults = LoopbackRadio.Faults(script: (400..<500).map { .init(kind, at: $0) })
        let rig = try LoopbackTests.Rig(
            link(interval: 7.5, dataLength: 251, attMTU: 185), queueDepth: 3, seed: 1, faults: faults)
        let arrivals = try VirtualRun.run(under: rig.time) {
            let time = rig.time
            let (outbound, inbound) = try await rig.links()
            let sender = try MessageChannel(over: outbound, codec: BytesCodec(), time: time)
            let receiver = try MessageChannel(over: inbound, codec: BytesCodec(), time: time)
            async let sending: Void = {
                for number in 0..<600 { try await sender.send([UInt8](repeating: UInt8(number % 251), count: 700)) }
            }()
            var arrivals: [(time: Timestamp, faults: Int)] = []
            for try await message in receiver.messages {
                #expect(message == [UInt8](repeating: UInt8(arrivals.count % 251), count: 700))
                arrivals.append((time.now, rig.radio.injectedFaults[kind] ?? 0))
                if arrivals.count == 600 { break }
            }
            try await sending
            return arrivals
        }
        func rate(_ part: ArraySlice<(time: Timestamp, faults: Int)>) throws -> Double {
            let (first, last) = (try #require(part.first), try #require(part.last))
            return Double(part.count - 1) / ((last.time - first.time) / .seconds(1))
        }
        let begin = try #require(arrivals.firstIndex { $0.faults > 0 })
        let end = try #require(arrivals.firstIndex { $0.faults == 100 })
        // A hundred signals that are early all come at once: each leads to the refusal that brings the next.
        return try Rates(
            before: rate(arrivals[20..<begin]), during: rate(arrivals[(begin - 3)...(end + 3)]),
            after: rate(arrivals[(end + 4)...]))
    }
}
