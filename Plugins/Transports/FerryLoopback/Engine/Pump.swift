import DequeModule
import Ferry
import FerryBluetooth
import Synchronization

/// What the pump carries out with no lock held.
enum Step {
    case call(@Sendable () -> Void)
    case updates(any PeripheralConnectionEvents, AttributeID, ValueRun)
    case updateSeveral([any PeripheralConnectionEvents], AttributeID, UnsafeBytes)
    case write(any PeripheralRoleEvents, ConnectedCentral, AttributeID, UnsafeBytes)
    case chunk(any LinkReceiver, UnsafeBytes)
    case readyToUpdate(any PeripheralRoleEvents)
    case readyToWrite(any PeripheralConnectionEvents)
    case readyToSend(any LinkReceiver)
    case channelOpened(any PeripheralRoleEvents, Int)
    case connected(Waiter<Int>, client: Int)
    case channelConnected(Waiter<Int>, Int)
    case nothing

    /// Carries it out; returns how many values have been delivered, where it delivers any.
    func perform(on radio: LoopbackRadio) -> Int {
        switch self {
        case .call(let action): action()
        case .updates(let sink, let attribute, let run):
            return run.deliver { sink.peripheralDidUpdate(attribute, value: $0.bytes) }
        case .updateSeveral(let sinks, let attribute, let value):
            for sink in sinks { sink.peripheralDidUpdate(attribute, value: value.bytes.bytes) }
        case .write(let sink, let central, let attribute, let value):
            sink.central(central, didWrite: value.bytes.bytes, to: attribute)
        case .chunk(let sink, let value): sink.linkDidReceive(value.bytes.bytes)
        case .readyToUpdate(let sink): sink.peripheralIsReadyToUpdate()
        case .readyToWrite(let sink): sink.peripheralIsReadyToWrite()
        case .readyToSend(let sink): sink.linkIsReady()
        case .channelOpened(let sink, let id):
            sink.peripheralDidOpen(LoopbackChannel(radio: radio, id: id, role: .responder))
        case .connected(let waiter, let client):
            if !waiter.complete(.success(client)) { radio.locked { $0.disconnect(client: client, isSilent: true) } }
        case .channelConnected(let waiter, let id):
            if !waiter.complete(.success(id)) { radio.locked { $0.abandonChannel(id) } }
        case .nothing: break
        }
        return 1
    }
}

/// Values of one characteristic that are delivered one after the other without the lock in between, which is what makes
/// the radio quick.
struct ValueRun: @unchecked Sendable {
    private let ring: ValueRing
    private var values: EightValues
    private(set) var count = 1

    init(_ first: UnsafeBytes) {
        ring = first.ring
        values = EightValues(first.bytes)
        ring.isInterrupted.store(false, ordering: .relaxed)
    }

    /// Takes along what follows the first value and is of the same kind, up to `limit` values in all and as long as it was
    /// queued before `order`.
    mutating func extend(to limit: Int, before order: UInt64) {
        let first = ring.first
        let limit = min(limit, EightValues.capacity, ring.count)
        while count < limit {
            let next = ring.entry(at: count)
            guard next.order < order, next.attribute == first.attribute, !next.isIndication else { return }
            values[count] = ring.bytes(of: next)
            count += 1
        }
    }

    /// Delivers until all have been or the run is interrupted; returns how many were delivered.
    func deliver(_ body: (UnsafeRawBufferPointer) -> Void) -> Int {
        for index in 0..<count {
            body(values[index])
            if ring.isInterrupted.load(ordering: .relaxed) { return index + 1 }
        }
        return count
    }
}

/// Values in place. `InlineArray` is the same, and Apple's systems have it from 26 on.
private struct EightValues {
    static let capacity = 8

    private var first: UnsafeRawBufferPointer
    private var second = UnsafeRawBufferPointer(start: nil, count: 0)
    private var third = UnsafeRawBufferPointer(start: nil, count: 0)
    private var fourth = UnsafeRawBufferPointer(start: nil, count: 0)
    private var fifth = UnsafeRawBufferPointer(start: nil, count: 0)
    private var sixth = UnsafeRawBufferPointer(start: nil, count: 0)
    private var seventh = UnsafeRawBufferPointer(start: nil, count: 0)
    private var eighth = UnsafeRawBufferPointer(start: nil, count: 0)

    init(_ first: UnsafeRawBufferPointer) { self.first = first }

    subscript(index: Int) -> UnsafeRawBufferPointer {
        @inline(__always) get {
            switch index {
            case 0: first
            case 1: second
            case 2: third
            case 3: fourth
            case 4: fifth
            case 5: sixth
            case 6: seventh
            case 7: eighth
            default: preconditionFailure("A run has eight values.")
            }
        }
        @inline(__always) set {
            switch index {
            case 0: first = newValue
            case 1: second = newValue
            case 2: third = newValue
            case 3: fourth = newValue
            case 4: fifth = newValue
            case 5: sixth = newValue
            case 6: seventh = newValue
            case 7: eighth = newValue
            default: preconditionFailure("A run has eight values.")
            }
        }
    }
}

/// The bytes of an occupied slot, with the ring that keeps them alive. Nothing writes to them until the pump, which is the
/// only reader, has said that it is done.
struct UnsafeBytes: @unchecked Sendable {
    let ring: ValueRing
    let bytes: UnsafeRawBufferPointer
}

/// The value, or the run of values, that is being delivered.
struct Delivering {
    enum Lane { case up, down, channel(Int) }
    let link: AirLink
    let lane: Lane
    let isIndication: Bool
    var count = 1
}

// The pump: one at a time for the whole radio, so no two events overlap and a run under virtual time is repeatable.
extension RadioState {
    /// Most steps of one run; then the pump sets itself a wake-up, so that a thread is not held for good.
    static let stepsPerRun = 8192

    /// The next thing to carry out, or nil when nothing is left to do. First of all the previous step is concluded.
    ///
    /// - Parameter count: how many values the previous step has delivered.
    mutating func nextStep(after count: Int) -> Step? {
        if let delivered = delivering {
            delivering = nil
            for _ in 0..<count { conclude(delivered) }
            if case .down = delivered.lane { delivered.link.down.budget += delivered.count - count }
        }
        stepsInRun += 1
        guard stepsInRun < Self.stepsPerRun else {
            isRunning = false
            wake()
            return nil
        }
        while true {
            while let event = events.popFirst() {
                if let step = step(for: event) { return step }
            }
            guard let link = turns.first else {
                isRunning = false
                return nil
            }
            guard !link.life.hasEnded else {
                turns.removeFirst()
                continue
            }
            if let step = transmit(link) { return step }
            guard events.isEmpty else { continue }
            signalReady(link)
            guard events.isEmpty else { continue }
            turns.removeFirst()
            link.turn = .none
            resume(link)
        }
    }

    /// Turns an event into a step, unless its owner has gone.
    private mutating func step(for event: Event) -> Step? {
        switch event {
        case .call(let action): return .call(action)
        case .readyToUpdate(let id): return peripherals[id].map { .readyToUpdate($0.sink) }
        case .readyToWrite(let id):
            return clients[id]?.life.events.map { .readyToWrite($0) }
        case .readyToSend(let id): return channels[id]?.receiver.map { .readyToSend($0) }
        case .peripheral(let id, let action):
            guard let sink = peripherals[id]?.sink else { return nil }
            return .call { action(sink) }
        case .central(let id, let action):
            guard let sink = centrals[id]?.sink else { return nil }
            return .call { action(sink) }
        case .client(let id, let action):
            return clients[id]?.life.events.map { sink in .call { action(sink) } }
        case .clientEnded(let id, let reason): return clientEnded(id, reason)
        case .connected(let waiter, let client): return .connected(waiter, client: client)
        case .channelConnected(let waiter, let id): return .channelConnected(waiter, id)
        case .channelOpened(let owner, let id):
            if let sink = peripherals[owner]?.sink { return .channelOpened(sink, id) }
            abandonChannel(id)
            return nil
        }
    }

    // MARK: Turns

    /// Gives a link a turn as soon as it may have one, if there is anything that can go.
    mutating func resume(_ link: AirLink) {
        guard link.turn == .none, hasSomething(link) else { return }
        if hasLinkLayer {
            if hasDelivery(link) { beginTurn(link) }
        } else if configuration.connectionInterval == .zero {
            beginTurn(link)
        } else {
            link.turn = .scheduled
            let interval = configuration.connectionInterval.wholeNanoseconds
            let elapsed = (time.now - link.anchor).wholeNanoseconds
            let next = (elapsed / interval + 1) * interval
            timers.append((link.anchor + .nanoseconds(next), .connectionEvent(link: link.id)))
        }
    }

    /// A connection event has come.
    mutating func connectionEventDue(_ id: Int) {
        guard let link = links[id] else { return }
        link.turn = .none
        if hasSomething(link) { beginTurn(link) }
    }

    private mutating func beginTurn(_ link: AirLink) {
        link.turn = .running
        link.eventNumber += 1
        link.rotation += 1
        if !hasLinkLayer {
            let isTimed = configuration.connectionInterval != .zero
            func budget(_ queued: Int) -> Int { isTimed ? configuration.packetsPerEvent ?? queued : queued }
            link.up.budget = budget(queued(link, .up))
            link.down.budget = budget(queued(link, .down))
        }
        turns.append(link)
        wake()
    }

    /// Tells those who were refused that the turn has made room; what they queue may still use the turn's budget.
    private mutating func signalReady(_ link: AirLink) {
        signalReadyToUpdate(nodes[link.peripheral])
        signalReadyToSend(link)
        guard link.hasFreedWrite else { return }
        link.hasFreedWrite = false
        for id in link.clients {
            if let client = clients[id] { signalReadyToWrite(client) }
        }
    }

    private func queued(_ link: AirLink, _ direction: Direction) -> Int {
        let lane = link.lane(direction)
        return (lane.ring?.count ?? 0) + lane.control.count + queuedFrames(link, direction)
    }

    /// Whether anything can go now.
    private func hasSomething(_ link: AirLink) -> Bool {
        guard link.reach.isInRange else { return false }
        return link.next(.up, during: nil) != .nothing || link.next(.down, during: nil) != .nothing || hasFrames(link)
    }

    // MARK: Transmission

    /// Lets the next packet of a link's turn cross. Nil when the turn is over, or when what crossed has left events.
    private mutating func transmit(_ link: AirLink) -> Step? {
        guard link.reach.isInRange else { return nil }
        let isTimed = !hasLinkLayer && configuration.connectionInterval != .zero
        let event = isTimed ? link.eventNumber : nil
        while events.isEmpty, !link.life.hasEnded {
            if link.rotation % 2 == 0, let step = transmitFrame(link) { return step }
            switch link.up.budget > 0 ? link.next(.up, during: event) : .nothing {
            case .nothing: break
            case .control:
                link.up.budget -= 1
                if let control = link.up.control.first, control.pdu.isValue, link.hasFaults, chunkFails(link) {
                    continue
                }
                if let control = link.up.control.popFirst() { arrive(control.pdu, on: link) }
                continue
            case .value:
                link.up.budget -= 1
                if let step = deliverWrite(link) { return step }
                continue
            }
            switch link.down.budget > 0 ? link.next(.down, during: event) : .nothing {
            case .nothing: break
            case .control:
                link.down.budget -= 1
                if let control = link.down.control.popFirst() { arrive(control.pdu, on: link) }
                continue
            case .value:
                link.down.budget -= 1
                if let step = deliverUpdate(link) { return step }
                continue
            }
            return transmitFrame(link)
        }
        return nil
    }

    private mutating func arrive(_ pdu: PDU, on link: AirLink) {
        switch pdu {
        case .request(let request): serve(request, on: link)
        case .response(let response): receive(response, on: link)
        case .confirmation: receiveConfirmation(on: link)
        case .openChannel(let psm, let client, let waiter): serveOpen(psm, client, waiter, on: link)
        case .channelOpened(let id, let waiter): events.append(.channelConnected(waiter, id))
        case .channelRefused(let error, let waiter): events.append(.call { waiter.resume(.failure(error)) })
        case .terminate: endAsRequested(link)
        }
    }

    private mutating func deliverUpdate(_ link: AirLink) -> Step? {
        guard let (bytes, entry) = firstValue(of: link.down, on: link) else { return nil }
        delivering = Delivering(link: link, lane: .down, isIndication: entry.isIndication)
        guard link.down.headFault != .lost else { return .nothing }
        guard let index = link.subscription(to: entry.attribute) else { return .nothing }
        let subscribers = link.subscriptions[index].clients
        if subscribers.count == 1, let sink = subscribers[0].life.events {
            var run = ValueRun(bytes)
            if !link.hasFaults, !entry.isIndication {
                run.extend(to: link.down.budget + 1, before: link.down.control.first?.order ?? .max)
                link.down.budget -= run.count - 1
                delivering?.count = run.count
            }
            return .updates(sink, entry.attribute, run)
        }
        return .updateSeveral(subscribers.compactMap(\.life.events), entry.attribute, bytes)
    }

    private mutating func deliverWrite(_ link: AirLink) -> Step? {
        guard let (bytes, entry) = firstValue(of: link.up, on: link) else { return nil }
        delivering = Delivering(link: link, lane: .up, isIndication: false)
        guard link.up.headFault != .lost else { return .nothing }
        guard let characteristic = nodes[link.peripheral].database.characteristics[entry.attribute],
            writeError(characteristic, on: link) == nil, let owner = peripherals[characteristic.owner]
        else { return .nothing }
        return .write(owner.sink, link.handle, entry.attribute, bytes)
    }

    /// The next value to be delivered, as the faults leave it; nil when there is none, or the link has ended in its place.
    @inline(__always)
    private mutating func firstValue(of lane: Lane, on link: AirLink) -> (bytes: UnsafeBytes, entry: ValueRing.Entry)? {
        guard let ring = lane.ring, !ring.isEmpty else { return nil }
        let bytes = UnsafeBytes(ring: ring, bytes: ring.bytes(of: ring.first))
        guard link.hasFaults else { return (bytes, ring.first) }
        return injectFault(into: bytes, on: link, lane).map { ($0, ring.first) }
    }

    /// The value has been delivered: its place is free, or waits for the confirmation.
    private mutating func conclude(_ delivered: Delivering) {
        let link = delivered.link
        guard !link.life.hasEnded else { return }
        switch delivered.lane {
        case .up where link.up.headFault == .doubled: return
        case .down where link.down.headFault == .doubled: return
        case .up:
            link.up.ring?.popFirst()
            link.hasFreedWrite = true
        case .down where delivered.isIndication:
            link.changeIndication { $0.deliver() }
            confirm(link)
        case .down: freePlace(link)
        case .channel(let id): concludeChunk(id, link)
        }
    }

    /// Confirms the indication that has been delivered, once the receiver takes values.
    mutating func confirm(_ link: AirLink) {
        guard link.down.isReceiving, link.changeIndication({ $0.confirm() }) else { return }
        send(.confirmation, .up, on: link)
        resume(link)
        wake()
    }
}
