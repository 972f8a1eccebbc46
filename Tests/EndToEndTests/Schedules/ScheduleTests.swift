import Foundation
import TestSupport
import Testing

/// Apps that connect, send, cancel and close while connections break and strangers offer the same service, from a seed, with
/// every framing, over wires and the virtual radio, with links that reconnect and without.
///
/// Every message is delivered once, whole, to its peer, or its sender is told the truth about its fate: what has `nothingSent`
/// or was `takenBack` never arrives, what `mayHaveArrived` arrives once at most, and with the sequenced framing what was sent
/// has arrived. Every send returns, every channel ends, and no connection is left open.
///
/// All tasks run on one thread in an order that the seed chooses, under virtual time, so that a seed is the same run each time:
/// `FERRY_FATES_SEED=123 swift test --filter ScheduleTests` prints what happens in it. `make verify` runs 100 000
/// (`FERRY_FATES`, from `FERRY_FATES_FIRST` on).
@Suite(.tags(.channel, .recovery, .slow), .timeLimit(.minutes(60))) struct ScheduleTests {
    private static let environment = ProcessInfo.processInfo.environment
    private static let count = environment["FERRY_FATES"].flatMap(UInt64.init) ?? 400
    private static let first = environment["FERRY_FATES_FIRST"].flatMap(UInt64.init) ?? 0
    private static let seed = environment["FERRY_FATES_SEED"].flatMap(UInt64.init)

    @Test func everySenderIsToldTheTruth() throws {
        var total = ScheduleTally()
        var failures: [String] = []
        for seed in Self.seed.map({ $0..<$0 + 1 }) ?? Self.first..<Self.first + Self.count {
            let schedule = try Schedule(seed: seed, isTold: Self.seed != nil)
            let (violations, tally) = schedule.run()
            total += tally
            for line in schedule.journal { print(line) }
            if let violation = violations.first { failures.append("seed \(seed): \(violation)") }
            guard failures.count < 5 else { break }
        }
        #expect(failures.isEmpty, "\(failures.joined(separator: "\n"))")
        guard Self.seed == nil else { return }
        print("\(Self.count) schedules: \(total)")
        // They have to reach what they are for.
        let few = Int(Self.count) / 20
        #expect(total.arrived > 20 * few && total.strangers > few && total.resumptions > few && total.untaken > few / 2)
        #expect(total.nothingSent > few && total.takenBack > few && total.hadArrived > few / 4)
    }
}
