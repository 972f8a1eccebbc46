import Ferry
import FerrySimulator
import TestSupport
import Testing

@testable import FerryLab

/// What charts and tables show, and what they leave out.
@Suite("Drawings of ferry bench", .tags(.program)) struct BenchDrawingTests {
    private func count(_ part: String, _ text: String) -> Int { text.split(separator: part).count - 1 }

    private func result(_ goodput: Double, _ change: (inout BenchSettings) -> Void = { _ in }) -> BenchResult {
        let point = settings(change)
        return BenchResult(
            settings: point, goodput: goodput, linkLimit: 200, messages: 10, messageBytes: 4_000, chunks: 30,
            chunkBytes: 4_020, waiting: .init(count: 5, total: 50, share: 0.25, lostReadySignals: 0),
            queue: .init(mean: 4, maximum: 8),
            latency: .init(median: 10, p90: 15, p99: 20, p999: 25, maximum: 30, curve: [[50, 10], [99, 20]]),
            fairness: .init(Array(repeating: goodput, count: point.centrals)))
    }

    // MARK: The table

    @Test("A table shows the settings that differ, and all figures") func columns() {
        let rows = ResultTable(results: [result(50), result(60) { $0.attMTU = 247 }]).rows()
        #expect(
            rows[0] == [
                "mtu", "goodput kbit/s", "of limit %", "chunks/msg", "overhead B/msg", "waits", "waiting %",
                "depth mean",
                "p50 ms", "p99 ms", "max ms",
            ])
        #expect(rows[1] == ["185", "50.0", "25.0", "3.00", "2.0", "5", "25.0", "4.0", "10.0", "20.0", "30.0"])
        #expect(rows.count == 3)
        // Fairness is of interest with several centrals, processor time where it was measured.
        var several = result(50) { $0.centrals = 2 }
        #expect(ResultTable(results: [several]).rows()[0].last == "fairness")
        #expect(ResultTable(results: [several]).rows()[1].last == "1.000")
        several.processor = .init(total: 0.03, chunks: 30)
        #expect(ResultTable(results: [several]).rows()[1].last == "1000.00")
        #expect(ResultTable(results: [several, result(5)]).rows()[2].last == "")
    }

    @Test("What compression takes away counts for nothing of the link's limit") func compressedShare() {
        var compressed = result(400) { $0.compression = .zlib }
        compressed.chunkBytes = 1_000
        #expect(compressed.shareOfLimit == 0.5)
        compressed.chunkBytes = 5_000
        #expect(compressed.shareOfLimit == 2)  // what crosses is never counted above the message itself
        #expect(result(400).shareOfLimit == 2)
    }

    @Test("Every setting that was varied is drawn, and names its points") func variedSettings() {
        let results = [
            result(50), result(60) { $0.framing = .eom }, result(70) { $0.compression = .zlib },
            result(80) { $0.direction = .write },
        ]
        let page = ReportPage(report: BenchReport(transport: "sim", results: results)).html()
        for heading in ["By framing", "By compression", "By direction"] {
            #expect(page.contains("<h3>\(heading)</h3>"))
        }
        #expect(!page.contains("By centrals"))
        #expect(page.contains("<th scope=\"row\">eom</th><td>60.0</td>"))
        #expect(page.contains("highest goodput<br>") && page.contains("direction write</span>"))
        #expect(page.contains("zlib leaves "))
        #expect(page.contains("notifications and writes"))
        let one = ReportPage(report: BenchReport(transport: "sim", results: [result(50)])).html()
        #expect(!one.contains("What else was varied"))
    }

    @Test("A sentence says settings in words, and keeps a number with its unit") func spokenSettings() {
        let results = [result(50) { $0.messageSize = 100 }, result(60) { $0.messageSize = 2_000 }]
        let page = ReportPage(report: BenchReport(transport: "sim", results: results)).html()
        #expect(page.contains("messages of 2000\u{A0}bytes</span>"))
        #expect(page.contains("<h3>By message size</h3>") && page.contains("messages of 100 or 2000\u{A0}bytes"))
        #expect(ReportPage.reference(in: results)?.messageSize == 2_000)
        let (one, two) = (result(50) { $0.centrals = 1 }.settings, result(50) { $0.centrals = 3 }.settings)
        #expect(ResultTable.names(of: one, among: [one, two], without: []) == "1 central")
        #expect(ResultTable.names(of: two, among: [one, two], without: []) == "3 centrals")
    }

    @Test(
        "No-break spaces stand between a number and its unit, and nowhere else",
        arguments: [
            ("at 30 ms, MTU 247: 93 % of it", "at 30~ms, MTU~247: 93~% of it"),
            ("LE 1M at 7.5 ms.", "LE~1M at 7.5~ms."),
            ("no ms, LE limits", "no ms, LE limits"), (" 1  s", " 1  s"), ("", ""), ("ms", "ms"), ("a 2 b", "a 2 b"),
        ])
    func units(_ text: String, _ expected: String) {
        #expect(unbroken(text) == expected.replacing("~", with: "\u{A0}"))
    }

    // MARK: Lines

    private func chart(_ series: [LineChart.Series], ticks: [Double]? = nil) -> String {
        LineChart(title: "t", caption: "c", xLabel: "x", yLabel: "y", xTicks: ticks, series: series).html()
    }

    @Test("Each point of a line is drawn, none of a limit") func lines() {
        let points = [(1.0, 10.0), (2, 20), (3, 15)]
        let one = chart([.init(name: "a", points: points, colour: 0)])
        #expect(count("<polyline", one) == 1)
        #expect(count("<circle", one) == 3)
        #expect(count("legend", one) == 0)
        let two = chart([
            .init(name: "a", points: points, colour: 0),
            .init(name: "limit", points: points, colour: 6, isDashed: true),
        ])
        #expect(count("<polyline", two) == 2)
        // Three points, and one in the legend.
        #expect(count("<circle", two) == 4)
        #expect(count("legend", two) == 1)
        #expect(two.contains("line s6 dashed"))
        #expect(chart([.init(name: "a", points: [], colour: 0)]).contains("Nothing to show."))
        // The first point is at the left edge, the last at the right, the lowest value where its tick would be.
        #expect(one.contains("points=\"64.0,"))
        #expect(one.contains(" 540.0,"))
        #expect(one.contains(">a: 2, 20.0</title>"))
    }

    @Test("Ticks that would touch are left out, from the right") func ticks() {
        let ends = LineChart.Series(name: "a", points: [(0, 1), (100, 1)], colour: 0)
        // 476 units: 34 each are 14 spaces.
        let dense = chart([ends], ticks: (0...100).map { Double($0) })
        let kept = (0...100).filter { dense.contains(">\($0)</text>") && dense.contains("tick mid") }
        #expect(kept.last == 100)
        #expect(count("tick mid", dense) == 13)
        let sparse = chart([ends], ticks: [0, 50, 100])
        #expect(count("tick mid", sparse) == 3)
        #expect(count("tick mid", chart([ends], ticks: [0, 93, 100])) == 2)
    }

    // MARK: The timeline

    @Test("A timeline has a mark for each refusal, ready signal and arrival") func timeline() {
        let kinds: [TransferTimeline.Kind] = [
            .accepted, .accepted, .refused, .delivered, .ready, .accepted, .delivered, .delivered,
        ]
        let depths = [1, 2, 2, 1, 1, 2, 1, 0]
        let steps = zip(kinds, depths).enumerated().map { number, step in
            TransferTimeline.Step(time: Double(number + 1), kind: step.0, depth: step.1)
        }
        let page = TimelineChart(timeline: TransferTimeline(settings: settings(), steps: steps)).html()
        #expect(page.contains("says that it is ready again once, and the channel goes on."))
        #expect(count("<circle", page) == 3)
        #expect(count("class=\"line s1\"", page) == 1)
        #expect(count("class=\"f2\"", page) == 1)
        #expect(page.contains("4.00 ms: delivered, 1 in the queue"))
        // The area changes where the depth does: six times, and once at its end.
        #expect(count(" V", page) == 7)
        let refusals = { (ready: Int) in
            (0..<ready).map { TransferTimeline.Step(time: Double($0 + 1), kind: .ready, depth: 1) }
        }
        func words(_ ready: Int) -> String {
            TimelineChart(timeline: TransferTimeline(settings: settings(), steps: refusals(ready))).html()
        }
        #expect(words(0).contains("the link takes all of it at once.") && words(2).contains("ready again 2 times"))
        let empty = TimelineChart(timeline: TransferTimeline(settings: settings(), steps: [])).html()
        #expect(empty.contains("Nothing to show."))
    }

    // MARK: The page

    @Test("A page has the charts that its points allow") func charts() {
        func page(_ results: [BenchResult]) -> String {
            ReportPage(report: BenchReport(transport: "sim", results: results)).html()
        }
        let one = page([result(50)])
        #expect(!one.contains("What a longer interval costs"))
        #expect(!one.contains("Fairness between"))
        #expect(one.contains("One point with messages of "))
        let intervals = page([result(50), result(40) { $0.interval = 15 }])
        #expect(intervals.contains("What a longer interval costs"))
        let centrals = page([result(50), result(40) { $0.centrals = 3 }])
        #expect(centrals.contains("Fairness between 3 centrals"))
        #expect(centrals.contains("Jain's index 1.000"))
        // The best row is marked, and no other.
        let rows = intervals.split(separator: "<tr")
        #expect(rows.count { $0.hasPrefix(" class=\"best\"") } == 1)
        #expect(rows.first { $0.hasPrefix(" class=\"best\"") }?.contains("<td>50.0</td>") == true)
        #expect(
            intervals.contains(
                unbroken("From 40 kbit/s at MTU 185, 15 ms, to 50 at MTU 185, 30 ms: 1.3 times as much.")))
        #expect(page([]) == "")
        let real = ReportPage(report: BenchReport(transport: "loopback", results: [result(50)])).html()
        #expect(real.contains("1\u{A0}s of real time"))
        #expect(real.contains("Measured on the loopback radio"))
    }
}
