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
    var attMTU = 23
    var hasExchangedMTU = false
    var isEncrypted = false
    var isInRange = true
    var supervisionToken = 0
    var life = LinkLife.open
    /// Why it ends for each side, once one has asked for that.
    var ending: Ending?

    // ATT transactions.
    var requests: Deque<ClientRequest> = []
    var prepared: [WriteRequest.Part] = []
    var requestDeadline: Timestamp?
    var indicationDeadline: Timestamp?
    var isTransactionTimerSet = false

    // Connection events.
    var eventNumber: UInt64 = 0
    var isInTurn = false
    var isEventSet = false
    var rotation = 0

    /// A write has left since the clients were last told.
    var hasFreedWrite = false

    /// What goes wrong with its values, if anything is to.
    var faults: FaultInjector? { didSet { hasFaults = faults != nil } }
    /// Asked for each value, without a copy of the above.
    private(set) var hasFaults = false

    /// What still refers to a link that has ended must not use it.
    var hasEnded: Bool { life == .ended }

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

    /// The most bytes of one value at present.
    var maximumValueLength: Int { min(attMTU - 3, 512) }

    /// Index of the subscription to a characteristic.
    func subscription(to characteristic: AttributeID) -> Int? {
        subscriptions.firstIndex { $0.characteristic == characteristic }
    }
}

/// The life of a link.
enum LinkLife: Equatable {
    case open
    /// One side has asked for the end, and the disconnection waits in its lane.
    case ending(by: Direction)
    case ended
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

/// Why a link ends, for each side.
struct Ending {
    var centralReason: BluetoothError
    var peripheralReason: BluetoothError
}

/// What waits to go one way on a link: values in a ring, everything else beside it, in one order.
final class Lane {
    var ring: ValueRing?
    var control: Deque<Control> = []
    /// Whether the far side takes values.
    var isReceiving = true
    /// An indication is on its way or unconfirmed.
    var isIndicating = false
    /// The value at the head has been delivered and waits for its confirmation.
    var awaitsConfirmation = false
    /// The confirmation is held back until the receiver goes on.
    var owesConfirmation = false
    /// The value at the head is delivered once more.
    var repeatsFirst = false
    /// The value at the head does not reach its owner.
    var losesFirst = false
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
    /// number; what was queued during it waits for the next one.
    func next(during event: UInt64?) -> Choice {
        let value = ring.flatMap { $0.isEmpty ? nil : $0.first }
        let isBlocked = !isReceiving || awaitsConfirmation
        if let first = control.first,
            value.map({ first.order < $0.order || isBlocked && first.pdu.mayOvertake }) ?? true
        {
            if let event, first.event >= event { return .nothing }
            return first.pdu.isValue && !isReceiving ? .nothing : .control
        }
        return value == nil || isBlocked ? .nothing : .value
    }

    enum Choice { case nothing, value, control }
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
