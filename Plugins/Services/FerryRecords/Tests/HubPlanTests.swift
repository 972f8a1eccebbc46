#if Records
    import Ferry
    import FerryTesting
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// Peers that come and go, links that break, and a hub's plan in the middle, in virtual time.
    private final class HubWorld: @unchecked Sendable {
        final class Peer {
            var isNear = true
            /// It takes links, and nothing on them.
            var isDamaged = false
            var priority: UInt8 = 1
            /// It comes by itself, and cannot be connected to.
            var comes = false
            var appended = 0
            /// What its app has; what this side knows of that.
            var delivered = 0
            var acknowledged = 0
            var appendedAt: [Timestamp] = []
            var longestWait = Duration.zero
            var links: Set<HubPlan.Visit> = []
            var meeting: HubPlan.Visit?
        }

        let time = VirtualTime()
        var plan: HubPlan
        var random: SplitMix64
        var peers: [Peer]
        let perRecord: Duration
        var ending: Set<HubPlan.Visit> = []
        var attempts: Set<HubPlan.Visit> = []
        var linked = 0
        var mostLinked = 0
        var mostAttempts = 0
        var broken = 0
        var turnedAway = 0
        private var wakeUp: ScheduledTimer?
        private var wakesAt: Timestamp?
        private var isOver = false

        init(_ configuration: RecordHub.Configuration, seed: UInt64, peers count: Int, perRecord: Duration) {
            plan = HubPlan(configuration)
            random = SplitMix64(seed: seed)
            peers = (0..<count).map { _ in Peer() }
            self.perRecord = perRecord
        }

        /// From half of it to half as much again.
        func about(_ seconds: Double) -> Duration { .seconds(seconds * Double.random(in: 0.5...1.5, using: &random)) }

        func after(_ duration: Duration, _ body: @escaping @Sendable () -> Void) {
            time.schedule(at: time.now + duration, body)
        }

        // MARK: What the peers do

        func begin(recordEvery period: Double) {
            for index in peers.indices {
                after(about(period / 2)) { self.append(index, every: period) }
                after(about(1200)) { self.goOrCome(index) }
                if peers[index].comes { after(about(600)) { self.visitHub(index) } }
                tellWaiting(index)
            }
            act()
        }

        /// No more records, and everybody stays near, until all is there or the time is over.
        func finish(within duration: Duration) {
            isOver = true
            for index in peers.indices { peers[index].isNear = true }
            let end = time.now + duration
            while time.now < end, peers.contains(where: { !$0.isDamaged && $0.acknowledged < $0.appended }) {
                time.advance(by: .seconds(60))
            }
        }

        private func append(_ index: Int, every period: Double) {
            guard !isOver else { return }
            peers[index].appended += 1
            peers[index].appendedAt.append(time.now)
            tellWaiting(index)
            act()
            after(about(period)) { self.append(index, every: period) }
        }

        /// Near for two thirds of the time.
        private func goOrCome(_ index: Int) {
            guard !isOver else { return }
            peers[index].isNear.toggle()
            let isNear = peers[index].isNear
            if !isNear {
                for visit in peers[index].links.sorted(by: { $0.number < $1.number }) { end(visit, index) }
                act()
            }
            after(about(isNear ? 2400 : 1200)) { self.goOrCome(index) }
        }

        private func visitHub(_ index: Int) {
            after(about(600)) { self.visitHub(index) }
            guard peers[index].isNear else { return }
            if let visit = plan.came(Int64(index), at: time.now) {
                meet(visit, index)
            } else {
                turnedAway += 1
            }
            act()
        }

        // MARK: What the hub's shell does

        private func tellWaiting(_ index: Int) {
            let peer = peers[index]
            plan.waiting(
                peer.appended - peer.acknowledged, priority: peer.priority, for: Int64(index),
                isReachable: !peer.comes, at: time.now)
        }

        private func act() {
            for step in plan.steps(at: time.now) {
                switch step {
                case .connect(let visit, let peer): connect(visit, Int(peer))
                case .end(let visit):
                    ending.insert(visit)
                    let index = peers.firstIndex { $0.links.contains(visit) }
                    after(.milliseconds(500)) {
                        if let index { self.end(visit, index) }
                        self.act()
                    }
                }
            }
            mostAttempts = max(mostAttempts, attempts.count)
            let deadline = plan.nextDeadline(at: time.now)
            guard deadline != wakesAt else { return }
            wakeUp?.cancel()
            wakesAt = deadline
            wakeUp = deadline.map { deadline in
                time.schedule(at: deadline) {
                    self.wakesAt = nil
                    self.act()
                }
            }
        }

        private func connect(_ visit: HubPlan.Visit, _ index: Int) {
            attempts.insert(visit)
            link(visit, index)
            let isFound = peers[index].isNear && !random.chance(5)
            after(isFound ? about(2) : .seconds(10)) {
                guard self.attempts.remove(visit) != nil else { return }
                if isFound && self.peers[index].isNear {
                    self.plan.connected(visit, at: self.time.now)
                    self.meet(visit, index)
                } else {
                    self.end(visit, index)
                }
                self.act()
            }
        }

        /// From the beginning of an attempt to the end of the link.
        private func link(_ visit: HubPlan.Visit, _ index: Int) {
            guard peers[index].links.insert(visit).inserted else { return }
            linked += 1
            mostLinked = max(mostLinked, linked)
        }

        private func meet(_ visit: HubPlan.Visit, _ index: Int) {
            link(visit, index)
            // A newer exchange ends an older one.
            if let older = peers[index].meeting { end(older, index) }
            peers[index].meeting = visit
            plan.met(Int64(index))
            transfer(visit, index)
        }

        private func transfer(_ visit: HubPlan.Visit, _ index: Int) {
            guard peers[index].meeting == visit, !peers[index].isDamaged else { return }
            guard peers[index].acknowledged < peers[index].appended else {
                after(plan.configuration.idle) {
                    guard self.peers[index].meeting == visit else { return }
                    if self.peers[index].acknowledged < self.peers[index].appended {
                        self.transfer(visit, index)
                    } else {
                        self.end(visit, index)
                        self.act()
                    }
                }
                return
            }
            after(perRecord) {
                guard self.peers[index].meeting == visit else { return }
                let peer = self.peers[index]
                let next = peer.acknowledged + 1
                // What was delivered before a link broke, and not acknowledged, is not taken twice.
                if next == peer.delivered + 1 { peer.delivered = next }
                peer.longestWait = max(peer.longestWait, self.time.now - peer.appendedAt[next - 1])
                guard !self.random.chance(2) else {
                    self.broken += 1
                    self.end(visit, index)
                    return self.act()
                }
                peer.acknowledged = next
                self.tellWaiting(index)
                self.transfer(visit, index)
            }
        }

        private func end(_ visit: HubPlan.Visit, _ index: Int) {
            guard peers[index].links.remove(visit) != nil else { return }
            linked -= 1
            attempts.remove(visit)
            ending.remove(visit)
            if peers[index].meeting == visit {
                peers[index].meeting = nil
                plan.parted(Int64(index), records: 0, at: time.now)
            }
            tellWaiting(index)
            plan.ended(visit, at: time.now, chance: Double.random(in: 0...1, using: &random))
        }
    }

    /// Jain's index of fairness: 1 when all have the same, 1/n when one has all (Jain, Chiu, Hawe, DEC-TR-301, 1984).
    func jain(_ values: [Double]) -> Double {
        let (sum, squares) = (values.reduce(0, +), values.reduce(0) { $0 + $1 * $1 })
        return sum * sum / (Double(values.count) * squares)
    }

    @Suite(.tags(.records), .timeLimit(.minutes(5))) struct HubPlanTests {
        private var week: Duration { .seconds(7 * 86_400) }

        /// Of 40 peers four come by themselves, four are urgent and one is damaged; a third is away at any moment. 100 peers for
        /// three slots, or 200 for six.
        private static let (peers, slots) = Effort.of((100, 3), full: (200, 6))

        private func world(_ perRecord: Duration, seed: UInt64) -> HubWorld {
            var configuration = RecordHub.Configuration()
            configuration.slots = Self.slots
            configuration.attempts = (Self.slots + 1) / 2
            configuration.slotsForComers = Self.slots / 3
            let world = HubWorld(configuration, seed: seed, peers: Self.peers, perRecord: perRecord)
            for index in 0..<Self.peers / 10 { world.peers[index].comes = true }
            for index in Self.urgent { world.peers[index].priority = 3 }
            for index in Self.urgent.upperBound..<Self.equals { world.peers[index].isDamaged = true }
            return world
        }

        private static let urgent = peers / 10..<peers / 5
        /// The first of those that are neither urgent nor damaged, nor come.
        private static let equals = peers / 5 + peers / 40

        /// How much of what was sent to them peers have got.
        private func share(_ peers: ArraySlice<HubWorld.Peer>) -> Double {
            Double(peers.map(\.delivered).reduce(0, +)) / Double(peers.map(\.appended).reduce(0, +))
        }

        @Test(arguments: [false, true]) func aWeek(isOverloaded: Bool) {
            let seed = UInt64.random(in: 0...UInt64.max)
            let world = world(.seconds(isOverloaded ? 200 : 3), seed: seed)
            world.begin(recordEvery: 7200)
            world.time.advance(by: week)
            let equals = world.peers[Self.equals...]
            let index = jain(equals.map { Double($0.delivered) })
            let waits = equals.map(\.longestWait)
            print(
                "hub, \(isOverloaded ? "overloaded" : "at ease"), seed \(seed): \(equals.map(\.delivered).reduce(0, +)) of",
                "\(equals.map(\.appended).reduce(0, +)) records in a week, Jain's index \(index), longest wait",
                "\((waits.max() ?? .zero) / .seconds(3600)) h, \(world.broken) links broken, \(world.turnedAway) turned away"
            )
            #expect(index > 0.95, "seed \(seed)")
            let slots = Self.slots
            #expect(world.mostLinked <= slots && world.mostLinked >= slots * 2 / 3, "seed \(seed)")
            #expect(world.mostAttempts <= (slots + 1) / 2, "seed \(seed)")
            if !isOverloaded {
                #expect(waits.allSatisfy { $0 < .seconds(4 * 3600) }, "seed \(seed): \(waits.max() ?? .zero)")
            }
            // Of what they were sent, for that is by chance too.
            let (urgent, others) = (share(world.peers[Self.urgent]), share(equals))
            #expect(urgent >= others * 0.98, "seed \(seed): urgent peers get \(urgent), and others \(others)")
            world.finish(within: week * 2)
            for (index, peer) in world.peers.enumerated() where !peer.isDamaged {
                #expect(peer.acknowledged == peer.appended && peer.delivered == peer.appended, "seed \(seed), \(index)")
            }
        }

        // MARK: One thing at a time

        func plan(_ change: (inout RecordHub.Configuration) -> Void = { _ in }) -> HubPlan {
            var configuration = RecordHub.Configuration()
            configuration.slots = 2
            configuration.slotsForComers = 0
            change(&configuration)
            return HubPlan(configuration)
        }

        func at(_ seconds: Double) -> Timestamp { .zero + .seconds(seconds) }

        /// The visit with which the steps begin: to peer 1.
        func first(_ steps: [HubPlan.Step]) throws -> HubPlan.Visit {
            let visit: HubPlan.Visit? = if case .connect(let visit, 1)? = steps.first { visit } else { nil }
            return try #require(visit, "\(steps)")
        }

        func connects(_ steps: [HubPlan.Step]) -> [Int64] {
            steps.compactMap { if case .connect(_, let peer) = $0 { peer } else { nil } }
        }

        @Test func whoHasWaitedLongestIsNext() {
            var plan = plan()
            for peer in 1...3 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(Double(4 - peer)))
            }
            // Peer 1 has waited less than a level of priority is worth.
            plan.waiting(1, priority: 2, for: 4, isReachable: true, at: at(50))
            plan.waiting(1, priority: 3, for: 5, isReachable: false, at: at(50))
            #expect(connects(plan.steps(at: at(50))) == [4, 3])
            #expect(plan.phase(of: 4, at: at(50)) == .connecting)
            #expect(plan.phase(of: 1, at: at(50)) == .ready(for: .seconds(47)))
            #expect(plan.phase(of: 5, at: at(50)) == .expected)
            #expect(plan.phase(of: 6, at: at(50)) == nil)
        }

        @Test func whoIsNotFoundIsTriedLaterAndLater() throws {
            var plan = plan {
                $0.firstBackoff = .seconds(8)
                $0.longestBackoff = .seconds(20)
            }
            var now = 0.0
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(now))
            for (round, wait) in [8.0, 16, 20, 20].enumerated() {
                let visit = try first(plan.steps(at: at(now)))
                plan.ended(visit, at: at(now), chance: 1)
                #expect(plan.steps(at: at(now + wait - 0.1)) == [])
                #expect(plan.nextDeadline(at: at(now)) == at(now + wait))
                #expect(
                    plan.phase(of: 1, at: at(now)) == .backingOff(failures: round + 1, for: .seconds(wait)))
                now += wait
            }
            // It comes by itself, and something gets through.
            let comer = plan.came(1, at: at(now - 1))
            let visit = try #require(comer)
            plan.met(1)
            #expect(plan.phase(of: 1, at: at(now - 1)) == .exchanging)
            plan.parted(1, records: 1, at: at(now))
            plan.ended(visit, at: at(now), chance: 1)
            #expect(connects(plan.steps(at: at(now))) == [1])
        }

        @Test func attemptsLeaveSlotsToOthers() throws {
            var plan = plan { $0.attempts = 1 }
            for peer in 1...3 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(Double(peer)))
            }
            let first = try self.first(plan.steps(at: at(5)))
            #expect(plan.steps(at: at(6)) == [])
            plan.connected(first, at: at(6))
            #expect(connects(plan.steps(at: at(6))) == [2])
            #expect(plan.came(nil, at: at(7)) == nil)
        }

        @Test func aTurnEndsWhenSomebodyElseNeedsTheSlot() throws {
            var plan = plan {
                $0.slots = 1
                $0.turn = .seconds(30)
            }
            plan.waiting(5, priority: 1, for: 1, isReachable: true, at: at(0))
            let first = try self.first(plan.steps(at: at(0)))
            plan.connected(first, at: at(1))
            plan.met(1)
            #expect(plan.steps(at: at(100)) == [] && plan.nextDeadline(at: at(100)) == nil)
            plan.waiting(1, priority: 1, for: 2, isReachable: true, at: at(100))
            #expect(plan.steps(at: at(100)) == [.end(first)])
            #expect(plan.steps(at: at(101)) == [])
            plan.parted(1, records: 3, at: at(101))
            plan.waiting(2, priority: 1, for: 1, isReachable: true, at: at(101))
            plan.ended(first, at: at(101), chance: 0)
            #expect(connects(plan.steps(at: at(101))) == [2])
        }

        /// A record may take longer than a turn.
        @Test func aTurnInWhichNothingGetsThroughIsLongerNextTime() {
            var plan = plan {
                $0.slots = 1
                $0.turn = .seconds(30)
                $0.longestBackoff = .seconds(400)
            }
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            var now = 0.0
            for turn in [30.0, 60, 100, 100] {
                for _ in 0..<500 where connects(plan.steps(at: at(now))) != [1] { now += 1 }
                let visit = HubPlan.Visit(number: plan.lastVisit)
                plan.connected(visit, at: at(now))
                plan.met(1)
                var end = now
                repeat {
                    end += 1
                    // Somebody else would like the slot.
                    _ = plan.came(nil, at: at(end))
                } while plan.steps(at: at(end)) != [.end(visit)] && end < now + 500
                #expect(end - now == turn)
                now = end
                plan.parted(1, records: 0, at: at(now))
                plan.ended(visit, at: at(now), chance: 0)
            }
        }

        @Test func anAttemptEndsWhenThePeerComes() throws {
            var plan = plan()
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            let attempt = try first(plan.steps(at: at(0)))
            let comer = plan.came(nil, at: at(1))
            let visit = try #require(comer)
            plan.met(1)
            #expect(plan.steps(at: at(1)) == [.end(attempt)])
            plan.ended(attempt, at: at(2), chance: 1)
            // That was no failure.
            #expect(plan.steps(at: at(2)) == [] && plan.nextDeadline(at: at(2)) == nil)
            plan.parted(1, records: 0, at: at(3))
            plan.ended(visit, at: at(3), chance: 1)
            #expect(connects(plan.steps(at: at(3))) == [1])
        }

        @Test func slotsAreKeptForComers() {
            var plan = plan {
                $0.slots = 3
                $0.slotsForComers = 1
                $0.attempts = 3
            }
            for peer in 1...4 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(0))
            }
            #expect(connects(plan.steps(at: at(0))).count == 2)
            #expect(plan.came(nil, at: at(1)) != nil)
            #expect(plan.came(nil, at: at(1)) == nil)
            #expect(plan.taken == 3)
        }
    }
#endif
