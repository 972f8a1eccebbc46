/// What to use, what it gives, and why.
package struct Advice: Codable, Sendable {
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
    package var isWithin: Bool?
    var reasons: [String]
    var predictions: [Prediction]
    /// `nil` where no published figure has the recommended conditions.
    var check: Check?
    /// What the ranges of the predictions come from.
    var evidence: Evidence
    /// The records by each codec, on the link that is advised; `nil` where no records were given.
    package var codecs: CodecComparison?

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
        /// With a controller as slow, and as quick, as ``Evidence`` shows.
        var slow: Bound
        var quick: Bound

        /// One end of a range, in the units of the prediction.
        struct Bound: Codable, Sendable {
            var median: Double
            var p99: Double
            var goodput: Double
        }
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

    package func text() -> String {
        var lines = [
            "To \(peer == "custom" ? "a device of your own" : peer), ATT_MTU \(attMTU), LE \(phy), controller \(controller):",
            "",
            "chunk        \(chunkSize) bytes", "framing      \(framing.rawValue)",
            "compression  \(compression.rawValue)", "interval     \(short(interval)) ms", "",
        ]
        let head = ["message", "bytes", "chunks", "p50 ms", "range", "p99 ms", "range", "kbit/s", "range"]
        let rows =
            [head]
            + predictions.map { prediction in
                let (slow, quick) = (prediction.slow, prediction.quick)
                return [prediction.name, "\(prediction.size)", "\(prediction.chunks)"]
                    + [
                        (prediction.median, quick.median, slow.median), (prediction.p99, quick.p99, slow.p99),
                        (prediction.goodput, slow.goodput, quick.goodput),
                    ].flatMap { [number($0, 1), "\(number(min($0, $1), 1))-\(number(max($0, $2), 1))"] }
            }
        let widths = head.indices.map { index in rows.map { $0[index].count }.max() ?? 0 }
        for row in rows {
            lines.append(
                zip(row, widths).map { String(repeating: " ", count: $1 - $0.count) + $0 }.joined(separator: "  "))
        }
        lines += ["", "Latency of one message on an idle link; throughput of one after the other. Simulated.", ""]
        let remarks = reasons + [remark, figure(), evidence.words]
        lines += remarks.flatMap { Self.wrapped($0) }
        return lines.joined(separator: "\n") + "\n" + (codecs.map { "\n" + $0.text() } ?? "")
    }

    /// The published figures for these conditions: a sentence that names them, or says that there are none.
    private func figure() -> String {
        guard let check else {
            return
                "No published figure that Ferry knows was measured with controller \(controller) under these conditions."
        }
        let off = check.published > 0 ? (check.simulated / check.published - 1) * 100 : 0
        let figures =
            "\(check.source) (\(check.conditions), simulated without encryption): published "
            + "\(number(check.published, 1)) kbit/s, simulated \(number(check.simulated, 1)) "
            + "(\(off < 0 ? "" : "+")\(number(off, 1)) %)"
        switch check.kind {
        case .arithmetic: return "The model gives what arithmetic does: \(figures)."
        case .complete, .part: return "The model was checked against \(figures). It was not fitted to it."
        case .fitted: return "Controller \(controller) was fitted to \(figures). Their agreement is no evidence."
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
