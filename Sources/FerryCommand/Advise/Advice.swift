/// What to use, what it gives, and why.
struct Advice: Codable, Sendable {
    var peer: String
    var remark: String
    /// The profile of the controller that was simulated.
    var controller: String
    var attMTU: Int
    var phy: String
    var chunkSize: Int
    var framing: FramingChoice
    var compression: CompressionChoice
    /// In ms.
    var interval: Double
    /// Whether the latency that was asked for is kept, by messages of every size; nil where none was.
    var isWithin: Bool?
    var reasons: [String]
    var predictions: [Prediction]
    /// `nil` where no published figure has the recommended conditions.
    var check: Check?

    /// What one size of message meets.
    struct Prediction: Codable, Sendable {
        var name: String
        var size: Int
        var chunks: Int
        /// On an idle link, from send to arrival, in ms.
        var median: Double
        var p99: Double
        /// Of such messages one after the other, in kbit/s.
        var goodput: Double
    }

    /// A published figure of the very conditions that are recommended, beside what the model gives for them.
    struct Check: Codable, Sendable {
        var source: String
        /// What the model's agreement with the figure shows.
        var kind: PublishedFigure.Kind
        var conditions: String
        /// In kbit/s.
        var published: Double
        var simulated: Double
    }

    func text() -> String {
        var lines = [
            "To \(peer == "custom" ? "a device of your own" : peer), ATT_MTU \(attMTU), LE \(phy), controller \(controller):",
            "",
            "chunk        \(chunkSize) bytes", "framing      \(framing.rawValue)",
            "compression  \(compression.rawValue)", "interval     \(short(interval)) ms", "",
        ]
        let head = ["message", "bytes", "chunks", "p50 ms", "p99 ms", "kbit/s"]
        let rows =
            [head]
            + predictions.map {
                [$0.name, "\($0.size)", "\($0.chunks)", number($0.median, 1), number($0.p99, 1), number($0.goodput, 1)]
            }
        let widths = head.indices.map { index in rows.map { $0[index].count }.max() ?? 0 }
        for row in rows {
            lines.append(
                zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  "))
        }
        lines += ["", "Latency of one message on an idle link; throughput of one after the other. Simulated.", ""]
        var remarks = reasons + [remark]
        remarks.append(evidence())
        lines += remarks.flatMap { Self.wrapped($0) }
        return lines.joined(separator: "\n") + "\n"
    }

    /// What backs the predictions: a sentence that names its figure, or says that there is none.
    private func evidence() -> String {
        guard let check else {
            return
                "No published figure that Ferry knows was measured with controller \(controller) under these conditions; "
                + "the predictions are the model's alone."
        }
        let off = check.published > 0 ? (check.simulated / check.published - 1) * 100 : 0
        let figures =
            "\(check.source) (\(check.conditions)): published \(number(check.published, 1)) kbit/s, simulated "
            + "\(number(check.simulated, 1)) (\(off < 0 ? "" : "+")\(number(off, 1)) %)"
        switch check.kind {
        case .exact: return "The model was checked against \(figures)."
        case .inferred:
            return "The model was checked against \(figures). The controller's packets per event are inferred from "
                + "another figure of the same source."
        case .fitted:
            return "Controller \(controller) was fitted to \(figures). Their agreement is no evidence."
        }
    }

    /// A list item in lines of at most 100 characters, where its words allow that.
    private static func wrapped(_ text: String) -> [String] {
        var lines: [String] = []
        var line = "-"
        for word in text.split(separator: " ") {
            if line.count + 1 + word.count > 100 {
                lines.append(line)
                line = " "
            }
            line += " " + word
        }
        return lines + [line]
    }
}
