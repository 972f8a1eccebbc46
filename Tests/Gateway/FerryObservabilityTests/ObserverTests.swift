#if Observability && NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import InMemoryLogging
    import InMemoryTracing
    import Logging
    import MetricsTestKit
    import TestSupport
    import Testing
    import Tracing

    @testable import FerryGateway
    @testable import FerryObservability
    @testable import FerryRecords

    /// What becomes of each event, as lines, figures and spans.
    @Suite(.tags(.records)) struct ObserverTests {
        private typealias Event = GatewayEvent

        private func record(_ sequence: UInt64, token: UInt64? = 9) -> Event.Record {
            let id = RecordID(
                sender: StoreID(high: 1, low: 2), epoch: Epoch(generation: 3, nonce: 7), stream: "a b",
                sequence: sequence)
            return Event.Record(
                id: id, name: id.name, peer: "press-7", token: token.map { FencingToken(revision: $0) }, bytes: 4)
        }

        private func published(_ sequence: UInt64, place: UInt64, isDuplicate: Bool = false) -> Event.Publication {
            Event.Publication(
                record: record(sequence), sequence: place, isDuplicate: isDuplicate, publishing: .milliseconds(2),
                sinceRead: .milliseconds(5))
        }

        private func putOff(_ sequence: UInt64, _ code: FerryError.Code, isHeld: Bool = false) -> Event.PutOff {
            Event.PutOff(record: record(sequence), error: code, message: "It is \(code).", isHeld: isHeld)
        }

        private func lines(_ level: Logger.Level, _ events: [Event]) -> [InMemoryLogHandler.Entry] {
            let handler = InMemoryLogHandler()
            var logger = Logger(label: "test") { _ in handler }
            logger.logLevel = level
            let observer = LoggingObserver(logger, gateway: "g1")
            for event in events { observer.observe(event) }
            return handler.entries
        }

        // MARK: Lines

        @Test func aRecordsLinesSayWhichItIs() throws {
            let entries = lines(.trace, [.read([record(1)]), .published([published(1, place: 77)])])
            let name = "00000000000000010000000000000002/3.0000000000000007/a%20b/1"
            let metadata: Logger.Metadata = [
                "gateway": "g1", "peer": "press-7", "stream": "a b", "sequence": "1", "record": "\(name)", "token": "9",
            ]
            #expect(entries.map(\.level) == [.trace, .trace] && entries[0].metadata == metadata)
            #expect(entries[1].metadata["place"] == "77")
        }

        /// A thousand records that a full stream refuses are a line, and one that can never go is one of its own.
        @Test func refusalsAreWarnedOfByReason() {
            let all = (1...1000).map { putOff($0, .natsStreamFull) } + [putOff(1001, .messageTooLarge, isHeld: true)]
            let entries = lines(.info, [.putOff(all)])
            #expect(entries.map(\.level) == [.warning, .warning])
            #expect(entries.first?.metadata["sequence"] == "1001")
            #expect(
                entries.last?.metadata == ["gateway": "g1", "reason": "nats.streamFull", "records": "1000"])
            #expect(lines(.debug, [.putOff(all)]).count == 1002)
        }

        @Test(arguments: [
            (Event.leaseEnded(peer: "p", FencingToken(revision: 3), isLate: true), Logger.Level.error),
            (.leaseEnded(peer: "p", nil, isLate: false), .info),
            (.leaseBegan(peer: "p", FencingToken(revision: 3)), .info),
            (.connected(.stream, server: "S"), .info), (.disconnected(.leases, isEnding: false), .warning),
            (.disconnected(.stream, isEnding: true), .info),
            (.failed(.stream, FerryError(.natsNoServer, "away")), .warning), (.repeats(because: "it"), .notice),
            (.lookFailed(FerryError(.timedOut, "late")), .warning), (.looked(released: 3), .debug),
            (.leaseAnswered(peer: "p", .unknown), .warning), (.leaseAnswered(peer: "p", .refused), .info),
            (.visitEnded(peer: "p", Event.Visit(FerryError(.peerNotFound, "gone"), lasting: .seconds(1))), .info),
            (.visitEnded(peer: "p", Event.Visit(nil, lasting: .seconds(1))), .debug),
            (.carried(peer: "p", count: 3), .debug),
            (.heldUp(peer: "p", FerryError(.messageTooLarge, "large")), .warning),
        ]) private func levels(_ event: GatewayEvent, _ level: Logger.Level) {
            #expect(lines(.trace, [event]).map(\.level) == [level])
        }

        // MARK: Figures

        @Test func figuresAreCounted() throws {
            let figures = TestMetrics()
            let observer = MetricsObserver(factory: figures)
            func total(_ name: String, _ labels: [(String, String)] = []) throws -> Int64 {
                try figures.expectCounter("ferry_\(name)", labels).totalValue
            }
            func gauge(_ name: String) throws -> Double? { try figures.expectGauge("ferry_\(name)").lastValue }
            observer.observe(.connected(.stream, server: "S"))
            observer.observe(.read([record(1), record(2), record(3)]))
            observer.observe(.published([published(1, place: 1), published(2, place: 2, isDuplicate: true)]))
            observer.observe(.putOff([putOff(3, .natsStreamFull), putOff(3, .timedOut), putOff(3, .natsStreamFull)]))
            observer.observe(.looked(released: 2))
            observer.observe(.repeats(because: "it"))
            #expect(try gauge("gateway_connected") == 1 && total("gateway_read_total") == 3)
            #expect(try total("gateway_published_total") == 2 && total("gateway_duplicates_total") == 1)
            #expect(try total("gateway_put_off_total", [("reason", "nats.streamFull")]) == 2)
            #expect(try total("gateway_put_off_total", [("reason", "timedOut")]) == 1)
            #expect(try total("gateway_released_total") == 2 && total("gateway_repetitions_total") == 1)
            #expect(
                try figures.expectTimer("ferry_gateway_publishing_seconds").values == [2_000_000, 2_000_000])
            #expect(
                try figures.expectTimer("ferry_gateway_read_to_published_seconds").values == [5_000_000, 5_000_000])
            observer.observe(.failed(.stream, FerryError(.natsNoServer, "away")))
            #expect(try gauge("gateway_connected") == 0)
            #expect(try total("gateway_failures_total", [("reason", "nats.noServer")]) == 1)
            observer.observe(.connected(.downlink, server: "S"))
            observer.observe(.carried(peer: "p", count: 3))
            observer.observe(.heldUp(peer: "p", FerryError(.messageTooLarge, "large")))
            #expect(try gauge("downlink_connected") == 1 && total("downlink_carried_total") == 3)
            #expect(try total("downlink_held_up_total", [("reason", "messageTooLarge")]) == 1)
            observer.observe(.visitEnded(peer: "p", Event.Visit(FerryError(.timedOut, "late"), lasting: .seconds(3))))
            let summary = RecordStore.Summary(peer: "p", committed: 2, received: 5)
            observer.observe(.visitEnded(peer: "p", Event.Visit(summary, lasting: .seconds(1))))
            #expect(
                try ["timedOut", "complete"].map { try total("gateway_visits_total", [("result", $0)]) } == [1, 1])
            #expect(
                try ["received", "sent"].map { try total("gateway_visit_records_total", [("direction", $0)]) } == [
                    5, 2,
                ])
            #expect(
                try figures.expectTimer("ferry_gateway_visit_seconds").values == [3_000_000_000, 1_000_000_000])
            var status = Gateway.Status()
            (status.kept, status.waiting) = (4, 6)
            observer.record(status)
            #expect(try gauge("gateway_kept_records") == 4 && gauge("gateway_store_records") == 6)
        }

        @Test func figuresOfAFleetAreCounted() throws {
            let figures = TestMetrics()
            let observer = MetricsObserver(factory: figures)
            func total(_ name: String, _ labels: [(String, String)] = []) throws -> Int64 {
                try figures.expectCounter("ferry_fleet_\(name)", labels).totalValue
            }
            observer.observe(.connected(.leases, server: "S"))
            for answer: LeaseAnswer in [.stored(revision: 1), .stored(revision: 2), .refused, .unknown, .entry(nil)] {
                observer.observe(.leaseAnswered(peer: "p", answer))
            }
            for peer in ["p", "q", "r"] { observer.observe(.leaseBegan(peer: peer, FencingToken(revision: 1))) }
            observer.observe(.leaseEnded(peer: "p", FencingToken(revision: 1), isLate: true))
            observer.observe(.leaseEnded(peer: "q", FencingToken(revision: 1), isLate: false))
            #expect(try figures.expectGauge("ferry_fleet_connected").lastValue == 1)
            #expect(try figures.expectGauge("ferry_fleet_owned_peers").lastValue == 1)
            #expect(try total("tenures_total") == 3 && total("late_stops_total") == 1)
            #expect(
                try ["stored", "refused", "unanswered"].map { try total("requests_total", [("result", $0)]) } == [
                    2, 1, 1,
                ])
            // No figure is of a peer.
            #expect(figures.counters.allSatisfy { $0.dimensions.allSatisfy { $0.1 != "p" && $0.1 != "press-7" } })
        }

        // MARK: Spans

        @Test func aSpanBeginsWhenARecordIsReadAndEndsAtItsPlace() throws {
            let tracer = ContextTracer()
            let observer = TracingObserver(gateway: "g1", tracer: tracer, sampling: .oneIn(1))
            observer.observe(.read([record(1)]))
            let header = try #require(observer.headers(for: record(1)).first)
            observer.observe(.putOff([putOff(1, .natsStreamFull)]))
            #expect(tracer.memory.finishedSpans.isEmpty)
            observer.observe(.published([published(1, place: 77)]))
            let span = try #require(tracer.memory.popFinishedSpans().first)
            #expect(
                tracer.memory.activeSpans.isEmpty && span.operationName == "ferry.publish" && span.kind == .producer)
            // Its trace is the one of its name, and the message's is the span's.
            let name = record(1).name
            #expect(RecordSampling.traceparent(of: name).contains("-\(span.traceID)-\(span.parentSpanID ?? "")-"))
            #expect(header.name == "traceparent" && header.value == "00-\(span.traceID)-\(span.spanID)-01")
            #expect(
                span.attributes == [
                    "ferry.record": .string(name), "ferry.peer": "press-7", "ferry.gateway": "g1", "ferry.token": "9",
                    "ferry.place": 77, "ferry.duplicate": false,
                ])
            #expect(span.events.map(\.name) == ["ferry.putOff"] && span.status == nil)
            #expect(span.events.first?.attributes == ["ferry.error": "nats.streamFull"])
            // What it knows nothing of does no harm.
            observer.observe(.published([published(1, place: 78), published(2, place: 79)]))
            #expect(observer.headers(for: record(1)).isEmpty && tracer.memory.finishedSpans.isEmpty)
        }

        @Test func spansEndWithAnErrorWhereTheWayEnds() {
            let tracer = ContextTracer()
            let observer = TracingObserver(gateway: "g1", tracer: tracer, sampling: .oneIn(1))
            observer.observe(.read([record(1), record(2)]))
            observer.observe(.putOff([putOff(1, .messageTooLarge, isHeld: true)]))
            #expect(tracer.memory.popFinishedSpans().map(\.status?.message) == ["It is messageTooLarge."])
            observer.observe(.readingBegins)
            #expect(tracer.memory.popFinishedSpans().map(\.status?.code) == [.error])
            observer.observe(.read([record(1), record(2)]))
            observer.observe(.read([record(2)]))
            #expect(tracer.memory.activeSpans.count == 2 && tracer.memory.popFinishedSpans().count == 1)
            for _ in 0..<100 { observer.observe(.putOff([putOff(2, .natsStreamFull)])) }
            observer.observe(.disconnected(.stream, isEnding: false))
            #expect(tracer.memory.finishedSpans.isEmpty)
            observer.observe(.disconnected(.stream, isEnding: true))
            let ended = tracer.memory.popFinishedSpans()
            #expect(ended.map(\.status?.message) == ["The gateway ends.", "The gateway ends."])
            #expect(ended.map(\.events.count).sorted() == [0, 16] && tracer.memory.activeSpans.isEmpty)
        }

        @Test func spansAreFewAndOpenOnesBounded() {
            let tracer = ContextTracer()
            let observer = TracingObserver(gateway: "g1", tracer: tracer, sampling: .oneIn(10), mostOpen: 3)
            let records = (1...200).map { record($0) }
            let sampled = records.filter { RecordSampling.oneIn(10).takes($0.name) }
            #expect(sampled.count > 5 && sampled.count < 60)
            observer.observe(.read(records))
            #expect(tracer.memory.activeSpans.count == 3)
            #expect(records.filter { !observer.headers(for: $0).isEmpty } == Array(sampled.prefix(3)))
            let silent = ContextTracer()
            let none = TracingObserver(gateway: "g1", tracer: silent, sampling: .none)
            none.observe(.read(records))
            #expect(silent.memory.activeSpans.isEmpty && none.headers(for: records[0]).isEmpty)
            #expect(silent.memory.performedContextExtractions.isEmpty)
        }
    }
#endif
