import Ferry
import FerryTesting
import TestSupport
import Testing

/// Compresses nothing, and breaks one rule on demand: the kit must notice, or passing it means nothing.
private struct Identity: Compression {
    enum Fault { case none, overBudget, overwrites, leavesRemains, ignoresLength, wrongCode, damages }
    var fault = Fault.none

    func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws -> Bool {
        guard plain.byteCount <= budget || fault == .overBudget else {
            if fault == .leavesRemains { output.append(0) }
            return false
        }
        if fault == .overwrites { output = [] }
        plain.withUnsafeBytes { output.append(contentsOf: $0) }
        return true
    }

    func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] {
        guard compressed.byteCount == plainCount || fault == .ignoresLength else {
            throw FerryError(fault == .wrongCode ? .decodingFailed : .corruptCompression, "")
        }
        let plain = compressed.withUnsafeBytes { Array($0) }
        return fault == .damages ? plain.map { $0 & 0x7F } : plain
    }
}

@Suite(.tags(.core, .compression)) struct CompressionKitTests {
    @Test func passesWhatKeepsTheRules() throws {
        try CompressionConformance(Identity()).check()
    }

    @Test(arguments: [
        (Identity.Fault.overBudget, "The budget is respected"),
        (.overwrites, "The compressed form is appended"),
        (.leavesRemains, "Over budget, the output is as it was"),
        (.ignoresLength, "A wrong plain length is refused"),
        (.wrongCode, "A bad stream is reported as corruptCompression"),
        (.damages, "A payload survives the round trip"),
    ])
    fileprivate func findsWhatBreaksThem(fault: Identity.Fault, requirement: String) throws {
        let failure = try #require(throws: ConformanceFailure.self) {
            try CompressionConformance(Identity(fault: fault)).check()
        }
        #expect(failure.requirement == requirement)
    }
}
