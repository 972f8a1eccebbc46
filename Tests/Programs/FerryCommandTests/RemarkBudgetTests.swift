import Ferry
import TestSupport
import Testing

@testable import FerryCommand

@Suite("Lines about strangers", .tags(.program)) struct RemarkBudgetTests {
    @Test("Ten at once, then one each 10 s, and ten again after a while") func budget() {
        var budget = RemarkBudget()
        func taken(_ times: Int, at seconds: Double) -> Int {
            (0..<times).count { _ in budget.take(at: Timestamp.zero + .seconds(seconds)) }
        }
        #expect(taken(10_000, at: 5) == 10)
        #expect(taken(3, at: 14.9) == 0)
        #expect(taken(3, at: 15) == 1)
        #expect(taken(3, at: 24.9) == 0)
        #expect(taken(10_000, at: 45) == 3)
        #expect(taken(10_000, at: 100_000) == 10)
    }
}
