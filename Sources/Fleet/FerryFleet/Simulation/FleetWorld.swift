import Ferry

/// The simulated fleet as it stands, and what happens to it.
struct FleetWorld {
    enum Event {
        case hear(Int)
        case wake(Int)
        case bucket(Int, life: Int, LeaseRequest)
        case answer(Int, life: Int, LeaseRequest.ID, LeaseAnswer)
        case message(Int, FleetMessage)
        case stopped(Int, life: Int, String)
        case fail(Int)
        case back(Int)
        case second
    }

    struct Gateway {
        var book: LeaseBook
        /// How its clock runs, in parts per million of true time more or less.
        let drift: Int64
        /// The peers that it can hear.
        var inReach: [Int32] = []
        /// When a wake is on its way.
        var wakesAt = Int64.max
        var life = 0
        var isUp = true
        var isCutOff = false
    }

    struct Entry {
        let entry: LeaseEntry
        let at: Int64
    }

    let setup: FleetSimulation.Setup
    let map: FleetMap
    let names: [String]
    let gatewayNames: [String: Int]
    let timeToLive: Int64
    var random: SeededGenerator
    var ring = TimeRing<Event>()
    var gateways: [Gateway] = []
    var positions: [FleetMap.Place] = []
    var bucket: [Entry?]
    var lastRevision: UInt64 = 0
    /// Each peer's owner; -1 for none, and since when.
    var owner: [Int32]
    var orphanedSince: [Int64]
    /// Who began last with each peer.
    var begun: [Int32]
    var phase = FleetSimulation.Phase(name: "", seconds: 0)
    var violations = 0
    var mostOwned = 0
    var unheard = 0
    var events = 0
    private var inSecond = 0
    private var moves = 0.0
    private var seconds = 0

    init(_ setup: FleetSimulation.Setup) throws(FerryError) {
        self.setup = setup
        map = FleetMap(gateways: setup.gateways, reach: setup.reach)
        names = (0..<setup.peers).map { "p\($0)" }
        gatewayNames = Dictionary(uniqueKeysWithValues: (0..<setup.gateways).map { ("g\($0)", $0) })
        timeToLive = setup.policy.timeToLive.wholeNanoseconds / 1_000_000
        random = SeededGenerator(seed: setup.seed)
        bucket = Array(repeating: nil, count: setup.peers)
        owner = Array(repeating: -1, count: setup.peers)
        orphanedSince = Array(repeating: 0, count: setup.peers)
        begun = owner
        let bound = Int64(setup.policy.clockDrift)
        for index in 0..<setup.gateways {
            let drift = Int64.random(in: -bound...bound, using: &random)
            gateways.append(Gateway(book: try makeBook(index), drift: drift))
            ring.add(.hear(index), at: Int64.random(in: 1...10_000, using: &random))
        }
        for peer in 0..<setup.peers {
            let place = map.place(&random)
            positions.append(place)
            let hearing = map.hearing(place)
            if hearing.isEmpty { unheard += 1 }
            for gateway in hearing { gateways[gateway].inReach.append(Int32(peer)) }
        }
        ring.add(.second, at: 1000)
    }

    private mutating func makeBook(_ index: Int) throws(FerryError) -> LeaseBook {
        let share = max(1, (setup.peers + setup.gateways - 1) / setup.gateways)
        return try LeaseBook(
            gateway: GatewayID("g\(index)", incarnation: random.next()), capacity: setup.capacity ?? share * 2,
            policy: setup.policy)
    }

    // MARK: Time

    /// The gateway's own clock.
    private func clock(_ gateway: Int) -> Timestamp {
        let now = ring.now * 1_000_000
        return Timestamp(nanoseconds: now + now / 1_000_000 * gateways[gateway].drift)
    }

    /// The first true millisecond at which the gateway's clock has come that far.
    private func trueTime(_ gateway: Int, _ time: Timestamp) -> Int64 {
        let scale = 1_000_000 + gateways[gateway].drift
        return Int64((Double(time.nanoseconds) / Double(scale)).rounded(.up)) + 1
    }

    mutating func run(_ name: String, seconds: Int, hasFailures: Bool, isPartitioned: Bool) throws(FerryError) {
        // Orphans of the phase before count there.
        settleOrphans()
        phase = FleetSimulation.Phase(name: name, seconds: seconds)
        let end = ring.now + Int64(seconds) * 1000
        for index in gateways.indices {
            gateways[index].isCutOff = isPartitioned && Double.random(in: 0..<1, using: &random) < setup.partitioned
            let chance = setup.failuresPerHour * Double(seconds) / 3600
            let failsAt = Int64.random(in: ring.now + 1...end, using: &random)
            if hasFailures, Double.random(in: 0..<1, using: &random) < chance { ring.add(.fail(index), at: failsAt) }
        }
        while ring.now < end {
            for event in ring.advance(to: end) {
                events += 1
                try happen(event)
            }
        }
        settleOrphans()
        phase.orphansAtEnd = owner.lazy.filter { $0 < 0 }.count
    }

    private mutating func happen(_ event: Event) throws(FerryError) {
        switch event {
        case .hear(let index): hear(index)
        case .wake(let index):
            guard gateways[index].isUp else { break }
            if gateways[index].wakesAt <= ring.now { gateways[index].wakesAt = .max }
            gateways[index].book.wake(at: clock(index))
            carryOut(index)
        case .bucket(let index, let life, let request): apply(request, of: index, life)
        case .answer(let index, let life, let id, let answer):
            guard gateways[index].isUp, gateways[index].life == life else { break }
            gateways[index].book.answered(id, answer, at: clock(index))
            carryOut(index)
        case .message(let index, let message):
            guard gateways[index].isUp, !gateways[index].isCutOff else { break }
            gateways[index].book.received(message, at: clock(index))
            carryOut(index)
        case .stopped(let index, let life, let peer):
            guard gateways[index].isUp, gateways[index].life == life else { break }
            end(peer, of: index)
            gateways[index].book.stopped(peer, at: clock(index))
            carryOut(index)
        case .fail(let index): fail(index)
        case .back(let index):
            gateways[index].book = try makeBook(index)
            gateways[index].isUp = true
        case .second: second()
        }
    }

    private mutating func second() {
        phase.busiestSecond = max(phase.busiestSecond, inSecond)
        inSecond = 0
        moves += Double(setup.peers) * setup.movesPerHour / 3600
        while moves >= 1 {
            moves -= 1
            move(Int.random(in: 0..<setup.peers, using: &random))
        }
        seconds += 1
        if seconds % 10 == 0 {
            for peer in owner.indices where owner[peer] < 0 && !isWithinReach(peer) { phase.outOfReachSeconds += 10 }
        }
        ring.add(.second, at: ring.now + 1000)
    }

    /// Whether a gateway hears it that works, and is not cut off.
    private func isWithinReach(_ peer: Int) -> Bool {
        map.hearing(positions[peer]).contains { gateways[$0].isUp && !gateways[$0].isCutOff }
    }

    // MARK: Peers

    /// A peer is carried to a place beside. Some of the gateways that heard it hear it no more: where its owner is one of them, it
    /// counts as without an owner from now on.
    private mutating func move(_ peer: Int) {
        for gateway in map.hearing(positions[peer]) { gateways[gateway].inReach.removeAll { $0 == Int32(peer) } }
        positions[peer] = map.place(beside: positions[peer], &random)
        let hearing = map.hearing(positions[peer])
        for gateway in hearing { gateways[gateway].inReach.append(Int32(peer)) }
        if owner[peer] >= 0, !hearing.contains(Int(owner[peer])) { orphan(peer) }
    }

    private mutating func hear(_ index: Int) {
        ring.add(.hear(index), at: ring.now + setup.hearing.wholeNanoseconds / 1_000_000)
        guard gateways[index].isUp else { return }
        let now = clock(index)
        for peer in gateways[index].inReach {
            let noise = Int(truncatingIfNeeded: random.next() % 7) - 3
            let signal = map.signal(of: positions[Int(peer)], at: index) + noise
            gateways[index].book.heard(names[Int(peer)], signal: signal, at: now)
        }
        carryOut(index)
    }

    private mutating func fail(_ index: Int) {
        guard gateways[index].isUp else { return }
        phase.failures += 1
        for peer in owner.indices where owner[peer] == Int32(index) { orphan(peer) }
        gateways[index].isUp = false
        gateways[index].life += 1
        gateways[index].wakesAt = .max
        ring.add(.back(index), at: ring.now + setup.outage.wholeNanoseconds / 1_000_000)
    }

    // MARK: Whose

    private mutating func begin(_ peer: Int, _ index: Int) {
        phase.begins += 1
        mostOwned = max(mostOwned, gateways[index].book.owned)
        let before = Int(begun[peer])
        if before >= 0, before != index, gateways[before].isUp,
            gateways[before].book.token(of: names[peer], at: clock(before)) != nil
        {
            violations += 1
        }
        if owner[peer] < 0 { countOrphan(peer) }
        owner[peer] = Int32(index)
        begun[peer] = Int32(index)
    }

    private mutating func end(_ peer: String, of index: Int) {
        guard let peer = Int(peer.dropFirst()), owner[peer] == Int32(index) else { return }
        orphan(peer)
    }

    private mutating func orphan(_ peer: Int) {
        owner[peer] = -1
        orphanedSince[peer] = ring.now
    }

    private mutating func countOrphan(_ peer: Int) {
        let time = ring.now - orphanedSince[peer]
        phase.orphanedMilliseconds += time
        phase.longestOrphan = max(phase.longestOrphan, time)
    }

    private mutating func settleOrphans() {
        for peer in owner.indices where owner[peer] < 0 {
            countOrphan(peer)
            orphanedSince[peer] = ring.now
        }
    }

    // MARK: Bucket and network

    /// A way through the network.
    private mutating func way() -> Int64 { 2 + Int64(truncatingIfNeeded: random.next() % 19) }

    private mutating func isLost() -> Bool { Double.random(in: 0..<1, using: &random) < setup.loss }

    private mutating func carryOut(_ index: Int) {
        for step in gateways[index].book.takeSteps() {
            switch step {
            case .request(let request):
                guard !gateways[index].isCutOff, !isLost() else { continue }
                ring.add(.bucket(index, life: gateways[index].life, request), at: ring.now + way())
            case .begin(let peer, _): if let peer = Int(peer.dropFirst()) { begin(peer, index) }
            case .stop(let peer, _):
                let time = Int64.random(in: 50...500, using: &random)
                ring.add(.stopped(index, life: gateways[index].life, peer), at: ring.now + time)
            case .tell(let name, let message):
                guard let other = gatewayNames[name], !gateways[index].isCutOff else { continue }
                phase.messages += 1
                inSecond += 1
                if !isLost() { ring.add(.message(other, message), at: ring.now + way()) }
            }
        }
        guard let deadline = gateways[index].book.nextDeadline else { return }
        let wake = max(ring.now + 1, trueTime(index, deadline))
        guard wake < gateways[index].wakesAt else { return }
        gateways[index].wakesAt = wake
        ring.add(.wake(index), at: wake)
    }

    private mutating func apply(_ request: LeaseRequest, of index: Int, _ life: Int) {
        guard let peer = Int(request.peer.dropFirst()) else { return }
        inSecond += 1
        if let stored = bucket[peer], ring.now >= stored.at + timeToLive { bucket[peer] = nil }
        let answer: LeaseAnswer
        switch request.operation {
        case .read:
            phase.reads += 1
            answer = .entry(bucket[peer]?.entry)
        case .create(let lease): answer = bucket[peer] == nil ? store(lease, peer) : refuse()
        case .update(let lease, let expected):
            answer = bucket[peer]?.entry.revision == expected ? store(lease, peer) : refuse()
        }
        guard !gateways[index].isCutOff, !isLost() else { return }
        ring.add(.answer(index, life: life, request.id, answer), at: ring.now + way())
    }

    private mutating func store(_ lease: Lease, _ peer: Int) -> LeaseAnswer {
        phase.writes += 1
        lastRevision += 1
        if lease.successor != nil { phase.handOvers += 1 }
        bucket[peer] = Entry(entry: LeaseEntry(lease, revision: lastRevision), at: ring.now)
        return .stored(revision: lastRevision)
    }

    private mutating func refuse() -> LeaseAnswer {
        phase.writes += 1
        phase.refused += 1
        return .refused
    }
}

/// Where gateways stand and peers lie: a grid whose edges meet.
struct FleetMap {
    struct Place {
        var x: Double
        var y: Double
    }

    let width: Int
    let height: Int
    let reach: Double

    init(gateways: Int, reach: Double) {
        var side = 1
        for candidate in 1...gateways where candidate * candidate <= gateways && gateways % candidate == 0 {
            side = candidate
        }
        width = gateways / side
        height = side
        self.reach = reach
    }

    func place(_ random: inout SeededGenerator) -> Place {
        Place(
            x: Double.random(in: 0..<Double(width), using: &random),
            y: Double.random(in: 0..<Double(height), using: &random))
    }

    func place(beside place: Place, _ random: inout SeededGenerator) -> Place {
        Place(
            x: wrapped(place.x + Double.random(in: -1.5..<1.5, using: &random), width),
            y: wrapped(place.y + Double.random(in: -1.5..<1.5, using: &random), height))
    }

    private func wrapped(_ value: Double, _ length: Int) -> Double {
        let rest = value.truncatingRemainder(dividingBy: Double(length))
        return rest < 0 ? rest + Double(length) : rest
    }

    /// Over the nearer way round.
    private func between(_ a: Double, _ b: Double, _ length: Int) -> Double {
        let distance = abs(a - b)
        return min(distance, Double(length) - distance)
    }

    private func distance(_ place: Place, _ gateway: Int) -> Double {
        let x = between(place.x, Double(gateway % width), width)
        let y = between(place.y, Double(gateway / width), height)
        return (x * x + y * y).squareRoot()
    }

    /// The gateways that hear a place.
    func hearing(_ place: Place) -> [Int] {
        let span = Int(reach.rounded(.up))
        var found: [Int] = []
        for dy in -span...(span + 1) {
            for dx in -span...(span + 1) {
                let x = ((Int(place.x) + dx) % width + width) % width
                let y = ((Int(place.y) + dy) % height + height) % height
                let gateway = y * width + x
                if distance(place, gateway) <= reach, !found.contains(gateway) { found.append(gateway) }
            }
        }
        return found
    }

    /// dBm: -40 beside the gateway, -95 where its reach ends, a straight line between.
    func signal(of place: Place, at gateway: Int) -> Int { -40 - Int(55 * distance(place, gateway) / reach) }
}
