/// A sweep's results as text for people, and as comma-separated values for programs.
struct ResultTable {
    let results: [BenchResult]

    /// A column: its heading, whether it says something about the settings, and its text for a result.
    private struct Column: Sendable {
        var heading: String
        var isSetting = false
        var text: @Sendable (BenchResult) -> String
    }

    private static let columns: [Column] = [
        Column(heading: "phy", isSetting: true) { $0.settings.phy },
        Column(heading: "interval ms", isSetting: true) { short($0.settings.interval) },
        Column(heading: "mtu", isSetting: true) { "\($0.settings.attMTU)" },
        Column(heading: "data length", isSetting: true) { "\($0.settings.dataLength)" },
        Column(heading: "framing", isSetting: true) { $0.settings.framing.rawValue },
        Column(heading: "compression", isSetting: true) { $0.settings.compression.rawValue },
        Column(heading: "message B", isSetting: true) { "\($0.settings.messageSize)" },
        Column(heading: "queue", isSetting: true) { "\($0.settings.queueDepth)" },
        Column(heading: "centrals", isSetting: true) { "\($0.settings.centrals)" },
        Column(heading: "direction", isSetting: true) { $0.settings.direction.rawValue },
        Column(heading: "error rate", isSetting: true) { "\($0.settings.packetErrorRate)" },
        Column(heading: "controller", isSetting: true) { $0.settings.profile.name },
        Column(heading: "goodput kbps") { number($0.goodput, 1) },
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
    func aligned() -> String {
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
            column.isSetting && results.allSatisfy { column.text($0) == column.text(first) }
        }
    }

    /// Headings and then results, without the columns that say nothing.
    func rows() -> [[String]] {
        let fixed = fixed.map(\.heading)
        let isSingle = results.allSatisfy { $0.settings.centrals == 1 }
        let shown = Self.columns.filter { column in
            !fixed.contains(column.heading) && !(isSingle && column.heading == "fairness")
                && results.contains { !column.text($0).isEmpty }
        }
        return [shown.map(\.heading)] + results.map { result in shown.map { $0.text(result) } }
    }

    /// Every column of every result, RFC 4180.
    func commaSeparated() -> String {
        let rows = [Self.columns.map(\.heading)] + results.map { result in Self.columns.map { $0.text(result) } }
        return rows.map { $0.map(Self.field).joined(separator: ",") + "\r\n" }.joined()
    }

    private static func field(_ text: String) -> String {
        guard text.contains(where: { ",\"\r\n".contains($0) }) else { return text }
        return "\"" + text.map { $0 == "\"" ? "\"\"" : String($0) }.joined() + "\""
    }
}

/// A number with so many decimals, without a locale.
func number(_ value: Double, _ decimals: Int) -> String {
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
func short(_ value: Double) -> String {
    var text = number(value, 2)
    while text.hasSuffix("0") { text.removeLast() }
    if text.hasSuffix(".") { text.removeLast() }
    return text
}
