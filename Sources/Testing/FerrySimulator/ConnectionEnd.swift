import DequeModule
import FerryBluetooth

/// One end of a simulated connection: what its host has queued, what its controller holds, and the packet in the air.
struct ConnectionEnd: Sendable {
    /// A unit in the host, of which a part may have gone to the controller already.
    private struct HostUnit {
        var unit: LinkLayerUnit
        var bytesLeft: Int
        var frameBytesLeft = 0
        var notBefore: Int64
    }

    /// A packet's payload in the controller.
    struct Fragment {
        var payload: Int
        let endsUnit: Bool
        var notBefore: Int64
    }

    /// The packet that was sent and is not acknowledged yet.
    enum InFlight {
        case nothing
        case empty
        case data  // the controller's first fragment
    }

    private var host = Deque<HostUnit>()
    private(set) var controller = Deque<Fragment>()
    private(set) var inFlight = InFlight.nothing
    private(set) var isReceived = false
    private var unreported = 0

    /// When a valid packet last arrived here.
    var lastHeard: Int64
    /// Packets received damaged, one after the other, in this connection event.
    var damagedInARow = 0
    var statistics = DirectionStatistics()

    init(now: Int64) { lastHeard = now }

    var isIdle: Bool { host.isEmpty && controller.isEmpty }

    mutating func enqueue(_ unit: LinkLayerUnit, notBefore: Int64) {
        host.append(HostUnit(unit: unit, bytesLeft: unit.byteCount, notBefore: notBefore))
    }

    /// Moves fragments from the host to the controller while it has buffers. Returns how many units left the host whole.
    mutating func fill(buffers: Int, dataLength: Int) -> Int {
        var accepted = 0
        while controller.count + unreported < buffers, !host.isEmpty {
            let (fragment, isLast) = Self.cut(&host[0], dataLength: dataLength)
            controller.append(fragment)
            if isLast {
                host.removeFirst()
                accepted += 1
            }
        }
        return accepted
    }

    private static func cut(_ entry: inout HostUnit, dataLength: Int) -> (Fragment, isLast: Bool) {
        if entry.frameBytesLeft == 0 {
            let body = min(entry.unit.frameSize, entry.bytesLeft)
            entry.bytesLeft -= body
            entry.frameBytesLeft = body + entry.unit.headerSize
        }
        let payload = min(dataLength, entry.frameBytesLeft)
        entry.frameBytesLeft -= payload
        let isLast = entry.frameBytesLeft == 0 && entry.bytesLeft == 0
        return (Fragment(payload: payload, endsUnit: isLast, notBefore: entry.notBefore), isLast)
    }

    /// Whether there is data for a packet that starts at `time`.
    func hasData(at time: Int64) -> Bool {
        if case .data = inFlight, !isReceived { return true }
        return isFresh(at: nextIndex, time)
    }

    /// Whether more would follow the packet that is in the air.
    func hasMoreData(at time: Int64) -> Bool {
        if case .data = inFlight { return isFresh(at: 1, time) }
        return isFresh(at: 0, time)
    }

    /// The payload of the packet that would be sent at `time` if the one in the air is acknowledged by then.
    func plannedPayload(at time: Int64) -> Int {
        switch inFlight {
        case .data where !isReceived: controller[0].payload
        case .empty where !isReceived: 0
        default: isFresh(at: nextIndex, time) ? controller[nextIndex].payload : 0
        }
    }

    private var nextIndex: Int {
        if case .data = inFlight { return 1 }
        return 0
    }

    private func isFresh(at index: Int, _ time: Int64) -> Bool {
        index < controller.count && controller[index].notBefore <= time
    }

    /// Chooses the packet to send: the unacknowledged one again, or the next, or an empty one. Returns its payload.
    mutating func send(at time: Int64) -> Int {
        switch inFlight {
        case .data:
            statistics.retransmissions += 1
        case .empty:
            break
        case .nothing:
            isReceived = false
            inFlight = isFresh(at: 0, time) ? .data : .empty
        }
        if case .data = inFlight {
            statistics.dataPackets += 1
            return controller[0].payload
        }
        statistics.emptyPackets += 1
        return 0
    }

    /// The peer received the packet in the air. Returns whether that completed a unit.
    mutating func packetWasReceived() -> Bool {
        guard !isReceived else { return false }
        isReceived = true
        guard case .data = inFlight, let fragment = controller.first else { return false }
        statistics.payloadBytes += fragment.payload
        if fragment.endsUnit { statistics.units += 1 }
        return fragment.endsUnit
    }

    /// The peer's acknowledgement arrived, if it had received the packet.
    mutating func acknowledgementArrived(reportsAtEventEnd: Bool) {
        guard isReceived else { return }
        if case .data = inFlight {
            controller.removeFirst()
            if reportsAtEventEnd { unreported += 1 }
        }
        inFlight = .nothing
    }

    /// The connection event has closed.
    mutating func eventDidClose() {
        unreported = 0
        damagedInARow = 0
    }
}
