import Ferry
import TestSupport
import Testing

@testable import FerryFleet

@Suite(.tags(.fleet)) struct FenceTests {
    let first = FencingToken(revision: 7)
    let second = FencingToken(revision: 9)

    @Test func refusesClaimsOfAnEarlierOwnerAndTakesItsRecords() throws {
        var fence = Fence()
        var verdicts: [Fence.Verdict] = []
        verdicts.append(try fence.admit(.claim, of: "a", under: first))
        verdicts.append(try fence.admit(.record, of: "a", under: second))
        verdicts.append(try fence.admit(.claim, of: "a", under: first))
        verdicts.append(try fence.admit(.record, of: "a", under: first))
        verdicts.append(try fence.admit(.claim, of: "a", under: second))
        // Another peer's tokens are its own.
        verdicts.append(try fence.admit(.claim, of: "b", under: first))
        #expect(
            verdicts == [
                .current, .current, .refused(newest: second), .late(newest: second), .current, .current,
            ])
        #expect(fence.refusals == 1)
    }

    @Test func keepsWhatItKnewAcrossARestart() throws {
        var fence = Fence()
        _ = try fence.admit(.claim, of: "a", under: second)
        var again = Fence(newest: fence.newest)
        let verdict = try again.admit(.claim, of: "a", under: first)
        #expect(verdict == .refused(newest: second))
    }

    @Test func refusesNewPeersWhenFullRatherThanForgetOne() throws {
        var fence = Fence(capacity: 2)
        for peer in ["a", "b"] { _ = try fence.admit(.record, of: peer, under: first) }
        let full = fence
        let error = #expect(throws: FerryError.self) {
            var fence = full
            _ = try fence.admit(.record, of: "c", under: first)
        }
        #expect(error?.code == .fenceFull)
        #expect(error?.message.contains("2 peers") == true)
        fence.forget("a")
        let verdict = try fence.admit(.record, of: "c", under: first)
        #expect(verdict == .current)
    }
}
