import Ferry
import FerryBluetooth

// Where faults strike.
extension RadioState {
    mutating func count(_ kind: LoopbackRadio.Faults.Kind) { injected[kind, default: 0] += 1 }

    /// ATT_MTU as owners see it: wrong before the exchange, if that is asked for.
    func reportedMTU(_ link: AirLink) -> Int {
        guard link.exchangedMTU == nil, let wrong = link.faults?.faults.wrongMTU else { return link.attMTU }
        return wrong
    }

    // MARK: Values

    /// Lets the first value of a lane's ring go wrong, if it is to. Nil when the link has ended in its place; the ring's
    /// first value may be another one afterwards.
    mutating func injectFault(into value: UnsafeBytes, on link: AirLink, _ lane: Lane) -> UnsafeBytes? {
        let isRepeated = lane.headFault == .doubled
        lane.headFault = .none
        if isRepeated { return value }
        if let effect = link.faults?.effect(of: value.bytes.count), lane.longValue != .passes {
            return meetLongValue(effect, on: link, lane)
        }
        lane.longValue = .none
        let ring = value.ring
        switch link.faults?.nextForValue() {
        case .disconnect:
            timeOut(link)
            return nil
        case .lose:
            count(.lose)
            lane.headFault = .lost
        case .double:
            count(.double)
            lane.headFault = .doubled
        case .truncate where value.bytes.count > 1:
            count(.truncate)
            let length = 1 + (link.faults?.next(below: value.bytes.count - 1) ?? 0)
            return UnsafeBytes(ring: ring, bytes: UnsafeRawBufferPointer(rebasing: value.bytes[..<length]))
        case .changeMTU: drawMTU(link)
        case .reorder: link.faults?.owesReorder = true
        default: break
        }
        guard link.faults?.owesReorder == true, lane.headFault != .doubled, ring.swapFirstTwo() else {
            return value
        }
        link.faults?.owesReorder = false
        count(.reorder)
        return UnsafeBytes(ring: ring, bytes: ring.bytes(of: ring.first))
    }

    /// Lets a write with response or an L2CAP chunk go wrong, if it is to: true when the link has ended in its place.
    mutating func chunkFails(_ link: AirLink) -> Bool {
        switch link.faults?.nextForValue() {
        case .disconnect:
            timeOut(link)
            return true
        case .changeMTU:
            drawMTU(link)
            return false
        default: return false
        }
    }

    /// Always nil: the value does not arrive now.
    private mutating func meetLongValue(
        _ effect: LoopbackRadio.Faults.LongValueEffect, on link: AirLink, _ lane: Lane
    ) -> UnsafeBytes? {
        switch effect {
        case .disconnect: timeOut(link)
        case .stall(let duration):
            lane.longValue = .stalls
            setTimer(after: duration, .stallOver(link: link.id, lane === link.up ? .up : .down))
        }
        return nil
    }

    /// The receiver takes the long value now.
    mutating func stallDue(_ id: Int, _ direction: Direction) {
        guard let link = links[id] else { return }
        (direction == .up ? link.up : link.down).longValue = .passes
        resume(link)
    }

    private mutating func timeOut(_ link: AirLink) {
        count(.disconnect)
        end(link, .both(BluetoothError(.connectionTimeout, "the radio's faults ended the connection")))
    }

    private mutating func drawMTU(_ link: AirLink) {
        guard var faults = link.faults else { return }
        let range = faults.faults.mtuRange
        let attMTU = range.lowerBound + faults.next(below: range.count)
        link.faults = faults
        count(.changeMTU)
        changeMTU(link, to: attMTU)
    }

    // MARK: Ready signals

    /// Sends a ready signal, on time unless faults say otherwise.
    mutating func signalReady(_ event: Event) {
        switch readyFaults?.nextForReady() {
        case .readyNever: count(.readyNever)
        case .readyLate:
            count(.readyLate)
            setTimer(after: configuration.faults.readyDelay, .lateReady(event))
        default: events.append(event)
        }
    }

    /// Sends a ready signal along with a refusal, if faults say so.
    mutating func mayBeReadyEarly(_ event: Event) {
        guard readyFaults?.isReadyEarly() == true else { return }
        count(.readyEarly)
        events.append(event)
        wake()
    }
}
