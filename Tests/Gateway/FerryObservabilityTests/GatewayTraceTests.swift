#if Observability && NATS && Records
    import Ferry
    import FerryGateway
    import FerryNATS
    import FerryObservability
    import FerryRecords
    import GatewayRig
    import InMemoryTracing
    import MetricsTestKit
    import TestSupport
    import Testing
    import Tracing

    /// A record's way from a peer's disk to a real server, as spans of a peer and a gateway that know nothing of each other.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct GatewayTraceTests {
        private struct Seen {
            var peer: [String: FinishedInMemorySpan] = [:]
            var gateway: [String: FinishedInMemorySpan] = [:]
            var deliveries: [String: NATSConsumer.Delivery] = [:]
            let figures = TestMetrics()
        }

        /// Sends so many records, and publishes them.
        private func run(_ count: Int, _ sampling: RecordSampling) async throws -> Seen {
            var seen = Seen()
            let setting = try GatewaySetting()
            let tracers = (ContextTracer(), ContextTracer())
            let tracing = RecordTracing(tracer: tracers.0, sampling: sampling)
            for number in 0..<count {
                _ = try await tracing.append { () async throws(FerryError) in
                    try await setting.peer.append(Array("\(number)".utf8), to: "gateway", stream: "s \(number % 3)")
                }
            }
            try await setting.collect()
            try await setting.server.start()
            let observer = GatewayObservers([
                MetricsObserver(factory: seen.figures),
                TracingObserver(gateway: "g1", tracer: tracers.1, sampling: sampling),
            ])
            var configuration = setting.configuration()
            configuration.patience = .unreached
            let gateway = try Gateway(setting.store, configuration, observer: observer)
            let running = Task { try await gateway.run() }
            try await until("an empty inbox") { try await gateway.status().waiting == 0 }
            for delivery in try await GatewaySetting.deliveries(try await setting.connect(), count) {
                seen.deliveries[delivery.message["Nats-Msg-Id"] ?? ""] = delivery
            }
            running.cancel()
            _ = await running.result
            await setting.close()
            #expect(tracers.0.memory.activeSpans.isEmpty && tracers.1.memory.activeSpans.isEmpty)
            seen.peer = try byRecord(tracers.0.memory.finishedSpans)
            seen.gateway = try byRecord(tracers.1.memory.finishedSpans)
            return seen
        }

        /// One a record.
        private func byRecord(_ spans: [FinishedInMemorySpan]) throws -> [String: FinishedInMemorySpan] {
            var found: [String: FinishedInMemorySpan] = [:]
            for span in spans {
                guard case .string(let name)? = span.attributes.get("ferry.record") else {
                    Issue.record("a span of no record: \(span)")
                    continue
                }
                #expect(found.updateValue(span, forKey: name) == nil, "two spans of \(name)")
            }
            return found
        }

        @Test func aRecordsSpansAreInOneTrace() async throws {
            let seen = try await run(60, .oneIn(1))
            #expect(seen.deliveries.count == 60 && Set(seen.peer.keys) == Set(seen.deliveries.keys))
            for (name, delivery) in seen.deliveries {
                let peer = try #require(seen.peer[name]), gateway = try #require(seen.gateway[name])
                #expect(peer.traceID == gateway.traceID && peer.parentSpanID == gateway.parentSpanID)
                #expect(peer.startInstant.nanosecondsSinceEpoch <= peer.endInstant.nanosecondsSinceEpoch)
                #expect(peer.endInstant.nanosecondsSinceEpoch <= gateway.endInstant.nanosecondsSinceEpoch)
                #expect(gateway.attributes.get("ferry.place") == .int64(Int64(delivery.sequence)))
                #expect(delivery.message["traceparent"] == "00-\(gateway.traceID)-\(gateway.spanID)-01")
            }
            #expect(Set(seen.peer.values.map(\.traceID)).count == 60)
            #expect(try seen.figures.expectCounter("ferry_gateway_published_total").totalValue == 60)
            #expect(try seen.figures.expectCounter("ferry_gateway_released_total").totalValue == 60)
        }

        @Test func theSameRecordsAreTracedEverywhere() async throws {
            let seen = try await run(120, .oneIn(3))
            let sampled = Set(seen.deliveries.keys.filter { RecordSampling.oneIn(3).takes($0) })
            #expect(Set(seen.peer.keys) == sampled && Set(seen.gateway.keys) == sampled)
            let marked = seen.deliveries.filter { $0.value.message["traceparent"] != nil }
            #expect(Set(marked.keys) == sampled && !sampled.isEmpty && sampled.count < 120)
        }
    }
#endif
