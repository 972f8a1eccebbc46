import DequeModule
import Ferry
import FerryBluetooth

/// One connection's state machine: waits for its anchor point, then exchanges packets until the event closes (Core
/// Specification 5.4, Vol 6, Part B, 4.5).
struct SimulatedConnection: Sendable {
    /// What happens at ``time``.
    enum Phase {
        /// A connection event starts.
        case anchor
        /// The central's packet ends and the peripheral answers.
        case centralPacketEnds
        /// The peripheral's packet ends.
        case peripheralPacketEnds
        /// The central may start another exchange.
        case nextExchange
    }

    let id: LinkLayerConnection
    let interval: Int64
    let profile: ControllerProfile
    let dataLength: Int
    let latency: Int
    let supervisionTimeout: Int64
    private let eventLength: Int64
    private let hostLatency: Int64
    private let maximumExchanges: Int
    var table: AirTable

    private(set) var phase = Phase.anchor
    private(set) var time: Int64
    private(set) var nextAnchor: Int64
    private(set) var missedInARow = 0
    /// When the radio is free again of what this connection has begun.
    private(set) var busyUntil: Int64 = 0

    private var eventCounter = 0
    private var eventLimit: Int64 = 0
    private var exchanges = 0
    private var peripheralHasMore = false
    private var lastWasDamaged = false
    private var central: ConnectionEnd
    private var peripheral: ConnectionEnd
    private var counters = ConnectionStatistics()

    init(
        id: LinkLayerConnection, parameters: LinkParameters, profile: ControllerProfile, table: AirTable, now: Int64,
        firstAnchor: Int64
    ) {
        self.id = id
        self.profile = profile
        self.table = table
        interval = parameters.connectionInterval.wholeNanoseconds
        dataLength = parameters.dataLength
        latency = parameters.peripheralLatency
        supervisionTimeout = parameters.supervisionTimeout.wholeNanoseconds
        eventLength = min(interval, profile.eventLength?.wholeNanoseconds ?? .max)
        hostLatency = profile.hostLatency.wholeNanoseconds
        maximumExchanges = profile.packetsPerEvent ?? .max
        time = firstAnchor
        nextAnchor = firstAnchor
        central = ConnectionEnd(now: now)
        peripheral = ConnectionEnd(now: now)
    }

    var statistics: ConnectionStatistics {
        var all = counters
        all.fromCentral = central.statistics
        all.fromPeripheral = peripheral.statistics
        return all
    }

    /// Whether nothing but empty packets would be exchanged.
    var isIdle: Bool {
        guard case .anchor = phase else { return false }
        return central.isIdle && peripheral.isIdle
    }

    // MARK: Queueing

    mutating func enqueue(_ unit: LinkLayerUnit, from sender: LinkLayerRole, at now: Int64) -> Int {
        switch sender {
        case .central:
            central.enqueue(unit, notBefore: now + hostLatency)
            return fill(&central)
        case .peripheral:
            peripheral.enqueue(unit, notBefore: now + hostLatency)
            return fill(&peripheral)
        }
    }

    private func fill(_ end: inout ConnectionEnd) -> Int {
        end.fill(buffers: profile.controllerBuffers, dataLength: dataLength)
    }

    // MARK: Connection events

    /// Whether the supervision timeout has passed at either end (4.5.2).
    func isLost(at now: Int64) -> Bool {
        now - min(central.lastHeard, peripheral.lastHeard) > supervisionTimeout
    }

    /// The shortest time for which an event that starts at `now` takes the radio.
    func firstExchangeTime(at now: Int64) -> Int64 {
        table.airTimes[central.plannedPayload(at: now)] + table.airTimes[peripheral.plannedPayload(at: now)]
            + 2 * PHY.interFrameSpace
    }

    /// Lets an event go by because the radio is needed elsewhere.
    mutating func missEvent() {
        counters.missedEvents += 1
        missedInARow += 1
        moveToNextAnchor()
    }

    /// Starts a connection event at the anchor point; another connection needs the radio at `otherAnchor`.
    mutating func startEvent(otherAnchor: Int64) {
        counters.events += 1
        missedInARow = 0
        let anchor = nextAnchor
        nextAnchor = anchor + interval
        eventLimit = min(anchor + eventLength, otherAnchor)
        exchanges = 0
        let isListening = eventCounter % (latency + 1) == 0 || peripheral.hasData(at: anchor)
        eventCounter += 1
        guard isListening else { return skipByLatency(at: anchor) }
        startExchange(at: anchor)
    }

    /// The peripheral sleeps: what the central sends goes unanswered (4.5.1).
    private mutating func skipByLatency(at anchor: Int64) {
        if central.hasData(at: anchor) {
            busyUntil = anchor + table.airTimes[central.send(at: anchor)] + PHY.interFrameSpace
        }
        phase = .anchor
        time = nextAnchor
    }

    /// Moves over the events in which nothing but empty packets would have been exchanged, until `now`.
    mutating func skipIdleEvents(until now: Int64) {
        if nextAnchor < now {
            let skipped = (now - nextAnchor + interval - 1) / interval
            nextAnchor += skipped * interval
            eventCounter += Int(skipped)
        }
        time = nextAnchor
        central.lastHeard = max(central.lastHeard, now)
        peripheral.lastHeard = max(peripheral.lastHeard, now)
    }

    private mutating func startExchange(at now: Int64) {
        let payload = central.send(at: now)
        phase = .centralPacketEnds
        time = now + table.airTimes[payload]
        busyUntil = time + PHY.interFrameSpace
        exchanges += 1
        centralPayload = payload
    }

    private var centralPayload = 0
    private var peripheralPayload = 0

    /// Carries out what happens at ``time``. Only for phases other than `.anchor`.
    mutating func step(_ generator: inout SeededGenerator, _ events: inout Deque<LinkLayerEvent>) {
        switch phase {
        case .anchor: break
        case .centralPacketEnds: centralPacketEnds(&generator, &events)
        case .peripheralPacketEnds: peripheralPacketEnds(&generator, &events)
        case .nextExchange: continueOrClose(&events)
        }
    }

    private mutating func centralPacketEnds(_ generator: inout SeededGenerator, _ events: inout Deque<LinkLayerEvent>) {
        if isDamaged(centralPayload, &generator) {
            central.statistics.damagedPackets += 1
            peripheral.damagedInARow += 1
            lastWasDamaged = true
            // Two damaged packets in a row close the event (4.5.6).
            if peripheral.damagedInARow >= 2 { return closeEvent(&events) }
        } else {
            peripheral.damagedInARow = 0
            peripheral.lastHeard = time
            lastWasDamaged = false
            peripheral.acknowledgementArrived(reportsAtEventEnd: profile.reportsAtEventEnd)
            if central.packetWasReceived() { events.append(.delivered(id, sender: .central)) }
            for _ in 0..<fill(&peripheral) { events.append(.accepted(id, sender: .peripheral)) }
        }
        let start = time + PHY.interFrameSpace
        peripheralPayload = peripheral.send(at: start)
        peripheralHasMore = peripheral.hasMoreData(at: start)
        phase = .peripheralPacketEnds
        time = start + table.airTimes[peripheralPayload]
        busyUntil = time + PHY.interFrameSpace
    }

    private mutating func peripheralPacketEnds(
        _ generator: inout SeededGenerator, _ events: inout Deque<LinkLayerEvent>
    ) {
        if isDamaged(peripheralPayload, &generator) {
            peripheral.statistics.damagedPackets += 1
            central.damagedInARow += 1
            lastWasDamaged = true
            if central.damagedInARow >= 2 { return closeEvent(&events) }
        } else {
            central.damagedInARow = 0
            central.lastHeard = time
            central.acknowledgementArrived(reportsAtEventEnd: profile.reportsAtEventEnd)
            if peripheral.packetWasReceived() { events.append(.delivered(id, sender: .peripheral)) }
            for _ in 0..<fill(&central) { events.append(.accepted(id, sender: .central)) }
        }
        phase = .nextExchange
        time += PHY.interFrameSpace
    }

    /// The event goes on while either end has more data, or a packet was damaged, and there is time (4.5.6).
    private mutating func continueOrClose(_ events: inout Deque<LinkLayerEvent>) {
        let isWanted = central.hasData(at: time) || peripheralHasMore || lastWasDamaged
        guard isWanted, exchanges < maximumExchanges, time + firstExchangeTime(at: time) <= eventLimit else {
            return closeEvent(&events)
        }
        startExchange(at: time)
    }

    private mutating func closeEvent(_ events: inout Deque<LinkLayerEvent>) {
        counters.mostExchangesPerEvent = max(counters.mostExchangesPerEvent, exchanges)
        busyUntil = min(busyUntil, time)
        lastWasDamaged = false
        central.eventDidClose()
        peripheral.eventDidClose()
        if profile.reportsAtEventEnd {
            for _ in 0..<fill(&central) { events.append(.accepted(id, sender: .central)) }
            for _ in 0..<fill(&peripheral) { events.append(.accepted(id, sender: .peripheral)) }
        }
        phase = .anchor
        time = nextAnchor
    }

    private mutating func moveToNextAnchor() {
        eventCounter += 1
        nextAnchor += interval
        phase = .anchor
        time = nextAnchor
    }

    private func isDamaged(_ payload: Int, _ generator: inout SeededGenerator) -> Bool {
        let threshold = table.damageThresholds[payload]
        return threshold != 0 && (threshold == .max || generator.next() < threshold)
    }
}
