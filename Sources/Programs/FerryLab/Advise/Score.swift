package import Ferry
import FerrySimulator

/// The simulator beside every published figure: `ferry advise --score`.
package struct Score: Codable, Sendable {
    struct Row: Codable, Sendable {
        var number: String
        var source: String
        var conditions: String
        var assumed: String
        var kind: PublishedFigure.Kind
        /// In kbit/s.
        var published: Double
        var simulated: Double
        /// How far the simulation is off, as a part of the published figure.
        var off: Double { simulated / published - 1 }
    }

    /// What figures of one kind say together.
    struct Summary: Codable, Sendable {
        var kind: PublishedFigure.Kind
        var count: Int
        /// Parts of the published figure.
        var medianOff: Double
        var worstOff: Double
        var within5Percent: Int
        var within25Percent: Int
    }

    var rows: [Row]
    var summaries: [Summary]

    package init() throws(FerryError) {
        rows = []
        for figure in PublishedFigure.all {
            rows.append(
                Row(
                    number: figure.number, source: figure.source, conditions: figure.conditions,
                    assumed: figure.assumed,
                    kind: figure.kind, published: figure.published, simulated: try figure.simulated()))
        }
        let all = rows
        let kinds: [PublishedFigure.Kind] = [.arithmetic, .fitted, .complete, .part]
        summaries = kinds.map { kind in
            let offs = all.filter { $0.kind == kind }.map { abs($0.off) }.sorted()
            return Summary(
                kind: kind, count: offs.count, medianOff: offs.isEmpty ? 0 : offs[offs.count / 2],
                worstOff: offs.last ?? 0, within5Percent: offs.count { $0 <= 0.05 },
                within25Percent: offs.count { $0 <= 0.25 })
        }
    }

    package func text() -> String {
        let head = ["figure", "kind", "published", "simulated", "off %", "source and conditions"]
        let table =
            [head]
            + rows.map { row in
                [
                    row.number, row.kind.rawValue, number(row.published, 1), number(row.simulated, 1),
                    (row.off > 0 ? "+" : "") + number(row.off * 100, 1),
                    "\(row.source): \(row.conditions)" + (row.assumed.isEmpty ? "" : " (not given: \(row.assumed))"),
                ]
            }
        let widths = head.indices.map { index in table.map { $0[index].count }.max() ?? 0 }
        var lines = table.map { row in
            row.indices.map { index in
                let padding = String(repeating: " ", count: widths[index] - row[index].count)
                return (2...4).contains(index)
                    ? padding + row[index] : row[index] + (index == row.count - 1 ? "" : padding)
            }.joined(separator: "  ")
        }
        lines += ["", "kbit/s. How far the simulation is off, by kind of figure:", ""]
        lines += summaries.map { "  \($0.words)" }
        return lines.joined(separator: "\n") + "\n"
    }

    func summary(of kind: PublishedFigure.Kind) -> Summary? { summaries.first { $0.kind == kind } }
}

extension Score.Summary {
    var words: String {
        let what =
            switch kind {
            case .arithmetic: "arithmetic"
            case .fitted: "fitted, so no evidence"
            case .complete: "measured, all conditions published, not fitted to"
            case .part: "measured, published in part, not fitted to"
            }
        return
            "\(what): \(count) figures, median \(number(medianOff * 100, 1)) %, worst \(number(worstOff * 100, 1)) %; "
            + "\(within5Percent) within 5 %, \(within25Percent) within 25 %"
    }
}
