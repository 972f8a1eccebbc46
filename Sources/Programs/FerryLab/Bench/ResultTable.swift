/// A sweep's results as text for people, and as comma-separated values for programs.
package struct ResultTable {
    let results: [BenchResult]
    /// Whether the link is simulated, and heeds every setting.
    let isSimulated: Bool

    package init(results: [BenchResult], isSimulated: Bool = true) {
        self.results = results
        self.isSimulated = isSimulated
    }

    /// A column: its heading, whether it says something about the settings, and its text for a result.
    private struct Column: Sendable {
        var heading: String
        var isSetting = false
        var text: @Sendable (BenchResult) -> String
    }

    /// A point by the settings in which it differs from others of its sweep, or by the first ones.
    package static func name(of point: BenchSettings, among points: [BenchSettings]) -> String {
        let settings = settingColumns.filter { $0.text(point) != "" }
        let varied = settings.filter { column in points.contains { column.text($0) != column.text(point) } }
        return (varied.isEmpty ? Array(settings.prefix(3)) : varied)
            .map { phrase($0.heading, $0.text(point)) }.joined(separator: ", ")
    }

    /// The settings in which a point differs from others, but for some of them.
    static func names(of point: BenchSettings, among points: [BenchSettings], without left: [String]) -> String {
        settingColumns
            .filter { column in
                !left.contains(column.heading) && points.contains { column.text($0) != column.text(point) }
            }
            .map { phrase($0.heading, $0.text(point)) }.joined(separator: ", ")
    }

    /// A setting's heading in a sentence.
    static func spoken(_ heading: String) -> String { heading == "message B" ? "message size" : heading }

    private static func phrase(_ heading: String, _ text: String) -> String {
        switch heading {
        case "message B": "messages of \(text) bytes"
        case "queue": "a queue of \(text)"
        case "centrals": "\(text) central\(text == "1" ? "" : "s")"
        default: "\(heading) \(text)"
        }
    }

    /// The settings that were varied, with what each point has of them.
    static func varied(
        in points: [BenchSettings]
    ) -> [(heading: String, text: @Sendable (BenchSettings) -> String)] {
        settingColumns.filter { column in Set(points.map(column.text)).count > 1 }
    }

    private static let settingColumns: [(heading: String, text: @Sendable (BenchSettings) -> String)] = [
        ("phy", { $0.phy }), ("interval ms", { short($0.interval) }), ("mtu", { "\($0.attMTU)" }),
        ("data length", { "\($0.dataLength)" }), ("framing", { $0.framing.rawValue }),
        ("compression", { $0.compression.rawValue }), ("message B", { "\($0.messageSize)" }),
        ("queue", { "\($0.queueDepth)" }), ("centrals", { "\($0.centrals)" }),
        ("direction", { $0.direction.rawValue }), ("error rate", { "\($0.packetErrorRate)" }),
        ("controller", { $0.profile.name }),
    ]

    /// Settings that only a simulated link heeds.
    private static let simulatedOnly = ["phy", "data length", "error rate", "controller"]

    private static let columns: [Column] =
        settingColumns.map { column in
            Column(heading: column.heading, isSetting: true) { column.text($0.settings) }
        } + [
            Column(heading: "goodput kbit/s") { number($0.goodput, 1) },
            Column(heading: "of limit %") { number($0.shareOfLimit * 100, 1) },
            Column(heading: "chunks/msg") { number(ratio($0.chunks, $0.messages), 2) },
            Column(heading: "overhead B/msg") { number($0.overheadPerMessage, 1) },
            Column(heading: "waits") { "\($0.waiting.count)" },
            Column(heading: "waiting %") { number($0.waiting.share * 100, 1) },
            Column(heading: "depth mean") { number($0.queue.mean, 1) },
            Column(heading: "p50 ms") { number($0.latency.median, 1) },
            Column(heading: "p99 ms") { number($0.latency.p99, 1) },
            Column(heading: "max ms") { number($0.latency.maximum, 1) },
            Column(heading: "fairness") { number($0.fairness.jainIndex, 3) },
            Column(heading: "cpu us/chunk") { $0.processor.map { number($0.perChunk, 2) } ?? "" },
        ]

    private static func ratio(_ a: Int, _ b: Int) -> Double { b > 0 ? Double(a) / Double(b) : 0 }

    /// Aligned columns; settings that are the same everywhere stand once above.
    package func aligned() -> String {
        let rows = rows()
        let widths = rows[0].indices.map { index in rows.map { $0[index].count }.max() ?? 0 }
        let lines = rows.map { row in
            zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  ")
        }
        let heading = fixed.map { "\($0.heading) \($0.text(results[0]))" }.joined(separator: ", ")
        return (heading.isEmpty ? "" : heading + "\n\n") + lines.joined(separator: "\n") + "\n"
    }

    /// Settings that are the same everywhere.
    private var fixed: [Column] {
        guard let first = results.first else { return [] }
        return Self.columns.filter { column in
            column.isSetting && heeds(column) && results.allSatisfy { column.text($0) == column.text(first) }
        }
    }

    /// Whether the link heeds this setting, where it is one.
    private func heeds(_ column: Column) -> Bool { isSimulated || !Self.simulatedOnly.contains(column.heading) }

    /// Headings and then results, without the columns that say nothing.
    func rows() -> [[String]] {
        let fixed = fixed.map(\.heading)
        let isSingle = results.allSatisfy { $0.settings.centrals == 1 }
        let shown = Self.columns.filter { column in
            heeds(column) && !fixed.contains(column.heading) && !(isSingle && column.heading == "fairness")
                && results.contains { !column.text($0).isEmpty }
        }
        return [shown.map(\.heading)] + results.map { result in shown.map { $0.text(result) } }
    }

    /// Every column of every result, RFC 4180.
    package func commaSeparated() -> String {
        let rows = [Self.columns.map(\.heading)] + results.map { result in Self.columns.map { $0.text(result) } }
        return rows.map { $0.map(Self.field).joined(separator: ",") + "\r\n" }.joined()
    }

    private static func field(_ text: String) -> String {
        guard text.contains(where: { ",\"\r\n".contains($0) }) else { return text }
        return "\"" + text.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\""
    }
}

/// A number with this many decimals, without a locale.
package func number(_ value: Double, _ decimals: Int) -> String {
    guard value.isFinite, abs(value) < 1e12 else { return "-" }
    var scale = 1
    for _ in 0..<decimals { scale *= 10 }
    let scaled = Int((abs(value) * Double(scale)).rounded())
    let sign = value < 0 && scaled > 0 ? "-" : ""
    let whole = scaled / scale
    guard decimals > 0 else { return "\(sign)\(whole)" }
    let rest = String(scaled % scale)
    return "\(sign)\(whole)." + String(repeating: "0", count: decimals - rest.count) + rest
}

/// A number with at most two decimals and no trailing zeros.
package func short(_ value: Double) -> String {
    var text = number(value, 2)
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
}
