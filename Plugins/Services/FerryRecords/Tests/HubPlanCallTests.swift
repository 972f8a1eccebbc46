#if Records
    import Ferry
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// A hub's plan, call by call: what a change of one line would tell otherwise.
    @Suite(.tags(.records)) struct HubPlanCallTests {
        private func plan(
            slots: Int = 2, forComers: Int = 0, attempts: Int = 2
        ) -> HubPlan {
            var configuration = RecordHub.Configuration()
            configuration.slots = slots
            configuration.slotsForComers = forComers
            configuration.attempts = attempts
            configuration.turn = .seconds(30)
            configuration.firstBackoff = .seconds(8)
            configuration.longestBackoff = .seconds(400)
            return HubPlan(configuration)
        }

        private func at(_ seconds: Double) -> Timestamp { .zero + .seconds(seconds) }

        private func connects(_ steps: [HubPlan.Step]) -> [Int64] {
            steps.compactMap { if case .connect(_, let peer) = $0 { peer } else { nil } }
        }

        /// Begins the visit that is due, to this peer.
        private func visit(_ peer: Int64, _ plan: inout HubPlan, at now: Double) throws -> HubPlan.Visit {
            let steps = plan.steps(at: at(now))
            let visit: HubPlan.Visit? =
                steps.lazy.compactMap { if case .connect(let visit, peer) = $0 { visit } else { nil } }.first
            return try #require(visit, "\(steps)")
        }

        /// Begins the visit that is due, to this peer, and has the link and the exchange there at once.
        private func meet(_ peer: Int64, _ plan: inout HubPlan, at now: Double) throws -> HubPlan.Visit {
            let visit = try visit(peer, &plan, at: now)
            plan.connected(visit, at: at(now))
            plan.met(peer)
            return visit
        }

        private func come(_ peer: Int64?, _ plan: inout HubPlan, at now: Double) throws -> HubPlan.Visit {
            let visit = plan.came(peer, at: at(now))
            return try #require(visit)
        }

        // MARK: Pending records

        @Test func moreRecordsDoNotMakeAPeerWaitAnew() {
            var plan = plan()
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.waiting(2, priority: 1, for: 1, isReachable: true, at: at(10))
            #expect(plan.phase(of: 1, at: at(10)) == .ready(for: .seconds(10)))
        }

        @Test func aHigherPriorityComesFirstFromThenOn() {
            var plan = plan(slots: 1)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.waiting(1, priority: 1, for: 2, isReachable: true, at: at(1))
            plan.waiting(1, priority: 3, for: 2, isReachable: true, at: at(2))
            #expect(connects(plan.steps(at: at(2))) == [2])
        }

        @Test func aPeerIsVisitedOnceItCanBe() {
            var plan = plan()
            plan.waiting(1, priority: 1, for: 1, isReachable: false, at: at(0))
            plan.waiting(1, priority: 1, for: 2, isReachable: true, at: at(0))
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(1))
            plan.waiting(1, priority: 1, for: 2, isReachable: false, at: at(1))
            #expect(connects(plan.steps(at: at(1))) == [1])
        }

        @Test func aPeerWithoutRecordsIsNotVisited() {
            var plan = plan()
            plan.waiting(0, priority: 1, for: 1, isReachable: true, at: at(0))
            #expect(plan.steps(at: at(0)) == [] && plan.phase(of: 1, at: at(0)) == .idle)
            plan.met(2)
            plan.parted(2, records: 0, at: at(1))
            #expect(plan.phase(of: 2, at: at(1)) == .idle)
        }

        /// What no longer holds is swept out, so that a peer whose priority changes takes no more room each time.
        @Test func queuesStaySmall() throws {
            var plan = plan()
            let changes = 1000
            for change in 1...changes {
                plan.waiting(1, priority: UInt8(change % 2), for: 1, isReachable: true, at: at(0))
            }
            #expect(plan.places < 40)
            plan.ended(try visit(1, &plan, at: 0), at: at(0), chance: 1)
            for change in 1...changes {
                plan.waiting(1, priority: UInt8(change % 2), for: 1, isReachable: true, at: at(1))
            }
            #expect(plan.places < 80)
            #expect(connects(plan.steps(at: at(8))) == [1])
        }

        // MARK: Failures

        /// Also one of the peer's: this side's own are as many as before.
        @Test func aRecordThatCrossedIsSuccess() throws {
            var plan = plan()
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.ended(try visit(1, &plan, at: 0), at: at(0), chance: 1)
            #expect(plan.phase(of: 1, at: at(0)) == .backingOff(failures: 1, for: .seconds(8)))
            let second = try meet(1, &plan, at: 8)
            plan.parted(1, records: 1, at: at(9))
            plan.ended(second, at: at(10), chance: 1)
            #expect(plan.phase(of: 1, at: at(10)) == .ready(for: .zero))
            plan.ended(try visit(1, &plan, at: 10), at: at(10), chance: 1)
            #expect(plan.phase(of: 1, at: at(10)) == .backingOff(failures: 1, for: .seconds(8)))
        }

        @Test func itsTurnIsWaitedForFromTheEndOfTheBackoff() throws {
            var plan = plan()
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.ended(try visit(1, &plan, at: 0), at: at(0), chance: 1)
            #expect(plan.phase(of: 1, at: at(8)) == .ready(for: .zero))
            #expect(plan.phase(of: 1, at: at(9)) == .ready(for: .seconds(1)))
        }

        @Test func eachNeedlessAttemptIsEndedOnce() throws {
            var plan = plan(slots: 4)
            for peer in 1...2 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(0))
            }
            let first = try visit(1, &plan, at: 0)
            let second = HubPlan.Visit(number: plan.lastVisit)
            for peer in 1...2 as ClosedRange<Int64> {
                _ = try come(peer, &plan, at: 1)
                plan.met(peer)
            }
            plan.ended(first, at: at(1), chance: 1)
            #expect(plan.steps(at: at(1)) == [.end(second)])
            #expect(plan.steps(at: at(1)) == [])
        }

        // MARK: Slots

        @Test func peersThatCameTakeSlots() throws {
            var plan = plan()
            #expect(plan.placesForComers == 2)
            for _ in 1...2 { _ = try come(nil, &plan, at: 0) }
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(1))
            #expect(plan.steps(at: at(1)) == [])
        }

        @Test func ownVisitsLeaveFewerPlacesForComers() throws {
            var plan = plan(slots: 3, forComers: 1)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            _ = try visit(1, &plan, at: 0)
            #expect(plan.placesForComers == 2)
        }

        /// Slots that are kept for comers do not help a peer that is to be visited, and a comer's turn is not ended for it.
        @Test func anOwnVisitMakesRoomForTheNext() throws {
            var plan = plan(slots: 4, forComers: 2)
            _ = try come(nil, &plan, at: 0)
            for peer in 1...3 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(Double(peer)))
            }
            let first = try meet(1, &plan, at: 10)
            plan.connected(HubPlan.Visit(number: plan.lastVisit), at: at(11))
            #expect(plan.steps(at: at(39)) == [] && plan.nextDeadline(at: at(39)) == at(40))
            #expect(plan.steps(at: at(40)) == [.end(first)])
        }

        @Test func noTurnEndsForAPeerThatCouldNotBeTriedYet() throws {
            var plan = plan(attempts: 1)
            for peer in 1...3 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(Double(peer)))
            }
            _ = try meet(1, &plan, at: 5)
            _ = try visit(2, &plan, at: 6)
            #expect(plan.steps(at: at(100)) == [])
        }

        // MARK: Turns

        @Test func aStrangersTurnIsNoLonger() throws {
            var plan = plan(slots: 1)
            let stranger = try come(nil, &plan, at: 0)
            #expect(plan.came(nil, at: at(29)) == nil)
            #expect(plan.steps(at: at(29)) == [] && plan.nextDeadline(at: at(29)) == at(30))
            #expect(plan.steps(at: at(30)) == [.end(stranger)])
        }

        /// Ends the running visit to peer 1 by its turn: after this long.
        private func turn(of visit: HubPlan.Visit, since start: Double, _ plan: inout HubPlan) -> Double? {
            for second in 1...500 {
                plan.turnAway(at: at(start + Double(second)))
                if plan.steps(at: at(start + Double(second))) == [.end(visit)] { return Double(second) }
            }
            return nil
        }

        /// Each visit counts anew whether anything got through, also that of a peer which came.
        @Test func aComersTurnInVainIsLongerNextTime() throws {
            var plan = plan(slots: 1)
            plan.waiting(1, priority: 1, for: 1, isReachable: false, at: at(0))
            for (start, records, turn) in [(0.0, 1, 30.0), (100, 0, 30), (200, 0, 60)] {
                let visit = try come(1, &plan, at: start)
                plan.met(1)
                #expect(self.turn(of: visit, since: start, &plan) == turn, "from \(start) on")
                plan.parted(1, records: records, at: at(start + turn))
                plan.ended(visit, at: at(start + turn), chance: 0)
            }
        }

        @Test func aTurnIsShortAgainOnceAllIsThere() throws {
            var plan = plan(slots: 1)
            for (start, left, turn) in [(0.0, 1, 30.0), (100, 0, 60), (200, 1, 30)] {
                plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(start))
                let visit = try meet(1, &plan, at: start)
                #expect(self.turn(of: visit, since: start, &plan) == turn, "from \(start) on")
                plan.parted(1, records: 0, at: at(start + turn))
                plan.waiting(left, priority: 1, for: 1, isReachable: true, at: at(start + turn))
                plan.ended(visit, at: at(start + turn), chance: 0)
            }
        }
    }
#endif
