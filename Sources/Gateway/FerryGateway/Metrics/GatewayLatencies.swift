#if NATS && Records
    import Ferry
    import Synchronization

    /// Counts how long records take on their way through a gateway, why they are put off, and how visits end: for Prometheus, by
    /// ``MetricsText/add(_:)-(GatewayLatencies)``.
    public final class GatewayLatencies: GatewayObserver {
        private struct Figures: Sendable {
            var publishing = LatencyHistogram()
            var readToPublished = LatencyHistogram()
            var visiting = LatencyHistogram()
            var putOff: [String: Int] = [:]
            var visits: [String: Int] = [:]
        }

        private let figures = Mutex(Figures())

        /// Nothing has happened.
        public init() {}

        /// Counts.
        public func observe(_ event: GatewayEvent) {
            switch event {
            case .published(let publications):
                figures.withLock { figures in
                    for one in publications {
                        figures.publishing.record(one.publishing)
                        figures.readToPublished.record(one.sinceRead)
                    }
                }
            case .putOff(let all):
                figures.withLock { figures in
                    for one in all { figures.putOff[one.error.description, default: 0] += 1 }
                }
            case .visitEnded(_, let visit):
                figures.withLock { figures in
                    figures.visiting.record(visit.duration)
                    figures.visits[visit.failure?.description ?? "complete", default: 0] += 1
                }
            default: break
            }
        }

        fileprivate func add(to text: inout MetricsText) {
            let figures = figures.withLock { $0 }
            text.add(
                "ferry_gateway_publishing_seconds", "How long the answer to a record took.", figures.publishing)
            text.add(
                "ferry_gateway_read_to_published_seconds", "How long a record took from the store to the stream.",
                figures.readToPublished)
            text.add("ferry_gateway_visit_seconds", "How long visits took.", figures.visiting)
            func add(_ name: String, by label: String, _ help: String, _ counts: [String: Int]) {
                text.add(name, .counter, help, counts.sorted { $0.key < $1.key }.map { ([(label, $0.key)], $0.value) })
            }
            add(
                "ferry_gateway_put_off_total", by: "reason", "Records that were not taken at once, by the reason.",
                figures.putOff)
            add(
                "ferry_gateway_visits_total", by: "result", "Visits of peers, by how they ended.", figures.visits)
        }
    }

    extension MetricsText {
        /// What the figures of a gateway's latencies are called.
        public mutating func add(_ latencies: GatewayLatencies) { latencies.add(to: &self) }
    }
#endif
