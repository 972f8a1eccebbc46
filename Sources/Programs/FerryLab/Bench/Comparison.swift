/// The changes against an earlier run of the same sweep.
package struct Comparison {
    let before: BenchReport
    let after: BenchReport

    package init(before: BenchReport, after: BenchReport) {
        self.before = before
        self.after = after
    }

    /// Relative differences below this count as noise: a simulated run repeats exactly, so that only rounding remains;
    /// in real time timers and other processes move the figures.
    private var noise: Double { before.transport == "sim" && after.transport == "sim" ? 0.001 : 0.05 }

    /// One line per figure that moved, and what could not be compared.
    package func text() -> String {
        var lines: [String] = []
        var matched = 0
        for result in after.results {
            guard let old = before.results.first(where: { $0.settings == result.settings }) else { continue }
            matched += 1
            for (name, a, b) in Self.figures(old, result) where isChange(a, b) {
                let change = a == 0 ? "from zero" : "\(b >= a ? "+" : "-")\(number(abs(b - a) / abs(a) * 100, 1)) %"
                lines.append("\(Self.title(result.settings)): \(name) \(number(a, 3)) -> \(number(b, 3)) (\(change))")
            }
        }
        guard matched > 0 else {
            return "Nothing to compare: no point of this run is in the earlier one; settings or seeds differ.\n"
        }
        var summary = "\(matched) of \(after.results.count) points compared"
        if before.results.count > matched {
            summary += "; \(before.results.count - matched) of the earlier run are not in this one"
        }
        summary += lines.isEmpty ? "; nothing changed beyond noise" : "; \(lines.count) figures changed beyond noise"
        return ([summary + " (\(number(noise * 100, 1)) %)."] + lines).joined(separator: "\n") + "\n"
    }

    private func isChange(_ a: Double, _ b: Double) -> Bool { abs(b - a) > noise * max(abs(a), abs(b)) }

    private static func figures(_ a: BenchResult, _ b: BenchResult) -> [(String, Double, Double)] {
        [
            ("goodput kbit/s", a.goodput, b.goodput), ("link limit kbit/s", a.linkLimit, b.linkLimit),
            ("overhead B/msg", a.overheadPerMessage, b.overheadPerMessage),
            ("waiting %", a.waiting.share * 100, b.waiting.share * 100), ("mean depth", a.queue.mean, b.queue.mean),
            ("p50 ms", a.latency.median, b.latency.median), ("p99 ms", a.latency.p99, b.latency.p99),
            ("fairness", a.fairness.jainIndex, b.fairness.jainIndex),
        ]
    }

    static func title(_ settings: BenchSettings) -> String {
        var parts = ["\(settings.phy) \(short(settings.interval)) ms MTU \(settings.attMTU)"]
        parts.append("\(settings.messageSize) B \(settings.framing.rawValue)")
        if settings.compression != .none { parts.append(settings.compression.rawValue) }
        parts.append("queue \(settings.queueDepth)")
        if settings.centrals > 1 { parts.append("\(settings.centrals) centrals") }
        return parts.joined(separator: ", ")
    }
}
