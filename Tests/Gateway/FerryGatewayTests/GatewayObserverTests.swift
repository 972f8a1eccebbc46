#if NATS && Records
    import Ferry
    import GatewayRig
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import FerryNATS
    @testable import FerryRecords

    /// What an observer is told, beside what a real server has.
    @Suite(
        .tags(.records, .recovery), .enabled(if: NATSServer.isHere, "needs nats-server"), .timeLimit(.minutes(5)))
    struct GatewayObserverTests {
        /// Until nothing is in the store: the stream has it for good.
        private func emptied(_ gateway: Gateway) async throws {
            try await until("an empty inbox") { try await gateway.status().waiting == 0 }
        }

        @Test func eachRecordIsToldOnceAndAtItsPlace() async throws {
            let setting = try GatewaySetting()
            try await setting.append(0..<120)
            try await setting.collect()
            try await setting.server.start()
            var configuration = setting.configuration()
            configuration.patience = .unreached
            let journal = GatewayJournal()
            let gateway = try Gateway(setting.store, configuration, observer: journal)
            let running = Task { try await gateway.run() }
            try await emptied(gateway)
            let connection = try await setting.connect()
            let deliveries = try await GatewaySetting.deliveries(connection, 120)
            running.cancel()
            _ = await running.result

            let places = Dictionary(deliveries.map { ($0.message["Nats-Msg-Id"] ?? "", $0.sequence) }) { first, _ in
                first
            }
            #expect(places.count == 120)
            let told = journal.published.map { ($0.record.name, $0.sequence) }
            #expect(Dictionary(told) { _, _ in 0 } == places)
            #expect(journal.published.allSatisfy { !$0.isDuplicate && $0.publishing > .zero })
            #expect(journal.published.allSatisfy { $0.sinceRead >= $0.publishing })
            #expect(journal.read.map(\.name).sorted() == places.keys.sorted() && journal.putOff.isEmpty)
            let first = try #require(deliveries.first?.message)
            let record = try #require(journal.read.first { $0.name == first["Nats-Msg-Id"] })
            #expect(record.peer == "ada" && record.token == nil && record.bytes == first.bytes.count)
            #expect(record.id.name == record.name && record.id.sender == setting.peer.id)
            #expect(journal.released == 120)
            #expect(journal.servers(.stream) == [await connection.serverID()])
            // Each is read before it is published.
            var known: Set<String> = []
            for event in journal.events {
                switch event {
                case .read(let records): known.formUnion(records.map(\.name))
                case .published(let all): #expect(known.isSuperset(of: all.map(\.record.name)))
                default: break
                }
            }
            await setting.close()
        }

        @Test func aKilledServerIsToldAndEverythingIsPublishedAgain() async throws {
            let setting = try GatewaySetting()
            try await setting.append(0..<120)
            try await setting.collect()
            try await setting.server.start()
            var configuration = setting.configuration()
            // Nothing leaves the store.
            configuration.retention = .seconds(100)
            let journal = GatewayJournal()
            let gateway = try Gateway(setting.store, configuration, observer: journal)
            let running = Task { try await gateway.run() }
            try await until("120 records") { journal.published.count == 120 }
            await setting.server.kill()
            try await until("the end of the connection") {
                journal.events.contains {
                    if case .disconnected(.stream, isEnding: false) = $0 { true } else { false }
                }
            }
            try await setting.server.start()
            try await until("a repetition") {
                journal.events.contains { if case .repeats = $0 { true } else { false } }
            }
            try await until("240 publications") { journal.published.count >= 240 }
            try await until("120 records in the stream") { try await gateway.status().kept >= 120 }
            let status = try await gateway.status()
            try await until("each of \(status.published)") { journal.published.count == status.published }
            #expect(journal.published.count(where: \.isDuplicate) == status.duplicates)
            #expect(Set(journal.published.map(\.record.name)).count == 120)
            let repetitions = journal.events.count { if case .repeats = $0 { true } else { false } }
            #expect(repetitions == status.repetitions && Set(journal.servers(.stream)).count == 2)
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        @Test func aFullStreamIsToldWithItsReason() async throws {
            let setting = try GatewaySetting()
            try await setting.append(0..<30)
            try await setting.collect()
            try await setting.server.start()
            var configuration = setting.configuration()
            configuration.stream.maximumMessages = 20
            let journal = GatewayJournal()
            let gateway = try Gateway(setting.store, configuration, observer: journal)
            let running = Task { try await gateway.run() }
            try await until("a full stream") { journal.putOff.contains { $0.error == .natsStreamFull } }
            #expect(journal.putOff.allSatisfy { !$0.isHeld })
            let connection = try await setting.connect()
            try await connection.publish(NATSMessage("$JS.API.STREAM.PURGE.records", bytes: []))
            try await until("30 records") { Set(journal.published.map(\.record.name)).count == 30 }
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        @Test func headersGoAsFarAsTheyCanBe() async throws {
            let setting = try GatewaySetting()
            try await setting.append(0..<3)
            try await setting.collect()
            try await setting.server.start()
            let journal = GatewayJournal { record in
                [
                    NATSMessage.Header("traceparent", "of \(record.id.sequence)"),
                    NATSMessage.Header("Traceparent", "twice"),
                    NATSMessage.Header("Nats-Msg-Id", "other"), NATSMessage.Header("ferry-peer", "other"),
                    NATSMessage.Header("", "a"), NATSMessage.Header("a:b", "c"), NATSMessage.Header("empty", ""),
                    NATSMessage.Header("lines", "a\r\nNats-Msg-Id: b"),
                    NATSMessage.Header("large", String(repeating: "x", count: 1024)),
                ]
            }
            let gateway = try Gateway(setting.store, setting.configuration(), observer: journal)
            let running = Task { try await gateway.run() }
            try await emptied(gateway)
            for delivery in try await GatewaySetting.deliveries(try await setting.connect(), 3) {
                let message = delivery.message
                #expect(message["traceparent"] == "of \(message["Ferry-Sequence"] ?? "")")
                let names = message.headers.map(\.name).filter { !$0.hasPrefix("Nats-") }.sorted()
                #expect(
                    names == [
                        "Ferry-Epoch", "Ferry-Gateway", "Ferry-Peer", "Ferry-Sequence", "Ferry-Stream", "traceparent",
                    ])
            }
            running.cancel()
            _ = await running.result
            await setting.close()
        }

        @Test func withoutAnObserverMessagesAreAsTheyWere() async throws {
            let setting = try GatewaySetting()
            try await setting.append(0..<3)
            try await setting.collect()
            try await setting.server.start()
            let gateway = try Gateway(setting.store, setting.configuration())
            let running = Task { try await gateway.run() }
            try await emptied(gateway)
            for delivery in try await GatewaySetting.deliveries(try await setting.connect(), 3) {
                let names = delivery.message.headers.map(\.name).filter { !$0.hasPrefix("Nats-") }.sorted()
                #expect(names == ["Ferry-Epoch", "Ferry-Gateway", "Ferry-Peer", "Ferry-Sequence", "Ferry-Stream"])
            }
            running.cancel()
            _ = await running.result
            await setting.close()
        }
    }

    /// What is noted for an observer, without a server.
    @Suite(.tags(.records)) struct ObservationTests {
        private typealias Plan = PublishPlan<Int, String>

        private let store = StoreID(high: 1, low: 2)

        private func name(_ stream: String) -> String {
            RecordID(sender: store, epoch: Epoch(generation: 3, nonce: 7), stream: stream, sequence: 12).name
        }

        @Test func namesAreThoseOfMessages() {
            let prefix = "00000000000000010000000000000002/3.0000000000000007/"
            #expect(name("a b") == prefix + "a%20b/12" && name("") == prefix + "/12")
            #expect(name("%/\n-_é") == prefix + "%25%2F%0A-_%C3%A9/12")
        }

        private func item(_ number: Int64, read: Timestamp) -> Plan.Item {
            let id = RecordID(
                sender: store, epoch: Epoch(generation: 3, nonce: 7), stream: "s\(number)", sequence: 1)
            let record = GatewayEvent.Record(id: id, name: id.name, peer: "p", token: nil, bytes: 1)
            return Plan.Item(
                lane: number, id: id.name, message: "a", size: 1, place: 1, read: read, seen: record)
        }

        /// Each answer is told once, and none of before reading began again.
        @Test func answersAreToldWithTheirTimes() {
            var plan = Plan(), observation = Observation()
            plan.isOpen = true
            let start = Timestamp.zero
            func order(_ numbers: ClosedRange<Int64>, read: Timestamp, at now: Timestamp) -> [UInt64] {
                for number in numbers { plan.add(item(number, read: read)) }
                let orders = plan.orders(at: now)
                #expect(observation.ordered(orders.map(\.token), at: now).isEmpty)
                return orders.map(\.token)
            }
            func told(_ ends: [(UInt64, Result<Observation.Receipt, FerryError>)], at now: Timestamp)
                -> GatewayJournal
            {
                let journal = GatewayJournal()
                for (token, result) in ends {
                    var isHeld = false
                    if case .failure(let error) = result { isHeld = Plan.Outcome(error) == .refused }
                    observation.ended(token, result, in: plan, isHeld: isHeld, at: now)
                }
                for event in observation.ordered([], at: now) { journal.observe(event) }
                return journal
            }
            let first = order(1...2, read: start, at: start + .milliseconds(3))
            let failed = told(
                [
                    (first[0], .failure(FerryError(.messageTooLarge, "It is too large."))),
                    (first[1], .failure(FerryError(.natsStreamFull, "It is full."))),
                ], at: start + .milliseconds(8))
            #expect(failed.putOff.map(\.isHeld) == [true, false] && failed.events.count == 1)
            #expect(failed.putOff.map(\.message) == ["It is too large.", "It is full."])
            #expect(failed.putOff.map(\.record.id.stream) == ["s1", "s2"])

            plan.beginAgain()
            observation.beginAgain()
            let second = order(3...4, read: start + .seconds(1), at: start + .seconds(2))
            let stored = Observation.Receipt(place: 77, isDuplicate: true)
            let ended = told([(first[0], .success(stored)), (second[1], .success(stored))], at: start + .seconds(5))
            #expect(ended.published.map(\.record.id.stream) == ["s4"] && ended.events.count == 1)
            #expect(ended.published.map(\.publishing) == [.seconds(3)])
            #expect(ended.published.map(\.sinceRead) == [.seconds(4)])
            #expect(ended.published.map(\.sequence) == [77] && ended.published.map(\.isDuplicate) == [true])
            #expect(told([(second[1], .success(stored))], at: start + .seconds(6)).events.isEmpty)
        }

        @Test func whatAnErrorMeans() {
            func outcome(_ code: FerryError.Code) -> Plan.Outcome { Plan.Outcome(FerryError(code, "")) }
            #expect(outcome(.natsConflict) == .outOfPlace && outcome(.natsStreamFull) == .later)
            #expect(outcome(.messageTooLarge) == .refused && outcome(.invalidConfiguration) == .refused)
        }
    }
#endif
