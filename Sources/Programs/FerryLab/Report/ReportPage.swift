import Ferry
import FerryZlib

/// A sweep's results as one self-contained page: no script, nothing to load.
package struct ReportPage {
    let report: BenchReport

    package init(report: BenchReport) {
        self.report = report
    }

    private var results: [BenchResult] { report.results }

    /// The point that stands for the sweep where a chart needs one: the usual MTU and interval, or the nearest to them, with the
    /// longest messages there, which fill a queue.
    package static func reference(in results: [BenchResult]) -> BenchSettings? {
        func order(_ settings: BenchSettings) -> (distance: Double, shortness: Int) {
            (abs(Double(settings.attMTU) - 247) * 100 + abs(settings.interval - 30), -settings.messageSize)
        }
        return results.map(\.settings).min { order($0) < order($1) }
    }

    package func html() -> String {
        guard let reference = Self.reference(in: results) else { return "" }
        return """
            <!doctype html>
            <html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width,initial-scale=1">
            <title>ferry bench: \(escaped(title))</title><style>\(ReportStyle.sheet)</style></head>
            <body><main>
            <h1>\(escaped(title))</h1>
            <p class="lead">\(escaped(lead(reference)))</p>
            \(keys())
            \(findings(reference))
            \(goodputCharts(reference))
            \(barCharts(reference))
            <h2>Backpressure</h2><div class="grid2">
            \(depthCharts())</div>
            \(report.timeline.map { TimelineChart(timeline: $0).html() } ?? "")
            <h2>Latency</h2><div class="grid2">
            \(singleLatencyChart())\(latencyChart(reference))\(intervalChart(reference))\(fairnessChart())</div>
            <h2>Every point</h2><div class="card scroll" role="region" tabindex="0" aria-label="Every point">
            \(table())</div>
            <footer>\(escaped(content)) \(escaped(method))</footer>
            </main></body></html>

            """
    }

    // MARK: Words

    /// What the sweep asks.
    private var title: String {
        let questions = [
            "mtu": "which ATT_MTU", "interval ms": "which interval", "phy": "which PHY",
            "message B": "which message size",
            "centrals": "how many centrals", "error rate": "at which error rate", "queue": "how long a queue",
        ]
        let varied = ResultTable.varied(in: results.map(\.settings)).map(\.heading)
        let title = varied.map { questions[$0] ?? "which \($0)" }.joined(separator: ", ")
        return varied.isEmpty ? "What the link carries" : "\(title.prefix(1).uppercased())\(title.dropFirst())?"
    }

    private func lead(_ reference: BenchSettings) -> String {
        let directions = Set(results.map(\.settings.direction))
        let what =
            directions.count > 1
            ? "notifications and writes" : reference.direction == .notify ? "notifications" : "writes without response"
        let all = unique(results.map(\.settings.messageSize)).sorted().map(String.init)
        let sizes = (all.count > 1 ? all.dropLast().joined(separator: ", ") + " or " : "") + (all.last ?? "")
        return
            "\(results.count == 1 ? "One point" : "\(results.count) combinations, each") with messages of \(sizes) bytes "
            + "sent as \(what) for \(short(reference.seconds)) s of \(report.transport == "sim" ? "simulated" : "real") time through real "
            + "channels; controller profile \(reference.profile.name), "
            + "\(reference.isEncrypted ? "encrypted" : "not encrypted")."
    }

    private var method: String {
        report.transport == "sim"
            ? "Simulated: connection events, air times, acknowledgement and retransmission follow the Core Specification; "
                + "how many packets a controller puts into one event is the profile's, and no constant fits all "
                + "controllers. ferry advise --score prints how near the model comes to each published figure, and "
                + "Documentation/Method.md has the limits of the model, and how to measure real hardware."
            : report.transport == "loopback"
                ? "Measured on the loopback radio in real time, paced by connection events."
                : "Measured over HCI controllers in real time; the link's limit is the simulated link's."
    }

    /// What the messages are, without which no figure of compression means anything.
    private var content: String {
        let sizes = results.map(\.settings.messageSize).filter { $0 > 0 }
        guard let size = sizes.min() else { return "" }
        let text = SampleText.bytes(count: size, seed: results.first?.settings.seed ?? 1)
        var compressed: [UInt8] = []
        let isSmaller = (try? ZlibCompression().compress(text.span.bytes, into: &compressed, budget: size)) ?? false
        let share = isSmaller ? Double(compressed.count) / Double(size) * 100 : 100
        return
            "The messages are text, names and numbers as in JSON; zlib leaves \(number(share, 0)) % of \(size) bytes. "
            + "Parts of the link's limit count what crosses, after compression."
    }

    private func keys() -> String {
        guard let fastest = results.max(by: { $0.goodput < $1.goodput }),
            let quickest = results.min(by: { $0.latency.p99 < $1.latency.p99 }),
            let fullest = results.max(by: { $0.shareOfLimit < $1.shareOfLimit })
        else { return "" }
        func key(_ value: String, _ what: String, _ result: BenchResult) -> String {
            let settings = result.settings
            let others = ResultTable.names(
                of: settings, among: results.map(\.settings), without: ["phy", "interval ms", "mtu"])
            let at =
                "\(settings.phy), \(short(settings.interval)) ms, MTU \(settings.attMTU)"
                + (others.isEmpty ? "" : ", \(others)")
            return "<div class=\"card\"><b>\(escaped(value))</b><span>\(escaped(what))<br>\(escaped(at))</span></div>"
        }
        return "<div class=\"keys\">"
            + key("\(number(fastest.goodput, 0)) kbit/s", "highest goodput", fastest)
            + key("\(number(quickest.latency.p99, 1)) ms", "lowest 99th percentile of latency", quickest)
            + key("\(number(fullest.shareOfLimit * 100, 1)) %", "of the link's limit, at best", fullest)
            + "</div>"
    }

    private func findings(_ reference: BenchSettings) -> String {
        let sentences = ReportFindings(results: results, reference: reference).sentences()
        guard !sentences.isEmpty else { return "" }
        return "<ul class=\"card\">" + sentences.map { "<li>\(escaped($0))</li>" }.joined() + "</ul>"
    }

    // MARK: Charts

    /// Results that differ from the reference in nothing but what `same` lets differ.
    private func results(like reference: BenchSettings, _ vary: (inout BenchSettings, BenchSettings) -> Void)
        -> [BenchResult]
    {
        results.filter { result in
            var expected = reference
            vary(&expected, result.settings)
            return expected == result.settings
        }
    }

    /// One chart per PHY, one line per interval; all with the same scale.
    private func goodputCharts(_ reference: BenchSettings) -> String {
        let shown = results(like: reference) { expected, other in
            expected.phy = other.phy
            expected.interval = other.interval
            expected.attMTU = other.attMTU
        }
        // One point is a figure, and stands above.
        guard shown.count > 1 else { return "" }
        let top = shown.map { max($0.goodput, $0.linkLimit) }.max() ?? 1
        let charts = unique(shown.map(\.settings.phy)).map { phy in
            let own = shown.filter { $0.settings.phy == phy }
            var series = unique(own.map(\.settings.interval)).prefix(5).enumerated().map { index, interval in
                LineChart.Series(
                    name: "\(short(interval)) ms",
                    points: own.filter { $0.settings.interval == interval }
                        .map { (Double($0.settings.attMTU), $0.goodput) }.sorted { $0.0 < $1.0 },
                    colour: index)
            }
            let limits = unique(own.map(\.settings.attMTU)).sorted().map { attMTU in
                let limit = own.filter { $0.settings.attMTU == attMTU }.map(\.linkLimit).max() ?? 0
                return (Double(attMTU), limit)
            }
            series.append(LineChart.Series(name: "the link's limit", points: limits, colour: 6, isDashed: true))
            return LineChart(
                title: "LE \(phy)", caption: goodputCaption(own), xLabel: "ATT_MTU in bytes", yLabel: "kbit/s",
                yMaximum: top, series: series
            ).html()
        }.joined()
        return "<h2>Goodput against ATT_MTU</h2><div class=\"grid2\">\(charts)</div>"
    }

    /// The other settings that were varied, each by itself with everything else as in the reference: bars with their figures.
    private func barCharts(_ reference: BenchSettings) -> String {
        let charts = ResultTable.varied(in: results.map(\.settings))
            .filter { !["phy", "interval ms", "mtu"].contains($0.heading) }
            .map { column -> String in
                let others = ResultTable.varied(in: results.map(\.settings)).filter { $0.heading != column.heading }
                let shown = results.filter { result in
                    others.allSatisfy { $0.text(result.settings) == $0.text(reference) }
                }
                let top = max(shown.map(\.goodput).max() ?? 1, 1e-9)
                let rows = shown.map { result in
                    "<tr><th scope=\"row\">\(escaped(column.text(result.settings)))</th><td>\(number(result.goodput, 1))</td>"
                        + "<td>\(number(result.latency.p99, 1))</td><td class=\"bar\"><i style=\"width:"
                        + "\(number(result.goodput / top * 100, 1))%\"></i></td></tr>"
                }
                return
                    "<figure class=\"card\"><figcaption><h3>By \(escaped(ResultTable.spoken(column.heading)))</h3></figcaption><table>"
                    + "<thead><tr><th scope=\"col\">\(escaped(column.heading))</th><th scope=\"col\">kbit/s</th>"
                    + "<th scope=\"col\">p99 ms</th><th scope=\"col\" class=\"bar\">kbit/s beside the most</th></tr></thead><tbody>\(rows.joined())</tbody></table></figure>"
            }
        guard !charts.isEmpty else { return "" }
        let at = "\(reference.phy), \(short(reference.interval)) ms, MTU \(reference.attMTU)"
        return "<h2>What else was varied</h2><p>Each by itself, the rest as at \(escaped(at)).</p><div class=\"grid2\">"
            + charts.joined() + "</div>"
    }

    private func goodputCaption(_ results: [BenchResult]) -> String {
        guard let best = results.max(by: { $0.goodput < $1.goodput }),
            let worst = results.min(by: { $0.goodput < $1.goodput }), worst.goodput > 0
        else { return "" }
        return
            "From \(number(worst.goodput, 0)) kbit/s at MTU \(worst.settings.attMTU), "
            + "\(short(worst.settings.interval)) ms, to \(number(best.goodput, 0)) at MTU \(best.settings.attMTU), "
            + "\(short(best.settings.interval)) ms: \(number(best.goodput / worst.goodput, 1)) times as much."
    }

    private func depthCharts() -> String {
        let points = report.depthSweep
        guard let settings = points.first?.settings else { return "" }
        let ticks = points.map { Double($0.settings.queueDepth) }
        let at = "\(settings.phy), \(short(settings.interval)) ms, MTU \(settings.attMTU)"
        let share = LineChart(
            title: "A queue that is too short leaves the air empty",
            caption: "Part of the link's limit that arrives, by places in the transmit queue; \(at).",
            xLabel: "places in the queue", yLabel: "% of limit", xScale: .logarithmic, xTicks: ticks, yMaximum: 100,
            series: [
                .init(
                    name: "of limit",
                    points: points.map { (Double($0.settings.queueDepth), $0.shareOfLimit * 100) }, colour: 0)
            ])
        let waits = LineChart(
            title: "Waiting for ready",
            caption: "Mean wait from a refusal until the link takes a chunk again; \(at).",
            xLabel: "places in the queue", yLabel: "ms per wait", xScale: .logarithmic, xTicks: ticks,
            series: [
                .init(
                    name: "wait",
                    points: points.map { result in
                        let count = Double(max(1, result.waiting.count))
                        return (Double(result.settings.queueDepth), result.waiting.total / count)
                    }, colour: 1)
            ])
        return share.html() + waits.html()
    }

    private func latencyChart(_ reference: BenchSettings) -> String {
        let shown = results(like: reference) { expected, other in expected.attMTU = other.attMTU }
        let series = shown.prefix(6).enumerated().map { index, result in
            LineChart.Series(
                name: "MTU \(result.settings.attMTU)",
                points: result.latency.curve.filter { $0[0] > 0 && $0[0] < 99.95 }.map { ($0[0], $0[1]) },
                colour: index)
        }
        return percentileChart(
            "While the sender never pauses",
            "From send to arrival of messages of \(reference.messageSize) bytes that wait behind one another; \(reference.phy), "
                + "\(short(reference.interval)) ms.", Array(series))
    }

    /// Messages that come one by one, which is what a person or a sensor notices.
    private func singleLatencyChart() -> String {
        guard let single = report.single, let settings = single.first?.settings else { return "" }
        let series = single.prefix(6).enumerated().map { index, result in
            LineChart.Series(
                name: "MTU \(result.settings.attMTU)",
                points: result.latency.curve.filter { $0[0] > 0 && $0[0] < 99.95 }.map { ($0[0], $0[1]) },
                colour: index)
        }
        return percentileChart(
            "One message at a time",
            "From send to arrival of messages of \(settings.messageSize) bytes, each sent after the one before has arrived and "
                + "a pause, simulated; \(settings.phy), \(short(settings.interval)) ms.", Array(series))
    }

    private func percentileChart(_ title: String, _ caption: String, _ series: [LineChart.Series]) -> String {
        LineChart(
            title: title, caption: caption, xLabel: "percentile", yLabel: "ms", xScale: .percentiles,
            xTicks: [10, 50, 90, 99, 99.9], series: series
        ).html()
    }

    /// The 99th percentile against the interval, when there are several.
    private func intervalChart(_ reference: BenchSettings) -> String {
        let shown = results(like: reference) { expected, other in
            expected.attMTU = other.attMTU
            expected.interval = other.interval
        }
        guard unique(shown.map(\.settings.interval)).count > 1 else { return "" }
        let series = unique(shown.map(\.settings.attMTU)).prefix(6).enumerated().map { index, attMTU in
            LineChart.Series(
                name: "MTU \(attMTU)",
                points: shown.filter { $0.settings.attMTU == attMTU }
                    .map { ($0.settings.interval, $0.latency.p99) }.sorted { $0.0 < $1.0 },
                colour: index)
        }
        return LineChart(
            title: "What a longer interval costs",
            caption: "99th percentile of the same messages' latency by connection interval; \(reference.phy).",
            xLabel: "connection interval in ms", yLabel: "ms", xTickText: short, series: Array(series)
        ).html()
    }

    /// What each central gets, at the point with most of them.
    private func fairnessChart() -> String {
        guard let most = results.max(by: { $0.settings.centrals < $1.settings.centrals }), most.settings.centrals > 1
        else { return "" }
        let points = most.fairness.goodputs.enumerated().map { (Double($0 + 1), $1) }
        return LineChart(
            title: "Fairness between \(most.settings.centrals) centrals",
            caption: "Each central's goodput; Jain's index \(number(most.fairness.jainIndex, 3)).",
            xLabel: "central", yLabel: "kbit/s", series: [.init(name: "goodput", points: points, colour: 2)]
        ).html()
    }

    private func table() -> String {
        let rows = ResultTable(results: results).rows()
        let best = results.indices.max { results[$0].goodput < results[$1].goodput }
        let head = rows[0].map { "<th scope=\"col\">\(escaped($0))</th>" }.joined()
        // The varied settings name a row.
        let varied = Set(ResultTable.varied(in: results.map(\.settings)).map(\.heading))
        let body = rows.dropFirst().enumerated().map { index, row in
            let cells = zip(rows[0], row).map { heading, cell in
                varied.contains(heading) ? "<th scope=\"row\">\(escaped(cell))</th>" : "<td>\(escaped(cell))</td>"
            }
            return "<tr\(index == best ? " class=\"best\"" : "")>" + cells.joined() + "</tr>"
        }
        return
            "<table><caption>\(results.count == 1 ? "One point" : "The one that carries most stands out.")</caption><thead><tr>\(head)</tr></thead><tbody>\(body.joined(separator: "\n"))</tbody></table>"
    }

    private func unique<Value: Hashable>(_ values: [Value]) -> [Value] {
        var seen: Set<Value> = []
        return values.filter { seen.insert($0).inserted }
    }
}
