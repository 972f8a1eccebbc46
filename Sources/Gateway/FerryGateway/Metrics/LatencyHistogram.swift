#if NATS && Records
    /// How many times something took how long, as Prometheus counts it: a value without clock.
    public struct LatencyHistogram: Sendable, Hashable {
        /// The upper bounds of the buckets; above the last one there is one more.
        public static let bounds: [Duration] =
            [1, 2, 5, 10, 20, 50, 100, 200, 500].map { .milliseconds($0) }
            + [1, 2, 5, 10, 30, 60, 300].map { .seconds($0) }

        /// How many took as long as each bound at most, and longer than the one before; in the end those above all bounds.
        public private(set) var counts = [Int](repeating: 0, count: bounds.count + 1)
        /// All of them together.
        public private(set) var sum = Duration.zero

        /// Nothing.
        public init() {}

        /// Counts one.
        public mutating func record(_ duration: Duration) {
            // Short ones are by far the most.
            counts[Self.bounds.firstIndex { duration <= $0 } ?? Self.bounds.count] += 1
            sum += duration
        }
    }

    extension MetricsText {
        /// Adds a histogram, in seconds.
        ///
        /// - Parameters:
        ///   - name: letters, digits and underscores; ends with `_seconds`.
        ///   - help: what it is, one line.
        ///   - histogram: the values.
        public mutating func add(_ name: String, _ help: String, _ histogram: LatencyHistogram) {
            var total = 0
            var lines: [(labels: [(String, String)], value: Int)] = []
            for (count, bound) in zip(histogram.counts, LatencyHistogram.bounds.map(Self.seconds) + ["+Inf"]) {
                total += count
                lines.append(([("le", bound)], total))
            }
            add(name, .histogram, help, lines)
            add(line: "\(name)_sum \(Self.seconds(histogram.sum))")
            add(line: "\(name)_count \(total)")
        }

        private static func seconds(_ duration: Duration) -> String { "\(duration / .seconds(1))" }
    }
#endif
