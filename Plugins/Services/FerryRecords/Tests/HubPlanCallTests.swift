#if Records
    import Ferry
    import TestSupport
    import Testing

    @testable import FerryRecords

    /// A hub's plan, call by call: each test notices a change of one line that a week in virtual time lets pass.
    extension HubPlanTests {
        private func plan(slots: Int, forComers: Int = 0, attempts: Int = 2) -> HubPlan {
            plan {
                $0.slots = slots
                $0.slotsForComers = forComers
                $0.attempts = attempts
                $0.turn = .seconds(30)
                $0.firstBackoff = .seconds(8)
                $0.longestBackoff = .seconds(400)
            }
        }

        /// Begins the visit to peer 1, which is due, and has the link and the exchange there at once.
        private func meet(_ plan: inout HubPlan, at now: Double) throws -> HubPlan.Visit {
            let visit = try first(plan.steps(at: at(now)))
            plan.connected(visit, at: at(now))
            plan.met(1)
            return visit
        }

        private func come(_ peer: Int64?, _ plan: inout HubPlan, at now: Double) throws -> HubPlan.Visit {
            let visit = plan.came(peer, at: at(now))
            return try #require(visit)
        }

        // MARK: Pending records

        @Test func moreRecordsDoNotMakeAPeerWaitAnew() {
            var plan = plan(slots: 2)
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
            var plan = plan(slots: 2)
            plan.waiting(1, priority: 1, for: 1, isReachable: false, at: at(0))
            plan.waiting(1, priority: 1, for: 2, isReachable: true, at: at(0))
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(1))
            plan.waiting(1, priority: 1, for: 2, isReachable: false, at: at(1))
            #expect(connects(plan.steps(at: at(1))) == [1])
        }

        @Test func aPeerWithoutRecordsIsNotVisited() {
            var plan = plan(slots: 2)
            plan.waiting(0, priority: 1, for: 1, isReachable: true, at: at(0))
            #expect(plan.steps(at: at(0)) == [] && plan.phase(of: 1, at: at(0)) == .idle)
            plan.met(2)
            plan.parted(2, records: 0, at: at(1))
            #expect(plan.phase(of: 2, at: at(1)) == .idle)
        }

        /// What no longer holds is swept out, so that a peer whose priority changes takes no more room each time.
        @Test func queuesStaySmall() throws {
            var plan = plan(slots: 2)
            let changes = 1000
            for change in 1...changes {
                plan.waiting(1, priority: UInt8(change % 2), for: 1, isReachable: true, at: at(0))
            }
            #expect(plan.places < 40)
            plan.ended(try first(plan.steps(at: at(0))), at: at(0), chance: 1)
            for change in 1...changes {
                plan.waiting(1, priority: UInt8(change % 2), for: 1, isReachable: true, at: at(1))
            }
            #expect(plan.places < 80)
            #expect(connects(plan.steps(at: at(8))) == [1])
        }

        // MARK: Failures

        /// Also one of the peer's: this side's own are as many as before.
        @Test func aRecordThatCrossedIsSuccess() throws {
            var plan = plan(slots: 2)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.ended(try first(plan.steps(at: at(0))), at: at(0), chance: 1)
            #expect(plan.phase(of: 1, at: at(0)) == .backingOff(failures: 1, for: .seconds(8)))
            let second = try meet(&plan, at: 8)
            plan.parted(1, records: 1, at: at(9))
            plan.ended(second, at: at(10), chance: 1)
            #expect(plan.phase(of: 1, at: at(10)) == .ready(for: .zero))
            plan.ended(try first(plan.steps(at: at(10))), at: at(10), chance: 1)
            #expect(plan.phase(of: 1, at: at(10)) == .backingOff(failures: 1, for: .seconds(8)))
        }

        @Test func itsTurnIsWaitedForFromTheEndOfTheBackoff() throws {
            var plan = plan(slots: 2)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.ended(try first(plan.steps(at: at(0))), at: at(0), chance: 1)
            #expect(plan.phase(of: 1, at: at(8)) == .ready(for: .zero))
            #expect(plan.phase(of: 1, at: at(9)) == .ready(for: .seconds(1)))
        }

        @Test func eachNeedlessAttemptIsEndedOnce() throws {
            var plan = plan(slots: 4)
            for peer in 1...2 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(0))
            }
            let first = try first(plan.steps(at: at(0)))
            let second = HubPlan.Visit(number: plan.lastVisit)
            for peer in 1...2 as ClosedRange<Int64> {
                _ = try come(peer, &plan, at: 1)
                plan.met(peer)
            }
            plan.ended(first, at: at(1), chance: 1)
            #expect(plan.steps(at: at(1)) == [.end(second)])
            #expect(plan.steps(at: at(1)) == [])
        }

        /// What crossed on the peer's own visit ends this side's backoff, and the peer waits anew.
        @Test func aComerThatTakesARecordEndsTheBackoff() throws {
            let phases: [(Int, RecordHub.Phase)] = [
                (0, .backingOff(failures: 1, for: .seconds(3))), (1, .ready(for: .seconds(1))),
            ]
            for (records, phase) in phases {
                var plan = plan(slots: 2)
                plan.waiting(2, priority: 1, for: 1, isReachable: true, at: at(0))
                plan.ended(try first(plan.steps(at: at(0))), at: at(0), chance: 1)
                let visit = try come(1, &plan, at: 2)
                plan.met(1)
                plan.parted(1, records: records, at: at(4))
                plan.ended(visit, at: at(4), chance: 1)
                #expect(plan.phase(of: 1, at: at(5)) == phase)
            }
        }

        /// A comer that takes nothing is no failure of this side's, and one that never had an exchange has had no turn.
        @Test func aComerThatTakesNothingIsNotBackedOffFrom() throws {
            var plan = plan(slots: 2)
            plan.waiting(1, priority: 1, for: 1, isReachable: false, at: at(0))
            let visit = try come(1, &plan, at: 1)
            plan.ended(visit, at: at(2), chance: 1)
            plan.parted(1, records: 0, at: at(2))
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(3))
            #expect(plan.phase(of: 1, at: at(3)) == .ready(for: .seconds(3)))
            #expect(connects(plan.steps(at: at(3))) == [1])
        }

        /// Also when it ends after the exchange that made it needless, or while one runs on another link.
        @Test(arguments: [true, false]) func aNeedlessAttemptIsNoFailure(isConnecting: Bool) throws {
            var plan = plan(slots: 2)
            plan.waiting(2, priority: 1, for: 1, isReachable: true, at: at(0))
            let attempt = try first(plan.steps(at: at(0)))
            if !isConnecting { plan.connected(attempt, at: at(1)) }
            let visit = try come(1, &plan, at: 1)
            plan.met(1)
            #expect(plan.steps(at: at(1)) == (isConnecting ? [.end(attempt)] : []))
            if isConnecting { plan.parted(1, records: 0, at: at(2)) }
            plan.ended(attempt, at: at(2), chance: 1)
            if !isConnecting { plan.parted(1, records: 0, at: at(2)) }
            plan.ended(visit, at: at(2), chance: 1)
            #expect(plan.phase(of: 1, at: at(2)) == .ready(for: .zero))
        }

        @Test func theHalfOfABackoffIsWaitedAtLeast() throws {
            var plan = plan(slots: 2)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            plan.ended(try first(plan.steps(at: at(0))), at: at(0), chance: 0)
            #expect(plan.phase(of: 1, at: at(0)) == .backingOff(failures: 1, for: .seconds(4)))
        }

        /// The peer's position tells it as well as the exchange's own count.
        @Test func fewerPendingRecordsAreProgress() throws {
            var plan = plan(slots: 2)
            plan.waiting(2, priority: 1, for: 1, isReachable: true, at: at(0))
            let visit = try meet(&plan, at: 0)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(1))
            plan.parted(1, records: 0, at: at(2))
            plan.ended(visit, at: at(2), chance: 1)
            #expect(plan.phase(of: 1, at: at(2)) == .ready(for: .zero))
        }

        // MARK: Slots

        @Test func peersThatCameTakeSlots() throws {
            var plan = plan(slots: 2)
            #expect(plan.placesForComers == 2)
            for _ in 1...2 { _ = try come(nil, &plan, at: 0) }
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(1))
            #expect(plan.steps(at: at(1)) == [])
        }

        @Test func ownVisitsLeaveFewerPlacesForComers() throws {
            var plan = plan(slots: 3, forComers: 1)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            _ = try first(plan.steps(at: at(0)))
            #expect(plan.placesForComers == 2)
        }

        /// Slots that are kept for comers do not help a peer that is to be visited, and a comer's turn is not ended for it.
        @Test func anOwnVisitMakesRoomForTheNext() throws {
            var plan = plan(slots: 4, forComers: 2)
            _ = try come(nil, &plan, at: 0)
            for peer in 1...3 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(Double(peer)))
            }
            let first = try meet(&plan, at: 10)
            plan.connected(HubPlan.Visit(number: plan.lastVisit), at: at(11))
            #expect(plan.steps(at: at(39)) == [] && plan.nextDeadline(at: at(39)) == at(40))
            #expect(plan.steps(at: at(40)) == [.end(first)])
        }

        @Test func noTurnEndsForAPeerThatCouldNotBeTriedYet() throws {
            var plan = plan(slots: 2, attempts: 1)
            for peer in 1...3 as ClosedRange<Int64> {
                plan.waiting(1, priority: 1, for: peer, isReachable: true, at: at(Double(peer)))
            }
            _ = try meet(&plan, at: 5)
            #expect(connects(plan.steps(at: at(6))) == [2])
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

        /// After how many seconds the running visit ends, because its turn is over.
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

        /// A link that broke and an attempt that was called off are no turns.
        @Test(arguments: [true, false]) func onlyATurnThatIsOverMakesTheNextLonger(isCalledOff: Bool) throws {
            var plan = plan(slots: 2)
            plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(0))
            let visit = try first(plan.steps(at: at(0)))
            if isCalledOff {
                let comer = try come(1, &plan, at: 1)
                plan.met(1)
                #expect(plan.steps(at: at(1)) == [.end(visit)])
                plan.connected(visit, at: at(1))
                plan.ended(visit, at: at(2), chance: 1)
                plan.parted(1, records: 0, at: at(2))
                plan.ended(comer, at: at(2), chance: 1)
            } else {
                plan.connected(visit, at: at(1))
                plan.ended(visit, at: at(2), chance: 1)
            }
            let next = try meet(&plan, at: 100)
            _ = try come(nil, &plan, at: 100.5)
            #expect(turn(of: next, since: 100, &plan) == 30)
        }

        @Test func aTurnIsShortAgainOnceAllIsThere() throws {
            var plan = plan(slots: 1)
            for (start, left, turn) in [(0.0, 1, 30.0), (100, 0, 60), (200, 1, 30)] {
                plan.waiting(1, priority: 1, for: 1, isReachable: true, at: at(start))
                let visit = try meet(&plan, at: start)
                #expect(self.turn(of: visit, since: start, &plan) == turn, "from \(start) on")
                plan.parted(1, records: 0, at: at(start + turn))
                plan.waiting(left, priority: 1, for: 1, isReachable: true, at: at(start + turn))
                plan.ended(visit, at: at(start + turn), chance: 0)
            }
        }
    }
#endif
