#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import FerryRecords

    /// How a fleet's leases, messages and figures are written.
    @Suite(.tags(.records, .fleet), .timeLimit(.minutes(5))) struct FleetValueTests {
        @Test(arguments: [("address:C0:11", "address=3AC0=3A11"), ("a-b_9", "a-b_9"), ("\u{e4}.=", "=C3=A4=2E=3D")])
        func peersAreKeys(_ peer: String, _ key: String) {
            #expect(LeaseNames.key(peer) == key && LeaseNames.peer(key) == peer)
        }

        @Test(arguments: ["=", "=3", "=ZZ", "=FF"]) func whatIsNoKeyIsTold(_ key: String) {
            #expect(LeaseNames.peer(key) == nil)
        }

        @Test func messagesAreReadAsTheyAreWritten() {
            let holder = Lease(holder: nil, term: FencingToken(revision: 7), score: -40, successor: "two")
            let messages: [(FleetMessage, String)] = [
                (.sighting(peer: "a:b", by: "one", score: -50), "sighting a=3Ab one -50"),
                (.offer(peer: "a:b", LeaseEntry(holder, revision: 9)), "offer a=3Ab 9 free 7 -40 two"),
            ]
            for (message, text) in messages {
                #expect(LeaseNames.text(message) == text)
                #expect(LeaseNames.message(Array(text.utf8)) == message)
            }
            for text in ["", "sighting", "sighting a one x", "offer a x free 7 -40", "offer a 9 taken", "other a b c"] {
                #expect(LeaseNames.message(Array(text.utf8)) == nil, "\(text)")
            }
            #expect(LeaseNames.message([UInt8](repeating: 0x20, count: 1025)) == nil)
        }

        @Test func figuresAreInPrometheusFormat() {
            var text = MetricsText()
            text.add("a_total", .counter, "Some.", 3)
            text.add("b", .gauge, "Others.", [([("x", "1\"\\\n")], 1), ([("x", "2"), ("y", "3")], -2)])
            #expect(
                text.description == """
                    # HELP a_total Some.
                    # TYPE a_total counter
                    a_total 3
                    # HELP b Others.
                    # TYPE b gauge
                    b{x="1\\"\\\\\\n"} 1
                    b{x="2",y="3"} -2

                    """)
        }

        @Test func histogramsAreInPrometheusFormat() {
            var histogram = LatencyHistogram()
            for duration: Duration in [.zero, .milliseconds(1), .microseconds(1001), .seconds(300), .seconds(301)] {
                histogram.record(duration)
            }
            var text = MetricsText()
            text.add("a_seconds", "Some.", histogram)
            let lines = text.description.split(separator: "\n")
            #expect(lines.first == "# HELP a_seconds Some." && lines.dropFirst().first == "# TYPE a_seconds histogram")
            #expect(
                lines.dropFirst(2).prefix(3) == [
                    "a_seconds_bucket{le=\"0.001\"} 2", "a_seconds_bucket{le=\"0.002\"} 3",
                    "a_seconds_bucket{le=\"0.005\"} 3",
                ])
            #expect(
                lines.suffix(4) == [
                    "a_seconds_bucket{le=\"300.0\"} 4", "a_seconds_bucket{le=\"+Inf\"} 5", "a_seconds_sum 601.002001",
                    "a_seconds_count 5",
                ])
        }

        @Test func latenciesAreCounted() {
            let latencies = GatewayLatencies()
            let record = GatewayEvent.Record(
                id: RecordID(
                    sender: StoreID(high: 1, low: 2), epoch: Epoch(generation: 3, nonce: 7), stream: "", sequence: 1),
                name: "n", peer: "p", token: nil, bytes: 1)
            latencies.observe(
                .published([
                    .init(
                        record: record, sequence: nil, isDuplicate: false, publishing: .milliseconds(3),
                        sinceRead: .seconds(2))
                ]))
            let full = GatewayEvent.PutOff(record: record, error: .natsStreamFull, message: "", isHeld: false)
            latencies.observe(.putOff([full, full]))
            latencies.observe(.visitEnded(peer: "p", .init(nil, lasting: .seconds(1))))
            latencies.observe(.visitEnded(peer: "p", .init(FerryError(.timedOut, ""), lasting: .seconds(1))))
            var text = MetricsText()
            text.add(latencies)
            for line in [
                "ferry_gateway_publishing_seconds_sum 0.003", "ferry_gateway_read_to_published_seconds_sum 2.0",
                "ferry_gateway_visit_seconds_count 2", "ferry_gateway_put_off_total{reason=\"nats.streamFull\"} 2",
                "ferry_gateway_visits_total{result=\"complete\"} 1",
                "ferry_gateway_visits_total{result=\"\(FerryError.Code.timedOut)\"} 1",
            ] { #expect(text.description.contains(line + "\n"), "\(line)") }
        }

        @Test func leasesNeedAName() {
            #expect(throws: (any Error).self) {
                try LeaseKeeper(LeaseKeeper.Configuration(servers: ["nats://localhost"], name: "a.b"))
            }
            var configuration = LeaseKeeper.Configuration(servers: ["nats://localhost"], name: "a")
            configuration.claims = "a..b"
            #expect(throws: (any Error).self) { try LeaseKeeper(configuration) }
        }

        @Test func placesAreTakenInTurn() async throws {
            let places = Places(1)
            #expect(await places.enter())
            let second = Task { await places.enter() }
            try await until("the second one waits") { places.hasWaiters }
            let third = Task { await places.enter() }
            third.cancel()
            #expect(await !third.value)
            places.leave()
            #expect(await second.value && !places.hasWaiters)
            places.leave()
            #expect(await places.enter())
        }
    }
#endif
