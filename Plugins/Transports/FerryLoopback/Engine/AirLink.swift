import DequeModule
import Ferry
import FerryBluetooth
import Synchronization

/// One connection between two adapters. Several owners of the central's adapter may share it.
final class AirLink {
    let id: Int
    let central: Int
    let peripheral: Int
    /// How the peripheral knows the central, and the other way round.
    let centralName: PeerID
    let peripheralName: PeerID
    /// Where the connection events are counted from.
    let anchor: Timestamp

    var clients: [Int] = []
    var subscriptions: [Subscribed] = []
    var channels: [Int] = []
    /// Peripheral roles that have asked the central to pause.
    var pausedOwners: Set<Int> = []
    let up = Lane()
    let down = Lane()
    /// `nil` before the exchange.
    var exchangedMTU: Int?
    var isEncrypted = false
    var reach = LinkReach.inRange
    var life = LinkLife.open

    // ATT transactions. Only the first request can be on its way.
    var requests: Deque<ClientRequest> = []
    var prepared: [WriteRequest.Part] = []
    var indication = OpenIndication.none
    var isTransactionTimerSet = false

    // Connection events.
    var eventNumber: UInt64 = 0
    var turn = LinkTurn.none
    var rotation = 0

    /// A write has left since the last ready signal to the clients.
    var hasFreedWrite = false

    /// Injected faults of its values; `nil` for none.
    var faults: FaultInjector? { didSet { hasFaults = faults != nil } }
    /// The pump asks for each value; this spares a copy of `faults`.
    private(set) var hasFaults = false

    /// Whether it counts among the sharers of the peripheral's transmit queue.
    var isSharer = false

    init(
        id: Int, central: Int, peripheral: Int, centralName: PeerID, peripheralName: PeerID, anchor: Timestamp
    ) {
        self.id = id
        self.central = central
        self.peripheral = peripheral
        self.centralName = centralName
        self.peripheralName = peripheralName
        self.anchor = anchor
    }

    /// The central on this connection, as peripheral roles name it.
    var handle: ConnectedCentral { ConnectedCentral(peer: centralName, connection: UInt64(id)) }

    /// Stops a run of values that the pump is delivering after the present one.
    func interruptDelivery() { down.ring?.isInterrupted.store(true, ordering: .relaxed) }

    /// Without an exchange 23 (Core Specification 5.4, Vol 3, Part G, 5.2.1).
    var attMTU: Int { exchangedMTU ?? 23 }

    /// The most bytes of one value at present.
    var maximumValueLength: Int { min(attMTU - 3, 512) }

    // The states change as copies: one that is changed in place has each of its reads checked for exclusive access at run time,
    // which takes 4 % of a value's time.

    /// A change of the link's life.
    func changeLife<Result>(_ event: (inout LinkLife) -> Result) -> Result {
        var next = life
        defer { life = next }
        return event(&next)
    }

    /// A change of the open indication.
    func changeIndication<Result>(_ event: (inout OpenIndication) -> Result) -> Result {
        var next = indication
        defer { indication = next }
        return event(&next)
    }

    func lane(_ direction: Direction) -> Lane { direction == .up ? up : down }

    /// What may go in a direction now.
    @inline(__always)
    func next(_ direction: Direction, during event: UInt64?) -> Lane.Choice {
        switch direction {
        case .up: up.next(during: event, isBlocked: !up.isReceiving || up.longValue == .stalls)
        case .down:
            down.next(
                during: event, isBlocked: !down.isReceiving || indication.blocksValues || down.longValue == .stalls)
        }
    }

    /// Index of the subscription to a characteristic.
    func subscription(to characteristic: AttributeID) -> Int? {
        subscriptions.firstIndex { $0.characteristic == characteristic }
    }
}

/// Which way a packet goes.
enum Direction {
    /// From the central to the peripheral.
    case up
    /// From the peripheral to the central.
    case down
}

/// A characteristic that a link is subscribed to.
struct Subscribed {
    let characteristic: AttributeID
    let owner: Int
    var kind: Subscription
    var clients: [Client]
}

/// The queue of one direction of a link: values in a ring, all other PDUs beside it, in one order.
final class Lane {
    var ring: ValueRing?
    var control: Deque<Control> = []
    /// Whether the far side takes values.
    var isReceiving = true
    var headFault = HeadFault.none
    /// Whether the value at the head is longer than the receiver can take.
    var longValue = LongValue.none
    var nextOrder: UInt64 = 0
    /// Packets that may still go in this turn.
    var budget = 0

    func takeOrder() -> UInt64 {
        nextOrder += 1
        return nextOrder
    }

    func append(_ pdu: PDU, during event: UInt64) {
        control.append(Control(order: takeOrder(), event: event, pdu: pdu))
    }

    /// What may go now: nothing, the ring's first value, or the first control PDU. In a timed event `event` is its
    /// number; a PDU that was queued during it waits for the next one.
    func next(during event: UInt64?, isBlocked: Bool) -> Choice {
        let value = ring.flatMap { $0.isEmpty ? nil : $0.first }
        if let first = control.first,
            value.map({ first.order < $0.order || isBlocked && first.pdu.mayOvertake }) ?? true
        {
            if let event, first.event >= event { return .nothing }
            return first.pdu.isValue && isBlocked ? .nothing : .control
        }
        return value == nil || isBlocked ? .nothing : .value
    }

    enum Choice { case nothing, value, control }

    enum LongValue { case none, stalls, passes }
}

/// A PDU that is not a notification, indication or write command.
struct Control {
    let order: UInt64
    /// The connection event in which it was queued: it is answered in a later one, as hosts do.
    let event: UInt64
    let pdu: PDU
}

enum PDU {
    case request(ATTRequest)
    case response(Result<Outcome, ATTError>)
    case confirmation
    case openChannel(PSM, client: Int, Waiter<Int>)
    case channelOpened(Int, Waiter<Int>)
    case channelRefused(BluetoothError, Waiter<Int>)
    case terminate

    /// A receiver that has paused does not take it.
    var isValue: Bool {
        switch self {
        case .request(.write), .request(.prepare), .request(.execute): true
        default: false
        }
    }

    /// Values that a paused receiver leaves in the queue do not hold it up.
    var mayOvertake: Bool {
        switch self {
        case .terminate: false
        default: !isValue
        }
    }
}
