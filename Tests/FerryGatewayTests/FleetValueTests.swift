#if NATS && Records
    import FerryFleet
    import TestSupport
    import Testing

    @testable import FerryGateway

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
