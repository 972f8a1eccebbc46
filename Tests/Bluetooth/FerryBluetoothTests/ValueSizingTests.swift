import Ferry
import TestSupport
import Testing

@testable import FerryBluetooth

/// When values shrink, and when they grow again, as a value without a radio.
@Suite(.tags(.bluetooth, .recovery)) struct ValueSizingTests {
    /// Lets the values pass that a step needs, and returns how many that were.
    private func pass(_ sizing: inout ValueSizing) -> Int? {
        defer { sizing.didPass() }
        return sizing.valuesToPass
    }

    @Test func stallWithLongValuesLimitsToTwentyBytes() {
        var sizing = ValueSizing()
        #expect(sizing.limit == nil)
        #expect(sizing.valuesToPass == nil)
        sizing.didStall(longest: 244)
        #expect(sizing.limit == 20)
        // Nothing has been taken since.
        sizing.didStall(longest: 0)
        #expect(sizing.limit == 20)
    }

    @Test func limitDoublesUntilItEnds() {
        var sizing = ValueSizing()
        sizing.didStall(longest: 244)
        var climb: [Int?] = []
        var needed: [Int?] = []
        while !sizing.isClean {
            needed.append(pass(&sizing))
            climb.append(sizing.limit)
        }
        #expect(climb == [40, 80, 160, 320, nil, nil])
        #expect(needed == [256, 256, 256, 1024, 1024, 1024])
    }

    @Test func failedLengthIsTriedMoreAndMoreSlowly() {
        var sizing = ValueSizing()
        sizing.didStall(longest: 244)
        var trials: [Int?] = []
        #expect(pass(&sizing) == 256)
        for _ in 0..<6 {
            sizing.didStall(longest: 40)
            #expect(sizing.limit == 20)
            trials.append(pass(&sizing))
            #expect(sizing.limit == 40)
        }
        #expect(trials == [1024, 4096, 16_384, 65_536, 65_536, 65_536])
    }

    @Test func failureWithShortValuesEndsTheLimit() {
        var sizing = ValueSizing()
        sizing.didStall(longest: 244)
        sizing.didStall(longest: 20)
        #expect(sizing == ValueSizing())
        sizing.didLose(longest: 12, passed: 3)
        #expect(sizing == ValueSizing())
    }

    @Test func secondEarlyLossLimits() {
        var sizing = ValueSizing()
        sizing.didLose(longest: 244, passed: 63)
        #expect(sizing.limit == nil)
        sizing.didLose(longest: 244, passed: 1)
        #expect(sizing.limit == 20)
        // From then on one is enough.
        _ = pass(&sizing)
        sizing.didLose(longest: 40, passed: 300)
        #expect(sizing.limit == 20)
    }

    @Test func lateLossIsNotBlamedOnLength() {
        var sizing = ValueSizing()
        sizing.didLose(longest: 244, passed: 10)
        sizing.didLose(longest: 244, passed: 64)
        sizing.didLose(longest: 244, passed: 10)
        #expect(sizing.limit == nil)
        // A connection that carries 64 values clears the earlier loss.
        #expect(pass(&sizing) == 64)
        #expect(sizing.isClean)
    }

    @Test func memoryIsBoundedAndKeepsTheLatestFailures() {
        let memory = ValueSizeMemory(capacity: 2)
        var failed = ValueSizing()
        failed.didStall(longest: 100)
        let peers = (0..<3).map { PeerIdentity("peer \($0)", certainty: .address) }
        for peer in [peers[0], peers[1], peers[0], peers[2]] { memory.remember(failed, of: peer) }
        #expect(peers.map { memory.limit(for: $0) } == [20, nil, 20])
        memory.forget(peers[0])
        #expect(memory.limit(for: peers[0]) == nil)
        // A peer that cannot be recognized is not remembered.
        let stranger = PeerIdentity("stranger", certainty: .connection)
        memory.remember(failed, of: stranger)
        #expect(memory.limit(for: stranger) == nil)
        #expect(memory.limit(for: peers[2]) == 20)
    }
}
