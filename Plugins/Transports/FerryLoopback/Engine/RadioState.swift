import DequeModule
import Ferry
import FerryBluetooth

/// The state of the whole radio, guarded by one lock: plain bookkeeping that never calls out. Events for owners go into
/// `events` and are delivered by the pump; timers go into `timers` and are set after unlocking.
struct RadioState {
    let time: any TimeSource
    let configuration: LoopbackRadio.Configuration

    var nodes: [Node] = []
    var pairs: [Pair: PairConditions] = [:]
    var peripherals: [Int: PeripheralOwner] = [:]
    var centrals: [Int: CentralOwner] = [:]
    var links: [Int: AirLink] = [:]
    var clients: [Int: Client] = [:]
    var channels: [Int: ChannelEnd] = [:]
    /// The link from one adapter to another, by both.
    var linkBetween: [Direct: Int] = [:]
    /// Peripheral roles that advertise, and central roles that scan, in the order in which they began.
    var advertisers: [Int] = []
    var scanners: [Int] = []
    var openRequests = HeldRequests<OpenRequest>()
    /// Waits for adapters to advertise.
    var attempts = ConnectionAttempts<Int, Int>()
    /// For ready signals; values have one for each link.
    var readyFaults: FaultInjector?
    var injected: [LoopbackRadio.Faults.Kind: Int] = [:]
    var linkCount: UInt64 = 0

    /// The model of the link layer, and when its timer is set for.
    var linkLayer: (any LinkLayerModel)?
    /// Whether there is one: asked for each value, and asking the model itself copies it.
    let hasLinkLayer: Bool
    var linkLayerDeadline: Timestamp?

    var events: Deque<Event> = []
    var timers: [(deadline: Timestamp, timer: Timer)] = []
    /// Owners that the radio has let go of; they are released after unlocking, because their last words may be calls.
    var released: [any Sendable] = []

    // The pump's own.
    var turns: Deque<AirLink> = []
    var delivering: Delivering?
    var isRunning = false
    var isWakeSet = false
    var stepsInRun = 0

    private var lastID = 0

    init(time: any TimeSource, configuration: LoopbackRadio.Configuration) {
        self.time = time
        self.configuration = configuration
        readyFaults = FaultInjector(configuration.faults, stream: 0)
        linkLayer = configuration.linkLayer
        hasLinkLayer = configuration.linkLayer != nil
    }

    /// A number that no other role, link, client, channel or request has.
    mutating func nextID() -> Int {
        lastID += 1
        return lastID
    }

    mutating func setTimer(after delay: Duration, _ timer: Timer) {
        timers.append((time.now + delay, timer))
    }

    /// Makes sure that the pump runs soon; called after anything was queued.
    mutating func wake() {
        guard !isRunning, !isWakeSet else { return }
        isWakeSet = true
        timers.append((time.now, .wake))
    }
}

/// Two adapters, in either order.
struct Pair: Hashable {
    let low: Int
    let high: Int
    init(_ a: Int, _ b: Int) { (low, high) = (min(a, b), max(a, b)) }
}

/// A central's adapter and a peripheral's.
struct Direct: Hashable {
    let central: Int
    let peripheral: Int
}

/// What lies between two adapters, where it is not the default.
struct PairConditions {
    var rssi: Int?
    var isInRange = true
    var isBonded = false
    var faults: LoopbackRadio.Faults?
}

/// One adapter.
final class Node {
    let index: Int
    let name: String
    var state: AdapterState
    var pairing = LoopbackAdapter.Pairing.succeeds
    var peripherals: [Int] = []
    var centrals: [Int] = []
    var database = Database()
    /// Links on which this adapter is the peripheral, in the order they were made.
    var links: [Int] = []
    /// Adapters that this one has met, by the name it knows them by.
    var peers = PeerTable<Int>(limit: .max)
    /// Links that count as sharers of the transmit queue.
    var sharers = 0
    var hasFreedPlace = false
    var psms: [UInt16: PublishedPSM] = [:]

    init(index: Int, name: String, state: AdapterState) {
        self.index = index
        self.name = name
        self.state = state
    }

    /// Throws unless the adapter can be used.
    func requirePower() throws(BluetoothError) {
        guard state == .poweredOn else { throw .notPoweredOn(name, state) }
    }
}

struct PublishedPSM {
    let owner: Int
    let encryptionRequired: Bool
}

/// One open peripheral role. Its variables are read and written with the radio's lock held only, which makes it sendable:
/// the role's object keeps it at hand.
final class PeripheralOwner: @unchecked Sendable {
    let id: Int
    let node: Int
    let sink: any PeripheralRoleEvents
    var advertisement: AdvertisementData?
    /// Nil for the configuration's.
    var advertisingInterval: Duration?
    var isAdvertisingTimerSet = false
    var wantsReady = false
    var isClosed = false
    /// The link that was asked for last: senders mostly stay with one central for many values.
    private var recentLink: AirLink?

    init(id: Int, node: Int, sink: any PeripheralRoleEvents) {
        self.id = id
        self.node = node
        self.sink = sink
    }

    /// The link to a central while it lasts and this side has not ended it, from memory if it is the same as last time.
    func link(to central: ConnectedCentral, in radio: borrowing RadioState) -> AirLink? {
        if recentLink?.handle != central {
            guard let id = Int(exactly: central.connection) else { return nil }
            recentLink = radio.links[id]
        }
        guard let recentLink, recentLink.handle == central, recentLink.peripheral == node else { return nil }
        return recentLink.life.isOver(for: .down) ? nil : recentLink
    }
}

/// One open central role.
final class CentralOwner {
    let id: Int
    let node: Int
    let sink: any CentralRoleEvents
    /// By the peripheral roles that advertise.
    var scan: Scan<Int>?

    init(id: Int, node: Int, sink: any CentralRoleEvents) {
        self.id = id
        self.node = node
        self.sink = sink
    }
}

/// One owner's use of a link, as a central: what `PeripheralConnection` stands for.
final class Client {
    let id: Int
    let link: Int
    let owner: Int
    let peer: PeerID
    var life: ConnectionLife
    var isReceiving = true
    var wantsReady = false
    var hasWriteOutstanding = false
    var attMTU = 23

    init(id: Int, link: Int, owner: Int, peer: PeerID, _ sink: any PeripheralConnectionEvents) {
        self.id = id
        self.link = link
        self.owner = owner
        self.peer = peer
        life = .open(sink)
    }
}

/// A request of a central that the owner of the characteristic has been asked to answer.
struct OpenRequest {
    let link: Int
    let isRead: Bool
}

/// What falls due.
enum Timer {
    case wake
    case advertising(peripheral: Int)
    case connectionEvent(link: Int)
    case linkLayer(Timestamp)
    case supervision(link: Int, since: Timestamp)
    case transactions(link: Int)
    case forcedEnd(link: Int)
    case forcedClose(channel: Int, queuedFrames: Int)
    case lateReady(Event)
    case stallOver(link: Int, Direction)
}

/// Something to tell an owner, if it is still there when its turn comes.
enum Event {
    case peripheral(Int, @Sendable (any PeripheralRoleEvents) -> Void)
    case central(Int, @Sendable (any CentralRoleEvents) -> Void)
    case client(Int, @Sendable (any PeripheralConnectionEvents) -> Void)
    case clientEnded(Int, BluetoothError)
    case connected(Waiter<Int>, client: Int)
    case channelOpened(owner: Int, Int)
    case channelConnected(Waiter<Int>, Int)
    case readyToUpdate(peripheral: Int)
    case readyToWrite(client: Int)
    case readyToSend(channel: Int)
    case call(@Sendable () -> Void)
}
