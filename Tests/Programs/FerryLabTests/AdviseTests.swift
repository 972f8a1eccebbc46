import Ferry
import FerrySimulator
import TestSupport
import Testing

@testable import FerryLab

@Suite("ferry advise", .tags(.program)) struct AdviseTests {
    private func advice(_ sizes: String, peer: String, within: Double? = nil, intervals: [Double]? = nil) throws
        -> Advice
    {
        var device = try Peer(named: peer, controller: ControllerSettings(.ideal))
        if let intervals { device.intervals = intervals }
        let base = settings {
            $0.attMTU = device.attMTU
            $0.profile = device.profile
        }
        return try Adviser(
            sizes: MessageSizes(distribution: sizes), peer: device, base: base, deadline: within,
            seconds: Effort.of(3, full: 20)
        ).advise()
    }

    @Test("A chunk that spills into one more packet is not advised") func chunk() throws {
        let advice = try advice("2000", peer: "android", intervals: [11.25])
        // Two packets of 251 bytes, less 3 bytes of ATT and 4 of L2CAP.
        #expect(advice.chunkSize == 495)
        #expect(advice.framing == .length)
        #expect(advice.predictions.first?.chunks == 5)
        let reason = try #require(advice.reasons.first)
        let figures = reason.matches(of: /gives ([0-9.]+) kbit/).compactMap { Double($0.1) }
        let percent = try #require(reason.firstMatch(of: /which is ([0-9]+) % slower/).flatMap { Double($0.1) })
        try #require(figures.count == 2, "\(reason)")
        #expect(abs((1 - figures[1] / figures[0]) * 100 - percent) < 0.6, "\(reason)")
        // Nothing published is of this controller.
        #expect(advice.check == nil)
        #expect(advice.text().contains("No published figure that Ferry knows"), "\(advice.text())")
    }

    @Test("Framings and chunks are compared at the interval that is advised, as its table says") func sameInterval()
        throws
    {
        let advice = try advice("60:9,1500:1", peer: "android", within: 500, intervals: [11.25, 48.75])
        #expect(advice.interval == 48.75)
        let framing = try #require(advice.reasons.first { $0.hasPrefix("Length-prefix") })
        #expect(framing.contains("at most \(number(advice.predictions[0].median, 1)) ms at an interval of 48.75 ms"))
        #expect(advice.reasons[0].contains("at 48.75 ms)."), "\(advice.reasons[0])")
    }

    @Test("A figure that a profile was fitted to is told as fitted") func fitted() throws {
        var advice = try advice("60", peer: "custom", intervals: [30])
        advice.controller = "nordic-s132-2m"
        let figure = try #require(PublishedFigure.all.first { $0.kind == .fitted })
        advice.check = Advice.Check(
            source: figure.source, kind: figure.kind, conditions: figure.conditions, published: 100, simulated: 101)
        #expect(advice.text().contains("Controller nordic-s132-2m was fitted to"))
        #expect(!advice.text().contains("checked"))
        advice.check?.kind = .complete
        #expect(advice.text().contains("The model was checked against"))
        advice.check?.kind = .arithmetic
        #expect(advice.text().contains("what arithmetic does"))
    }

    @Test("The longest interval within the latency asked for is advised") func interval() throws {
        let advice = try advice("60:9,1500:1", peer: "ios", within: 120, intervals: [15, 30, 60, 90])
        #expect(advice.chunkSize == 182)
        #expect(advice.interval == 30)
        #expect(advice.predictions.map(\.name) == ["typical", "large"])
        #expect(advice.predictions.allSatisfy { $0.median > 0 && $0.p99 <= 120 && $0.goodput > 0 })
        #expect(advice.text().contains("interval     30 ms"))
    }

    @Test("A latency that no interval keeps is said to be missed") func impossible() throws {
        let advice = try advice("5000", peer: "ios", within: 1, intervals: [15, 30])
        #expect(advice.interval == 15)
        #expect(advice.reasons.contains { $0.contains("still misses the 1 ms") })
    }

    @Test("A latency is asked for all messages, not for most") func largest() throws {
        let advice = try advice("60:97,50000:3", peer: "ios", within: 100)
        #expect(advice.isWithin == false)
        #expect(try #require(advice.predictions.last).p99 > 100)
        #expect(try self.advice("60", peer: "ios", within: 500).isWithin == true)
        #expect(try self.advice("60", peer: "ios").isWithin == nil)
        #expect(advice.text().hasPrefix("To ios, ATT_MTU 185, LE 1M, controller "))
    }

    @Test("Only intervals that the peer grants are advised") func granted() throws {
        var device = try Peer(named: "ios", controller: ControllerSettings(.ideal))
        try device.choose(from: [50, 30, 7.5])
        #expect(device.intervals == [30])
        #expect(device.remark.hasSuffix("Left out, because it does not grant them: 7.5, 50 ms."))
        let error = #expect(throws: FerryError.self) { try device.choose(from: [7.5]) }
        #expect(error?.message == "--interval 7.5: the peer ios grants multiples of 15 ms only. Give one of those.")
        var custom = try Peer(named: "custom", controller: ControllerSettings(.ideal))
        try custom.choose(from: [50, 7.5])
        #expect(custom.intervals == [7.5, 50])
    }

    @Test("A prediction for an iPhone is a range, and names the figures it comes from") func ranges() throws {
        let advice = try advice("2000", peer: "ios", intervals: [15])
        let prediction = try #require(advice.predictions.first)
        #expect(prediction.slow.goodput < prediction.goodput && prediction.goodput < prediction.quick.goodput)
        #expect(prediction.slow.p99 >= prediction.p99 && prediction.p99 >= prediction.quick.p99)
        #expect(advice.text().contains("published in part: 29,"), "\(advice.text())")
        #expect(advice.text().contains("\(number(prediction.slow.goodput, 1))-"))
    }

    @Test("Distributions have quantiles by weight") func sizes() throws {
        let sizes = try MessageSizes(distribution: "2000:30, 60:70")
        #expect(sizes.quantile(0.5) == 60)
        #expect(sizes.quantile(0.95) == 2_000)
        for nonsense in ["", "a", "-1", "1:0", "1:2:3", "1e99", "5.5", "1:nan"] {
            #expect(throws: FerryError.self, "\(nonsense)") { _ = try MessageSizes(distribution: nonsense) }
        }
    }
}
