#if Observability
    public import CoreMetrics
    import Ferry
    import Synchronization

    /// What links carry, as counters of swift-metrics: one set for all links of a transport, to any peer.
    ///
    /// | name | what it counts |
    /// |---|---|
    /// | `ferry_links` | links that are open: a gauge |
    /// | `ferry_link_sent_chunks_total`, `ferry_link_sent_bytes_total` | what links took |
    /// | `ferry_link_received_chunks_total`, `ferry_link_received_bytes_total` | what arrived |
    /// | `ferry_link_refused_chunks_total` | chunks for which the transmit queue had no space |
    /// | `ferry_link_ready_total` | how often a link said that there may be space again |
    /// | `ferry_link_suspensions_total`, `ferry_link_resumptions_total` | connections that links lost, and got again |
    /// | `ferry_link_ends_total` | links that ended, by `reason`: the error's code |
    ///
    /// Each has the dimension `transport`.
    public final class LinkMetrics: Sendable {
        let sentChunks: Counter
        let sentBytes: Counter
        let receivedChunks: Counter
        let receivedBytes: Counter
        let refusedChunks: Counter
        let ready: Counter
        let suspensions: Counter
        let resumptions: Counter
        private let ends: CountersByReason
        private let openLinks: Gauge
        private let count = Mutex(0)

        /// - Parameters:
        ///   - transport: what the links are of, such as `bluez`.
        ///   - factory: what makes the counters; by default the one that the program has chosen.
        public init(transport: String, factory: any MetricsFactory = MetricsSystem.factory) {
            let dimensions = [("transport", transport)]
            func counter(_ name: String) -> Counter {
                Counter(label: "ferry_link_\(name)_total", dimensions: dimensions, factory: factory)
            }
            sentChunks = counter("sent_chunks")
            sentBytes = counter("sent_bytes")
            receivedChunks = counter("received_chunks")
            receivedBytes = counter("received_bytes")
            refusedChunks = counter("refused_chunks")
            ready = counter("ready")
            suspensions = counter("suspensions")
            resumptions = counter("resumptions")
            ends = CountersByReason("ferry_link_ends_total", dimensions, factory)
            openLinks = Gauge(label: "ferry_links", dimensions: dimensions, factory: factory)
        }

        func opened() { change(by: 1) }

        func closed(_ reason: String) {
            change(by: -1)
            ends[reason].increment()
        }

        private func change(by number: Int) {
            // Within the lock, so that the last of two threads to record has the last number; a gauge only stores it.
            count.withLock { count in
                count += number
                openLinks.record(count)
            }
        }
    }

    /// A counter for each reason, of which there are a few dozen: those beyond 64 count as `other`.
    final class CountersByReason: Sendable {
        private let make: @Sendable (String) -> Counter
        private let counters = Mutex<[String: Counter]>([:])

        init(_ name: String, _ dimensions: [(String, String)], _ factory: any MetricsFactory, label: String = "reason")
        {
            make = { Counter(label: name, dimensions: dimensions + [(label, $0)], factory: factory) }
        }

        subscript(reason: String) -> Counter {
            counters.withLock { counters in
                let reason = counters[reason] != nil || counters.count < 64 ? reason : "other"
                if let counter = counters[reason] { return counter }
                let counter = make(reason)
                counters[reason] = counter
                return counter
            }
        }
    }
#endif
