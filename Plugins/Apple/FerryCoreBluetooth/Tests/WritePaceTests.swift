@testable import FerryCoreBluetooth
import TestSupport
import Testing

/// When writes go out, with the time as a parameter.
@Suite(.tags(.adapter, .coreBluetooth)) struct WritePaceTests {
    /// A pace that has written once and was refused since.
    private final class Refused {
        private let start = ContinuousClock.now
        private var pace = WritePace()

        init() {
            #expect(write() == "goes", "the first goes in any case")
            #expect(write() == "waits")
        }

        func write(hasRoom: Bool = false, after passed: Duration = .zero) -> String {
            switch pace.mayWrite(hasRoom, start + passed) {
            case .goes: "goes"
            case .waits: "waits"
            case .asks: "asks"
            }
        }

        func look(after passed: Duration) -> String {
            let next = pace.look(false, start + passed)
            return "\(next.tell ? "tell " : "")\(next.again ? "again " : "")\(next.asks ? "ask " : "")"
        }

        func proofDidEnd() -> Bool { pace.proofDidEnd(allows: WritePace.most) }
        func hasRoom() -> Bool { pace.hasRoom() }
    }

    @Test func thePeerIsAskedAfterAWhile() {
        let pace = Refused()
        #expect(pace.look(after: WritePace.patience - .milliseconds(1)) == "again ")
        #expect(pace.look(after: WritePace.patience) == "ask ")
        #expect(pace.write(after: .seconds(9)) == "waits", "nothing goes before the answer")
        for _ in 0..<3 {
            #expect(pace.proofDidEnd(), "somebody waits for it")
            for _ in 0..<WritePace.most { #expect(pace.write(after: .seconds(9)) == "goes") }
            #expect(pace.write(after: .seconds(9)) == "asks")
            #expect(pace.write(after: .seconds(9)) == "waits", "it is asked once")
        }
    }

    @Test func roomEndsTheAsking() {
        let pace = Refused()
        _ = pace.look(after: WritePace.patience)
        #expect(pace.write(hasRoom: true) == "goes")
        #expect(!pace.proofDidEnd(), "nobody waits for it any more")
        #expect(pace.write() == "waits", "the framework's word is taken again")
    }

    @Test func aReadyCallTellsWhoWaits() {
        let pace = Refused()
        #expect(pace.hasRoom())
        #expect(!pace.hasRoom())
        #expect(pace.write() == "waits")
        _ = pace.look(after: WritePace.patience)
        #expect(pace.hasRoom(), "also who waits for the peer")
    }
}
