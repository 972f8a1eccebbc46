#if NATS && Records
    import Ferry
    import FerryTesting
    import TestSupport
    import Testing

    @testable import FerryGateway

    /// Several messages of one lane on their way at once.
    @Suite(.tags(.records)) struct BurstTests {
        private typealias Plan = PublishPlan<Int, String>
        private let start = Timestamp.zero

        private func plan(lanes: Int64 = 1, each count: Int, burst: Int = 64) -> Plan {
            var bounds = Plan.Bounds()
            bounds.burst = burst
            var plan = Plan(bounds)
            plan.isOpen = true
            for number in 1...count { for lane in 1...lanes { plan.add(item(lane, number)) } }
            return plan
        }

        private func item(_ lane: Int64, _ number: Int) -> Plan.Item {
            Plan.Item(
                lane: lane, id: "\(lane)/\(number)", message: "a.\(lane)", size: 1, place: number, read: start)
        }

        private func shapes(_ orders: [Plan.Order]) -> [String] {
            orders.map { order in
                let place = order.predecessor.map { " after \($0)" } ?? ""
                return order.item.id + place + (order.follows.map { " behind \($0)" } ?? "")
            }
        }

        @Test func eachMessageOfABurstNamesTheOneBefore() {
            var plan = plan(each: 8)
            let first = plan.orders(at: start)
            #expect(shapes(first) == ["1/1", "1/2 behind 1/1"])
            #expect(plan.orders(at: start).isEmpty)
            #expect(plan.ended(first[0].token, .stored(4), at: start)?.place == 1)
            // The rest of a burst is awaited.
            #expect(plan.orders(at: start).isEmpty)
            #expect(plan.ended(first[1].token, .stored(5), at: start)?.place == 2)
            #expect(
                shapes(plan.orders(at: start)) == [
                    "1/3 after 5", "1/4 behind 1/3", "1/5 behind 1/4", "1/6 behind 1/5",
                ])
        }

        @Test func answersCountInTheOrderOfTheLane() {
            var plan = plan(each: 2)
            let orders = plan.orders(at: start)
            var arrived: [Plan.Arrived] = []
            plan.ended(orders[1].token, .stored(2), at: start, &arrived)
            #expect(arrived.isEmpty && plan.records == 2)
            plan.ended(orders[0].token, .had(1), at: start, &arrived)
            #expect(arrived.map(\.item.place) == [1, 2] && arrived.map(\.isDuplicate) == [true, false])
            #expect(plan.records == 0)
        }

        /// The server has the second, and the answer for the first is lost: both go again, for it is not known.
        @Test func whatWentBehindAFailureGoesAgainBehindIt() {
            var plan = plan(each: 3)
            let first = plan.orders(at: start)
            #expect(plan.ended(first[1].token, .stored(2), at: start) == nil)
            #expect(plan.ended(first[0].token, .later, at: start) == nil)
            #expect(plan.records == 3)
            let later = start + .milliseconds(100)
            let second = plan.orders(at: later)
            // One tries whether it goes again.
            #expect(shapes(second) == ["1/1"])
            #expect(plan.ended(second[0].token, .had(1), at: later)?.place == 1)
            #expect(shapes(plan.orders(at: later)) == ["1/2", "1/3 behind 1/2"])
        }

        /// Another writer came between: no look at the server is needed, for the place is known.
        @Test func aBrokenBurstGoesOnWithThePlaceThatIsKnown() {
            var plan = plan(each: 3)
            let first = plan.orders(at: start)
            #expect(plan.isFollower(first[1].token) && !plan.isFollower(first[0].token))
            #expect(plan.ended(first[1].token, .outOfPlace, at: start) == nil)
            #expect(plan.ended(first[0].token, .stored(9), at: start)?.place == 1)
            #expect(plan.displaced.isEmpty)
            #expect(shapes(plan.orders(at: start)) == ["1/2 after 9"])
        }

        @Test func theFirstOfABurstOutOfPlaceIsLookedAt() {
            var plan = plan(each: 4)
            let first = plan.orders(at: start)
            _ = plan.ended(first[0].token, .stored(1), at: start)
            _ = plan.ended(first[1].token, .stored(2), at: start)
            let second = plan.orders(at: start)
            _ = plan.ended(second[0].token, .outOfPlace, at: start)
            #expect(plan.displaced.isEmpty)
            _ = plan.ended(second[1].token, .outOfPlace, at: start)
            #expect(plan.displaced.mapValues(\.id) == [1: "1/3"] && plan.orders(at: start).isEmpty)
            plan.follow(1, after: 7)
            #expect(shapes(plan.orders(at: start)).first == "1/3 after 7")
        }

        @Test func aRefusedMessageParksWhatWentBehindIt() {
            var plan = plan(each: 5)
            let first = plan.orders(at: start)
            _ = plan.ended(first[0].token, .refused, at: start)
            #expect(plan.refusedLanes == 0)
            _ = plan.ended(first[1].token, .outOfPlace, at: start)
            #expect(plan.refusedLanes == 1 && plan.records == 0 && plan.orders(at: start).isEmpty)
        }

        @Test func manyLanesShareWhatMayBeOnItsWay() {
            var plan = plan(lanes: 100, each: 2)
            #expect(plan.orders(at: start).count == 100)
            #expect(plan.inFlightCount == 100)
            var few = self.plan(lanes: 4, each: 200)
            for _ in 0..<10 {
                for order in few.orders(at: start) { _ = few.ended(order.token, .stored(order.token), at: start) }
            }
            let orders = few.orders(at: start)
            let lanes = Dictionary(grouping: orders) { $0.item.lane }
            #expect(orders.count <= 64 + 4 && lanes.count == 4)
            #expect(lanes.values.allSatisfy { $0.count >= 8 })
        }

        /// From when it was read until its answer counts; a record that can never be stored is the oldest as long as it is tried.
        @Test func theOldestRecordIsKnown() {
            var plan = Plan(Plan.Bounds())
            plan.isOpen = true
            func add(_ lane: Int64, _ number: Int, at seconds: Int) {
                plan.add(
                    Plan.Item(
                        lane: lane, id: "\(lane)/\(number)", message: "", size: 1, place: number,
                        read: start + .seconds(seconds)))
            }
            #expect(plan.oldest == nil)
            add(1, 1, at: 1)
            add(2, 1, at: 2)
            add(1, 2, at: 3)
            #expect(plan.oldest == start + .seconds(1))
            let orders = plan.orders(at: start)
            #expect(orders.map(\.item.id) == ["1/1", "1/2", "2/1"] && plan.oldest == start + .seconds(1))
            _ = plan.ended(orders[0].token, .stored(1), at: start)
            #expect(plan.oldest == start + .seconds(2))
            _ = plan.ended(orders[2].token, .refused, at: start)
            _ = plan.ended(orders[1].token, .stored(2), at: start)
            #expect(plan.oldest == start + .seconds(2) && plan.refusedLanes == 1)
            plan.beginAgain()
            #expect(plan.oldest == nil)
        }

        @Test func burstsGrowAndShrinkAndAreTriedMoreSeldom() {
            var length = BurstLength(most: 8)
            var seen: [Int] = []
            for _ in 0..<4 {
                seen.append(length.now)
                length.held(length.now)
            }
            #expect(seen == [2, 4, 8, 8])
            // What had less to say says nothing about more.
            length = BurstLength(most: 8)
            length.held(1)
            #expect(length.now == 2)
            for expected in [16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 4096] {
                length.broke()
                #expect(length.now == 1)
                // Bursts that were on their way break too.
                length.broke()
                for _ in 1..<expected { length.held(1) }
                #expect(length.now == 1)
                length.held(1)
                #expect(length.now == 2)
            }
            for _ in 0..<3 { length.held(length.now) }
            #expect(length.now == 8)
            length.broke()
            #expect(length.now == 4)
            var single = BurstLength(most: 1)
            single.held(1)
            #expect(single.now == 1)
        }

        // MARK: A model of a stream

        /// What a server does with a message, by the rules of JetStream.
        private struct Stream {
            /// Whether places and names are compared before doubles are known, as newer servers do.
            let comparesFirst: Bool
            private(set) var messages: [(subject: String, id: String)] = []
            private var places: [String: UInt64] = [:]

            init(comparesFirst: Bool) { self.comparesFirst = comparesFirst }

            mutating func write(_ subject: String, _ id: String) { messages.append((subject, id)) }

            private func isInPlace(_ order: Plan.Order) -> Bool {
                if let follows = order.follows, messages.last?.id != follows { return false }
                guard let predecessor = order.predecessor else { return true }
                return last(order.item.message) == predecessor
            }

            func last(_ subject: String) -> UInt64 {
                UInt64((messages.lastIndex { $0.subject == subject } ?? -1) + 1)
            }

            mutating func take(_ order: Plan.Order) -> Plan.Outcome {
                if comparesFirst, !isInPlace(order) { return .outOfPlace }
                if let place = places[order.item.id] { return .had(place) }
                guard isInPlace(order) else { return .outOfPlace }
                write(order.item.message, order.item.id)
                places[order.item.id] = UInt64(messages.count)
                return .stored(UInt64(messages.count))
            }
        }

        /// Messages that never come, answers that never come, a full stream, other writers, and answers in any order: each record is in
        /// the stream, and for the first time behind those before it in its lane.
        @Test(arguments: [false, true]) func aLaneKeepsItsOrderWhateverHappens(comparesFirst: Bool) {
            for seed in 1...300 as ClosedRange<UInt64> {
                var random = SplitMix64(seed: seed)
                let lanes: Int64 = .random(in: 1...4, using: &random)
                let each = Int.random(in: 1...60, using: &random)
                let trouble = Int.random(in: 0...30, using: &random)
                var plan = plan(lanes: lanes, each: each, burst: [1, 2, 8, 64].randomElement(using: &random) ?? 8)
                plan.namesPlaces = .random(using: &random)
                var stream = Stream(comparesFirst: comparesFirst)
                var answers: [(token: UInt64, outcome: Plan.Outcome)] = []
                var arrived: [Plan.Arrived] = []
                var now = start
                var steps = 0
                while plan.records > 0, steps < 200_000 {
                    steps += 1
                    for order in plan.orders(at: now) {
                        if Int.random(in: 0..<100, using: &random) < trouble { stream.write("else", "else/\(steps)") }
                        switch Int.random(in: 0..<100, using: &random) {
                        case 0..<trouble:
                            if .random(using: &random) { _ = stream.take(order) }
                            answers.append((order.token, .later))
                        default: answers.append((order.token, stream.take(order)))
                        }
                    }
                    if let index = answers.indices.randomElement(using: &random) {
                        let answer = answers.remove(at: index)
                        plan.ended(answer.token, answer.outcome, at: now, &arrived)
                    } else {
                        for (lane, next) in plan.displaced { plan.follow(lane, after: stream.last(next.message)) }
                        now = max(now, plan.nextDeadline ?? now)
                    }
                }
                #expect(plan.records == 0, "seed \(seed): \(plan.records) records are left")
                for lane in 1...lanes {
                    let expected = Array(1...each)
                    #expect(arrived.filter { $0.item.lane == lane }.map(\.item.place) == expected, "seed \(seed)")
                    var seen: Set<String> = []
                    let stored = stream.messages.filter { $0.subject == "a.\(lane)" && seen.insert($0.id).inserted }
                    #expect(stored.map(\.id) == expected.map { "\(lane)/\($0)" }, "seed \(seed)")
                }
            }
        }

        /// A single lane needs a round trip for each burst and not for each message.
        @Test func aSingleLaneNeedsFewRoundTrips() {
            var plan = plan(each: 10_000)
            var stream = Stream(comparesFirst: false)
            var rounds = 0
            var arrived: [Plan.Arrived] = []
            while plan.records > 0, rounds < 10_000 {
                rounds += 1
                let orders = plan.orders(at: start)
                for order in orders { plan.ended(order.token, stream.take(order), at: start, &arrived) }
            }
            #expect(plan.records == 0 && rounds < 10_000 / 50, "\(rounds) round trips")
        }
    }
#endif
