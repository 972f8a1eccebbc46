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

    @Test func findsWhatTakesOtherSettings() throws {
        let sample: [[UInt8]] = [Array("aa  ssaammppllee".utf8)]
        try CompressionConformance(Masked(1, isNamed: true), samples: sample, others: [Masked(2, isNamed: true)])
            .check()
        let failure = try #require(throws: ConformanceFailure.self) {
            try CompressionConformance(Masked(1), samples: sample, others: [Masked(2)]).check()
        }
        #expect(failure.requirement == "A payload compressed with other settings is refused")
    }
}

/// Bytes combined with a mask that both sides have to share, and perhaps name.
private struct Masked: Compression {
    let mask: UInt8
    let isNamed: Bool

    init(_ mask: UInt8, isNamed: Bool = false) {
        self.mask = mask
        self.isNamed = isNamed
    }

    var dictionaryChecksum: UInt32? { isNamed ? UInt32(mask) : nil }

    /// Each byte twice is written once, combined with the mask.
    func compress(_ plain: RawSpan, into output: inout [UInt8], budget: Int) throws -> Bool {
        let bytes = plain.withUnsafeBytes { Array($0) }
        let isDoubled =
            bytes.count % 2 == 0
            && stride(from: 0, to: bytes.count, by: 2).allSatisfy {
                bytes[$0] == bytes[$0 + 1]
            }
        let kept = isDoubled ? stride(from: 0, to: bytes.count, by: 2).map { bytes[$0] } : bytes
        guard kept.count + 1 <= budget else { return false }
        output.append(isDoubled ? 2 : 1)
        output += kept.map { $0 ^ mask }
        return true
    }

    func decompress(_ compressed: RawSpan, plainCount: Int) throws(FerryError) -> [UInt8] {
        let bytes = compressed.withUnsafeBytes { Array($0) }
        guard let kind = bytes.first, (1...2).contains(kind), (bytes.count - 1) * Int(kind) == plainCount,
            plainCount >= 0
        else { throw FerryError(.corruptCompression, "It is not \(plainCount) bytes.") }
        return bytes.dropFirst().flatMap { Array(repeating: $0 ^ mask, count: Int(kind)) }
    }
}
