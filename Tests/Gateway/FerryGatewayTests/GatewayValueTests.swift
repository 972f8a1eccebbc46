#if NATS && Records
    import Ferry
    import FerryFleet
    import FerryNATS
    import TestSupport
    import Testing

    @testable import FerryGateway
    @testable import FerryRecords

    /// What a gateway decides, without a server.
    @Suite(.tags(.records)) struct GatewayValueTests {
        private typealias Plan = PublishPlan<Int, String>
        private let start = Timestamp.zero

        private func item(_ lane: Int64, _ number: Int, bytes: Int = 1) -> Plan.Item {
            Plan.Item(
                lane: lane, id: "\(lane)/\(number)", message: "a.\(lane)", size: bytes, place: number,
                read: start + .seconds(number))
        }

        private func plan(_ change: (inout Plan.Bounds) -> Void = { _ in }) -> Plan {
            var bounds = Plan.Bounds()
            bounds.burst = 1
            change(&bounds)
            var plan = Plan(bounds)
            plan.isOpen = true
            return plan
        }

        private func names(_ orders: [Plan.Order]) -> [String] { orders.map(\.item.id) }

        /// Seen of a gateway that began beside a cluster without a leader: "The stream ferry cannot be made (Not Found)".
        @Test func whatIsNotFoundIsWaitedForWhereItIsMade() {
            let missing = FerryError(.natsNotFound, "The stream cannot be made.")
            #expect(!missing.isHopelessForNATS(creates: true) && missing.isHopelessForNATS(creates: false))
            for code in [
                FerryError.Code.natsRefused, .natsInsecure, .natsWrongShape, .messageTooLarge, .invalidConfiguration,
            ] {
                #expect(FerryError(code, "").isHopelessForNATS(creates: true))
            }
            for code in [FerryError.Code.natsNoServer, .natsNotReady, .timedOut, .natsFailed, .natsStreamFull] {
                #expect(!FerryError(code, "").isHopelessForNATS(creates: false))
            }
        }

        @Test func namesAreOfOneStreamAndTenure() {
            func record(_ sequence: UInt64, stream: String = "a b", nonce: UInt64 = 7, low: UInt64 = 2) -> RecordID {
                RecordID(
                    sender: StoreID(high: 1, low: low), epoch: Epoch(generation: 3, nonce: nonce), stream: stream,
                    sequence: sequence)
            }
            let token = FencingToken(revision: 5)
            let names = StreamNames(record(1), peer: "p/1", gateway: "g.1", prefix: "x.y", token: token)
            let sender = "00000000000000010000000000000002"
            #expect(names.subject == "x.y.\(sender).a%20b")
            #expect(names.id(record(12)) == "\(sender)/3.0000000000000007/a%20b/12")
            #expect(
                names.headers(record(12)).map { "\($0.name): \($0.value)" } == [
                    "Ferry-Peer: p%2F1", "Ferry-Stream: a%20b", "Ferry-Epoch: 3.0000000000000007", "Ferry-Sequence: 12",
                    "Ferry-Gateway: g%2E1", "Ferry-Token: 5",
                ])
            #expect(names.fit(record(2), peer: "p/1", token: token))
            #expect(!names.fit(record(2, stream: "c"), peer: "p/1", token: token))
            #expect(!names.fit(record(2, nonce: 8), peer: "p/1", token: token))
            #expect(!names.fit(record(2, low: 3), peer: "p/1", token: token))
            #expect(!names.fit(record(2), peer: "p/2", token: token))
            #expect(!names.fit(record(2), peer: "p/1", token: FencingToken(revision: 6)))
            #expect(!names.fit(record(2), peer: "p/1", token: nil))
            // Nothing is empty that libnats would misread.
            let bare = StreamNames(record(1, stream: ""), peer: "", gateway: "g", prefix: "x", token: nil)
            #expect(bare.subject == "x.\(sender).%" && bare.id(record(4)) == "\(sender)/3.0000000000000007//4")
            #expect(bare.headers(record(4)).prefix(2).map(\.value) == ["%", "%"])
            #expect(bare.headers(record(4)).count == 5)
        }

        /// One that says the victim's store at another gateway, with a key of its own or none, writes under other names.
        @Test func namesCarryTheKeyThatWasProven() {
            let record = RecordID(
                sender: StoreID(high: 1, low: 2), epoch: Epoch(generation: 3, nonce: 7), stream: "s", sequence: 4)
            let all = ["victim", "mallory", nil].map { key in
                StreamNames(record, peer: "p", key: key, gateway: "g", prefix: "x", token: nil)
            }
            let sender = "00000000000000010000000000000002"
            #expect(all.map(\.subject) == ["x.key-victim.s", "x.key-mallory.s", "x.\(sender).s"])
            #expect(
                all.map { $0.id(record) } == [
                    "key-victim-\(sender)/3.0000000000000007/s/4", "key-mallory-\(sender)/3.0000000000000007/s/4",
                    "\(sender)/3.0000000000000007/s/4",
                ])
            #expect(all[0].headers(record).contains { $0.name == "Ferry-Key" && $0.value == "victim" })
            #expect(!all[2].headers(record).contains { $0.name == "Ferry-Key" })
            #expect(!all[0].fit(record, peer: "p", key: "mallory", token: nil))
        }

        /// The server may have what no answer came for: its subject then ends with that, and not with the message before.
        @Test func nothingIsNamedAfterAMessageWithoutAnAnswer() {
            var plan = plan()
            for number in 1...2 { plan.add(item(1, number)) }
            let first = plan.orders(at: start)
            _ = plan.ended(first[0].token, .stored(7), at: start)
            let second = plan.orders(at: start)
            #expect(second.map(\.predecessor) == [7])
            _ = plan.ended(second[0].token, .later, at: start)
            let again = plan.orders(at: start + .seconds(60))
            #expect(names(again) == ["1/2"] && again.map(\.predecessor) == [nil])
        }

        @Test func oneOfALaneAtATime() {
            var plan = plan()
            for number in 1...3 { for lane: Int64 in [1, 2] { plan.add(item(lane, number)) } }
            let first = plan.orders(at: start)
            #expect(names(first) == ["1/1", "2/1"])
            #expect(plan.orders(at: start).isEmpty)
            #expect(plan.ended(first[0].token, .stored(7), at: start)?.place == 1)
            let second = plan.orders(at: start)
            #expect(names(second) == ["1/2"])
            // It says what it comes after.
            #expect(first[0].predecessor == nil && second[0].predecessor == 7)
            #expect(plan.records == 5)
            // An answer counts once.
            #expect(plan.ended(first[0].token, .stored(7), at: start) == nil)
        }

        @Test func whatIsRefusedForNowGoesFirstAgain() {
            var plan = plan()
            for number in 1...2 { for lane: Int64 in [1, 2] { plan.add(item(lane, number)) } }
            let first = plan.orders(at: start)
            for order in first { #expect(plan.ended(order.token, .later, at: start) == nil) }
            #expect(plan.orders(at: start).isEmpty)
            #expect(plan.nextDeadline == start + .milliseconds(100))
            // One tries, and the others wait for what becomes of it.
            let second = plan.orders(at: start + .milliseconds(100))
            #expect(names(second) == ["1/1"])
            #expect(plan.ended(second[0].token, .later, at: start + .milliseconds(100)) == nil)
            #expect(plan.nextDeadline == start + .milliseconds(300))
            let third = plan.orders(at: start + .milliseconds(300))
            #expect(names(third) == ["2/1"])
            #expect(plan.ended(third[0].token, .stored(1), at: start + .milliseconds(300))?.place == 1)
            #expect(names(plan.orders(at: start + .milliseconds(300))) == ["1/1", "2/2"])
        }

        @Test func pausesAreBounded() {
            var plan = plan()
            plan.add(item(1, 1))
            var now = start
            for _ in 0..<40 {
                let orders = plan.orders(at: now)
                #expect(names(orders) == ["1/1"])
                _ = plan.ended(orders[0].token, .later, at: now)
                let next = plan.nextDeadline ?? now
                #expect(next > now && next - now <= .seconds(5))
                now = next
            }
        }

        @Test func aLaneThatCannotGoOnHoldsUpNoOther() {
            var plan = plan { $0.records = 4 }
            for number in 1...2 { for lane: Int64 in [1, 2] { plan.add(item(lane, number)) } }
            #expect(!plan.hasRoom)
            let first = plan.orders(at: start)
            _ = plan.ended(first[0].token, .refused, at: start)
            #expect(plan.hasRoom && plan.records == 2 && plan.refusedLanes == 1)
            plan.add(item(1, 3))
            #expect(plan.records == 2)
            #expect(plan.ended(first[1].token, .stored(1), at: start)?.place == 1)
            #expect(names(plan.orders(at: start)) == ["2/2"])
            plan.beginAgain()
            #expect(plan.refusedLanes == 0 && plan.inFlightCount == 0 && plan.records == 0)
            plan.add(item(1, 1))
            #expect(names(plan.orders(at: start)) == ["1/1"])
        }

        @Test func whatIsOutOfPlaceFollowsWhatTheServerHas() {
            var plan = plan()
            for number in 1...4 { plan.add(item(1, number)) }
            _ = plan.ended(plan.orders(at: start)[0].token, .stored(5), at: start)
            let order = plan.orders(at: start)[0]
            #expect(order.predecessor == 5)
            _ = plan.ended(order.token, .outOfPlace, at: start)
            #expect(plan.displaced.mapValues(\.id) == [1: "1/2"] && plan.records == 3 && plan.orders(at: start).isEmpty)
            plan.add(item(1, 5))
            #expect(plan.orders(at: start).isEmpty)
            // Consumers have taken the subject's messages out.
            plan.follow(1, after: 0)
            plan.follow(1, after: 9)
            var again = plan.orders(at: start)
            #expect(names(again) == ["1/2"] && again[0].predecessor == 0 && plan.displaced.isEmpty)
            #expect(plan.orders(at: start).isEmpty)
            // Somebody writes there all the time: then nothing is expected.
            for place: UInt64 in [10, 11] {
                _ = plan.ended(again[0].token, .outOfPlace, at: start)
                plan.follow(1, after: place)
                again = plan.orders(at: start)
                #expect(again.map(\.predecessor) == [place])
            }
            _ = plan.ended(again[0].token, .outOfPlace, at: start)
            plan.follow(1, after: 12)
            again = plan.orders(at: start)
            #expect(again.map(\.predecessor) == [nil])
            _ = plan.ended(again[0].token, .stored(20), at: start)
            plan.namesPlaces = false
            #expect(plan.orders(at: start).map(\.predecessor) == [nil])
            plan.beginAgain()
            // Answers to what was ordered before mean nothing.
            #expect(plan.ended(again[0].token, .outOfPlace, at: start) == nil && plan.displaced.isEmpty)
        }

        /// Published again, when the subject goes on after it: nothing is asked for but once at most.
        @Test func whatTheServerHadSaysNotWhereItsSubjectEnds() {
            var plan = plan()
            for number in 1...5 { plan.add(item(1, number)) }
            var order = plan.orders(at: start)[0]
            #expect(plan.ended(order.token, .had(5), at: start)?.place == 1)
            order = plan.orders(at: start)[0]
            #expect(order.predecessor == nil)
            // A server that looks at the place first.
            _ = plan.ended(order.token, .outOfPlace, at: start)
            plan.follow(1, after: 9)
            order = plan.orders(at: start)[0]
            #expect(order.predecessor == 9)
            #expect(plan.ended(order.token, .had(6), at: start)?.place == 2)
            order = plan.orders(at: start)[0]
            #expect(order.predecessor == 9)
            #expect(plan.ended(order.token, .had(10), at: start)?.place == 3)
            order = plan.orders(at: start)[0]
            #expect(order.predecessor == 10)
            #expect(plan.ended(order.token, .stored(11), at: start)?.place == 4)
            #expect(plan.orders(at: start).map(\.predecessor) == [11])
        }

        @Test func boundsHold() {
            var plan = plan {
                $0.bytes = 10
                $0.inFlight = 2
            }
            plan.add(item(1, 1, bytes: 9))
            #expect(plan.hasRoom)
            for lane: Int64 in 2...4 { plan.add(item(lane, 1)) }
            #expect(!plan.hasRoom)
            plan.isOpen = false
            #expect(plan.orders(at: start).isEmpty)
            plan.isOpen = true
            #expect(plan.orders(at: start).count == 2)
            #expect(plan.orders(at: start).isEmpty && plan.inFlightCount == 2)
        }

        @Test func recordsAreKeptUntilAServerWasSeenUpLongEnough() {
            var retention = Retention<Int>(.seconds(64))
            func at(_ seconds: Double) -> Timestamp { start + .seconds(seconds) }
            retention.stored(1, in: 1, at: at(0))
            retention.stored(2, in: 1, at: at(0.9))
            retention.stored(3, in: 1, at: at(1.1))
            retention.stored(1, in: 2, at: at(1.1))
            #expect(retention.count == 4)
            #expect(retention.steady(at: at(64)) == [])
            // The second came later than the first, with which it is kept together.
            #expect(retention.steady(at: at(64.8)) == [])
            #expect(retention.steady(at: at(64.9)) == [2])
            #expect(retention.count == 2)
            #expect(retention.steady(at: at(65.2)) == [3, 1])
            // Until they are said to have left: a full disk may not have let them.
            #expect(retention.count == 0 && retention.steady(at: at(1000)) == [3, 1])
            retention.left()
            #expect(retention.steady(at: at(1000)) == [])
            retention.stored(4, in: 1, at: at(1000))
            retention.beginAgain()
            #expect(retention.count == 0 && retention.steady(at: at(2000)) == [])
        }

        @Test(arguments: [
            ("", ""), ("temperature", "temperature"), ("a.b", "a%2Eb"), ("a b\n>*%", "a%20b%0A%3E%2A%25"),
            ("ä", "%C3%A4"),
            ("A-z_09", "A-z_09"),
        ])
        func namesAreEscaped(_ text: String, _ expected: String) { #expect(RecordNames.escaped(text) == expected) }

        @Test func configurationsAreChecked() throws {
            let good = Gateway.Configuration(servers: ["nats://localhost"], name: "g")
            try good.check()
            let changes: [(String, (inout Gateway.Configuration) -> Void)] = [
                ("cannot begin subjects", { $0.prefix = "a.*" }), ("cannot begin subjects", { $0.prefix = "" }),
                ("no name for a stream", { $0.stream.name = "a.b" }), ("retention is", { $0.retention = .zero }),
                ("looked at each", { $0.lookInterval = .seconds(1000) }),
                ("duplicate window", { $0.stream.duplicateWindow = .seconds(249) }),
                ("out of range", { $0.maximumInFlight = 0 }), ("patience is", { $0.patience = .zero }),
            ]
            for (words, change) in changes {
                var configuration = good
                change(&configuration)
                do {
                    try configuration.check()
                    Issue.record("\(words): taken")
                } catch { #expect(error.message.contains(words), "\(error)") }
            }
        }
    }

    extension PublishPlan {
        mutating func orders(at now: Timestamp) -> [Order] {
            var orders: [Order] = []
            order(&orders, at: now)
            return orders
        }

        /// - Returns: the last record that is known to be in the stream now.
        mutating func ended(_ token: UInt64, _ outcome: Outcome, at now: Timestamp) -> Item? {
            var arrived: [Arrived] = []
            ended(token, outcome, at: now, &arrived)
            return arrived.last?.item
        }
    }
#endif
