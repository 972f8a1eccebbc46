import Ferry
import FerryBluetooth
import FerryLoopback
import Synchronization
import TestSupport
import Testing

/// Faults on demand: each kind where it was asked for, and the same again from the same seed.
@Suite(.tags(.adapter)) struct FaultTests {
    /// Sends `count` values of 20 bytes under faults, probing every 15 ms as channels do, and tells what came of it.
    private func play(
        _ faults: LoopbackRadio.Faults, count: Int = 8
    ) async throws -> (values: [[UInt8]], journal: [String], injected: [LoopbackRadio.Faults.Kind: Int]) {
        let world = try World { $0.faults = faults }
        let characteristic = try await world.publish().characteristics[0]
        let (connection, owner) = try await world.connect()
        try await world.run { try await connection.setSubscription(.notify, to: characteristic) }
        let next = Mutex(0)
        let peripheral = world.peripheral
        let fill: @Sendable () -> Void = {
            next.withLock { next in
                while next < count {
                    let value = [UInt8(truncatingIfNeeded: next)] + [UInt8](repeating: 9, count: 19)
                    guard (try? peripheral.tryUpdateValue(value.span.bytes, of: characteristic, for: .all)) == true
                    else { return }
                    next += 1
                }
            }
        }
        world.peripheralOwner.actions.withLock { $0.onReady = fill }
        fill()
        world.settle()
        for _ in 0..<count {
            world.time.advance(by: .milliseconds(15))
            fill()
        }
        world.settle()
        return (
            owner.values.withLock { $0 }, owner.journal.all + world.peripheralOwner.journal.all,
            world.radio.injectedFaults
        )
    }

    private func numbers(_ values: [[UInt8]]) -> [Int] { values.map { Int($0[0]) } }

    @Test func scriptedFaultsStrikeWhereTheyAreAskedFor() async throws {
        let lost = try await play(.init(script: [.init(.lose, at: 3)]))
        #expect(numbers(lost.values) == [0, 1, 3, 4, 5, 6, 7] && lost.injected == [.lose: 1])
        let doubled = try await play(.init(script: [.init(.double, at: 3)]))
        #expect(numbers(doubled.values) == [0, 1, 2, 2, 3, 4, 5, 6, 7] && doubled.injected == [.double: 1])
        let reordered = try await play(.init(script: [.init(.reorder, at: 3)]))
        #expect(numbers(reordered.values) == [0, 1, 3, 2, 4, 5, 6, 7] && reordered.injected == [.reorder: 1])
        let cut = try await play(.init(seed: 1, script: [.init(.truncate, at: 3)]))
        #expect(numbers(cut.values) == Array(0..<8) && cut.injected == [.truncate: 1])
        #expect(cut.values.map(\.count).enumerated().allSatisfy { $0 == 2 ? $1 < 20 : $1 == 20 })
        let ended = try await play(.init(script: [.init(.disconnect, at: 3)]))
        #expect(numbers(ended.values) == [0, 1] && ended.injected == [.disconnect: 1])
        #expect(ended.journal.count { $0 == "disconnected connectionTimeout" } == 2)
    }

    @Test func aChangedMTUIsTold() async throws {
        var faults = LoopbackRadio.Faults(script: [.init(.changeMTU, at: 3)])
        faults.mtuRange = 30...30
        let played = try await play(faults)
        #expect(played.values.count == 8 && played.injected == [.changeMTU: 1])
        #expect(played.journal.filter { $0.hasPrefix("mtu") } == ["mtu 185", "mtu 30"])
    }

    @Test func readySignalsComeEarlyLateOrNever() async throws {
        let never = try await play(.init(probabilities: [.readyNever: 1]), count: 40)
        #expect(numbers(never.values) == Array(0..<40))
        #expect(!never.journal.contains("ready") && never.injected[.readyNever, default: 0] >= 4)
        let late = try await play(.init(probabilities: [.readyLate: 1]), count: 40)
        #expect(numbers(late.values) == Array(0..<40) && late.injected[.readyLate, default: 0] >= 4)
        let early = try await play(.init(script: [.init(.readyEarly, at: 1)]), count: 40)
        #expect(numbers(early.values) == Array(0..<40) && early.injected == [.readyEarly: 1])
    }

    @Test func aWrongMTUIsReportedBeforeTheExchange() async throws {
        let world = try World {
            $0.faults.wrongMTU = 512
            $0.connectionInterval = .milliseconds(50)
        }
        let characteristic = try await world.publish().characteristics[0]
        let (connection, owner) = try await world.connect()
        #expect(connection.attMTU == 512 && connection.maximumWriteLength(.withoutResponse) == 509)
        #expect {
            try connection.tryWriteValue(
                [UInt8](repeating: 1, count: 30).span.bytes, to: characteristic, type: .withoutResponse)
        } throws: { ($0 as? BluetoothError)?.code == .valueTooLong }
        world.time.advance(by: .milliseconds(200))
        #expect(connection.attMTU == 185 && owner.journal.all == ["mtu 185"])
        #expect(world.radio.injectedFaults == [.wrongMTU: 1])
    }

    @Test(arguments: [1, 2, 3] as [UInt64])
    func theSameSeedGivesTheSameRun(_ seed: UInt64) async throws {
        let faults = LoopbackRadio.Faults(
            seed: seed,
            probabilities: [
                .lose: 0.05, .double: 0.05, .reorder: 0.05, .truncate: 0.05, .changeMTU: 0.02, .disconnect: 0.001,
                .readyNever: 0.1, .readyLate: 0.1, .readyEarly: 0.1,
            ])
        let first = try await play(faults, count: 200)
        let second = try await play(faults, count: 200)
        #expect(first.values == second.values)
        #expect(first.journal == second.journal)
        #expect(first.injected == second.injected)
        var other = faults
        other.seed += 100
        #expect(try await play(other, count: 200).values != first.values)
    }
}
