import Ferry
import TestSupport
import Testing

@testable import FerryFleet

/// A book, and a bucket that answers at once unless the test keeps the requests.
private struct Desk {
    var book: LeaseBook
    var steps: [FleetStep] = []
    var requests: [LeaseRequest] = []
    var now = Timestamp.zero

    init(_ name: String = "g", capacity: Int = 4, policy: LeasePolicy = LeasePolicy()) throws {
        book = try LeaseBook(gateway: GatewayID(name, incarnation: 1), capacity: capacity, policy: policy)
    }

    mutating func take() {
        for step in book.takeSteps() {
            if case .request(let request) = step { requests.append(request) } else { steps.append(step) }
        }
    }

    mutating func hear(_ peer: String, signal: Int = -60) {
        book.heard(peer, signal: signal, at: now)
        take()
    }

    /// Goes on until there is a request.
    mutating func awaitRequest(within seconds: Int = 60) -> LeaseRequest? {
        let end = now + .seconds(seconds)
        while requests.isEmpty, let next = book.nextDeadline, next <= end {
            now = max(now, next)
            book.wake(at: now)
            take()
        }
        return requests.isEmpty ? nil : requests.removeFirst()
    }

    mutating func required() throws -> LeaseRequest {
        let request = awaitRequest()
        return try #require(request)
    }

    mutating func go(to time: Timestamp) {
        now = time
        book.wake(at: now)
        take()
    }

    mutating func answer(_ request: LeaseRequest?, _ answer: LeaseAnswer) {
        guard let request else { return }
        book.answered(request.id, answer, at: now)
        take()
    }

    /// Gets the lease on a peer that is nobody's.
    mutating func acquire(_ peer: String, revision: UInt64) {
        hear(peer)
        answer(awaitRequest(), .stored(revision: revision))
        steps = []
    }
}

@Suite(.tags(.fleet)) struct LeaseBookTests {
    @Test func asksForAPeerThatIsHeardAndBegins() throws {
        var desk = try Desk()
        desk.hear("a")
        let request = try desk.required()
        guard case .create(let lease) = request.operation else {
            Issue.record("\(request)")
            return
        }
        #expect(request.peer == "a" && lease.holder == desk.book.gateway && lease.term == nil)
        #expect(desk.now <= .zero + desk.book.policy.spread)
        #expect(desk.book.token(of: "a", at: desk.now) == nil)
        let asked = desk.now
        desk.now = desk.now + .milliseconds(100)
        desk.answer(request, .stored(revision: 5))
        let token = FencingToken(revision: 5)
        #expect(desk.steps == [.begin(peer: "a", token)])
        // Good from when it was asked for, not from the answer.
        let end = asked + desk.book.policy.validity
        #expect(desk.book.token(of: "a", at: Timestamp(nanoseconds: end.nanoseconds - 1)) == token)
        #expect(desk.book.token(of: "a", at: end) == nil)
        #expect(desk.book.owned == 1)
    }

    @Test func marginsAreTakenOffTheTimeToLive() throws {
        var policy = LeasePolicy()
        policy.timeToLive = .seconds(31)
        policy.serverSkew = .seconds(1)
        policy.clockDrift = 1000
        // 30 s less two parts in a thousand, less a nanosecond for rounding.
        #expect(policy.validity == .nanoseconds(29_939_999_999))
        policy.timeToLive = .seconds(5)
        let error = #expect(throws: FerryError.self) { try policy.validate() }
        #expect(error?.code == .fleetPolicy)
        #expect(error?.message.contains("timeToLive") == true)
    }

    @Test func renewsUnderTheSameToken() throws {
        var desk = try Desk()
        desk.acquire("a", revision: 5)
        let began = desk.now
        let request = try desk.required()
        guard case .update(let lease, expecting: 5) = request.operation else {
            Issue.record("\(request)")
            return
        }
        #expect(lease.term == FencingToken(revision: 5))
        #expect(desk.now == began + desk.book.policy.renewal)
        desk.answer(request, .stored(revision: 8))
        #expect(desk.book.token(of: "a", at: began + desk.book.policy.validity) == FencingToken(revision: 5))
        let next = try desk.required()
        guard case .update(_, expecting: 8) = next.operation else {
            Issue.record("\(next)")
            return
        }
    }

    @Test func stopsBeforeAnotherMayBeginWhenNothingAnswers() throws {
        var desk = try Desk()
        desk.acquire("a", revision: 5)
        let end = desk.now + desk.book.policy.validity
        while desk.steps.isEmpty, let next = desk.book.nextDeadline, next < end { desk.go(to: next) }
        #expect(desk.steps == [.stop(peer: "a", by: end)])
        #expect(desk.now + desk.book.policy.stopping <= end)
        #expect(desk.requests.count >= 2, "it has tried again")
        // Nothing is asked for before the radio has let go.
        desk.requests = []
        desk.go(to: end + .seconds(20))
        #expect(desk.requests.isEmpty)
        desk.book.stopped("a", at: desk.now)
        #expect(desk.book.owned == 0)
    }

    @Test func findsItsOwnRenewalWhoseAnswerWasLost() throws {
        var desk = try Desk()
        desk.acquire("a", revision: 5)
        let lost = try desk.required()
        guard case .update(let stored, _) = lost.operation else { return }
        let again = try desk.required()
        desk.answer(lost, .stored(revision: 6))
        desk.answer(again, .refused)
        let look = desk.awaitRequest()
        #expect(look?.operation == .read)
        desk.answer(look, .entry(LeaseEntry(stored, revision: 6)))
        guard case .update(_, expecting: 6) = desk.awaitRequest()?.operation else {
            Issue.record("no renewal of what is there")
            return
        }
        #expect(desk.steps.isEmpty)
    }

    @Test func stopsAtOnceWhenTheBucketHasAnothers() throws {
        var desk = try Desk()
        desk.acquire("a", revision: 5)
        desk.answer(desk.awaitRequest(), .refused)
        let other = Lease(holder: GatewayID("h", incarnation: 2), score: -50)
        desk.answer(desk.awaitRequest(), .entry(LeaseEntry(other, revision: 9)))
        #expect(desk.book.token(of: "a", at: desk.now) == nil)
        guard case .stop("a", let by) = desk.steps.first else {
            Issue.record("\(desk.steps)")
            return
        }
        #expect(by <= desk.now + desk.book.policy.stopping)
    }

    @Test func leavesWhatIsAnothersUntilItIsGone() throws {
        var desk = try Desk()
        desk.hear("a")
        desk.answer(desk.awaitRequest(), .refused)
        let other = LeaseEntry(Lease(holder: GatewayID("h", incarnation: 2), score: -55), revision: 9)
        for _ in 0..<3 {
            let look = try desk.required()
            #expect(look.operation == .read)
            desk.hear("a")
            desk.answer(look, .entry(other))
        }
        // It is not good enough to say so.
        #expect(desk.steps.isEmpty)
        let look = desk.awaitRequest()
        #expect(look?.operation == .read)
        desk.answer(look, .entry(nil))
        guard case .create = desk.awaitRequest()?.operation else {
            Issue.record("what is gone is not asked for")
            return
        }
    }

    @Test func handsOverToWhoIsBetterForLongAndOffersIt() throws {
        var desk = try Desk()
        desk.acquire("a", revision: 5)
        let began = desk.now
        func sighting(_ score: Int) -> FleetMessage { .sighting(peer: "a", by: "h", score: score) }
        var revision: UInt64 = 5
        let mine = try #require(desk.book.score(of: "a"))
        while desk.now < began + desk.book.policy.minimumTenure + .seconds(30), desk.steps.isEmpty {
            let request = desk.awaitRequest()
            revision += 1
            desk.hear("a")
            desk.answer(request, .stored(revision: revision))
            // A little better is not enough.
            desk.book.received(sighting(mine + desk.book.policy.stickiness - 1), at: desk.now)
            desk.take()
        }
        #expect(desk.steps.isEmpty)
        var sightings = 0
        let from = desk.now
        while desk.steps.isEmpty, sightings < 100 {
            let request = desk.awaitRequest()
            revision += 1
            desk.hear("a")
            desk.answer(request, .stored(revision: revision))
            desk.book.received(sighting(mine + desk.book.policy.stickiness), at: desk.now)
            desk.take()
            sightings += 1
        }
        #expect(desk.now >= from + desk.book.policy.patience && sightings >= 3)
        guard case .stop("a", _) = desk.steps.first else {
            Issue.record("\(desk.steps)")
            return
        }
        // The bucket is told when the radio has let go, and then the successor.
        desk.steps = []
        #expect(desk.requests.isEmpty)
        desk.book.stopped("a", at: desk.now)
        desk.take()
        let release = try desk.required()
        guard case .update(let free, expecting: revision) = release.operation else {
            Issue.record("\(release)")
            return
        }
        #expect(free.holder == nil && free.successor == "h" && free.term == FencingToken(revision: 5))
        desk.answer(release, .stored(revision: 77))
        let offer = FleetMessage.offer(peer: "a", LeaseEntry(free, revision: 77))
        #expect(desk.steps == [.tell(gateway: "h", offer)])
        #expect(desk.book.owned == 0)
        // The successor takes it by its revision, at once.
        var other = try Desk("h")
        other.now = .zero + .seconds(7)
        other.hear("a", signal: -40)
        other.answer(other.awaitRequest(), .refused)
        other.requests = []
        other.answer(other.awaitRequest(), .unknown)
        other.book.received(offer, at: other.now)
        other.take()
        guard case .update(_, expecting: 77)? = other.requests.first?.operation else {
            Issue.record("\(other.requests)")
            return
        }
    }

    @Test func takesOnNoMoreThanItCan() throws {
        var desk = try Desk(capacity: 2)
        for peer in ["a", "b", "c"] { desk.hear(peer) }
        for revision in 1...2 { desk.answer(desk.awaitRequest(), .stored(revision: UInt64(revision))) }
        #expect(desk.book.owned == 2)
        let end = desk.now + .seconds(8)
        while let next = desk.book.nextDeadline, next < end { desk.go(to: next) }
        #expect(desk.requests.isEmpty)
    }

    @Test func drainedItGivesUpAllAndForgets() throws {
        var desk = try Desk()
        desk.acquire("a", revision: 5)
        desk.hear("b")
        desk.book.drain(at: desk.now)
        desk.take()
        guard case .stop("a", _) = desk.steps.first else {
            Issue.record("\(desk.steps)")
            return
        }
        desk.book.stopped("a", at: desk.now)
        desk.take()
        let release = desk.awaitRequest()
        guard case .update(let free, expecting: 5) = release?.operation else {
            Issue.record("\(String(describing: release))")
            return
        }
        #expect(free.holder == nil && free.successor == nil)
        desk.answer(release, .stored(revision: 6))
        #expect(desk.book.peers.isEmpty && desk.book.owned == 0)
        desk.hear("c")
        #expect(desk.book.peers.isEmpty)
        desk.book.accept()
        desk.hear("c")
        let request = desk.awaitRequest()
        #expect(request?.peer == "c")
    }

    @Test func knowsNoMorePeersThanItMay() throws {
        var policy = LeasePolicy()
        policy.maximumPeers = 100
        var desk = try Desk(policy: policy)
        for index in 0..<1000 { desk.hear("p\(index)") }
        #expect(desk.book.peers.count == 100 && desk.book.ignored == 900)
        // Who falls silent is forgotten.
        desk.go(to: .zero + .seconds(1000))
        desk.go(to: .zero + .seconds(2000))
        #expect(desk.book.peers.isEmpty)
    }

    /// A fleet whose power returns does not ask for all of its peers in one second.
    @Test func spreadsItsFirstAttempts() throws {
        var policy = LeasePolicy()
        policy.startup = .seconds(20)
        var book = try LeaseBook(gateway: GatewayID("g", incarnation: 1), capacity: 400, policy: policy)
        for number in 0..<200 { book.heard("p\(number)", signal: -50, at: .zero) }
        var perSecond: [Int: Int] = [:], revision: UInt64 = 0
        func run(until end: Timestamp) {
            while let next = book.nextDeadline, next < end {
                book.wake(at: next)
                for case .request(let request) in book.takeSteps() {
                    guard case .create = request.operation else { continue }
                    perSecond[Int((next - .zero) / .seconds(1)), default: 0] += 1
                    revision += 1
                    book.answered(request.id, .stored(revision: revision), at: next)
                }
            }
        }
        run(until: .zero + .seconds(25))
        let most = try #require(perSecond.values.max())
        #expect(perSecond.values.reduce(0, +) == 200 && perSecond.count >= 15 && most <= 30)
        // Later there is no herd, and nobody waits for one.
        perSecond = [:]
        book.heard("late", signal: -50, at: .zero + .seconds(25))
        run(until: .zero + .seconds(25) + policy.spread + .milliseconds(1))
        #expect(perSecond.values.reduce(0, +) == 1)
    }

    /// Gateways that hear the same peer at once, as well as one another, ask at different times.
    @Test func spreadsCandidates() throws {
        var times: Set<Timestamp> = []
        for index in 0..<50 {
            var desk = try Desk("gateway-\(index)")
            desk.hear("a")
            _ = try desk.required()
            times.insert(desk.now)
        }
        #expect(times.count == 50)
        let first = try #require(times.min())
        let last = try #require(times.max())
        #expect(last - first > LeasePolicy().spread / 8)
    }

    @Test(arguments: ["", "a b", "ä", String(repeating: "a", count: 65), "a.b"])
    func refusesWhatIsNoName(_ name: String) {
        let error = #expect(throws: FerryError.self) {
            try LeaseBook(gateway: GatewayID(name, incarnation: 1), capacity: 1)
        }
        #expect(error?.code == .fleetPolicy)
    }

    @Test(arguments: [
        "", "held", "held g 1 0", "held g 1 0 0 0", "held g x 0 0", "held g 1 -1 0", "held g! 1 0 0", "free 1",
        "free 1 0 a b", "free 1 99999999", "gone 1 2", "free 1  2", String(repeating: "held ", count: 1000),
    ])
    func refusesWhatIsNoLease(_ text: String) { #expect(Lease(text) == nil) }

    @Test func writesLeases() {
        #expect(Lease(holder: GatewayID("g-1", incarnation: 0xab), score: -60).description == "held g-1 ab 0 -60")
        let free = Lease(holder: nil, term: FencingToken(revision: 5), score: -60, successor: "h")
        #expect(free.description == "free 5 -60 h")
        #expect(Lease("free 5 -60 h") == free)
        #expect(Lease("held g-1 ab 0 -60") == Lease(holder: GatewayID("g-1", incarnation: 0xab), score: -60))
    }
}
