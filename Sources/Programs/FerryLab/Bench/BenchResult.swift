/// What one point of a sweep gave. When simulated, everything in it but the processor time is the same on every run with
/// the same seed.
package struct BenchResult: Codable, Sendable {
    package var settings: BenchSettings
    /// Message bytes per second that arrived, in kbit/s (1000 bits), all centrals together.
    var goodput: Double
    /// The most that this link could carry if no time were lost between values, in kbit/s.
    var linkLimit: Double
    var messages: Int
    var messageBytes: Int
    /// A message's bytes after compression, where it is compressed.
    var compressedBytes: Int?
    /// Values handed to the link, and their bytes.
    package var chunks: Int
    var chunkBytes: Int
    var waiting: Waiting
    var queue: QueueDepth
    var latency: Latency
    var fairness: Fairness
    /// Nil for simulated points unless it was asked for, so that their output stays the same.
    package var processor: Processor?

    /// The part of the link's limit that crossed, 0 to 1: of compressed messages the compressed bytes.
    var shareOfLimit: Double { linkLimit > 0 ? goodput * remainder / linkLimit : 0 }

    /// What compression leaves of a message's bytes, 0 to 1; 1 without.
    private var remainder: Double {
        guard settings.compression != .none, messageBytes > 0 else { return 1 }
        if let compressedBytes { return min(1, Double(compressedBytes * messages) / Double(messageBytes)) }
        return min(1, Double(chunkBytes) / Double(messageBytes))
    }

    /// Bytes that cross for each message beside it: framing's, and the mark of a compressed message. What compression saves is
    /// not counted.
    var overheadPerMessage: Double {
        guard messages > 0 else { return 0 }
        let message = compressedBytes.map(Double.init) ?? Double(messageBytes) / Double(messages)
        return Double(chunkBytes) / Double(messages) - message
    }

    /// How often and how long senders waited for the link to be ready.
    struct Waiting: Codable, Sendable {
        var count: Int
        /// Milliseconds in all.
        var total: Double
        /// Part of the time, 0 to 1.
        var share: Double
        /// Probes that found space of which the link had not told.
        var lostReadySignals: Int
    }

    /// Processor time of this process for the whole point: its set-up, both ends, and the radio or its simulation.
    package struct Processor: Codable, Sendable {
        /// Seconds in all.
        var total: Double
        /// Microseconds for each chunk.
        var perChunk: Double

        package init(total: Double, chunks: Int) {
            self.total = total
            perChunk = chunks > 0 ? total * 1e6 / Double(chunks) : 0
        }
    }

    /// Chunks between the sender's link and the receiver.
    struct QueueDepth: Codable, Sendable {
        var mean: Double
        var maximum: Int
    }

    /// Time from `send` to the message's arrival, in milliseconds.
    struct Latency: Codable, Sendable {
        var median: Double
        var p90: Double
        var p99: Double
        var p999: Double
        var maximum: Double
        /// Percentile and value, for the curve.
        var curve: [[Double]]
    }

    /// How evenly several centrals are served.
    struct Fairness: Codable, Sendable {
        /// Jain's index: 1 when all get the same, 1/n when one gets everything.
        var jainIndex: Double
        /// Each central's goodput in kbit/s.
        var goodputs: [Double]

        init(_ goodputs: [Double]) {
            self.goodputs = goodputs
            let sum = goodputs.reduce(0, +)
            let squares = goodputs.reduce(0) { $0 + $1 * $1 }
            jainIndex = squares > 0 ? sum * sum / (Double(goodputs.count) * squares) : 1
        }
    }
}

/// One transfer, step by step, for the picture.
package struct TransferTimeline: Codable, Sendable {
    var settings: BenchSettings
    var steps: [Step]

    package init(settings: BenchSettings, steps: [Step]) {
        self.settings = settings
        self.steps = steps
    }

    package struct Step: Codable, Sendable {
        /// Milliseconds since the transfer began.
        var time: Double
        var kind: Kind
        /// Chunks on their way after this step.
        var depth: Int
    }

    enum Kind: String, Codable, Sendable {
        case accepted
        case refused
        case ready
        case delivered
    }
}

/// A sweep's results, as they are written to a file.
package struct BenchReport: Codable, Sendable {
    var tool = "ferry bench"
    var formatVersion = 1
    var transport: String
    package var results: [BenchResult]
    /// Waiting against queue depth, for the report's chart: measured at one point when the sweep has one depth only.
    package var depthSweep: [BenchResult] = []
    package var timeline: TransferTimeline?
    /// Messages sent one at a time, for the report's chart of latency.
    package var single: [BenchResult]?

    package init(transport: String, results: [BenchResult]) {
        self.transport = transport
        self.results = results
    }
}
