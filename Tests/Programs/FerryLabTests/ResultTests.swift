import Ferry
import FerrySimulator
import Foundation
import TestSupport
import Testing

@testable import FerryLab

@Suite("Results of ferry bench", .tags(.program)) struct ResultTests {
    private func results() throws -> [BenchResult] {
        try [(23, 15.0), (185, 15), (23, 30), (185, 30)].map { attMTU, interval in
            try BenchRun.simulate(
                settings {
                    $0.attMTU = attMTU
                    $0.interval = interval
                }
            ).result
        }
    }

    @Test("Numbers") func numbers() {
        #expect(number(0.05, 1) == "0.1")
        #expect(number(-0.04, 1) == "0.0")
        #expect(number(-12.345, 2) == "-12.35")
        #expect(number(1_000, 0) == "1000")
        #expect(number(.nan, 1) == "-")
        #expect(number(.infinity, 1) == "-")
        #expect(short(7.5) == "7.5")
        #expect(short(30) == "30")
        #expect(short(11.25) == "11.25")
    }

    @Test("The table is aligned, and says once what is the same everywhere") func table() throws {
        let lines = ResultTable(results: try results()).aligned().split(separator: "\n")
        #expect(lines.count == 6)
        #expect(lines[0].hasPrefix("phy 1M, data length 251, framing length"))
        #expect(Set(lines.dropFirst().map(\.count)).count == 1)
        #expect(lines[1].contains("interval ms  mtu  goodput kbit/s"))
    }

    @Test("Comma-separated values have every column in every row") func commaSeparated() throws {
        var results = try results()
        results[0].settings.profile.name = "odd, \"quoted\""
        let text = ResultTable(results: results).commaSeparated()
        let lines = text.split(separator: "\r\n")
        #expect(lines.count == 5)
        #expect(lines[1].contains("\"odd, \"\"quoted\"\"\""))
        #expect(Set(lines.dropFirst(2).map { $0.count { $0 == "," } }) == [lines[0].count { $0 == "," }])
    }

    @Test("A comparison names what changed and nothing else") func comparison() throws {
        let before = BenchReport(transport: "sim", results: try results())
        var after = before
        #expect(Comparison(before: before, after: after).text().contains("4 of 4 points compared; nothing changed"))
        after.results[1].goodput *= 1.1
        after.results[2].latency.p99 *= 1.0001
        after.results[3].settings.attMTU = 100
        let text = Comparison(before: before, after: after).text()
        #expect(text.contains("3 of 4 points compared; 1 of the earlier run are not in this one; 1 figures changed"))
        #expect(text.contains("MTU 185") && text.contains("goodput") && text.contains("+10.0 %"))
        #expect(!text.contains("p99"))
        for index in after.results.indices { after.results[index].settings.seed = 99 }
        #expect(Comparison(before: before, after: after).text().contains("Nothing to compare"))
    }

    @Test("JSON reads back") func json() throws {
        let report = BenchReport(transport: "sim", results: try results())
        let text = String(decoding: try JSONEncoder().encode(report), as: UTF8.self)
        #expect(text.contains("\"goodput\""))
        #expect(!text.contains("cpu"))
    }

    @Test("The page has its charts, needs nothing from elsewhere, and has no coordinate that is no number")
    func page() throws {
        var report = BenchReport(transport: "sim", results: try results())
        let point = settings { $0.messageSize = 2_000 }
        report.depthSweep = [try BenchRun.simulate(point).result]
        report.timeline = TransferTimeline(
            settings: point, steps: try BenchRun.simulate(point, recordsTimeline: true).steps)
        let page = ReportPage(report: report).html()
        #expect(page.split(separator: "role=\"img\"").count - 1 == 6)
        for reference in ["http:", "https:", "<script", "<link", "@import", "url("] {
            #expect(!page.contains(reference))
        }
        for nonsense in ["nan", "inf,", "\"-\"", ",-,"] { #expect(!page.contains(nonsense), "\(nonsense)") }
        #expect(page.contains("prefers-color-scheme:dark"))
    }

    @Test("The page says in words what the sweep shows") func findings() throws {
        let results = try [(23, "1M"), (247, "1M"), (517, "1M"), (247, "2M")].map { attMTU, phy in
            try BenchRun.simulate(
                settings {
                    $0.attMTU = attMTU
                    $0.phy = phy
                    $0.messageSize = 4_096
                }
            ).result
        }
        let reference = try #require(ReportPage.reference(in: results))
        #expect(reference.attMTU == 247 && reference.phy == "1M")
        let sentences = ReportFindings(results: results, reference: reference).sentences()
        #expect(sentences.first?.hasPrefix("LE 2M at 30 ms with ATT_MTU 247 carries most:") == true, "\(sentences)")
        // 512 bytes and 7 of headers are two packets of 251 and 17 bytes.
        #expect(sentences.contains { $0.contains("fills 2 link-layer packets") && $0.contains("the last 17.") })
        #expect(sentences.contains { $0.hasPrefix("LE 2M carries 1.7") })
        #expect(ReportFindings(results: [results[0]], reference: results[0].settings).sentences().isEmpty)
    }

    @Test("Text on the page is escaped") func escaping() {
        #expect(escaped("a<b>&\"c\"") == "a&lt;b&gt;&amp;&quot;c&quot;")
    }

    @Test("Axes are round and hold their values", arguments: [0.0, 0.3, 1, 7, 99, 1_345, 2e6])
    func axes(maximum: Double) {
        let axis = Axis.fromZero(to: maximum, start: 0, end: 100)
        #expect(axis.range.upperBound >= maximum)
        #expect((2...7).contains(axis.ticks.count), "\(axis.ticks)")
        #expect(axis.place(axis.range.upperBound) == 100)
        let nines = Axis(scale: .percentiles, range: 10...99.9, ticks: [], start: 0, end: 100)
        #expect(nines.place(50) < nines.place(90) && nines.place(90) < nines.place(99))
    }
}
