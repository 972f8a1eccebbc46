import Ferry
import FerryTesting
import Synchronization

/// What the stations of a schedule hear one another over. Under virtual time, so that all of it is repeatable.
protocol ScheduleAir: AnyObject, Sendable {
    func transport(of station: Station) -> any Transport
    /// The station that a link leads to.
    func station(named name: PeerIdentity) -> Station?
    /// Ends one of the connections, as when its peer goes out of range for a moment.
    func breakOne()
    /// Takes a station out of everybody's range, or brings it back.
    func setAway(_ station: Station, _ isAway: Bool)
    /// How many connections there are.
    var openConnections: Int { get }
}

/// Who takes part: two connect, two offer the service.
enum Station: String, Sendable, CaseIterable {
    case me, other, peer, stranger

    var listens: Bool { self == .peer || self == .stranger }
}

/// Wires in memory: chunks cross one by one, each in its own time, and now and then a ready signal is lost.
final class WireAir: ScheduleAir {
    private struct State {
        var listeners: [Station: WeakListener] = [:]
        var away: Set<Station> = []
        var links: [WeakLink] = []
    }

    private struct WeakListener { weak var listener: LinkListener? }

    private struct WeakLink {
        weak var link: WireLink?
        let stations: [Station]
    }

    private let state = Mutex(State())
    private let time: VirtualTime
    private let dice: Dice
    private let certainty: PeerIdentity.Certainty
    private let chunkSize: Int
    private let queueDepth: Int

    init(_ time: VirtualTime, _ dice: Dice) {
        self.time = time
        self.dice = dice
        certainty = dice.chance(10) ? .connection : dice.chance(50) ? .address : .bond
        chunkSize = [20, 23, 60, 180].randomElement(by: dice)
        queueDepth = [1, 2, 8].randomElement(by: dice)
    }

    func transport(of station: Station) -> any Transport { WireTransport(air: self, station: station) }
    func station(named name: PeerIdentity) -> Station? { Station(rawValue: name.name) }

    private var open: [WeakLink] {
        state.withLock { state in
            state.links.removeAll { $0.link?.isOver != false }
            return state.links
        }
    }

    var openConnections: Int { open.count }

    func breakOne() {
        let open = open
        if !open.isEmpty { open[dice.below(open.count)].link?.disconnect() }
    }

    func setAway(_ station: Station, _ isAway: Bool) {
        state.withLock { state in
            if isAway { state.away.insert(station) } else { state.away.remove(station) }
        }
        guard isAway else { return }
        for link in open where link.stations.contains(station) { link.link?.disconnect() }
    }

    private func listen(_ station: Station) -> LinkListener {
        // One that is closed refuses what it is offered.
        let listener = LinkListener(maximumWaiting: 4, time: time) {}
        state.withLock { $0.listeners[station] = WeakListener(listener: listener) }
        return listener
    }

    private func connect(
        _ station: Station, to name: String?, within timeout: Duration
    ) async throws(FerryError) -> any Link {
        do { try await time.sleep(for: dice.duration(upTo: .milliseconds(100))) } catch {
            throw FerryError(.cancelled, "Connecting was cancelled.")
        }
        let there = state.withLock { state in
            Station.allCases.filter { station in
                state.listeners[station]?.listener != nil && !state.away.contains(station)
                    && (name == nil || name == station.rawValue)
            }
        }
        let server = there.isEmpty ? nil : there.randomElement(by: dice)
        guard let server, let listener = state.withLock({ $0.listeners[server]?.listener }) else {
            try? await time.sleep(for: min(timeout, .seconds(1)))
            throw FerryError(.peerNotFound, "\(name ?? "nobody") is not there.")
        }
        let ends = MemoryLink.makePair(
            maximumChunkSize: chunkSize, queueDepth: queueDepth,
            near: PeerIdentity(station.rawValue, certainty: certainty),
            far: PeerIdentity(server.rawValue, certainty: certainty))
        let (near, far) = WireLink.makePair(ends, time, dice)
        state.withLock { $0.links.append(WeakLink(link: near, stations: [station, server])) }
        guard listener.offer(far) else {
            far.close()
            throw FerryError(.peerNotFound, "\(server) takes no more links.")
        }
        return near
    }

    private struct WireTransport: Transport {
        let air: WireAir
        let station: Station

        func listen() async throws(FerryError) -> LinkListener { air.listen(station) }

        func connect(timeout: Duration) async throws(FerryError) -> any Link {
            try await air.connect(station, to: nil, within: timeout)
        }

        func connect(to peer: PeerIdentity, timeout: Duration) async throws(FerryError) -> any Link {
            guard peer.certainty > .connection else { throw .cannotBeRecognized(peer) }
            return try await air.connect(station, to: peer.name, within: timeout)
        }
    }
}

/// One end of a wire; a link that nobody keeps is closed.
final class WireLink: Link {
    private struct State {
        weak var other: WireLink?
        var isMoving = false
        /// When it was closed: what is queued has a second to leave.
        var closing: Timestamp?
    }

    private let link: MemoryLink
    /// Kept, as ``MemoryLink`` asks.
    private let far: MemoryLink
    private let time: VirtualTime
    private let dice: Dice
    private let state = Mutex(State())

    static func makePair(_ ends: (MemoryLink, MemoryLink), _ time: VirtualTime, _ dice: Dice) -> (WireLink, WireLink) {
        let a = WireLink(ends.0, ends.1, time, dice)
        let b = WireLink(ends.1, ends.0, time, dice)
        a.state.withLock { $0.other = b }
        b.state.withLock { $0.other = a }
        return (a, b)
    }

    private init(_ link: MemoryLink, _ far: MemoryLink, _ time: VirtualTime, _ dice: Dice) {
        self.link = link
        self.far = far
        self.time = time
        self.dice = dice
    }

    deinit { link.close() }

    var peer: PeerIdentity { link.peer }
    var maximumChunkSize: Int { link.maximumChunkSize }

    var isOver: Bool {
        // No chunk is empty, so none is sent; an end is told first.
        let nothing: [UInt8] = []
        do {
            return try link.trySend(nothing.span.bytes)
        } catch {
            return error.code != .emptyChunk
        }
    }

    func activate(_ receiver: any LinkReceiver) {
        link.activate(receiver)
        state.withLock { $0.other }?.arm()
    }

    func trySend(_ chunk: RawSpan) throws(FerryError) -> Bool {
        guard state.withLock({ $0.closing }) == nil else { throw FerryError(.closed, "This side closed the link.") }
        let isTaken = try link.trySend(chunk)
        if isTaken { arm() }
        return isTaken
    }

    func setReceiving(_ isReceiving: Bool) {
        link.setReceiving(isReceiving)
        if isReceiving { state.withLock { $0.other }?.arm() }
    }

    func close() {
        state.withLock { state in if state.closing == nil { state.closing = time.now + .seconds(1) } }
        guard link.waitingChunks > 0 else { return link.close() }
        time.schedule(at: time.now + .seconds(1)) { [link] in link.close() }
    }

    func disconnect() { link.disconnect() }

    private func arm() {
        let begins = state.withLock { state in
            guard !state.isMoving, link.waitingChunks > 0 else { return false }
            state.isMoving = true
            return true
        }
        guard begins else { return }
        // It moves on without its owner: what is queued leaves, though nobody keeps the link.
        time.schedule(at: time.now + dice.duration(upTo: .milliseconds(8))) { [weak self] in self?.move() }
    }

    private func move() {
        state.withLock { $0.isMoving = false }
        guard link.deliver(signalsReady: !dice.chance(5)) else { return }
        if link.waitingChunks == 0, state.withLock({ $0.closing }) != nil { return link.close() }
        arm()
    }
}

/// Numbers from a seed, for whoever asks next.
final class Dice: Sendable {
    private let random: Mutex<SplitMix64>

    init(seed: UInt64) { random = Mutex(SplitMix64(seed: seed)) }

    func below(_ bound: Int) -> Int { random.withLock { Int($0.next() >> 33) % max(1, bound) } }
    func chance(_ percent: Int) -> Bool { below(100) < percent }
    func duration(upTo longest: Duration) -> Duration { longest * below(1001) / 1000 }
    var seed: UInt64 { random.withLock { $0.next() } }
}

extension Array {
    func randomElement(by dice: Dice) -> Element { self[dice.below(count)] }
}
