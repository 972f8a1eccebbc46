import DequeModule
public import Ferry
public import FerryBluetooth

/// A discrete-event model of one LE radio with all of its connections, in virtual time.
///
/// It works packet by packet: connection events at their anchor points, both directions in each exchange, acknowledgement
/// and retransmission, the host's queue and the controller's buffers. Several connections share the air: an event in
/// progress ends before the next anchor point of another connection, and a connection that had to give way goes first
/// the next time. Equal calls and equal seeds give equal results.
///
/// Not modelled: advertising and scanning, clock drift and window widening, channel hopping and interference that
/// lasts, a packet missed altogether (damage is always noticed), different PHYs or data lengths per direction,
/// parameter updates in the middle of a connection.
public struct RadioSimulator: LinkLayerModel {
    /// Most connections at a time.
    public static let maximumConnections = 64

    /// The parameters that ``open(_:at:)`` uses.
    public let parameters: LinkParameters
    /// The controller that ``open(_:at:)`` uses.
    public let profile: ControllerProfile
    /// How many link-layer events have been worked through: packets and starts of connection events.
    public private(set) var workedEvents = 0

    private var connections: [SimulatedConnection] = []
    private var outbox = Deque<LinkLayerEvent>()
    private var generator: SeededGenerator
    private let table: AirTable
    /// Whether only empty packets would be exchanged and none can be lost, so that events need not be worked through.
    private var isAsleep = false
    private var isLossless: Bool

    /// Makes a radio without connections.
    ///
    /// - Parameters:
    ///   - parameters: those of every connection that ``open(_:at:)`` makes.
    ///   - profile: the controllers'.
    ///   - seed: decides which packets are damaged.
    /// - Throws: ``/Ferry/FerryError`` with `invalidConfiguration` when a parameter is outside its legal range.
    public init(
        _ parameters: LinkParameters = LinkParameters(), profile: ControllerProfile = .ideal, seed: UInt64 = 1
    ) throws(FerryError) {
        try parameters.validate()
        try profile.validate()
        self.parameters = parameters
        self.profile = profile
        generator = SeededGenerator(seed: seed)
        table = AirTable(parameters)
        isLossless = table.isLossless
    }

    /// The connections, in the order of opening.
    public var openConnections: [LinkLayerConnection] { connections.map(\.id) }

    /// What happened on a connection so far, or nil when it is not open.
    public func statistics(of connection: LinkLayerConnection) -> ConnectionStatistics? {
        connections.first { $0.id == connection }?.statistics
    }

    // MARK: Connections

    /// Opens a connection with the radio's parameters, its anchor points in the widest gap between the others.
    ///
    /// Ignored when it is open already or ``maximumConnections`` are.
    public mutating func open(_ connection: LinkLayerConnection, at now: Timestamp) {
        guard connections.count < Self.maximumConnections, index(of: connection) == nil else { return }
        wake(at: now.nanoseconds)
        let anchor = widestGap(after: now.nanoseconds, interval: parameters.connectionInterval.wholeNanoseconds)
        connections.append(
            SimulatedConnection(
                id: connection, parameters: parameters, profile: profile, table: table, now: now.nanoseconds,
                firstAnchor: anchor))
    }

    /// Closes a connection; no event follows.
    public mutating func close(_ connection: LinkLayerConnection, at now: Timestamp) {
        connections.removeAll { $0.id == connection }
    }

    /// Changes how often packets of one connection are damaged, as when a peer walks away.
    ///
    /// - Throws: ``/Ferry/FerryError`` with `invalidConfiguration` when a rate is not a probability.
    public mutating func setLoss(_ loss: PacketLoss, on connection: LinkLayerConnection, at now: Timestamp)
        throws(FerryError)
    {
        try loss.validate()
        var changed = parameters
        changed.loss = loss
        setTable(AirTable(changed), on: connection, at: now)
    }

    /// Out of range every packet is lost, until the supervision timeout ends the connection.
    public mutating func setInRange(_ isInRange: Bool, on connection: LinkLayerConnection, at now: Timestamp) {
        var changed = parameters
        changed.loss = .packetErrorRate(1)
        setTable(isInRange ? table : AirTable(changed), on: connection, at: now)
    }

    private mutating func setTable(_ table: AirTable, on connection: LinkLayerConnection, at now: Timestamp) {
        guard let index = index(of: connection) else { return }
        wake(at: now.nanoseconds)
        connections[index].table = table
        isLossless = connections.allSatisfy { $0.table.isLossless }
    }

    /// Queues one unit.
    public mutating func enqueue(
        _ unit: LinkLayerUnit, from sender: LinkLayerRole, on connection: LinkLayerConnection, at now: Timestamp
    ) {
        guard let index = index(of: connection) else { return }
        wake(at: now.nanoseconds)
        let accepted = connections[index].enqueue(unit, from: sender, at: now.nanoseconds)
        for _ in 0..<accepted { outbox.append(.accepted(connection, sender: sender)) }
    }

    // MARK: Time

    /// When the next link-layer event is due, or nil while nothing is queued and nothing can be lost.
    public var deadline: Timestamp? {
        if !outbox.isEmpty { return .zero }
        guard !isAsleep, let next = nextIndex else { return nil }
        return Timestamp(nanoseconds: connections[next].time)
    }

    /// Works through link-layer events up to `now` until one is worth telling.
    public mutating func poll(at now: Timestamp) -> LinkLayerEvent? {
        while true {
            if let event = outbox.popFirst() { return event }
            guard !isAsleep, let next = nextIndex, connections[next].time <= now.nanoseconds else { return nil }
            step(next)
        }
    }

    private var nextIndex: Int? {
        guard var best = connections.indices.first else { return nil }
        for index in connections.indices.dropFirst() where precedes(index, best) { best = index }
        return best
    }

    private func precedes(_ a: Int, _ b: Int) -> Bool {
        if connections[a].time != connections[b].time { return connections[a].time < connections[b].time }
        return connections[a].missedInARow > connections[b].missedInARow
    }

    private mutating func step(_ index: Int) {
        switch connections[index].phase {
        case .anchor:
            workedEvents += 1
            startEvent(index)
        case .centralPacketEnds, .peripheralPacketEnds:
            workedEvents += 1
            connections[index].step(&generator, &outbox)
        case .nextExchange:
            connections[index].step(&generator, &outbox)
        }
        if isLossless, index < connections.count, connections[index].isIdle {
            isAsleep = connections.allSatisfy { $0.isIdle }
        }
    }

    private mutating func startEvent(_ index: Int) {
        let now = connections[index].time
        if connections[index].isLost(at: now) {
            outbox.append(.lost(connections[index].id))
            connections.remove(at: index)
            return
        }
        let duration = connections[index].firstExchangeTime(at: now)
        var otherAnchor = Int64.max
        var mustYield = false
        for other in connections.indices where other != index {
            otherAnchor = min(otherAnchor, connections[other].nextAnchor)
            mustYield = mustYield || connections[other].busyUntil > now
            if connections[other].nextAnchor < now + duration,
                connections[other].missedInARow > connections[index].missedInARow
            {
                mustYield = true
            }
        }
        if mustYield { connections[index].missEvent() } else { connections[index].startEvent(otherAnchor: otherAnchor) }
    }

    private mutating func wake(at now: Int64) {
        guard isAsleep else { return }
        isAsleep = false
        for index in connections.indices { connections[index].skipIdleEvents(until: now) }
    }

    private func index(of connection: LinkLayerConnection) -> Int? { connections.firstIndex { $0.id == connection } }

    /// The anchor point in the middle of the widest gap that the others leave within one interval.
    private func widestGap(after now: Int64, interval: Int64) -> Int64 {
        let taken = connections.map { (($0.nextAnchor - now) % interval + interval) % interval }.sorted()
        guard let first = taken.first else { return now }
        var (best, widest) = (Int64(0), Int64(-1))
        for (start, end) in zip(taken, taken.dropFirst() + [first + interval]) where end - start > widest {
            (best, widest) = (start + (end - start) / 2, end - start)
        }
        return now + best % interval
    }
}
