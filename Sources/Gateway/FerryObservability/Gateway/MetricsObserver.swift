#if Observability && NATS && Records
    public import CoreMetrics
    import Ferry
    import FerryFleet
    public import FerryGateway
    import Synchronization

    /// Counts what happens in a gateway with swift-metrics. Names are those of `ferry gateway --metrics`, where that has the figure too.
    ///
    /// | name | what it is |
    /// |---|---|
    /// | `ferry_gateway_connected` | whether a server can be asked: a gauge, 0 or 1 |
    /// | `ferry_gateway_read_total` | records that were read from the store |
    /// | `ferry_gateway_published_total` | records that the stream has answered for |
    /// | `ferry_gateway_duplicates_total` | of those, how many it had already |
    /// | `ferry_gateway_put_off_total` | records that the stream did not take at once, by `reason`: the error's code |
    /// | `ferry_gateway_released_total` | records that left the store, for the stream has them for good |
    /// | `ferry_gateway_repetitions_total` | how often all was published again |
    /// | `ferry_gateway_failures_total` | connections that could not be made or have ended, and looks in vain, by `reason` |
    /// | `ferry_gateway_publishing_seconds` | how long a record's answer took: a timer |
    /// | `ferry_gateway_read_to_published_seconds` | how long a record took from the store to the stream: a timer |
    /// | `ferry_gateway_visits_total` | visits, whichever side connected, by `result`: `complete`, or the error's code |
    /// | `ferry_gateway_visit_seconds` | how long visits took: a timer |
    /// | `ferry_gateway_visit_records_total` | records of visits, by `direction`: `received`, `sent` |
    /// | `ferry_downlink_connected` | whether messages for peers can be read: a gauge |
    /// | `ferry_downlink_carried_total` | messages that have come to peers' disks |
    /// | `ferry_downlink_held_up_total` | times that a peer's messages did not go on, by `reason` |
    /// | `ferry_fleet_connected`, `ferry_fleet_owned_peers` | whether leases can be asked for, and peers whose lease this gateway has: gauges |
    /// | `ferry_fleet_tenures_total`, `ferry_fleet_late_stops_total` | leases that this gateway got; peers let go too late |
    /// | `ferry_fleet_requests_total` | requests to the bucket of leases, by `result`: `stored`, `refused`, `unanswered` |
    ///
    /// No figure has a dimension that grows with peers or records.
    public final class MetricsObserver: GatewayObserver {
        private let connected: [GatewayEvent.Part: Gauge]
        private let read: Counter
        private let published: Counter
        private let duplicates: Counter
        private let putOff: CountersByReason
        private let released: Counter
        private let repetitions: Counter
        private let failures: CountersByReason
        private let publishing: CoreMetrics.Timer
        private let readToPublished: CoreMetrics.Timer
        private let carried: Counter
        private let heldUp: CountersByReason
        private let ownedPeers: Gauge
        private let tenures: Counter
        private let lateStops: Counter
        private let requests: CountersByReason
        private let visits: CountersByReason
        private let visiting: CoreMetrics.Timer
        private let visitRecords: CountersByReason
        private let kept: Gauge
        private let stored: Gauge
        private let owned = Mutex<Set<String>>([])

        /// - Parameter factory: what makes the figures; by default the one that the program has chosen.
        public init(factory: any MetricsFactory = MetricsSystem.factory) {
            func counter(_ name: String) -> Counter { Counter(label: "ferry_\(name)", factory: factory) }
            func counters(_ name: String, by label: String) -> CountersByReason {
                CountersByReason("ferry_\(name)", [], factory, label: label)
            }
            func gauge(_ name: String) -> Gauge { Gauge(label: "ferry_\(name)", factory: factory) }
            func timer(_ name: String) -> CoreMetrics.Timer {
                CoreMetrics.Timer(
                    label: "ferry_\(name)", dimensions: [], preferredDisplayUnit: .seconds, factory: factory)
            }
            connected = [
                .stream: gauge("gateway_connected"), .leases: gauge("fleet_connected"),
                .downlink: gauge("downlink_connected"),
            ]
            read = counter("gateway_read_total")
            published = counter("gateway_published_total")
            duplicates = counter("gateway_duplicates_total")
            putOff = counters("gateway_put_off_total", by: "reason")
            released = counter("gateway_released_total")
            repetitions = counter("gateway_repetitions_total")
            failures = counters("gateway_failures_total", by: "reason")
            publishing = timer("gateway_publishing_seconds")
            readToPublished = timer("gateway_read_to_published_seconds")
            carried = counter("downlink_carried_total")
            heldUp = counters("downlink_held_up_total", by: "reason")
            ownedPeers = gauge("fleet_owned_peers")
            tenures = counter("fleet_tenures_total")
            lateStops = counter("fleet_late_stops_total")
            requests = counters("fleet_requests_total", by: "result")
            visits = counters("gateway_visits_total", by: "result")
            visiting = timer("gateway_visit_seconds")
            visitRecords = counters("gateway_visit_records_total", by: "direction")
            kept = gauge("gateway_kept_records")
            stored = gauge("gateway_store_records")
        }

        /// Sets what no event tells: `ferry_gateway_kept_records` and `ferry_gateway_store_records`. Call it now and then with
        /// ``/FerryGateway/Gateway/status()``.
        public func record(_ status: Gateway.Status) {
            kept.record(status.kept)
            stored.record(status.waiting)
        }

        /// Counts.
        public func observe(_ event: GatewayEvent) {
            switch event {
            case .read(let records): read.increment(by: records.count)
            case .published(let publications): count(publications)
            case .putOff(let all): for one in all { putOff[one.error.description].increment() }
            case .repeats: repetitions.increment()
            case .connected(let part, _): connected[part]?.record(1)
            case .disconnected(let part, _): connected[part]?.record(0)
            case .failed(let part, let error):
                connected[part]?.record(0)
                failures[error.code.description].increment()
            case .looked(let count): if count > 0 { released.increment(by: count) }
            case .lookFailed(let error): failures[error.code.description].increment()
            case .carried(_, let count): carried.increment(by: count)
            case .heldUp(_, let error): heldUp[error.code.description].increment()
            case .leaseAnswered(_, let answer):
                switch answer {
                case .stored: requests["stored"].increment()
                case .refused: requests["refused"].increment()
                case .unknown: requests["unanswered"].increment()
                case .entry: break
                }
            case .leaseBegan(let peer, _):
                tenures.increment()
                own { $0.insert(peer) }
            case .leaseEnded(let peer, _, let isLate):
                if isLate { lateStops.increment() }
                own { $0.remove(peer) }
            case .visitEnded(_, let visit): count(visit)
            default: break
            }
        }

        private func count(_ publications: [GatewayEvent.Publication]) {
            published.increment(by: publications.count)
            let old = publications.count(where: \.isDuplicate)
            if old > 0 { duplicates.increment(by: old) }
            for publication in publications {
                publishing.recordNanoseconds(publication.publishing.wholeNanoseconds)
                readToPublished.recordNanoseconds(publication.sinceRead.wholeNanoseconds)
            }
        }

        private func count(_ visit: GatewayEvent.Visit) {
            visits[visit.failure?.description ?? "complete"].increment()
            visiting.recordNanoseconds(visit.duration.wholeNanoseconds)
            if let count = visit.received, count > 0 { visitRecords["received"].increment(by: count) }
            if let count = visit.sent, count > 0 { visitRecords["sent"].increment(by: count) }
        }

        /// Within the lock, so that the gauge has the last number; it only stores it.
        private func own<Unused>(_ change: (inout Set<String>) -> Unused) {
            owned.withLock { owned in
                _ = change(&owned)
                ownedPeers.record(owned.count)
            }
        }
    }
#endif
