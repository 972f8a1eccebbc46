import Ferry
import FerrySequenced
import FerryTesting
import Synchronization
import TestSupport

/// One run from a seed: who talks with whom, when, and what goes wrong meanwhile.
///
/// Two stations connect, again and again, send, cancel, and close. Two offer the same service; their apps take links late, and
/// stop and begin to listen. Connections break, stations leave and come back. After some seconds nothing goes wrong any more,
/// and all that was begun has to come to its end.
final class Schedule: Sendable {
    /// No wait of any part is longer, all of them together.
    private static let limit = Duration.seconds(600)
    private static let horizon = Duration.seconds(8)

    private let seed: UInt64
    private let time = VirtualTime()
    private let dice: Dice
    private let air: any ScheduleAir
    private let ledger: ScheduleLedger
    private let framing: any Framing
    private let reconnects: Bool
    /// Nothing goes wrong.
    private let isCalm: Bool
    private let limits: Limits
    private let listening = Mutex<[Station: Listening]>([:])
    /// Tasks that have begun and not ended, by what they do.
    private let busy = Mutex<[String: Int]>([:])
    private let isOver = Atomic(false)

    private struct Listening {
        let listener: LinkListener
        let accepting: Task<Void, Never>
    }

    init(seed: UInt64, isTold: Bool = false) throws {
        self.seed = seed
        let dice = Dice(seed: seed)
        self.dice = dice
        ledger = ScheduleLedger(time, isTold: isTold)
        isCalm = dice.chance(10)
        reconnects = dice.chance(60)
        framing = try Self.framing(dice)
        air = dice.chance(75) ? WireAir(time, dice) : try RadioAir(time, dice, isCalm: isCalm)
        var limits = Limits()
        limits.outboundStallTimeout = .seconds(5)
        limits.inboundStallTimeout = .seconds(10)
        limits.readinessProbeInterval = [.milliseconds(15), .milliseconds(200)].randomElement(by: dice)
        self.limits = limits
        ledger.note("\(type(of: framing)) over \(type(of: air)), reconnects: \(reconnects), calm: \(isCalm)")
    }

    private static func framing(_ dice: Dice) throws -> any Framing {
        switch dice.below(10) {
        case 0: return LengthPrefixFraming()
        case 1: return LengthPrefixFraming(prefix: dice.chance(50) ? .uint16(.little) : .uint32(.big))
        case 2: return try EndOfMessageFraming(chunkSize: nil)
        case 3: return try EndOfMessageFraming(content: .text)
        default:
            var configuration = SequencedFraming.Configuration()
            configuration.window = 1 + dice.below(64)
            configuration.creditWindow = 1024 << dice.below(6)
            configuration.maximumOpenMessages = 1 + dice.below(4)
            return SequencedFraming(configuration) { UInt32(truncatingIfNeeded: dice.seed) }
        }
    }

    // MARK: The run

    /// What was promised and not kept, and what was met.
    func run() -> (violations: [String], tally: ScheduleTally) {
        let tasks = SteppedTasks()
        tasks.run {
            begin()
            while !isDone {
                while tasks.step(dice.below) {}
                guard !isDone, time.now < .zero + Self.limit, time.runNext() else { break }
            }
            if !isDone { ledger.complain("not at an end after \(time.now - .zero): \(busy.withLock { $0 })") }
            isOver.store(true, ordering: .relaxed)
            for station in Station.allCases { stopListening(station) }
            repeat {
                while tasks.step() {}
            } while time.now < .zero + Self.limit * 2 && time.runNext()
            let left = air.openConnections
            if left > 0 { ledger.complain("\(left) connections are left open") }
        }
        let acknowledges = framing is SequencedFraming
        return ledger.check(acknowledges: acknowledges, isCalm: isCalm)
    }

    var journal: [String] { ledger.journal }

    private var isDone: Bool { time.now >= .zero + Self.horizon && busy.withLock { $0.isEmpty } }

    /// A task that has to end.
    @discardableResult
    private func begin(_ what: String, _ body: @escaping @Sendable () async -> Void) -> Task<Void, Never> {
        busy.withLock { $0[what, default: 0] += 1 }
        return Task { [self] in
            await body()
            busy.withLock { busy in
                busy[what, default: 0] -= 1
                if busy[what] == 0 { busy[what] = nil }
            }
        }
    }

    private func pause(upTo longest: Duration) async {
        try? await time.sleep(for: dice.duration(upTo: longest))
    }

    private func at(_ moment: Duration, _ action: @escaping @Sendable () -> Void) {
        time.schedule(at: .zero + moment, action)
    }

    private func begin() {
        startListening(.peer)
        begin("me") { await self.connectAgainAndAgain(.me) }
        if dice.chance(50) { begin("other") { await self.connectAgainAndAgain(.other) } }
        at(Self.horizon) { [self] in startListening(.peer) }
        guard !isCalm else { return }
        for _ in 0..<dice.below(6) { at(dice.duration(upTo: Self.horizon)) { [self] in breakOne() } }
        if dice.chance(60) { at(dice.duration(upTo: Self.horizon / 2)) { [self] in startListening(.stranger) } }
        for station in [Station.peer, .peer, .stranger, .me] where dice.chance(30) {
            let leaves = dice.duration(upTo: Self.horizon)
            at(leaves) { [self] in setAway(station, true) }
            at(min(leaves + dice.duration(upTo: .seconds(5)), Self.horizon)) { [self] in setAway(station, false) }
        }
        for station in [Station.peer, .stranger] where dice.chance(20) {
            at(dice.duration(upTo: Self.horizon)) { [self] in
                stopListening(station)
                at(Self.horizon) { [self] in startListening(station) }
            }
        }
    }

    private func breakOne() {
        ledger.note("a connection breaks")
        air.breakOne()
    }

    private func setAway(_ station: Station, _ isAway: Bool) {
        ledger.note("\(station) \(isAway ? "leaves" : "is back")")
        air.setAway(station, isAway)
    }

    // MARK: Those who listen

    private func transport(of station: Station) -> any Transport {
        let (base, framing) = (air.transport(of: station), framing)
        return reconnects ? reconnecting(base, over: framing) : base
    }

    private func reconnecting<Base: Transport>(_ base: Base, over framing: some Framing) -> any Transport {
        var backoff = ReconnectingTransport<Base>.Backoff()
        backoff.initial = .milliseconds(50)
        backoff.maximum = .seconds(2)
        backoff.attempt = .seconds(3)
        backoff.patience = .seconds(20)
        return ReconnectingTransport(over: base, framing: framing, backoff: backoff, time: time)
    }

    private func startListening(_ station: Station) {
        guard !isOver.load(ordering: .relaxed), listening.withLock({ $0[station] }) == nil else { return }
        begin("listen") { [self] in
            guard let listener = try? await transport(of: station).listen() else { return }
            guard listening.withLock({ $0[station] }) == nil else { return listener.close() }
            ledger.note("\(station) listens")
            let links = listener.links
            let accepting = Task { [self] in
                for await link in links {
                    if !isCalm { await pause(upTo: dice.chance(20) ? .seconds(4) : .milliseconds(50)) }
                    begin("serve") { await self.converse(station, link) }
                }
            }
            listening.withLock { $0[station] = Listening(listener: listener, accepting: accepting) }
        }
    }

    private func stopListening(_ station: Station) {
        guard let listening = listening.withLock({ $0.removeValue(forKey: station) }) else { return }
        ledger.note("\(station) stops listening")
        if dice.chance(50) { listening.listener.close() } else { listening.accepting.cancel() }
    }

    // MARK: Those who connect

    private func connectAgainAndAgain(_ station: Station) async {
        var former: PeerIdentity?
        for round in 0...dice.below(3) {
            let transport = transport(of: station)
            let isCancelled = !isCalm && dice.chance(5)
            let same = former
            let connecting = Task { () async -> (any Link)? in
                if let same, same.certainty > .connection, dice.chance(50) {
                    return try? await transport.connect(to: same, timeout: .seconds(3))
                }
                return try? await transport.connect(timeout: .seconds(3))
            }
            if isCancelled {
                await pause(upTo: .milliseconds(100))
                connecting.cancel()
            }
            guard let link = await connecting.value else { continue }
            former = link.peer
            // The one that it has is gone on with, or it has two at once.
            if round == 0 && dice.chance(20) {
                begin("talk beside") { await self.converse(station, link) }
            } else {
                await converse(station, link)
            }
            await pause(upTo: .seconds(1))
        }
    }

    // MARK: Either side of a link

    private func converse(_ station: Station, _ link: any Link) async {
        guard let partner = air.station(named: link.peer) else {
            return ledger.complain("\(link.peer) is nobody")
        }
        if !isCalm, dice.chance(4) {
            ledger.tally { $0.untaken += 1 }
            // Closed, or dropped.
            return dice.chance(50) ? link.close() : ()
        }
        if !isCalm, dice.chance(20) { await pause(upTo: .seconds(2)) }
        await Conversation(station, partner, ledger, time, dice, isCalm: isCalm).run(over: link, framing, limits)
    }
}
