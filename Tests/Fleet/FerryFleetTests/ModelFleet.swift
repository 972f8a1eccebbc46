import Ferry
import FerryTesting

@testable import FerryFleet

/// Gateways with clocks that differ, a bucket, and a network that is late: everything that happens is a call.
struct ModelFleet {
    struct Flight {
        /// Nil once the gateway that asked is gone.
        var gateway: Int?
        let request: LeaseRequest
        /// Nil until the bucket has it.
        var answer: LeaseAnswer?
    }

    struct Stored {
        var entry: LeaseEntry
        var at: Int64
    }

    struct Radio {
        var token: FencingToken
        var mustStopBy: Timestamp?
    }

    /// In units of the policy: a true step of time, which fast clocks take for more and slow ones for less.
    static let step: Int64 = 20

    let policy: LeasePolicy
    let names: [String]
    let rates: [Int64]
    let serverRate: Int64
    var signals: [[Int]]
    var books: [LeaseBook] = []
    var clocks: [Int64]
    var serverClock: Int64 = 0
    var lives: UInt64 = 0
    var bucket: [String: Stored] = [:]
    var lastRevision: UInt64 = 0
    var flights: [Flight] = []
    var messages: [(to: Int, FleetMessage)] = []
    var radios: [[String: Radio]]
    var isHung: [Bool]
    var newestBegun: [String: FencingToken] = [:]
    var handOvers = 0
    /// The first broken promise.
    var broken: String?

    /// The smallest times that have everything in them.
    static var policy: LeasePolicy {
        var policy = LeasePolicy()
        policy.timeToLive = .nanoseconds(100)
        policy.clockDrift = 100_000
        policy.serverSkew = .zero
        policy.stopping = .nanoseconds(10)
        policy.requestTimeout = .nanoseconds(30)
        policy.poll = .nanoseconds(20)
        policy.spread = .zero
        policy.patience = .nanoseconds(20)
        policy.minimumTenure = .nanoseconds(20)
        policy.reservation = .nanoseconds(20)
        policy.silence = .nanoseconds(1_000)
        return policy
    }

    /// - Parameter rates: what each gateway's clock does with a true step, and the servers'.
    init(
        policy: LeasePolicy = Self.policy, peers: [String] = ["a", "b"], signals: [[Int]], rates: [Int64],
        serverRate: Int64
    ) throws {
        self.policy = policy
        names = peers
        self.signals = signals
        self.rates = rates
        self.serverRate = serverRate
        clocks = rates.map { _ in 0 }
        radios = rates.map { _ in [:] }
        isHung = rates.map { _ in false }
        for index in rates.indices { books.append(try makeBook(index)) }
        for index in rates.indices { hear(index) }
    }

    private mutating func makeBook(_ index: Int) throws -> LeaseBook {
        lives += 1
        return try LeaseBook(gateway: GatewayID("g\(index)", incarnation: lives), capacity: 2, policy: policy)
    }

    func now(_ gateway: Int) -> Timestamp { Timestamp(nanoseconds: clocks[gateway]) }

    private mutating func hear(_ gateway: Int) {
        for (peer, name) in names.enumerated() where signals[gateway][peer] > -127 {
            books[gateway].heard(name, signal: signals[gateway][peer], at: now(gateway))
        }
        books[gateway].wake(at: now(gateway))
        carryOut(gateway)
    }

    // MARK: What can happen

    /// Time passes for everybody. Whoever is not hung does in time what is due.
    mutating func tick() {
        serverClock += serverRate
        bucket = bucket.filter { serverClock < $1.at + policy.timeToLive.wholeNanoseconds }
        for gateway in books.indices {
            let end = clocks[gateway] + rates[gateway]
            guard !isHung[gateway] else {
                clocks[gateway] = end
                continue
            }
            while let next = next(gateway), next.nanoseconds <= end {
                clocks[gateway] = max(clocks[gateway], next.nanoseconds)
                stopRadios(gateway, dueAt: now(gateway))
                books[gateway].wake(at: now(gateway))
                carryOut(gateway)
            }
            clocks[gateway] = end
            hear(gateway)
        }
        check()
    }

    private func next(_ gateway: Int) -> Timestamp? {
        [books[gateway].nextDeadline, radios[gateway].values.compactMap(\.mustStopBy).min()].compactMap { $0 }.min()
    }

    private mutating func stopRadios(_ gateway: Int, dueAt now: Timestamp) {
        for peer in names {
            if let by = radios[gateway][peer]?.mustStopBy, by <= now { stopRadio(gateway, peer) }
        }
    }

    /// The connection has ended.
    mutating func stopRadio(_ gateway: Int, _ peer: String) {
        radios[gateway][peer] = nil
        books[gateway].stopped(peer, at: now(gateway))
        carryOut(gateway)
        check()
    }

    /// The bucket gets a request.
    mutating func apply(_ index: Int) {
        let request = flights[index].request
        let stored = bucket[request.peer]
        let answer: LeaseAnswer
        switch request.operation {
        case .read: answer = .entry(stored?.entry)
        case .create(let lease): answer = stored == nil ? store(lease, request.peer) : .refused
        case .update(let lease, let expected):
            answer = stored?.entry.revision == expected ? store(lease, request.peer) : .refused
        }
        if flights[index].gateway == nil { flights.remove(at: index) } else { flights[index].answer = answer }
    }

    private mutating func store(_ lease: Lease, _ peer: String) -> LeaseAnswer {
        lastRevision += 1
        if lease.successor != nil { handOvers += 1 }
        // As it goes over the wire.
        guard let read = Lease(lease.description), read == lease else {
            broken = "\(lease) is not what is read of it"
            return .refused
        }
        bucket[peer] = Stored(entry: LeaseEntry(read, revision: lastRevision), at: serverClock)
        return .stored(revision: lastRevision)
    }

    /// A gateway gets an answer.
    mutating func deliver(_ index: Int) {
        let flight = flights.remove(at: index)
        guard let gateway = flight.gateway, let answer = flight.answer else { return }
        books[gateway].answered(flight.request.id, answer, at: now(gateway))
        carryOut(gateway)
        check()
    }

    mutating func deliverMessage(_ index: Int) {
        let (gateway, message) = messages.remove(at: index)
        books[gateway].received(message, at: now(gateway))
        carryOut(gateway)
        check()
    }

    /// The process ends, and starts again. What it had sent may still come to the bucket.
    mutating func crash(_ gateway: Int) throws {
        radios[gateway] = [:]
        isHung[gateway] = false
        flights.removeAll { $0.gateway == gateway && $0.answer != nil }
        for index in flights.indices where flights[index].gateway == gateway { flights[index].gateway = nil }
        books[gateway] = try makeBook(gateway)
        hear(gateway)
        check()
    }

    mutating func resume(_ gateway: Int) {
        books[gateway].wake(at: now(gateway))
        carryOut(gateway)
        stopRadios(gateway, dueAt: now(gateway))
        isHung[gateway] = false
        hear(gateway)
        check()
    }

    private mutating func carryOut(_ gateway: Int) {
        for step in books[gateway].takeSteps() {
            switch step {
            case .request(let request): flights.append(Flight(gateway: gateway, request: request))
            case .begin(let peer, let token):
                if radios[gateway][peer] != nil { broken = "g\(gateway) begins \(peer) twice" }
                radios[gateway][peer] = Radio(token: token)
                if let newest = newestBegun[peer], token <= newest {
                    broken = "\(peer) begins under \(token) after \(newest)"
                }
                newestBegun[peer] = token
            case .stop(let peer, let by):
                if radios[gateway][peer] == nil { broken = "g\(gateway) stops \(peer), which it has not begun" }
                radios[gateway][peer]?.mustStopBy = by
            case .tell(let name, let message):
                if messages.count < 2, let to = Int(name.dropFirst()) { messages.append((to, message)) }
            }
        }
    }

    // MARK: What must hold

    /// Never two that believe to own a peer, and never two that are connected to it, but for one that does nothing at all.
    private mutating func check() {
        for peer in names {
            let owners = books.indices.filter { gateway in
                books[gateway].token(of: peer, at: now(gateway)) != nil
                    || (radios[gateway][peer] != nil && !isHung[gateway])
            }
            if owners.count > 1 { broken = broken ?? "\(peer) belongs to gateways \(owners)" }
        }
    }

    func owners(_ peer: String) -> [Int] { books.indices.filter { books[$0].token(of: peer, at: now($0)) != nil } }

    /// Everything arrives at once, for so many steps of time.
    mutating func run(_ steps: Int) {
        for _ in 0..<steps {
            // Each answer can bring a request; none of them for ever.
            for _ in 0..<64 where !flights.isEmpty || !messages.isEmpty {
                if !messages.isEmpty { deliverMessage(0) }
                guard !flights.isEmpty else { continue }
                if flights[0].answer == nil {
                    let count = flights.count
                    apply(0)
                    if flights.count < count { continue }
                }
                deliver(0)
            }
            tick()
        }
    }

    /// From here on without faults: every peer gets one owner. Nil when it does.
    mutating func settle() -> String? {
        for gateway in books.indices where isHung[gateway] { resume(gateway) }
        run(30)
        for peer in names where owners(peer).count != 1 {
            return broken ?? "\(peer) has the owners \(owners(peer)) after 30 steps without a fault"
        }
        return broken
    }
}

// MARK: Telling states apart

extension ModelFleet {
    /// What the future depends on: times from now, revisions from the last one.
    func signature() -> Int {
        var hasher = Hasher()
        for gateway in books.indices { combine(gateway, into: &hasher) }
        for peer in names {
            guard let stored = bucket[peer] else {
                hasher.combine(0)
                continue
            }
            combine(stored.entry, into: &hasher)
            hasher.combine(serverClock - stored.at)
        }
        for flight in flights {
            hasher.combine(flight.gateway)
            hasher.combine(flight.request.peer)
            // Whether it is still waited for.
            let isAwaited =
                flight.gateway.map { books[$0].peers[flight.request.peer]?.pending?.id == flight.request.id } ?? false
            hasher.combine(isAwaited)
            switch flight.request.operation {
            case .create: hasher.combine(1)
            case .read: hasher.combine(2)
            case .update(let lease, let expected): combine(LeaseEntry(lease, revision: expected), into: &hasher)
            }
            switch flight.answer {
            case nil: hasher.combine(3)
            case .stored(let revision): hasher.combine(lastRevision - revision)
            case .refused: hasher.combine(4)
            case .unknown: hasher.combine(5)
            case .entry(let entry): if let entry { combine(entry, into: &hasher) } else { hasher.combine(6) }
            }
        }
        for (to, message) in messages {
            hasher.combine(to)
            switch message {
            case .sighting(let peer, let by, let score):
                hasher.combine(peer)
                hasher.combine(by)
                hasher.combine(score)
            case .offer(let peer, let entry):
                hasher.combine(peer)
                combine(entry, into: &hasher)
            }
        }
        return hasher.finalize()
    }

    private func combine(_ gateway: Int, into hasher: inout Hasher) {
        let book = books[gateway]
        hasher.combine(isHung[gateway])
        hasher.combine(book.gateway.incarnation)
        hasher.combine(book.handOvers.count)
        let since = { (time: Timestamp) in time.nanoseconds - self.clocks[gateway] }
        for peer in names {
            hasher.combine(radios[gateway][peer]?.mustStopBy.map(since) ?? (radios[gateway][peer] == nil ? 1 : 2))
            guard let lease = book.peers[peer] else {
                hasher.combine(0)
                continue
            }
            hasher.combine(lease.turn)
            hasher.combine(max(0, since(lease.due)))
            hasher.combine(since(lease.heardAt))
            switch lease.known {
            case .nothing: hasher.combine(1)
            case .something: hasher.combine(2)
            case .entry(let entry, let first):
                combine(entry, into: &hasher)
                hasher.combine(since(first))
            }
            if let pending = lease.pending {
                hasher.combine(since(pending.sentAt))
                switch pending.purpose {
                case .acquire: hasher.combine(1)
                case .look: hasher.combine(2)
                case .renew: hasher.combine(3)
                case .check: hasher.combine(4)
                case .release: hasher.combine(5)
                }
            }
            if let challenge = lease.challenge {
                hasher.combine(challenge.gateway)
                hasher.combine(challenge.count)
                hasher.combine(since(challenge.since))
                hasher.combine(since(challenge.heardAt))
            }
            let tenure: PeerLease.Tenure
            switch lease.phase {
            case .candidate: continue
            case .held(let held): tenure = held
            case .stopping(let stopping, let ending):
                tenure = stopping
                hasher.combine(ending)
            case .releasing(let releasing, let successor):
                tenure = releasing
                hasher.combine(successor)
            }
            hasher.combine(lastRevision - tenure.token.revision)
            hasher.combine(lastRevision - tenure.revision)
            hasher.combine(since(tenure.goodUntil))
            hasher.combine(since(tenure.renewsAt))
            hasher.combine(min(40, -since(tenure.since)))
        }
    }

    private func combine(_ entry: LeaseEntry, into hasher: inout Hasher) {
        hasher.combine(entry.lease.holder)
        hasher.combine(lastRevision - entry.token.revision)
        hasher.combine(lastRevision - entry.revision)
        hasher.combine(entry.lease.score)
        hasher.combine(entry.lease.successor)
    }
}
